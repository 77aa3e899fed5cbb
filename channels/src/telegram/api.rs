//! The few calls that a reply is made of, as data, so that its state machine can be driven by a script.

use super::failure::TelegramError;
use crate::{BoxFuture, Choice, OutFile, transport::CallEffect};

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

impl TelegramCall {
    /// Returns the call's effect: a sign of activity does not show whether messages work.
    pub(super) fn effect(&self) -> CallEffect {
        match self {
            Self::Typing { .. } | Self::Seen { .. } => CallEffect::Reads,
            _ => CallEffect::Writes,
        }
    }
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
    ) -> BoxFuture<'a, Result<SentMessage, TelegramError>>;
}
