//! Port of a live reply to its platform: make a message, change it, find it, delete it.

use super::{MessageDraft, NumberedChoices, Typing};
use crate::{
    KnownMessage, OutFile, ReplyStore, SendError,
    recovery::Recovery,
    split::Limit,
    transport::{CallError, KeyedLock},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// The messages of one reply on one platform. A value lives as long as the reply.
pub(crate) trait PlatformMessages: Send + Sync + 'static {
    /// Content of one message, ready to be sent. Equal pages need no call.
    type Page: Clone + PartialEq + Send + Sync;
    /// Record of a message that is there.
    type Ref: MessageRef;
    /// Record of a message before it is sent, by which it can be found again; `()` where a key does it.
    type DedupKey: Clone + PartialEq + std::fmt::Debug + Serialize + DeserializeOwned + Send + Sync;

    /// The capabilities that hold unless [`Self::capabilities`] says otherwise.
    const CAPABILITIES: Capabilities;

    /// Returns the capabilities of this reply as it is shown now.
    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    /// Renders a message.
    fn page(&self, draft: &MessageDraft) -> Self::Page;

    /// Returns whether the markup makes a page too long for the platform: it is cut smaller then.
    fn overfull(&self, _page: &Self::Page) -> bool {
        false
    }

    /// Returns the initial content of a message that will grow.
    fn first(&self, page: &Self::Page) -> Self::Page {
        page.clone()
    }

    /// Ends a message that was perhaps sent, where it cannot be deleted and is not needed.
    fn abandon(&mut self, _intent: &SendIntent<Self::DedupKey>) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Returns whether a message that only holds the place is worth sending: not if it could not be taken
    /// back.
    fn holds_a_place(&mut self) -> impl Future<Output = bool> + Send {
        async { true }
    }

    /// Returns how long a reply waits for its end before its first message; `neutral` if there are no words yet.
    fn placeholder_delay(&self, _neutral: bool) -> Duration {
        Duration::ZERO
    }

    /// Returns whether a new message shows the answer sooner than a change that has to wait for `wait`.
    fn posts_sooner(&self, _wait: Duration) -> bool {
        false
    }

    /// Returns where the numbers of choices are remembered, where there may be no buttons.
    fn numbered_choices(&self) -> Option<&Arc<NumberedChoices>> {
        None
    }

    /// Returns the detector of the platform's recovery.
    fn recovery(&self) -> Option<Recovery> {
        None
    }

    /// Returns whether the last message was perhaps sent, and neither a key nor any search can find out whether it was.
    fn doubtful(&self) -> bool {
        false
    }

    /// Waits until another unfinished view may be shown.
    fn ready(&mut self) -> impl Future<Output = ()> + Send;

    /// Waits until a page of the same words would look otherwise, because of the time that went by.
    fn next_refresh(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Fails while nothing at all may be sent: nothing needs to be written down for a call that is not made.
    fn check_rate_limit(&self) -> Result<(), CallError>;

    /// Waits for the turn to send, where replies of one chat have to take turns.
    fn lock_chat(&self) -> impl Future<Output = Option<KeyedLock>> + Send {
        async { None }
    }

    /// Returns the key to store before a message is sent. `before` is the key under which it was perhaps sent already, and
    /// not found.
    fn dedup_key(
        &mut self,
        before: Option<Self::DedupKey>,
        since: i64,
        history: &MessageHistory<'_>,
    ) -> impl Future<Output = Result<Self::DedupKey, SendError>> + Send;

    /// Looks for a message that was perhaps sent. `None` where it is not there, or where sending again under
    /// the same key makes no second one.
    fn find(
        &mut self,
        intent: &SendIntent<Self::DedupKey>,
        history: &MessageHistory<'_>,
    ) -> impl Future<Output = Result<Option<Self::Ref>, SendError>> + Send;

    /// Brings a record that an older version stored to the form of this one.
    fn upgrade(state: Value) -> Value {
        state
    }

    /// Makes a message.
    fn post(
        &mut self,
        intent: &SendIntent<Self::DedupKey>,
        page: &Self::Page,
    ) -> impl Future<Output = Result<Self::Ref, CallError>> + Send;

    /// Makes a message show a page; `Ok` if it does already. Its record may change; where that has to be stored before
    /// a call is made it answers [`EditOutcome::SaveFirst`], and is asked again.
    fn edit(
        &mut self,
        sent: &mut Self::Ref,
        page: &Self::Page,
    ) -> impl Future<Output = Result<EditOutcome, CallError>> + Send;

    /// Deletes a message.
    fn delete(&mut self, sent: &Self::Ref) -> impl Future<Output = Result<(), CallError>> + Send;

    /// Deletes messages whose deletion failed before. Called at the end of a delivered reply, and again after an error,
    /// which is [`SendError::Untidy`].
    fn retry_deletions(&mut self) -> impl Future<Output = Result<(), SendError>> + Send {
        async { Ok(()) }
    }

    /// Looks for a file that was perhaps sent, first at `since`, in milliseconds since 1970.
    fn find_file(
        &mut self,
        _key: &str,
        _since: i64,
        _file: &OutFile,
        _size: u64,
        _ledger: &MessageHistory<'_>,
    ) -> impl Future<Output = Result<FoundFile, SendError>> + Send {
        async { Ok(FoundFile::Perhaps) }
    }

    /// Prepares the sending of a file, invisibly. [`Self::platform_state`] is stored after it.
    fn prepare_upload(
        &mut self,
        _key: &str,
        _file: &OutFile,
        _size: u64,
    ) -> impl Future<Output = Result<(), CallError>> + Send {
        async { Ok(()) }
    }

    /// Sends a file, which is there, not empty and not too large. Returns the message's id. The same key
    /// comes again when the outcome was not known.
    fn upload(
        &mut self,
        key: &str,
        file: &OutFile,
        size: u64,
    ) -> impl Future<Output = Result<String, CallError>> + Send;

    /// Starts to show that something is being written, where the platform has such a sign.
    fn typing(&self) -> Option<Typing> {
        None
    }

    /// Returns the state of the reply as a whole that is to be kept, `null` for none.
    fn platform_state(&self) -> Value {
        Value::Null
    }

    /// Takes back what [`Self::platform_state`] returned before a restart.
    fn restore_platform_state(&mut self, _state: &Value) {}
}

/// Capabilities of a platform.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capabilities {
    /// The platform's name, for people.
    pub(crate) platform: &'static str,
    /// How much visible text a message holds.
    pub(crate) text: Limit,
    /// The largest file that can be sent, in bytes.
    pub(crate) max_upload_bytes: u64,
    /// The largest file that can be fetched, in bytes.
    pub(crate) max_download_bytes: u64,
    /// Whether a message can change. If not, one message holds the place, [`PlatformMessages::edit`] answers
    /// [`CallError::Gone`] to the final page, and the answer comes as new messages.
    pub(crate) edits: bool,
    /// Whether a message can be deleted without a trace.
    pub(crate) deletes: bool,
    /// Whether choices can be pressed. If not they are words, with numbers to answer by.
    pub(crate) buttons: bool,
    /// Whether sending again under the same key makes no second message.
    pub(crate) idempotent_send: bool,
}

/// Result of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EditOutcome {
    /// The message shows the page.
    Shown,
    /// The message's record changes and has to be stored first. Nothing was done.
    SaveFirst,
}

/// Result of the search for a file that was perhaps sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FoundFile {
    /// It is there, as this message.
    There(String),
    /// It is not there, or sending it again under its key makes no second one.
    Repeatable,
    /// It is not there, and may still appear: sent again soon it is perhaps there twice.
    Absent,
    /// Unknown: sent again it is perhaps there twice.
    Perhaps,
}

/// Record of a message that is there.
pub(crate) trait MessageRef:
    Clone + PartialEq + std::fmt::Debug + Serialize + DeserializeOwned + Send + Sync
{
    /// Returns the platform's id: an answer to it continues the conversation.
    fn id(&self) -> String;

    /// Makes one of an id alone, for a record that this version cannot read.
    fn from_id(id: &str) -> Option<Self>;
}

/// A message that is about to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SendIntent<M> {
    /// Which part of the reply it is, from 0.
    #[serde(skip)]
    pub(crate) n: usize,
    /// Whether it was perhaps sent already, and not found.
    #[serde(skip)]
    pub(crate) again: bool,
    /// The same as long as it is the same message: 32 letters and digits. For platforms that know a
    /// repetition by it.
    pub(crate) key: String,
    /// An hour before it was first to be sent, in milliseconds since 1970.
    pub(crate) since: i64,
    /// The platform's record of the message.
    #[serde(rename = "mark")]
    pub(crate) dedup_key: M,
}

/// View of the known messages in the chats of this account.
pub(crate) struct MessageHistory<'a> {
    store: &'a dyn ReplyStore,
    /// The ids of this reply's own messages.
    pub(crate) own: Vec<String>,
}

impl<'a> MessageHistory<'a> {
    pub(crate) fn new(store: &'a dyn ReplyStore, own: Vec<String>) -> Self {
        Self { store, own }
    }

    /// Returns all messages that were seen or sent since `since`, in milliseconds since 1970.
    pub(crate) async fn known_messages(&self, since: i64) -> Result<Vec<KnownMessage>, SendError> {
        Ok(self.store.known_messages(since).await?)
    }
}
