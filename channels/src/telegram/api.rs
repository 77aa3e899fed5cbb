//! The few calls that a reply is made of, as data, so that its state machine can be driven by a script.

use crate::{BoxFuture, Choice, OutFile, SendError, reply};
use std::time::Duration;

/// A call that concerns one chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TelegramCall {
    /// Sends a new message.
    Send { to: Thread, text: TelegramText },
    /// Changes a message.
    Edit { id: i64, text: TelegramText },
    /// Deletes a message.
    Delete { id: i64 },
    /// Sends a file.
    Upload { to: Thread, file: OutFile, photo: bool },
    /// Shows that something is being written; lasts five seconds.
    Typing { topic: Option<i64> },
    /// Puts 👀 on a message.
    Seen { id: i64 },
}

/// Topic and answered message of a send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Thread {
    pub(super) topic: Option<i64>,
    pub(super) reply_to: Option<i64>,
}

/// Content of an outgoing message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TelegramText {
    pub(super) body: String,
    pub(super) html: bool,
    pub(super) buttons: Vec<Choice>,
}

/// The message that a call made or changed; empty for calls that do neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SentMessage {
    pub(super) id: i64,
    /// The message's topic and answered message, as far as Telegram names them.
    pub(super) thread: Thread,
}

/// Makes calls.
pub(super) trait TelegramApi: Send + Sync {
    fn call<'a>(
        &'a self,
        chat: i64,
        call: &'a TelegramCall,
    ) -> BoxFuture<'a, Result<SentMessage, TelegramCallError>>;
}

/// Why a call failed, named by what it means for the message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TelegramCallError {
    /// 429: nothing may go to this chat before then. Nothing was done.
    #[error("the chat has to wait {0:?}")]
    Wait(Duration),
    /// The group has a new id. Nothing was done.
    #[error("the group has become {0}")]
    Migrated(i64),
    /// The message says that already.
    #[error("the message is not modified")]
    NotModified,
    /// There is no such message in the chat.
    #[error("the message is not there")]
    Gone,
    /// The message is there, but is not one of ours with a text.
    #[error("the message can't be edited")]
    Foreign,
    /// The markup was not understood. Nothing was done.
    #[error("the markup was not understood: {0}")]
    Markup(String),
    /// The token is not valid.
    #[error("the token was refused: {0}")]
    Token(String),
    /// Somebody else polls, or a webhook is set.
    #[error("another program polls with this token, or a webhook is set")]
    Conflict,
    /// Trying again does not help. Nothing was done.
    #[error("{0}")]
    Refused(String),
    /// No connection came about. Nothing was done.
    #[error("{0}")]
    Unconnected(String),
    /// The call may have been done or not.
    #[error("{0}")]
    Unknown(String),
    /// The file to send could not be read. Nothing was done.
    #[error("{0}")]
    File(String),
}

impl TelegramCallError {
    /// Maps the error of a call that only prepared another: nothing was done.
    pub(super) fn before(self) -> Self {
        match self {
            Self::Unknown(what) => Self::Unconnected(what),
            other => other,
        }
    }

    /// Returns whether Telegram, or the way to it, fails.
    pub(super) fn is_outage(&self) -> bool {
        matches!(self, Self::Unconnected(_) | Self::Unknown(_))
    }
}

impl From<TelegramCallError> for reply::CallError {
    fn from(error: TelegramCallError) -> Self {
        match error {
            TelegramCallError::Wait(after) => Self::Wait(after),
            TelegramCallError::Gone | TelegramCallError::Foreign => Self::Gone,
            // A new token may be given any day; the reply is still wanted then.
            TelegramCallError::Unconnected(what) | TelegramCallError::Token(what) => Self::Unconnected(what),
            TelegramCallError::Unknown(what) => Self::Unknown(what),
            TelegramCallError::File(what) => Self::File(what),
            other => Self::Refused(other.to_string()),
        }
    }
}

impl From<TelegramCallError> for SendError {
    fn from(error: TelegramCallError) -> Self {
        reply::CallError::from(error).into()
    }
}
