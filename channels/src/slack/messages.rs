//! The messages of one reply on Slack.
//!
//! In a thread, an answer grows as a stream: only text that will not change any more is appended, and the agent's
//! activity is shown in the status of the thread. If the text changes, Slack has closed the stream, or pudu was
//! restarted, the stream is closed and the whole message is edited from then on. The same happens after some seconds,
//! because a stream has no stop button. A message outside threads is edited from the beginning, because a stream has to
//! be in a thread.
//!
//! Slack has no idempotency keys. Ordinary messages are found by a key in their metadata. A stream has no metadata
//! until it ends, so it is found as the bot's only unrecorded message in the thread; the replies of a thread take turns
//! to keep it the only one. If the app may not read the history, a message that may have been sent is sent a second
//! time, but never a third. The id of a file is stored before the file is shared, because Slack shares an id only once.
//!
//! Slack limits the rate of calls per method, and of messages also per channel. A wait for one method does not affect
//! others.

mod aside;
mod files;
mod search;
mod status;
mod streams;

use super::{
    account_state::SlackAccountState,
    decode::RESPOND,
    facts::{CAPABILITIES, SlackCase, SlackError},
    page::SlackPage,
};
use crate::{
    OutFile, ReplyTarget, SendError,
    recovery::Recovery,
    reply::{
        Capabilities, EditOutcome, FoundFile, MessageDraft, MessageHistory, MessageRef, PlatformMessages,
        SendIntent, Typing, UncertainFile,
    },
    transport::{CallError, KeyedLock},
};
use pudu_texts::Language;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use status::{STATUS, ThreadStatus};
use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use url::Url;

/// Event type in the metadata of the bot's own messages.
const EVENT: &str = "pudu_reply";
/// How long a reply waits before its first message, so that a short answer needs only one call. Does not apply to
/// streams, which begin with the first words and have a separate rate limit.
const PLACEHOLDER_DELAY: Duration = Duration::from_secs(2);
/// How long a run lasts before its stop button appears.
const STOP_BUTTON_DELAY: Duration = Duration::from_secs(8);

/// The messages of one reply.
pub(super) struct SlackMessages {
    state: Arc<SlackAccountState>,
    channel: String,
    thread: Option<String>,
    /// The user being replied to, with their team. A stream in a channel needs a recipient.
    recipient: String,
    team: String,
    /// Response URL of a slash command. Used if the bot is not in the channel; only the command's author sees the
    /// answer.
    respond: Option<Url>,
    /// The language of the reply.
    language: Language,
    /// Text certainly appended to each open stream.
    streams: HashMap<String, String>,
    /// Whether streams are not used for this reply.
    no_stream: bool,
    /// Whether the last part is, or would be, a stream. Edits of a message need longer intervals.
    streaming: bool,
    /// Whether the last rendered page is unsuitable for a stream: it is final, or has to show buttons.
    ends: AtomicBool,
    /// Whether the last attempt to send a message is known to have had no effect.
    undone: bool,
    /// Whether the last search for a message could not read the history.
    blind: bool,
    /// Whether a message was sent, as far as this process knows.
    begun: bool,
    /// Ids of the files of this reply that were shared.
    files: Vec<String>,
    /// Uploaded files that may have been shared: ids by idempotency key.
    uploads: HashMap<String, String>,
    /// The message being replied to, or the thread's first message. The reply's messages are newer.
    behind: String,
    status: Arc<ThreadStatus>,
    /// When the buttons have to be shown, even if that ends the stream.
    late: Instant,
    /// Time of the next refresh, which shows the buttons if they are due.
    look: Instant,
}

/// Record of a message before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SlackDedupKey {
    /// Whether any of the attempts may have begun a stream.
    stream: bool,
    /// Number of attempts with an unknown outcome, including the next one.
    unknown: u8,
}

/// Record of a sent message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SlackMessageRef {
    /// Timestamp; empty for a message that is assumed to be shown but cannot be found.
    ts: String,
    /// Whether it is an open stream.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

impl SlackMessageRef {
    fn is_lost(&self) -> bool {
        self.ts.is_empty()
    }
}

impl MessageRef for SlackMessageRef {
    fn id(&self) -> String {
        self.ts.clone()
    }

    fn from_id(id: &str) -> Option<Self> {
        Some(Self { ts: id.to_owned(), stream: false })
    }
}

#[derive(Deserialize)]
struct PostMessageResponse {
    ts: String,
}

impl SlackMessages {
    pub(super) fn new(state: Arc<SlackAccountState>, target: &ReplyTarget) -> Self {
        let hint = |key| target.hint.as_ref().and_then(|hint| hint.get(key)?.as_str());
        let (team, respond) = (hint("team"), hint(RESPOND).and_then(|url| Url::parse(url).ok()));
        let respond = respond.filter(|url| state.client.is_slacks(url));
        Self {
            channel: target.address.chat.clone(),
            thread: target.address.topic.clone(),
            recipient: target.sender.clone(),
            language: target.language,
            team: team.unwrap_or_default().to_owned(),
            respond,
            state,
            streams: HashMap::new(),
            no_stream: false,
            streaming: true,
            ends: AtomicBool::new(false),
            undone: false,
            blind: false,
            begun: false,
            files: Vec::new(),
            uploads: HashMap::new(),
            behind: target.reply_to.clone().or_else(|| target.address.topic.clone()).unwrap_or_default(),
            status: Arc::new(ThreadStatus::from_target(target)),
            late: Instant::now() + STOP_BUTTON_DELAY,
            look: Instant::now() + STOP_BUTTON_DELAY,
        }
    }

    fn place(&self) -> String {
        format!("{}:{}", self.channel, self.thread.as_deref().unwrap_or_default())
    }

    fn streams(&self) -> bool {
        self.thread.is_some() && !self.no_stream && self.state.streams()
    }

    /// Returns the minimum interval between two updates of the last part.
    fn pace(&self) -> Duration {
        SlackAccountState::interval(self.streaming && self.streams())
    }

    fn spend(&self, streams: bool) {
        self.state.pacer.spend(&self.place(), SlackAccountState::interval(streams));
    }

    async fn write<T: serde::de::DeserializeOwned>(
        &self,
        method: &str,
        params: &Value,
    ) -> Result<T, SlackError> {
        self.state.write(method, &self.channel, params).await
    }

    /// Sends a page as a new message: as a stream, if it will grow and streams are supported.
    async fn create_message(&mut self, key: &str, page: &SlackPage) -> Result<SlackMessageRef, SlackError> {
        let stream = if self.streams() && !page.done && !page.asks { self.start(page).await? } else { None };
        match stream {
            Some(post) => Ok(post),
            None => self.post_message(key, page).await,
        }
    }

    /// Posts a complete message. Retries without markup if Slack rejects it.
    async fn post_message(&self, key: &str, page: &SlackPage) -> Result<SlackMessageRef, SlackError> {
        let params = |text: &str, blocks: &[Value]| {
            let mut params = json!({
                "channel": self.channel, "text": text,
                "metadata": {"event_type": EVENT, "event_payload": {"key": key}},
                "unfurl_links": false, "unfurl_media": false,
            });
            if let Some(thread) = &self.thread {
                params["thread_ts"] = thread.as_str().into();
            }
            if !blocks.is_empty() {
                params["blocks"] = blocks.into();
            }
            params
        };
        let posted = match self
            .write::<PostMessageResponse>("chat.postMessage", &params(&page.text, &page.blocks))
            .await
        {
            Err(CallError::Special(SlackCase::Content(why))) => {
                tracing::warn!(why, "sending message without markup");
                self.write::<PostMessageResponse>("chat.postMessage", &params(&page.plain, &[])).await?
            }
            result => result?,
        };
        Ok(SlackMessageRef { ts: posted.ts, stream: false })
    }

    /// Edits a message to show a page. An empty list removes old blocks.
    async fn change(&self, ts: &str, page: &SlackPage) -> Result<(), SlackError> {
        let params = |text: &str, blocks: &[Value]| json!({"channel": self.channel, "ts": ts, "text": text, "blocks": blocks});
        match self.write::<PostMessageResponse>("chat.update", &params(&page.text, &page.blocks)).await {
            Err(CallError::Special(SlackCase::Content(why))) => {
                tracing::warn!(why, "sending message without markup");
                self.write::<PostMessageResponse>("chat.update", &params(&page.plain, &[])).await?;
                Ok(())
            }
            result => result.map(|_| ()),
        }
    }

    /// Edits a message to show a page. Closes its stream first, if it has one.
    async fn replace(&mut self, post: &mut SlackMessageRef, page: &SlackPage) -> Result<(), SlackError> {
        if post.stream {
            self.close(&post.ts).await?;
            post.stream = false;
        }
        match self.change(&post.ts, page).await {
            Err(CallError::Special(SlackCase::Stream(_))) => {
                self.close(&post.ts).await?;
                self.change(&post.ts, page).await
            }
            result => result,
        }
    }

    /// Shows the agent's activity in the thread if it has changed, and clears it at the end.
    async fn say_status(&self, page: &SlackPage) {
        let Some(thread) = &self.thread else { return };
        let words = if page.done { "" } else { page.activity.as_str() };
        if (page.done || !words.is_empty()) && self.status.becomes(words) {
            self.state.status(&self.channel, thread, words).await;
        }
    }
}

impl PlatformMessages for SlackMessages {
    type Page = SlackPage;
    type Ref = SlackMessageRef;
    /// `None` in records of older versions.
    type DedupKey = Option<SlackDedupKey>;

    const CAPABILITIES: Capabilities = CAPABILITIES;

    fn page(&self, draft: &MessageDraft) -> SlackPage {
        let mut page = SlackPage::new(draft);
        page.asks |= !page.done && !page.buttons.is_empty() && Instant::now() >= self.late;
        self.ends.store(page.done || page.asks, Ordering::Relaxed);
        page
    }

    fn overfull(&self, page: &SlackPage) -> bool {
        page.overfull()
    }

    fn recovery(&self) -> Option<Recovery> {
        Some(self.state.client.transport.writes.clone())
    }

    async fn ready(&mut self) {
        self.state.pacer.ready(&self.place(), self.pace()).await;
        if self.begun {
            self.state.may_change(self.streaming && self.streams()).await;
        }
    }

    fn placeholder_delay(&self, neutral: bool) -> Duration {
        if self.streams() && !neutral { Duration::ZERO } else { PLACEHOLDER_DELAY }
    }

    fn posts_sooner(&self, wait: Duration) -> bool {
        self.state.posts_sooner(&self.channel, wait)
    }

    async fn next_refresh(&mut self) {
        if !self.streaming || !self.streams() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep_until(self.look).await;
        self.look = Instant::now() + STOP_BUTTON_DELAY;
    }

    async fn lock_chat(&self) -> Option<KeyedLock> {
        // Turns are needed only in threads: there, a stream is found as the only unrecorded message.
        self.thread.as_ref()?;
        Some(self.state.locks.lock(&self.place()).await)
    }

    fn check_rate_limit(&self) -> Result<(), CallError> {
        // Sent messages and streams use other methods.
        if self.begun || self.streams() {
            return Ok(());
        }
        Ok(self.state.check_rate_limit("chat.postMessage", &self.channel)?)
    }

    async fn dedup_key(
        &mut self,
        before: Option<Option<SlackDedupKey>>,
        _since: i64,
        _ledger: &MessageHistory<'_>,
    ) -> Result<Option<SlackDedupKey>, SendError> {
        let begins = self.streams() && !self.ends.load(Ordering::Relaxed);
        let began = before.is_some_and(|before| before.is_none_or(|tries| tries.stream));
        // If the history was readable, earlier attempts certainly sent no message.
        let unknown = before.filter(|_| self.blind).map_or(0, |before| self.unknown(before));
        self.undone = false;
        Ok(Some(SlackDedupKey { stream: begins || began, unknown: unknown.saturating_add(1) }))
    }

    async fn find(
        &mut self,
        intent: &SendIntent<Option<SlackDedupKey>>,
        history: &MessageHistory<'_>,
    ) -> Result<Option<SlackMessageRef>, SendError> {
        let known = history.known_messages(intent.since).await?;
        let here = known.into_iter().filter(|known_message| known_message.chat == self.channel);
        let known: HashSet<String> =
            here.map(|known_message| known_message.message).chain(history.own.clone()).collect();
        // An interrupted reply is resumed before the connection is open.
        self.state.me().await?;
        match self.messages_in_place(intent.since).await {
            Ok(messages) => {
                self.blind = false;
                Ok(self.pick(self.state.me().await?, &messages, intent, &known))
            }
            Err(error) if error.is_passing() => Err(error.into()),
            Err(error) => self.resend_once(intent, &error),
        }
    }

    async fn post(
        &mut self,
        intent: &SendIntent<Option<SlackDedupKey>>,
        page: &SlackPage,
    ) -> Result<SlackMessageRef, CallError> {
        self.spend(self.streams());
        let post = self.create_message(&intent.key, page).await;
        let post = self.or_aside(post, intent.n, page).await;
        self.undone = post.as_ref().is_err_and(|error| !error.may_be_done());
        let post = post?;
        self.begun = true;
        self.streaming = post.stream;
        if post.is_lost() {
            return Ok(post);
        }
        self.state.threads.record_spoken(&self.channel, self.thread.as_deref().unwrap_or(&post.ts));
        self.say_status(page).await;
        Ok(post)
    }

    async fn edit(&mut self, sent: &mut SlackMessageRef, page: &SlackPage) -> Result<EditOutcome, CallError> {
        if sent.is_lost() {
            return Ok(EditOutcome::Shown);
        }
        self.begun = true;
        self.spend(sent.stream);
        if !(sent.stream && !page.asks && self.extend_stream(sent, page).await?) {
            self.streaming = false;
            self.replace(sent, page).await?;
        }
        self.streaming = sent.stream;
        self.say_status(page).await;
        Ok(EditOutcome::Shown)
    }

    async fn delete(&mut self, sent: &SlackMessageRef) -> Result<(), CallError> {
        if sent.is_lost() {
            return Ok(());
        }
        if sent.stream {
            match self.close(&sent.ts).await {
                // A stream that cannot be closed now can still be deleted.
                Ok(())
                | Err(
                    CallError::Refused(_)
                    | CallError::Wait(_)
                    | CallError::Special(SlackCase::Content(_))
                    | CallError::Special(SlackCase::NoStream(_)),
                ) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let params = json!({"channel": self.channel, "ts": sent.ts});
        self.state.call_without_result("chat.delete", &self.channel, &params).await?;
        Ok(())
    }

    async fn find_file(&mut self, lost: &UncertainFile<'_>) -> Result<FoundFile, SendError> {
        Ok(self.find_upload(lost.key, lost.file, lost.size).await?)
    }

    async fn prepare_upload(&mut self, key: &str, file: &OutFile, size: u64) -> Result<(), CallError> {
        self.upload_bytes(key, file, size).await
    }

    async fn upload(&mut self, key: &str, file: &OutFile, _size: u64) -> Result<String, CallError> {
        self.share(key, file).await
    }

    fn platform_state(&self) -> Value {
        let mut state = Map::new();
        if !self.files.is_empty() {
            state.insert("files".to_owned(), json!(self.files));
        }
        if !self.uploads.is_empty() {
            state.insert("uploads".to_owned(), json!(self.uploads));
        }
        if state.is_empty() { Value::Null } else { state.into() }
    }

    fn restore_platform_state(&mut self, memo: &Value) {
        self.files = serde_json::from_value(memo["files"].clone()).unwrap_or_default();
        self.uploads = serde_json::from_value(memo["uploads"].clone()).unwrap_or_default();
    }

    fn typing(&self) -> Option<Typing> {
        let thread = self.thread.clone().filter(|_| self.state.statuses())?;
        let (state, channel, status) =
            (Arc::clone(&self.state), self.channel.clone(), Arc::clone(&self.status));
        Some(Typing::start(STATUS, move || {
            let (state, channel, thread) = (Arc::clone(&state), channel.clone(), thread.clone());
            let words = status.due_status();
            Box::pin(async move {
                if let Some(words) = words {
                    state.status(&channel, &thread, &words).await;
                }
            })
        }))
    }
}

#[cfg(test)]
mod tests;
