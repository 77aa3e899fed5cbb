//! Keys for finding the rows of a person, and messages of threads.

use crate::engines::from_row;
use crate::{Result, error::unreadable};
use pudu_base::{Message, RunId, ThreadId, Update, UserId};
use std::sync::Arc;

/// A platform identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountPerson {
    /// The bot.
    pub account: String,
    /// The platform's id of the person.
    pub person: String,
    /// The displayed name; empty if unknown.
    pub name: String,
}

from_row!(AccountPerson { account, person, name });

/// The keys of a person's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonKeys {
    /// The user.
    pub user: UserId,
    /// The former separate users of the identities.
    pub former: Vec<UserId>,
    /// The user's platform identities.
    pub people: Vec<AccountPerson>,
    /// JSON pointer to the sender's id in the payload of an event.
    pub event_sender: &'static str,
    /// JSON pointer to the author's id in the target of a reply.
    pub reply_sender: &'static str,
}

impl PersonKeys {
    /// Lists the user and the former users.
    pub fn users(&self) -> impl Iterator<Item = &UserId> {
        std::iter::once(&self.user).chain(&self.former)
    }
}

/// A message of a person's turn in another user's thread, such as a room's: their own message, or the agent's messages
/// and tool calls for it.
#[derive(Clone, Debug, PartialEq)]
pub struct RoomMessage {
    /// The thread.
    pub thread: ThreadId,
    /// The owner of the thread.
    pub owner: UserId,
    /// The run that wrote it.
    pub run: RunId,
    /// The position in the thread's log.
    pub seq: i64,
    /// The message.
    pub message: Message,
}

/// Parses a row of a thread's log. Returns `None` if it is not a message.
pub(super) fn message_of(body: &str) -> Result<Option<Message>> {
    match serde_json::from_str(body).map_err(|error| unreadable("a thread's row", &error))? {
        Update::Message(message) => Ok(Some(Arc::unwrap_or_clone(message))),
        _ => Ok(None),
    }
}
