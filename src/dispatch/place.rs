//! Which conversation something belongs to.
//!
//! A private chat is one conversation, and so is a topic. In a group without topics each message to the
//! bot begins a chain of its own, and an answer to any message of a chain continues it; a command or a
//! change concerns the chain that it stands in, or else one of the chat: of those in which a run of this
//! person is at work the newest, or the one that was talked in last. Where each question begins a thread, the
//! threads are what a chat consists of, and a command that stands beside them concerns one of them likewise.

use super::{Account, Shared, command::SlashCommand};
use crate::{bus::retry_until_stored, clock};
use pudu_channels::{Address, Inbound, InboundKind, ReplyTarget};
use pudu_client::store::ChatConversations;
use std::sync::Arc;

/// Returns the key of the conversation, and remembers that the message belongs to it.
pub(super) async fn conversation(
    shared: &Arc<Shared>,
    account: &Account,
    inbound: &Inbound,
    command: Option<&SlashCommand>,
) -> String {
    let (address, threads) = (&inbound.address, account.channel().limits().threads);
    if inbound.private {
        return alone(shared, inbound, command.filter(|_| threads)).await;
    }
    // A command that would begin a thread of its own is said to those that are there.
    let beside = threads && command.is_some() && address.topic.as_ref() == Some(&inbound.message);
    if address.topic.is_some() && !beside {
        // A topic may hang below a message of a chain: then it goes on with that.
        return chain(shared, inbound).await.unwrap_or_else(|| address.key());
    }
    let key = match chain(shared, inbound).await {
        Some(key) => key,
        None => begin(shared, inbound, command.is_some(), threads).await,
    };
    remember(shared, inbound, &key);
    key
}

/// Finds the chain that something stands in: by the message that it answers, or that it is about.
async fn chain(shared: &Shared, inbound: &Inbound) -> Option<String> {
    let message = match &inbound.kind {
        InboundKind::Message { .. } => inbound.reply_to.as_ref()?,
        InboundKind::Edit { .. } | InboundKind::Recall | InboundKind::Press { .. } => &inbound.message,
    };
    let address = &inbound.address;
    let found = || shared.db.conversation_of(&address.account, &address.chat, message);
    retry_until_stored("a message's conversation could not be read", found)
        .await
        .flatten()
        .map(|(key, _)| key)
}

/// A private chat is one conversation. Who cannot give a command in a thread there means the thread with "stop",
/// if it is all that can be stopped.
async fn alone(shared: &Shared, inbound: &Inbound, command: Option<&SlashCommand>) -> String {
    let (address, own) = (&inbound.address, inbound.address.key());
    let typed = matches!(inbound.kind, InboundKind::Message { .. });
    if address.topic.is_some() || !typed || command != Some(&SlashCommand::Stop) {
        return own;
    }
    let works = at_work(shared, room(address, &own, true), &inbound.sender.id).await;
    if works.contains(&own) { own } else { works.into_iter().next().unwrap_or(own) }
}

/// A question begins a chain; anything else concerns one that is there.
async fn begin(shared: &Shared, inbound: &Inbound, command: bool, threads: bool) -> String {
    let address = &inbound.address;
    let base = Address { topic: None, ..address.clone() }.key();
    if command || !matches!(inbound.kind, InboundKind::Message { .. }) {
        let room = room(address, &base, threads);
        if let Some(key) = at_work(shared, room, &inbound.sender.id).await.into_iter().next() {
            return key;
        }
        let latest = || shared.db.latest(room);
        if let Some(found) =
            retry_until_stored("a chat's conversations could not be read", latest).await.flatten()
        {
            return found.key;
        }
    }
    match &inbound.kind {
        _ if address.topic.is_some() => address.key(),
        InboundKind::Message { album: Some(album), .. } => format!("{base}:a{album}"),
        _ => format!("{base}:m{}", inbound.message),
    }
}

fn room<'a>(address: &'a Address, base: &'a str, topics: bool) -> ChatConversations<'a> {
    ChatConversations { account: &address.account, chat: &address.chat, base, topics }
}

/// Returns the conversations of a room in which a question of a person is worked on, newest first.
async fn at_work(shared: &Shared, room: ChatConversations<'_>, person: &str) -> Vec<String> {
    let works = || shared.db.at_work(room);
    let found =
        retry_until_stored("what is worked on in a chat could not be read", works).await.unwrap_or_default();
    let theirs = |reply_target: &str| {
        serde_json::from_str(reply_target)
            .is_ok_and(|reply_target: ReplyTarget| reply_target.sender == person)
    };
    found.into_iter().filter(|(_, reply_target)| theirs(reply_target)).map(|(key, _)| key).collect()
}

/// Not waited for: it is needed when somebody answers the message, and no person is that fast.
fn remember(shared: &Arc<Shared>, inbound: &Inbound, key: &str) {
    if !matches!(inbound.kind, InboundKind::Message { .. }) {
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
