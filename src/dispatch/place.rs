//! Which conversation something belongs to.
//!
//! A private chat is one conversation, and so is a topic. In a group without topics each message to the
//! bot begins a chain of its own, and an answer to any message of a chain continues it; a command or a
//! change concerns the chain that it stands in, or else the one that was talked in last.

use crate::clock;
use pudu_channels::{Inbound, Kind};
use pudu_client::store::Db;

/// Returns the key of the conversation, and remembers that the message belongs to it.
pub(super) async fn conversation(db: &Db, inbound: &Inbound, command: bool) -> String {
    let address = &inbound.address;
    if inbound.private || address.topic.is_some() {
        return address.key();
    }
    if let Some(key) = chain(db, inbound).await {
        remember(db, inbound, &key).await;
        return key;
    }
    let latest = if command || !matches!(inbound.kind, Kind::Message { .. }) {
        db.latest_in_chat(&address.account, &address.chat).await.ok().flatten().map(|found| found.key)
    } else {
        None
    };
    let key = latest.unwrap_or_else(|| match &inbound.kind {
        Kind::Message { album: Some(album), .. } => format!("{}:a{album}", address.key()),
        _ => format!("{}:m{}", address.key(), inbound.message),
    });
    remember(db, inbound, &key).await;
    key
}

/// Finds the chain that something stands in: by the message that it answers, or that it is about.
async fn chain(db: &Db, inbound: &Inbound) -> Option<String> {
    let message = match &inbound.kind {
        Kind::Message { .. } => inbound.reply_to.as_ref()?,
        Kind::Edit { .. } | Kind::Recall | Kind::Press { .. } => &inbound.message,
    };
    let found = db.conversation_of(&inbound.address.account, &inbound.address.chat, message).await;
    found.ok().flatten().map(|(key, _)| key)
}

async fn remember(db: &Db, inbound: &Inbound, key: &str) {
    if !matches!(inbound.kind, Kind::Message { .. }) {
        return;
    }
    let (address, message) = (&inbound.address, std::slice::from_ref(&inbound.message));
    let kept = db.record(&address.account, &address.chat, message, key, false, clock::now()).await;
    if let Err(error) = kept {
        tracing::warn!(%error, "a message's conversation could not be kept: answers to it begin a new one");
    }
}
