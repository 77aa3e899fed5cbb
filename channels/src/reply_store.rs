//! Trait that stores a channel's reply state, so that it finds its own messages after a restart.

use crate::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// State for finding the messages of one reply again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyHandle {
    /// The channel's record. Only the channel reads it.
    pub state: Value,
    /// The platform's ids of this reply's messages. Replying to one of these messages continues the conversation.
    pub messages: Vec<String>,
}

/// Stores the data that one reply needs after a restart.
pub trait ReplyStore: Send + Sync {
    /// Replaces the stored handle. The handle is durable when this returns.
    fn save<'a>(&'a self, handle: &'a ReplyHandle) -> BoxFuture<'a, Result<(), ReplyStoreError>>;

    /// Returns all messages of this bot, seen or sent, since `since` (milliseconds since 1970), in all chats.
    fn known_messages<'a>(&'a self, since: i64) -> BoxFuture<'a, Result<Vec<KnownMessage>, ReplyStoreError>>;
}

/// A message that was seen or sent. Its identity includes the chat: on some platforms every chat numbers its messages
/// separately, on others several chats share one sequence.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KnownMessage {
    /// The platform's id of the chat.
    pub chat: String,
    /// The platform's id of the message.
    pub message: String,
}

/// Failure to write or read the reply store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the reply's record could not be stored: {0}")]
pub struct ReplyStoreError(pub String);
