//! The ports between a platform and the rest of the house.

use crate::{
    Address, Attachment, BoxFuture, Check, EventSink, FinalView, Health, Hurry, Inbound, PointedAt,
    ReplyHandle, ReplyStore, ReplyStoreError, ReplyView, Webhook,
};
use pudu_texts::Language;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{path::Path, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// One account on one platform.
pub trait Channel: Send + Sync {
    /// Returns the account's name: its key under `channels:`.
    fn account(&self) -> &str;

    /// Returns the platform's name, as `type:` of an account names it.
    fn platform(&self) -> &'static str;

    /// Returns the platform's capabilities.
    fn limits(&self) -> ChannelLimits;

    /// Returns the state of the connection.
    fn health(&self) -> Health;

    /// Receives events until `stop`. `sink` accepts each event before the platform gets its acknowledgement. Reconnects
    /// automatically; returns early only for a failure that a person has to fix.
    fn listen<'a>(
        &'a self,
        sink: &'a dyn EventSink,
        stop: CancellationToken,
    ) -> BoxFuture<'a, Result<(), ChannelError>>;

    /// Returns the receiver of the platform's posts, if events come that way.
    fn webhook(&self) -> Option<Arc<dyn Webhook>> {
        None
    }

    /// Returns a link that opens the platform and sends the bot a code, where the platform has such links.
    fn connect_link(&self, _code: &str) -> Option<String> {
        None
    }

    /// Checks the account's requirements for `pudu doctor`. Changes nothing on the platform.
    fn check<'a>(&'a self) -> BoxFuture<'a, Vec<Check>>;

    /// Starts a reply, or takes up one that a restart cut.
    fn open_reply(&self, target: ReplyTarget, store: Box<dyn ReplyStore>) -> Box<dyn LiveReply>;

    /// Returns the target of a second reply to the same event. It is shown beside the first reply and never replaces
    /// it.
    fn second_target(&self, target: &ReplyTarget) -> ReplyTarget {
        ReplyTarget { saved: None, ..target.clone() }
    }

    /// Shows the sender of `message` that it is seen and waits its turn. Saying it twice shows it once.
    fn acknowledge<'a>(
        &'a self,
        address: &'a Address,
        message: &'a str,
    ) -> BoxFuture<'a, Result<(), SendError>>;

    /// Deletes a person's message in a private chat. Returns whether the message is gone from the chat: most platforms
    /// let no bot delete it.
    fn forget<'a>(
        &'a self,
        _address: &'a Address,
        _message: &'a str,
    ) -> BoxFuture<'a, Result<bool, SendError>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Reads content that a message points at and that its event does not contain, by [`PointedAt::reference`]. Called
    /// only after the sender of the message was let in. Content that the sender could not read on the platform is not
    /// read for them: then the piece says so.
    fn look_up<'a>(
        &'a self,
        _inbound: &'a Inbound,
        _pointed: &'a PointedAt,
    ) -> BoxFuture<'a, Result<Vec<PointedAt>, SendError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Reads recent messages of the chat or thread of a message, oldest first, where the platform has a history for
    /// bots. Called only after the sender of the message was let in.
    fn recent<'a>(
        &'a self,
        _inbound: &'a Inbound,
        _wanted: RecentMessages<'a>,
    ) -> BoxFuture<'a, Result<Vec<PointedAt>, SendError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Fetches a file of at most `limit` bytes to `to`, which does not exist yet. Called only after its
    /// sender was let in.
    fn download<'a>(
        &'a self,
        attachment: &'a Attachment,
        to: &'a Path,
        limit: u64,
    ) -> BoxFuture<'a, Result<u64, SendError>>;
}

/// Recent messages of a chat that are wanted.
#[derive(Clone, Copy, Debug)]
pub struct RecentMessages<'a> {
    /// Maximum number of messages; the newest count.
    pub max: usize,
    /// Time of the oldest, in milliseconds since 1970.
    pub since: i64,
    /// Ids of messages that are left out.
    pub except: &'a [String],
}

/// Capabilities of a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelLimits {
    /// The largest file that can be fetched, in bytes.
    pub download: u64,
    /// The largest file that can be sent, in bytes.
    pub upload: u64,
    /// Whether each question in a chat begins a topic: a thread of answers below it. A message outside of the threads
    /// that is not a question then concerns one of the threads. Otherwise topics are separate conversations.
    pub threads: bool,
}

/// Target of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyTarget {
    /// The place.
    pub address: Address,
    /// Whether only one person and the bot are there.
    pub private: bool,
    /// The message that is answered.
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
    /// State of this reply that the reply store kept before a restart.
    pub saved: Option<ReplyHandle>,
}

/// One reply on its way to people: one message that grows in place.
pub trait LiveReply: Send {
    /// Waits until the platform may be given another unfinished view, so that the newest can be taken.
    fn ready<'a>(&'a mut self) -> BoxFuture<'a, ()>;

    /// Waits until the view that was shown last has to be shown once more, because it looks otherwise after
    /// some time. For ever where it does not.
    fn next_refresh<'a>(&'a mut self) -> BoxFuture<'a, ()> {
        Box::pin(std::future::pending())
    }

    /// Waits before a view is shown again that could not be: `wait`, or until the platform is known to answer
    /// again.
    fn pause<'a>(&'a mut self, wait: Duration) -> BoxFuture<'a, ()> {
        Box::pin(tokio::time::sleep(wait))
    }

    /// Shows an unfinished view in place of the one before.
    fn update<'a>(&'a mut self, view: &'a ReplyView) -> BoxFuture<'a, Result<(), SendError>>;

    /// Sets the signal that reports whether a person waits for the reply's end. Delays, such as a file that the
    /// platform does not accept, are then given up.
    fn set_hurry(&mut self, _hurry: Hurry) {}

    /// Shows the final view. May be called again after an error, also after a restart: messages that are already there
    /// are not sent twice.
    fn finish<'a>(&'a mut self, view: &'a FinalView) -> BoxFuture<'a, Result<(), SendError>>;
}

/// Failure to show a view, named by the caller's next step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Try again, not before `after`.
    #[error("the platform asks to wait {after:?}")]
    Later {
        /// How long to wait.
        after: Duration,
    },
    /// The outcome is unknown or the platform failed: try again.
    #[error("the platform could not be reached: {0}")]
    Unreachable(String),
    /// The answer is delivered. A message of the reply is left to delete: try again, not before `after`.
    #[error("the answer is delivered, but the platform has not confirmed that another message is deleted")]
    Untidy {
        /// How long to wait, if the platform asks for it.
        after: Option<Duration>,
    },
    /// Trying again does not help: blocked, gone, not allowed.
    #[error("the platform refused: {0}")]
    Refused(String),
    /// The file is larger than allowed.
    #[error("the file is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The record of the reply could not be kept.
    #[error(transparent)]
    ReplyStore(#[from] ReplyStoreError),
    /// A local file could not be read or written.
    #[error("{0}")]
    File(String),
}

/// Why a channel gave up listening: a person has to act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// The platform refused the credentials.
    #[error("the platform refused the credentials: {0}")]
    Auth(String),
    /// The configuration cannot work.
    #[error("{0}")]
    Config(String),
}
