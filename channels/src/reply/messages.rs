//! Operations that a live reply needs from its platform: create, edit, find and delete messages.

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

/// The messages of one reply on one platform. Lives as long as the reply.
pub(crate) trait PlatformMessages: Send + Sync + 'static {
    /// Content of one message, ready to be sent. Equal pages need no edit.
    type Page: Clone + PartialEq + Send + Sync;
    /// Record of a sent message.
    type Ref: MessageRef;
    /// Data stored before a message is sent and used to find the message again; `()` if an idempotency key suffices.
    type DedupKey: Clone + PartialEq + std::fmt::Debug + Serialize + DeserializeOwned + Send + Sync;

    /// Default of [`Self::capabilities`].
    const CAPABILITIES: Capabilities;

    /// Returns the capabilities of this reply in its current form.
    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    /// Renders a message.
    fn page(&self, draft: &MessageDraft) -> Self::Page;

    /// Returns whether the markup makes a page too long for the platform. The page is then split further.
    fn overfull(&self, _page: &Self::Page) -> bool {
        false
    }

    /// Returns the initial content of a message that will grow.
    fn first(&self, page: &Self::Page) -> Self::Page {
        page.clone()
    }

    /// Finishes a message that may have been sent, is no longer needed, and cannot be deleted.
    fn abandon(&mut self, _intent: &SendIntent<Self::DedupKey>) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Returns whether a placeholder should be sent. False if it could not be deleted later.
    fn holds_a_place(&mut self) -> impl Future<Output = bool> + Send {
        async { true }
    }

    /// Returns how long a reply waits, in case it ends soon, before it sends its first message. `neutral` means that it
    /// has no text yet.
    fn placeholder_delay(&self, _neutral: bool) -> Duration {
        Duration::ZERO
    }

    /// Returns whether a new message shows the answer sooner than an edit that has to wait for `wait`.
    fn posts_sooner(&self, _wait: Duration) -> bool {
        false
    }

    /// Returns the registry of numbered choices, on platforms where buttons may be missing.
    fn numbered_choices(&self) -> Option<&Arc<NumberedChoices>> {
        None
    }

    /// Returns the detector of the platform's recovery.
    fn recovery(&self) -> Option<Recovery> {
        None
    }

    /// Returns whether it is unknown if the last message was sent, and neither a key nor a search can find out.
    fn doubtful(&self) -> bool {
        false
    }

    /// Waits until another unfinished view may be shown.
    fn ready(&mut self) -> impl Future<Output = ()> + Send;

    /// Waits until the page has to be rendered again although its text has not changed, because its rendering depends
    /// on the time.
    fn next_refresh(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Fails while a rate limit forbids sending, so that the caller stores nothing for a call that cannot be made.
    fn check_rate_limit(&self) -> Result<(), CallError>;

    /// Acquires the lock for sending, if replies of one chat have to take turns.
    fn lock_chat(&self) -> impl Future<Output = Option<KeyedLock>> + Send {
        async { None }
    }

    /// Returns the key to store before a message is sent. `before` is the key of an earlier attempt whose message was
    /// not found.
    fn dedup_key(
        &mut self,
        before: Option<Self::DedupKey>,
        since: i64,
        history: &MessageHistory<'_>,
    ) -> impl Future<Output = Result<Self::DedupKey, SendError>> + Send;

    /// Looks for a message that may have been sent. Returns `None` if it does not exist, or if sending it again under
    /// the same key creates no duplicate.
    fn find(
        &mut self,
        intent: &SendIntent<Self::DedupKey>,
        history: &MessageHistory<'_>,
    ) -> impl Future<Output = Result<Option<Self::Ref>, SendError>> + Send;

    /// Converts a record of an older version to the current form.
    fn upgrade(state: Value) -> Value {
        state
    }

    /// Sends a message.
    fn post(
        &mut self,
        intent: &SendIntent<Self::DedupKey>,
        page: &Self::Page,
    ) -> impl Future<Output = Result<Self::Ref, CallError>> + Send;

    /// Makes a message show a page; `Ok` if it already does. Its record may change. Returns [`EditOutcome::SaveFirst`]
    /// if the change has to be stored before the call, and is then called again.
    fn edit(
        &mut self,
        sent: &mut Self::Ref,
        page: &Self::Page,
    ) -> impl Future<Output = Result<EditOutcome, CallError>> + Send;

    /// Deletes a message.
    fn delete(&mut self, sent: &Self::Ref) -> impl Future<Output = Result<(), CallError>> + Send;

    /// Retries failed deletions of messages. Called after the reply is delivered, and again after an error, which is
    /// always [`SendError::Untidy`].
    fn retry_deletions(&mut self) -> impl Future<Output = Result<(), SendError>> + Send {
        async { Ok(()) }
    }

    /// Looks for a file that may have been sent.
    fn find_file(
        &mut self,
        _lost: &UncertainFile<'_>,
    ) -> impl Future<Output = Result<FoundFile, SendError>> + Send {
        async { Ok(FoundFile::Perhaps) }
    }

    /// Prepares an upload without visible effect. [`Self::platform_state`] is stored afterwards.
    fn prepare_upload(
        &mut self,
        _key: &str,
        _file: &OutFile,
        _size: u64,
    ) -> impl Future<Output = Result<(), CallError>> + Send {
        async { Ok(()) }
    }

    /// Sends a file, which must exist and be neither empty nor too large. Returns the message's id. A retry after an
    /// unknown outcome uses the same key.
    fn upload(
        &mut self,
        key: &str,
        file: &OutFile,
        size: u64,
    ) -> impl Future<Output = Result<String, CallError>> + Send;

    /// Starts the typing indicator, if the platform has one.
    fn typing(&self) -> Option<Typing> {
        None
    }

    /// Returns the state to store for the whole reply; `null` for none.
    fn platform_state(&self) -> Value {
        Value::Null
    }

    /// Restores the state that [`Self::platform_state`] returned before a restart.
    fn restore_platform_state(&mut self, _state: &Value) {}
}

/// Capabilities of a platform.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capabilities {
    /// Display name of the platform.
    pub(crate) platform: &'static str,
    /// Maximum length of a message's visible text.
    pub(crate) text: Limit,
    /// Maximum size of a file that can be sent, in bytes.
    pub(crate) max_upload_bytes: u64,
    /// Maximum size of a file that can be downloaded, in bytes.
    pub(crate) max_download_bytes: u64,
    /// Whether messages can be edited. If not, a placeholder is sent, [`PlatformMessages::edit`] returns
    /// [`CallError::Gone`] for the final page, and the answer is sent as new messages.
    pub(crate) edits: bool,
    /// Whether a message can be deleted without a trace.
    pub(crate) deletes: bool,
    /// Whether buttons are supported. If not, choices are listed as text, with numbers to answer with.
    pub(crate) buttons: bool,
    /// Maximum number of inputs of a form; 0 without forms.
    pub(crate) form_fields: usize,
    /// Whether sending again under the same key creates no duplicate.
    pub(crate) idempotent_send: bool,
}

/// Result of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EditOutcome {
    /// The message shows the page.
    Shown,
    /// The message's record has changed and has to be stored first. Nothing was done.
    SaveFirst,
}

/// A file that may have been sent.
pub(crate) struct UncertainFile<'a> {
    /// The key under which it was sent.
    pub(crate) key: &'a str,
    /// When it was first sent, in milliseconds since 1970.
    pub(crate) since: i64,
    pub(crate) file: &'a OutFile,
    pub(crate) size: u64,
    pub(crate) history: &'a MessageHistory<'a>,
}

/// Result of the search for a file that may have been sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FoundFile {
    /// The file was sent, as this message.
    There(String),
    /// The file was not sent, or sending it again under its key creates no duplicate.
    Repeatable,
    /// The file was not found, but may still appear. Sending it again soon may create a duplicate.
    Absent,
    /// Unknown. Sending it again may create a duplicate.
    Perhaps,
}

/// Record of a sent message.
pub(crate) trait MessageRef:
    Clone + PartialEq + std::fmt::Debug + Serialize + DeserializeOwned + Send + Sync
{
    /// Returns the platform's id of the message. A reply to it continues the conversation.
    fn id(&self) -> String;

    /// Creates a record from only an id, if this version cannot read the stored record.
    fn from_id(id: &str) -> Option<Self>;
}

/// A message about to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SendIntent<M> {
    /// Index of the part of the reply, from 0.
    #[serde(skip)]
    pub(crate) n: usize,
    /// Whether it may have been sent before, and was not found.
    #[serde(skip)]
    pub(crate) again: bool,
    /// Idempotency key of 32 letters and digits. Stays the same for all attempts to send this message.
    pub(crate) key: String,
    /// An hour before the first attempt to send it, in milliseconds since 1970.
    pub(crate) since: i64,
    /// The platform's record of the message.
    #[serde(rename = "mark")]
    pub(crate) dedup_key: M,
}

/// The known messages in the chats of this bot.
pub(crate) struct MessageHistory<'a> {
    store: &'a dyn ReplyStore,
    /// Ids of this reply's own messages.
    pub(crate) own: Vec<String>,
}

impl<'a> MessageHistory<'a> {
    pub(crate) fn new(store: &'a dyn ReplyStore, own: Vec<String>) -> Self {
        Self { store, own }
    }

    /// Returns all messages seen or sent since `since`, in milliseconds since 1970.
    pub(crate) async fn known_messages(&self, since: i64) -> Result<Vec<KnownMessage>, SendError> {
        Ok(self.store.known_messages(since).await?)
    }
}
