//! The messages of one reply on Discord, and how one is found that was perhaps sent.
//!
//! Discord recognises a repetition by its nonce, for some minutes: within those an uncertain message is simply sent
//! again. Later it is looked for in the history: a message of ours, newer than the last one known before it was sent,
//! that no record knows and that answers the same message.
//!
//! The reply to a command takes the place of the interaction's "thinking…": to write there may be repeated.

mod files;
mod kept;

use super::{
    account_state::{ApiRoute, DiscordAccountState, INTERVAL},
    deferred::{DiscordHint, is_good},
    download::MAX_DOWNLOAD_BYTES,
    failure::{DiscordCase, DiscordError},
    page::{self, CONTENT, DiscordPage},
    upload,
    wire::{DiscordMessage, id_at},
};
use crate::{
    OutFile, ReplyTarget, SendError,
    clock::now,
    recovery::Recovery,
    reply::{Capabilities, EditOutcome, FoundFile, MessageDraft, MessageHistory, PlatformMessages, Typing},
    split::{Limit, Unit},
    transport::{CallError, KeyedLock},
};
use kept::{DiscordDedupKey, DiscordIntent, DiscordMessageRef, DiscordReplyState, PostedMessage};
use pudu_net::reqwest::Method;
use serde_json::{Value, json};
use std::{collections::HashSet, sync::Arc, time::Duration};

/// Discord shows "typing…" for ten seconds, or until a message comes.
const TYPING: Duration = Duration::from_secs(9);
/// How long a nonce surely counts, in milliseconds; Discord says "a few minutes".
const NONCE: i64 = 120_000;
/// Maximum length of a nonce, in characters.
const MAX_NONCE_CHARS: usize = 25;
/// Clocks differ by less than this, in milliseconds.
const SKEW: i64 = 120_000;
/// Pages of a history that are looked through, of a hundred messages.
const PAGES: usize = 5;

/// The messages of one reply.
pub(super) struct DiscordMessages {
    state: Arc<DiscordAccountState>,
    /// The channel or thread of the reply.
    place: ReplyLocation,
    /// The message that is answered.
    answered: Option<String>,
    /// Whether only one person and the bot are there.
    private: bool,
    command: Option<InteractionReply>,
}

/// Place of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ReplyLocation {
    chat: String,
    thread: Option<String>,
    /// The thread's name, as long as it is not certain that it is there.
    begins: Option<String>,
    /// Whether no thread could begin, so that the reply is in the channel.
    threadless: bool,
}

/// A command that is answered through its interaction.
#[derive(Clone, Debug, PartialEq, Eq)]
struct InteractionReply {
    token: String,
    at: i64,
    /// Whether its place was taken, or is not there.
    used: bool,
}

impl DiscordMessages {
    pub(super) fn new(state: Arc<DiscordAccountState>, target: &ReplyTarget) -> Self {
        let (mut begins, mut command) = (None, None);
        match DiscordHint::read(target.hint.as_ref()) {
            Some(DiscordHint::Thread { name }) => begins = Some(name),
            Some(DiscordHint::Answer { token, at }) => {
                state.deferred.answered(&token);
                command = Some(InteractionReply { token, at, used: false });
            }
            None => {}
        }
        let (chat, thread) = (target.address.chat.clone(), target.address.topic.clone());
        let place = ReplyLocation { chat, thread, begins, threadless: false };
        // A command is no message that could be answered.
        let answered = target.reply_to.clone().filter(|_| command.is_none());
        Self { state, place, answered, private: target.private, command }
    }

    /// Returns the channel or thread of the messages.
    fn channel(&self) -> &str {
        self.place.thread.as_deref().unwrap_or(&self.place.chat)
    }

    /// Returns a message's channel; for a record with only the id, the channel where it would be.
    fn channel_of<'a>(&'a self, sent: &'a DiscordMessageRef) -> &'a str {
        if sent.channel.is_empty() { self.channel() } else { &sent.channel }
    }

    /// Returns the message that the first one visibly answers. None in a private chat, where it is obvious, and none
    /// where a thread begins with the answered message.
    fn reference(&self) -> Option<&str> {
        let answered = self.answered.as_deref().filter(|_| !self.private)?;
        (self.place.thread.as_deref() != Some(answered)).then_some(answered)
    }

    /// Begins the thread, if it is to begin and is not known to be there.
    async fn begin_thread(&mut self) -> Result<(), DiscordError> {
        let (Some(name), Some(message)) = (self.place.begins.clone(), self.place.thread.clone()) else {
            return Ok(());
        };
        let path = ["channels", &self.place.chat, "messages", &message, "threads"];
        let body = json!({"name": name, "auto_archive_duration": 1440});
        match self.state.call::<Value>(ApiRoute::Post, Method::POST, &path, &body).await {
            Ok(_) | Err(CallError::Special(DiscordCase::Done(_))) => self.place.begins = None,
            Err(error @ (CallError::Refused(_) | CallError::Gone(_))) => {
                tracing::warn!(%error, "failed to begin thread; answering in the channel");
                self.threadless();
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn threadless(&mut self) {
        self.place = ReplyLocation { thread: None, begins: None, threadless: true, ..self.place.clone() };
    }

    /// Returns the token of the command whose place is still to be taken.
    async fn open_command(&mut self) -> Option<String> {
        let command = self.command.clone().filter(|command| !command.used && is_good(command.at, now()))?;
        if self.state.deferred.ready(&command.token).await {
            return Some(command.token);
        }
        self.used();
        None
    }

    fn used(&mut self) {
        if let Some(command) = &mut self.command {
            command.used = true;
        }
    }

    /// Returns the path by which a command's answer is written.
    fn original<'a>(&'a self, token: &'a str) -> Option<[&'a str; 5]> {
        let me = self.state.me.get()?;
        Some(["webhooks", &me.application, token, "messages", "@original"])
    }

    /// Shows a page in place of "thinking…". `None` where that is not there.
    async fn answer_command(&mut self, fields: &Value) -> Result<Option<DiscordMessageRef>, CallError> {
        let Some(token) = self.open_command().await else { return Ok(None) };
        self.state.me().await.map_err(DiscordError::before)?;
        let Some(path) = self.original(&token) else { return Ok(None) };
        match self.state.call::<PostedMessage>(ApiRoute::Edit, Method::PATCH, &path, fields).await {
            Ok(made) => {
                self.used();
                Ok(Some(DiscordMessageRef { id: made.id, channel: made.channel_id, original: true }))
            }
            Err(error @ (CallError::Gone(_) | CallError::Refused(_) | CallError::Auth(_))) => {
                tracing::debug!(%error, "failed to answer through the interaction; sending a message");
                self.used();
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Posts a message; without the reference to the answered message, if Discord refuses it.
    async fn post_message(&self, fields: Value) -> Result<PostedMessage, DiscordError> {
        let path = ["channels", self.channel(), "messages"];
        self.state.pacer.spend(&self.channel().to_owned(), INTERVAL);
        match self.state.call::<PostedMessage>(ApiRoute::Post, Method::POST, &path, &fields).await {
            Err(CallError::Special(DiscordCase::NoReply(why))) => {
                tracing::debug!(why, "sending message without its reference");
                let mut fields = fields;
                fields["message_reference"] = Value::Null;
                self.state.call(ApiRoute::Post, Method::POST, &path, &fields).await
            }
            result => result,
        }
    }

    /// Adds the nonce, by which a repetition makes one message, and the answered message.
    fn with_key(&self, mut fields: Value, key: &str, first: bool) -> Value {
        fields["nonce"] = nonce(key).into();
        fields["enforce_nonce"] = true.into();
        if let Some(answered) = self.reference().filter(|_| first) {
            fields["message_reference"] = json!({"message_id": answered, "fail_if_not_exists": false});
        }
        fields
    }

    fn posted(&self, made: PostedMessage) -> DiscordMessageRef {
        self.state.record_seen(&made.id);
        let channel = if made.channel_id.is_empty() { self.channel().to_owned() } else { made.channel_id };
        DiscordMessageRef { id: made.id, channel, original: false }
    }

    /// Returns whether a message could be the one that was perhaps sent.
    fn fits(&self, message: &DiscordMessage, first: bool, known: &HashSet<String>) -> bool {
        let me = self.state.me.get().map(|me| me.user.as_str());
        let own = message.author.as_ref().is_some_and(|author| Some(author.id.as_str()) == me);
        let answers =
            message.message_reference.as_ref().and_then(|reference| reference.message_id.as_deref());
        let wanted = self.reference().filter(|_| first);
        // The answered message may have been deleted meanwhile, and files are looked for elsewhere.
        let place = answers == wanted || (answers.is_none() && message.referenced_message.is_none());
        let plain = matches!(message.kind, 0 | 19) || (first && self.took_place(message));
        let plain = plain && message.attachments.is_empty();
        own && plain && place && !known.contains(&message.id)
    }

    /// Returns whether a message is the answer to a command, written in its place: "thinking…" has no words.
    fn took_place(&self, message: &DiscordMessage) -> bool {
        self.command.is_some() && message.kind == 20 && !message.content.is_empty()
    }

    async fn history(&self, after: u64) -> Result<Vec<DiscordMessage>, DiscordError> {
        self.state.history(self.channel(), after, PAGES).await
    }
}

impl PlatformMessages for DiscordMessages {
    type Page = DiscordPage;
    type Ref = DiscordMessageRef;
    type DedupKey = DiscordDedupKey;

    const CAPABILITIES: Capabilities = Capabilities {
        platform: "Discord",
        // Escapes count too; most texts have few.
        text: Limit { unit: Unit::Chars, max: CONTENT - 100, columns: 48 },
        max_upload_bytes: upload::MAX_UPLOAD_BYTES,
        max_download_bytes: MAX_DOWNLOAD_BYTES,
        edits: true,
        deletes: true,
        buttons: true,
        // The nonce does it.
        idempotent_send: true,
    };

    fn page(&self, draft: &MessageDraft) -> DiscordPage {
        DiscordPage::new(draft)
    }

    fn overfull(&self, page: &DiscordPage) -> bool {
        page.overfull()
    }

    fn recovery(&self) -> Option<Recovery> {
        Some(self.state.client.transport.writes.clone())
    }

    async fn ready(&mut self) {
        self.state.pacer.ready(&self.channel().to_owned(), INTERVAL).await;
    }

    fn check_rate_limit(&self) -> Result<(), CallError> {
        Ok(self.state.check_rate_limit(&[ApiRoute::Post, ApiRoute::Edit], self.channel())?)
    }

    async fn lock_chat(&self) -> Option<KeyedLock> {
        Some(self.state.locks.lock(&self.channel().to_owned()).await)
    }

    async fn dedup_key(
        &mut self,
        before: Option<Self::DedupKey>,
        _since: i64,
        _: &MessageHistory<'_>,
    ) -> Result<Self::DedupKey, SendError> {
        if let Some(before) = before {
            return Ok(before);
        }
        let answered = self.answered.as_deref().and_then(|id| id.parse().ok()).unwrap_or(0);
        let at = now();
        // Messages newer than all seen ones, or at least than [`SKEW`] ago.
        let after = self.state.newest().max(answered);
        let after = if after > 0 { after } else { id_at(at.saturating_sub(SKEW)) };
        Ok(DiscordDedupKey { at, after })
    }

    async fn find(
        &mut self,
        intent: &DiscordIntent,
        history: &MessageHistory<'_>,
    ) -> Result<Option<Self::Ref>, SendError> {
        let repeatable = intent.n == 0 && self.command.as_ref().is_some_and(|command| !command.used);
        let fresh = (0..NONCE).contains(&now().saturating_sub(intent.dedup_key.at));
        if fresh || (repeatable && self.open_command().await.is_some()) {
            return Ok(None);
        }
        self.state.me().await?;
        let known = known_ids(intent.since, history).await?;
        match self.history(intent.dedup_key.after).await {
            Ok(messages) => {
                let found = messages.into_iter().find(|message| self.fits(message, intent.n == 0, &known));
                Ok(found.map(|message| {
                    self.posted(PostedMessage { id: message.id, channel_id: message.channel_id })
                }))
            }
            // The thread is not there yet: then nothing is. An earlier process may have begun it.
            Err(CallError::Refused(_) | CallError::Gone(_)) if self.place.begins.is_some() => Ok(None),
            // Where the history may not be read nothing is found, and at worst a message is there twice.
            Err(CallError::Refused(why) | CallError::Gone(why)) => {
                tracing::warn!(why, "failed to look for message that was perhaps sent");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn post(&mut self, intent: &DiscordIntent, page: &DiscordPage) -> Result<Self::Ref, CallError> {
        if intent.n == 0
            && let Some(posted) = self.answer_command(&page.fields()).await?
        {
            return Ok(posted);
        }
        self.begin_thread().await?;
        let made = self.post_message(self.with_key(page.fields(), &intent.key, intent.n == 0)).await?;
        Ok(self.posted(made))
    }

    async fn edit(&mut self, sent: &mut Self::Ref, page: &DiscordPage) -> Result<EditOutcome, CallError> {
        self.state.pacer.spend(&self.channel().to_owned(), INTERVAL);
        if sent.original {
            self.state.me().await.map_err(DiscordError::before)?;
        }
        let token = self.command.as_ref().filter(|command| sent.original && is_good(command.at, now()));
        if let Some(path) = token.and_then(|command| self.original(&command.token)) {
            match self.state.call::<PostedMessage>(ApiRoute::Edit, Method::PATCH, &path, &page.fields()).await
            {
                // The token may have ended early: the message is an ordinary one.
                Err(CallError::Gone(_) | CallError::Auth(_) | CallError::Refused(_)) => {}
                result => return Ok(result.map(|_| EditOutcome::Shown)?),
            }
        }
        let path = ["channels", self.channel_of(sent), "messages", &sent.id];
        self.state.call::<PostedMessage>(ApiRoute::Edit, Method::PATCH, &path, &page.fields()).await?;
        Ok(EditOutcome::Shown)
    }

    async fn delete(&mut self, sent: &Self::Ref) -> Result<(), CallError> {
        let path = ["channels", self.channel_of(sent), "messages", &sent.id];
        self.state.call::<Value>(ApiRoute::Delete, Method::DELETE, &path, &Value::Null).await?;
        Ok(())
    }

    async fn find_file(
        &mut self,
        _key: &str,
        since: i64,
        _file: &OutFile,
        size: u64,
        history: &MessageHistory<'_>,
    ) -> Result<FoundFile, SendError> {
        self.look_for_file(since, size, history).await
    }

    /// Sends a file. One that comes alone takes the place of "thinking…".
    async fn upload(&mut self, key: &str, file: &OutFile, size: u64) -> Result<String, CallError> {
        if self.command.as_ref().is_some_and(|command| !command.used) {
            self.state.me().await.map_err(DiscordError::before)?;
        }
        if let Some(token) = self.open_command().await
            && let Some(path) = self.original(&token)
        {
            let form = upload::form(file, page::quiet()).await?;
            let told =
                self.state.client.call_with_files(Method::PATCH, &path, form, upload::timeout(size)).await;
            match self.state.record_rate_limits::<PostedMessage>(ApiRoute::Edit, "", told) {
                Ok(made) => {
                    self.used();
                    return Ok(made.id);
                }
                Err(CallError::Gone(_) | CallError::Auth(_)) => self.used(),
                Err(error) => return Err(error.into()),
            }
        }
        // A thread without the file: that was certainly not sent.
        self.begin_thread().await.map_err(DiscordError::before)?;
        self.state.check_rate_limit(&[ApiRoute::Post], self.channel())?;
        let form = upload::form(file, self.with_key(page::quiet(), key, false)).await?;
        let path = ["channels", self.channel(), "messages"];
        let told = self.state.client.call_with_files(Method::POST, &path, form, upload::timeout(size)).await;
        let made: PostedMessage = self.state.record_rate_limits(ApiRoute::Post, self.channel(), told)?;
        Ok(self.posted(made).id)
    }

    fn typing(&self) -> Option<Typing> {
        // "thinking…" says as much.
        if self.command.as_ref().is_some_and(|command| !command.used) {
            return None;
        }
        let state = Arc::clone(&self.state);
        let begun = self.place.thread.as_ref().filter(|_| self.place.begins.is_none());
        let channel = begun.unwrap_or(&self.place.chat).clone();
        Some(Typing::start(TYPING, move || {
            let (state, channel) = (Arc::clone(&state), channel.clone());
            Box::pin(async move {
                let path = ["channels", &channel, "typing"];
                // The indicator is optional, and the channel's wait is kept in any case.
                if let Err(error) =
                    state.call::<Value>(ApiRoute::Sign, Method::POST, &path, &Value::Null).await
                {
                    tracing::debug!(%error, "failed to show typing");
                }
            })
        }))
    }

    fn platform_state(&self) -> Value {
        let memo = DiscordReplyState {
            threadless: self.place.threadless,
            used: self.command.as_ref().is_some_and(|command| command.used),
        };
        match memo {
            DiscordReplyState { threadless: false, used: false } => Value::Null,
            memo => serde_json::to_value(memo).unwrap_or_default(),
        }
    }

    fn restore_platform_state(&mut self, memo: &Value) {
        let memo: DiscordReplyState = serde_json::from_value(memo.clone()).unwrap_or_default();
        if memo.threadless && self.place.begins.is_some() {
            self.threadless();
        }
        if memo.used {
            self.used();
        }
    }
}

/// Returns the messages that a record knows.
async fn known_ids(since: i64, history: &MessageHistory<'_>) -> Result<HashSet<String>, SendError> {
    let known_messages = history.known_messages(since).await?;
    Ok(known_messages.into_iter().map(|seen| seen.message).chain(history.own.iter().cloned()).collect())
}

/// Returns what Discord knows a repetition by.
fn nonce(key: &str) -> String {
    key.chars().take(MAX_NONCE_CHARS).collect()
}

#[cfg(test)]
mod tests;
