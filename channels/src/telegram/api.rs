//! The calls of a reply as data, so that a test script can drive its state machine.

use super::facts::TelegramError;
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
    /// Shows the typing indicator for five seconds.
    Typing { topic: Option<i64> },
    /// Adds the reaction 👀 to a message.
    Seen { id: i64 },
}

impl TelegramCall {
    /// Returns the call's effect. Typing indicators and reactions count as reads: they do not show whether messages
    /// work.
    pub(super) fn effect(&self) -> CallEffect {
        match self {
            Self::Typing { .. } | Self::Seen { .. } => CallEffect::Reads,
            _ => CallEffect::Writes,
        }
    }
}

/// Topic of a message to send, and the message that it replies to.
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

/// The message that a call sent or edited; empty for other calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SentMessage {
    pub(super) id: i64,
    /// The message's topic and the message that it replies to, as far as Telegram reports them.
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
