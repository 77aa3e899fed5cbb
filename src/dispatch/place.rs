//! Which conversation something belongs to.
//!
//! A private chat is one conversation, and so is a topic. In a group without topics each message to the
//! bot begins a chain of its own, and an answer to any message of a chain continues it; a command or a
//! change concerns the chain that it stands in, or else the one that was talked in last.

use super::Shared;
use crate::{bus::patiently, clock};
use pudu_channels::{Inbound, Kind};
use std::sync::Arc;

/// Returns the key of the conversation, and remembers that the message belongs to it.
pub(super) async fn conversation(shared: &Arc<Shared>, inbound: &Inbound, command: bool) -> String {
    let address = &inbound.address;
    if inbound.private {
        return address.key();
    }
    if address.topic.is_some() {
        // A topic may hang below a message of a chain: then it goes on with that.
        return chain(shared, inbound).await.unwrap_or_else(|| address.key());
    }
    let key = match chain(shared, inbound).await {
        Some(key) => key,
        None => begin(shared, inbound, command).await,
    };
    remember(shared, inbound, &key);
    key
}

/// Finds the chain that something stands in: by the message that it answers, or that it is about.
async fn chain(shared: &Shared, inbound: &Inbound) -> Option<String> {
    let message = match &inbound.kind {
        Kind::Message { .. } => inbound.reply_to.as_ref()?,
        Kind::Edit { .. } | Kind::Recall | Kind::Press { .. } => &inbound.message,
    };
    let address = &inbound.address;
    let found = || shared.db.conversation_of(&address.account, &address.chat, message);
    patiently("a message's conversation could not be read", found).await.flatten().map(|(key, _)| key)
}

/// A question begins a chain; anything else concerns the one that was talked in last.
async fn begin(shared: &Shared, inbound: &Inbound, command: bool) -> String {
    let (address, base) = (&inbound.address, inbound.address.key());
    if command || !matches!(inbound.kind, Kind::Message { .. }) {
        let latest = || shared.db.latest_chain(&address.account, &address.chat, &base);
        if let Some(found) = patiently("a chat's conversations could not be read", latest).await.flatten() {
            return found.key;
        }
    }
    match &inbound.kind {
        Kind::Message { album: Some(album), .. } => format!("{base}:a{album}"),
        _ => format!("{base}:m{}", inbound.message),
    }
}

/// Not waited for: it is needed when somebody answers the message, and no person is that fast.
fn remember(shared: &Arc<Shared>, inbound: &Inbound, key: &str) {
    if !matches!(inbound.kind, Kind::Message { .. }) {
        return;
    }
    let (shared, address, key) = (shared.clone(), inbound.address.clone(), key.to_owned());
    let message = [inbound.message.clone()];
    shared.clone().tasks.spawn(async move {
        let kept = shared.db.record(&address.account, &address.chat, &message, &key, false, clock::now()).await;
        if let Err(error) = kept {
            tracing::warn!(%error, "a message's conversation could not be kept: answers to it begin a new one");
        }
    });
}
