//! Keys by which rows of a person are found, and the rows of threads.

use crate::engines::from_row;
use crate::{Result, error::unreadable};
use pudu_base::{Message, RunId, ThreadId, Update, UserId};
use std::sync::Arc;

/// A person of an account.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountPerson {
    /// The account.
    pub account: String,
    /// The platform's id of the person.
    pub person: String,
    /// The name that people see; empty if unknown.
    pub name: String,
}

from_row!(AccountPerson { account, person, name });

/// The keys of a person's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonKeys {
    /// The user.
    pub user: UserId,
    /// The separate users that those people were, before they became this one.
    pub former: Vec<UserId>,
    /// Those people of accounts who are the user.
    pub people: Vec<AccountPerson>,
    /// Place of the sender's id in the payload of an event: a JSON pointer.
    pub event_sender: &'static str,
    /// Place of the author's id in the target of a reply.
    pub reply_sender: &'static str,
}

impl PersonKeys {
    /// Lists the user and the former users.
    pub fn users(&self) -> impl Iterator<Item = &UserId> {
        std::iter::once(&self.user).chain(&self.former)
    }
}

/// A message of a turn that a person asked for in another user's thread, such as a room's: their own message, or the
/// agent's messages and calls for it.
#[derive(Clone, Debug, PartialEq)]
pub struct RoomMessage {
    /// The thread.
    pub thread: ThreadId,
    /// The user whose thread it is.
    pub owner: UserId,
    /// The run that wrote it.
    pub run: RunId,
    /// The position in its log.
    pub seq: i64,
    /// The message.
    pub message: Message,
}

/// Reads a row of a thread's log, if it is a message.
pub(super) fn message_of(body: &str) -> Result<Option<Message>> {
    match serde_json::from_str(body).map_err(|error| unreadable("a thread's row", &error))? {
        Update::Message(message) => Ok(Some(Arc::unwrap_or_clone(message))),
        _ => Ok(None),
    }
}
