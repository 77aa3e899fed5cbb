//! The port by which a channel keeps the data it needs to find its own messages after a restart.

use crate::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// State by which a channel finds its own messages of one reply again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyHandle {
    /// The channel's own record; only the channel reads it.
    pub state: Value,
    /// The platform's ids of the messages that show this reply: an answer to one continues the conversation.
    pub messages: Vec<String>,
}

/// Keeps the data that one reply needs to survive a restart.
pub trait ReplyStore: Send + Sync {
    /// Keeps the handle in place of the one before; durable when it returns.
    fn save<'a>(&'a self, handle: &'a ReplyHandle) -> BoxFuture<'a, Result<(), ReplyStoreError>>;

    /// Returns all messages of this account that were seen or sent since `since` (milliseconds since
    /// 1970), in any chat.
    fn known_messages<'a>(&'a self, since: i64) -> BoxFuture<'a, Result<Vec<KnownMessage>, ReplyStoreError>>;
}

/// A message that was seen or sent. The chat belongs to it: on some platforms every chat numbers its own
/// messages, on others several chats share one sequence.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KnownMessage {
    /// The platform's id of the chat.
    pub chat: String,
    /// The platform's id of the message.
    pub message: String,
}

/// The reply store could not be written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the reply's record could not be kept: {0}")]
pub struct ReplyStoreError(pub String);
