//! The messages of one reply on Discord, and how to find one that may have been sent.
//!
//! For a few minutes, Discord recognises a repeated message by its nonce, so a message that may have been sent is
//! simply sent again. After that, the history is searched for it: a message of the bot that is newer than the last one
//! known before the call, is not in any record, and replies to the same message.
//!
//! The reply to a command replaces the interaction's "thinking…", which can safely be repeated.

mod files;
mod kept;

use super::{
    account_state::{ApiRoute, DiscordAccountState, INTERVAL},
    deferred::{DiscordHint, can_respond},
    facts::{CAPABILITIES, DiscordCase, DiscordError},
    page::{self, DiscordPage},
    upload,
    wire::{DiscordMessage, id_at},
};
use crate::{
    OutFile, ReplyTarget, SendError,
    clock::now,
    recovery::Recovery,
    reply::{
        Capabilities, EditOutcome, FoundFile, MessageDraft, MessageHistory, PlatformMessages, Typing,
        UncertainFile,
    },
    transport::{CallError, KeyedLock},
};
use kept::{DiscordDedupKey, DiscordIntent, DiscordMessageRef, DiscordReplyState, PostedMessage};
use pudu_net::reqwest::Method;
use serde_json::{Value, json};
use std::{collections::HashSet, sync::Arc, time::Duration};

/// Interval of the typing indicator. Discord shows it for ten seconds, or until a message arrives.
const TYPING: Duration = Duration::from_secs(9);
/// How long a nonce is certainly valid, in milliseconds. Discord documents "a few minutes".
const NONCE: i64 = 120_000;
/// Maximum length of a nonce, in characters.
const MAX_NONCE_CHARS: usize = 25;
/// Maximum expected clock difference, in milliseconds.
const SKEW: i64 = 120_000;
/// Maximum number of history pages to search, of a hundred messages each.
const PAGES: usize = 5;

/// The messages of one reply.
pub(super) struct DiscordMessages {
    state: Arc<DiscordAccountState>,
    /// Location of the reply.
    place: ReplyLocation,
    /// The message being replied to.
    answered: Option<String>,
    /// Whether the chat contains only one user and the bot.
    private: bool,
    command: Option<InteractionReply>,
}

/// Channel or thread of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ReplyLocation {
    chat: String,
    thread: Option<String>,
    /// Name of the thread to begin, until the thread certainly exists.
    begins: Option<String>,
    /// Whether no thread could begin, so that the reply is in the channel.
    threadless: bool,
}

/// A command that is answered through its interaction.
#[derive(Clone, Debug, PartialEq, Eq)]
struct InteractionReply {
    token: String,
    at: i64,
    /// Whether "thinking…" was already replaced, or does not exist.
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
        // A command is not a message that could be referenced.
        let answered = target.reply_to.clone().filter(|_| command.is_none());
        Self { state, place, answered, private: target.private, command }
    }

    /// Returns the channel or thread of the messages.
    fn channel(&self) -> &str {
        self.place.thread.as_deref().unwrap_or(&self.place.chat)
    }

    /// Returns a message's channel; for a record with only an id, the reply's channel.
    fn channel_of<'a>(&'a self, sent: &'a DiscordMessageRef) -> &'a str {
        if sent.channel.is_empty() { self.channel() } else { &sent.channel }
    }

    /// Returns the message that the reply's first message references: none in a private chat, where it is obvious, and
    /// none if the reply starts a thread from the message that it answers.
    fn reference(&self) -> Option<&str> {
        let answered = self.answered.as_deref().filter(|_| !self.private)?;
        (self.place.thread.as_deref() != Some(answered)).then_some(answered)
    }

    /// Begins the thread, unless the reply needs none or it is known to exist.
    async fn begin_thread(&mut self) -> Result<(), DiscordError> {
        let (Some(name), Some(message)) = (self.place.begins.clone(), self.place.thread.clone()) else {
            return Ok(());
        };
        let path = ["channels", &self.place.chat, "messages", &message, "threads"];
        let body = json!({"name": name, "auto_archive_duration": 1440});
        match self.state.call::<Value>(ApiRoute::Post, Method::POST, &path, &body).await {
            Ok(_) | Err(CallError::Special(DiscordCase::Done(_))) => self.place.begins = None,
            Err(error @ (CallError::Refused(_) | CallError::Gone(_))) => {
                tracing::warn!(%error, "failed to start thread; answering in the channel");
                self.threadless();
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn threadless(&mut self) {
        self.place = ReplyLocation { thread: None, begins: None, threadless: true, ..self.place.clone() };
    }

    /// Returns the command's token if its "thinking…" can still be replaced.
    async fn open_command(&mut self) -> Option<String> {
        let command =
            self.command.clone().filter(|command| !command.used && can_respond(command.at, now()))?;
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

    /// Returns the API path of a command's answer.
    fn original<'a>(&'a self, token: &'a str) -> Option<[&'a str; 5]> {
        let me = self.state.me.get()?;
        Some(["webhooks", &me.application, token, "messages", "@original"])
    }

    /// Replaces "thinking…" with a page. Returns `None` if it does not exist.
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

    /// Posts a message. Omits the reference to the message being replied to if Discord refuses it.
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

    /// Adds the nonce, which prevents duplicates, and the reference to the message being replied to.
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

    /// Returns whether a message could be the one whose sending is uncertain.
    fn fits(&self, message: &DiscordMessage, first: bool, known: &HashSet<String>) -> bool {
        let me = self.state.me.get().map(|me| me.user.as_str());
        let own = message.author.as_ref().is_some_and(|author| Some(author.id.as_str()) == me);
        let answers =
            message.message_reference.as_ref().and_then(|reference| reference.message_id.as_deref());
        let wanted = self.reference().filter(|_| first);
        // The message being replied to may have been deleted by now. Files are searched for separately.
        let is_in_place = answers == wanted || (answers.is_none() && message.referenced_message.is_none());
        let plain = matches!(message.kind, 0 | 19) || (first && self.took_place(message));
        let plain = plain && message.attachments.is_empty();
        own && plain && is_in_place && !known.contains(&message.id)
    }

    /// Returns whether a message is the answer that replaced "thinking…". The placeholder itself has no text.
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

    const CAPABILITIES: Capabilities = CAPABILITIES;

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
        // The message will be newer than all messages seen so far. If none was seen, use the time `SKEW` ago.
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
            // The thread does not exist yet, so neither does the message.
            Err(CallError::Refused(_) | CallError::Gone(_)) if self.place.begins.is_some() => Ok(None),
            // Without access to the history nothing is found; at worst the message is sent twice.
            Err(CallError::Refused(why) | CallError::Gone(why)) => {
                tracing::warn!(why, "failed to look for a message that may have been sent");
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
        let posted = self.post_message(self.with_key(page.fields(), &intent.key, intent.n == 0)).await?;
        Ok(self.posted(posted))
    }

    async fn edit(&mut self, sent: &mut Self::Ref, page: &DiscordPage) -> Result<EditOutcome, CallError> {
        self.state.pacer.spend(&self.channel().to_owned(), INTERVAL);
        if sent.original {
            self.state.me().await.map_err(DiscordError::before)?;
        }
        let token = self.command.as_ref().filter(|command| sent.original && can_respond(command.at, now()));
        if let Some(path) = token.and_then(|command| self.original(&command.token)) {
            match self.state.call::<PostedMessage>(ApiRoute::Edit, Method::PATCH, &path, &page.fields()).await
            {
                // The token may have expired early: edit it as an ordinary message.
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

    async fn find_file(&mut self, lost: &UncertainFile<'_>) -> Result<FoundFile, SendError> {
        self.look_for_file(lost.since, lost.size, lost.history).await
    }

    /// Sends a file. If the reply has no text, the file replaces "thinking…".
    async fn upload(&mut self, key: &str, file: &OutFile, size: u64) -> Result<String, CallError> {
        if self.command.as_ref().is_some_and(|command| !command.used) {
            self.state.me().await.map_err(DiscordError::before)?;
        }
        if let Some(token) = self.open_command().await
            && let Some(path) = self.original(&token)
        {
            let form = upload::form(file, page::quiet()).await?;
            let response =
                self.state.client.call_with_files(Method::PATCH, &path, form, upload::timeout(size)).await;
            match self.state.record_rate_limits::<PostedMessage>(ApiRoute::Edit, "", response) {
                Ok(made) => {
                    self.used();
                    return Ok(made.id);
                }
                Err(CallError::Gone(_) | CallError::Auth(_)) => self.used(),
                Err(error) => return Err(error.into()),
            }
        }
        // If the thread cannot begin, the file was certainly not sent.
        self.begin_thread().await.map_err(DiscordError::before)?;
        self.state.check_rate_limit(&[ApiRoute::Post], self.channel())?;
        let form = upload::form(file, self.with_key(page::quiet(), key, false)).await?;
        let path = ["channels", self.channel(), "messages"];
        let response =
            self.state.client.call_with_files(Method::POST, &path, form, upload::timeout(size)).await;
        let posted: PostedMessage =
            self.state.record_rate_limits(ApiRoute::Post, self.channel(), response)?;
        Ok(self.posted(posted).id)
    }

    fn typing(&self) -> Option<Typing> {
        // "thinking…" already shows activity.
        if self.command.as_ref().is_some_and(|command| !command.used) {
            return None;
        }
        let state = Arc::clone(&self.state);
        let thread_channel = self.place.thread.as_ref().filter(|_| self.place.begins.is_none());
        let channel = thread_channel.unwrap_or(&self.place.chat).clone();
        Some(Typing::start(TYPING, move || {
            let (state, channel) = (Arc::clone(&state), channel.clone());
            Box::pin(async move {
                let path = ["channels", &channel, "typing"];
                // The indicator is optional, and the channel's wait is recorded in any case.
                if let Err(error) =
                    state.call::<Value>(ApiRoute::Interaction, Method::POST, &path, &Value::Null).await
                {
                    tracing::debug!(%error, "failed to show typing");
                }
            })
        }))
    }

    fn platform_state(&self) -> Value {
        let memo = DiscordReplyState {
            thread_failed: self.place.threadless,
            placeholder_used: self.command.as_ref().is_some_and(|command| command.used),
        };
        match memo {
            DiscordReplyState { thread_failed: false, placeholder_used: false } => Value::Null,
            memo => serde_json::to_value(memo).unwrap_or_default(),
        }
    }

    fn restore_platform_state(&mut self, memo: &Value) {
        let memo: DiscordReplyState = serde_json::from_value(memo.clone()).unwrap_or_default();
        if memo.thread_failed && self.place.begins.is_some() {
            self.threadless();
        }
        if memo.placeholder_used {
            self.used();
        }
    }
}

/// Returns the ids of all recorded messages.
async fn known_ids(since: i64, history: &MessageHistory<'_>) -> Result<HashSet<String>, SendError> {
    let known_messages = history.known_messages(since).await?;
    Ok(known_messages.into_iter().map(|seen| seen.message).chain(history.own.iter().cloned()).collect())
}

/// Returns the nonce that lets Discord recognise a repeated message.
fn nonce(key: &str) -> String {
    key.chars().take(MAX_NONCE_CHARS).collect()
}

#[cfg(test)]
mod tests;
