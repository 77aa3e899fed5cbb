//! Finds the conversation of an event among the candidates of its route.

use super::{route::ConversationCandidate, shared::Shared};
use crate::bus::retry_until_stored;
use pudu_channels::{Inbound, ReplyTarget};
use pudu_kit::clock;
use pudu_store::ChatConversations;
use std::sync::Arc;

/// Returns the key of the first candidate that exists.
pub(super) async fn find(shared: &Shared, inbound: &Inbound, candidates: &[ConversationCandidate]) -> String {
    for candidate in candidates {
        if let Some(key) = find_candidate(shared, inbound, candidate).await {
            return key;
        }
    }
    inbound.address.key()
}

async fn find_candidate(
    shared: &Shared,
    inbound: &Inbound,
    candidate: &ConversationCandidate,
) -> Option<String> {
    let (account, chat) = (&inbound.address.account, &inbound.address.chat);
    match candidate {
        ConversationCandidate::Key(key) => Some(key.clone()),
        ConversationCandidate::ChainOf(message) => {
            let read = || shared.db.conversation_of(account, chat, message);
            let found = retry_until_stored("failed to read conversation of message", read).await;
            found.flatten().map(|(key, _)| key)
        }
        ConversationCandidate::AtWork { base, topics, own } => {
            let room = ChatConversations { account, chat, base, topics: *topics };
            let works = at_work(shared, room, &inbound.sender.id).await;
            let own = own.clone().filter(|own| works.contains(own));
            own.or_else(|| works.into_iter().next())
        }
        ConversationCandidate::Latest { base, topics } => {
            let room = ChatConversations { account, chat, base, topics: *topics };
            let read = || shared.db.latest(room);
            let found = retry_until_stored("failed to read conversations of chat", read).await;
            found.flatten().map(|conversation| conversation.key)
        }
    }
}

/// Returns a room's conversations that are answering a question of this person, newest first.
async fn at_work(shared: &Shared, room: ChatConversations<'_>, person: &str) -> Vec<String> {
    let works = || shared.db.at_work(room);
    let found =
        retry_until_stored("failed to read active conversations of chat", works).await.unwrap_or_default();
    let theirs =
        |target: &str| serde_json::from_str(target).is_ok_and(|target: ReplyTarget| target.sender == person);
    found.into_iter().filter(|(_, target)| theirs(target)).map(|(key, _)| key).collect()
}

/// Stores in the background that a message belongs to a conversation. The record is needed only when a person replies
/// to the message, and by then it is stored.
pub(super) fn remember(shared: &Arc<Shared>, inbound: &Inbound, key: &str) {
    let (shared, address, key) = (shared.clone(), inbound.address.clone(), key.to_owned());
    let message = [inbound.message.clone()];
    shared.clone().tasks.spawn(async move {
        let recorded =
            shared.db.record(&address.account, &address.chat, &message, &key, false, clock::now()).await;
        if let Err(error) = recorded {
            tracing::warn!(%error, "failed to store conversation of message: replies to it will begin a new one");
        }
    });
}
