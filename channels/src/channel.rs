//! Traits that connect a platform to the rest of pudu.

use crate::{
    Address, Attachment, BoxFuture, Check, EventSink, FinalView, Health, Hurry, Inbound, PointedAt,
    ReplyHandle, ReplyStore, ReplyStoreError, ReplyView, Webhook,
};
use pudu_texts::Language;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{path::Path, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// One bot on one platform.
pub trait Channel: Send + Sync {
    /// Returns the bot's name: its key under `channels:`.
    fn account(&self) -> &str;

    /// Returns the platform's name, as in a bot's `type:` setting.
    fn platform(&self) -> &'static str;

    /// Returns the platform's capabilities.
    fn limits(&self) -> ChannelLimits;

    /// Returns the state of the connection.
    fn health(&self) -> Health;

    /// Receives events until `stop`. Acknowledges each event to the platform only after `sink` accepted it. Reconnects
    /// automatically; returns early only for a failure that the operator has to fix.
    fn listen<'a>(
        &'a self,
        sink: &'a dyn EventSink,
        stop: CancellationToken,
    ) -> BoxFuture<'a, Result<(), ChannelError>>;

    /// Returns the webhook, if the platform delivers events by HTTP.
    fn webhook(&self) -> Option<Arc<dyn Webhook>> {
        None
    }

    /// Returns a link that opens the platform and sends a code to the bot, if the platform supports such links.
    fn connect_link(&self, _code: &str) -> Option<String> {
        None
    }

    /// Checks the bot's requirements for `pudu doctor`. Changes nothing on the platform.
    fn check<'a>(&'a self) -> BoxFuture<'a, Vec<Check>>;

    /// Starts a reply, or resumes one that a restart interrupted.
    fn open_reply(&self, target: ReplyTarget, store: Box<dyn ReplyStore>) -> Box<dyn LiveReply>;

    /// Returns the target of a second reply to the same event. The second reply is shown in addition to the first one
    /// and never replaces it.
    fn second_target(&self, target: &ReplyTarget) -> ReplyTarget {
        ReplyTarget { saved: None, ..target.clone() }
    }

    /// Returns the part of an event's hint that a later message to the same chat needs, without values that expire or
    /// that tie the message to the event.
    fn lasting_hint(&self, hint: &Value) -> Option<Value> {
        Some(hint.clone())
    }

    /// Shows the sender that `message` was seen and is queued. Calling it twice has no further effect.
    fn acknowledge<'a>(
        &'a self,
        address: &'a Address,
        message: &'a str,
    ) -> BoxFuture<'a, Result<(), SendError>>;

    /// Deletes a user's message in a private chat. Returns whether the chat no longer contains it: on most platforms,
    /// bots cannot delete users' messages.
    fn forget<'a>(
        &'a self,
        _address: &'a Address,
        _message: &'a str,
    ) -> BoxFuture<'a, Result<bool, SendError>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Reads the content behind [`PointedAt::reference`], which a message refers to but its event does not contain.
    /// Called only after access was granted to the sender. Content that the sender could not read on the platform is
    /// not read on their behalf; the returned piece then reports that.
    fn look_up<'a>(
        &'a self,
        _inbound: &'a Inbound,
        _pointed: &'a PointedAt,
    ) -> BoxFuture<'a, Result<Vec<PointedAt>, SendError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Reads the recent messages in a message's chat or thread, oldest first, if the platform offers bots a history.
    /// Called only after access was granted to the sender.
    fn recent<'a>(
        &'a self,
        _inbound: &'a Inbound,
        _wanted: RecentMessages<'a>,
    ) -> BoxFuture<'a, Result<Vec<PointedAt>, SendError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Downloads a file of at most `limit` bytes to `to`, which does not exist yet. Called only after access was
    /// granted to its sender.
    fn download<'a>(
        &'a self,
        attachment: &'a Attachment,
        to: &'a Path,
        limit: u64,
    ) -> BoxFuture<'a, Result<u64, SendError>>;
}

/// Request for recent messages of a chat.
#[derive(Clone, Copy, Debug)]
pub struct RecentMessages<'a> {
    /// Maximum number of messages; older ones are left out.
    pub max: usize,
    /// Earliest time of a message, in milliseconds since 1970.
    pub since: i64,
    /// Ids of messages to leave out.
    pub except: &'a [String],
}

/// Capabilities of a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelLimits {
    /// Maximum size of a file that can be downloaded, in bytes.
    pub download: u64,
    /// Maximum size of a file that can be sent, in bytes.
    pub upload: u64,
    /// Whether each question in a chat begins a topic: a thread of answers below it. If so, a message outside the
    /// threads that is not a question concerns one of the threads. If not, topics are separate conversations.
    pub threads: bool,
    /// Maximum number of fields of a form; 0 if the platform has no forms.
    pub form_fields: usize,
}

/// Target of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyTarget {
    /// The conversation.
    pub address: Address,
    /// Whether the chat contains only one user and the bot.
    pub private: bool,
    /// The message being replied to.
    pub reply_to: Option<String>,
    /// The author's stable platform id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sender: String,
    /// The language of the reply; English in older records.
    #[serde(default)]
    pub language: Language,
    /// Copy of [`Inbound::hint`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Value>,
    /// State of this reply that was saved before a restart.
    pub saved: Option<ReplyHandle>,
}

/// One reply in delivery: a message that grows in place.
pub trait LiveReply: Send {
    /// Waits until another unfinished view may be shown. The caller then takes the newest view.
    fn ready<'a>(&'a mut self) -> BoxFuture<'a, ()>;

    /// Waits until the last view has to be shown again because its rendering depends on the time. Otherwise never
    /// returns.
    fn next_refresh<'a>(&'a mut self) -> BoxFuture<'a, ()> {
        Box::pin(std::future::pending())
    }

    /// Waits before a failed view is shown again: for `wait`, or until the platform is known to answer again.
    fn pause<'a>(&'a mut self, wait: Duration) -> BoxFuture<'a, ()> {
        Box::pin(tokio::time::sleep(wait))
    }

    /// Replaces the shown view with an unfinished one.
    fn update<'a>(&'a mut self, view: &'a ReplyView) -> BoxFuture<'a, Result<(), SendError>>;

    /// Sets the signal that reports whether a user is waiting for the reply to end. If so, delays such as retries of a
    /// file that the platform does not accept are cut short.
    fn set_hurry(&mut self, _hurry: Hurry) {}

    /// Shows the final view. May be called again after an error or a restart: messages that were already sent are not
    /// sent twice.
    fn finish<'a>(&'a mut self, view: &'a FinalView) -> BoxFuture<'a, Result<(), SendError>>;
}

/// Failure to show a view. The variants correspond to the caller's next step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Try again, not before `after`.
    #[error("the platform asks to wait {after:?}")]
    Later {
        /// How long to wait.
        after: Duration,
    },
    /// The outcome is unknown, or the platform failed: try again.
    #[error("the platform could not be reached: {0}")]
    Unreachable(String),
    /// The answer is delivered, but a message of the reply has yet to be deleted: try again, not before `after`.
    #[error("the answer is delivered, but the platform has not confirmed that another message is deleted")]
    Untidy {
        /// How long to wait, if the platform asks for it.
        after: Option<Duration>,
    },
    /// Permanent failure: the bot is blocked, the chat is gone, or sending is not allowed.
    #[error("the platform refused: {0}")]
    Refused(String),
    /// The file is larger than allowed.
    #[error("the file is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The record of the reply could not be stored.
    #[error(transparent)]
    ReplyStore(#[from] ReplyStoreError),
    /// A local file could not be read or written.
    #[error("{0}")]
    File(String),
}

/// Why a channel stopped listening. The operator has to fix it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// The platform refused the credentials.
    #[error("the platform refused the credentials: {0}")]
    Auth(String),
    /// The configuration is invalid.
    #[error("{0}")]
    Config(String),
}
