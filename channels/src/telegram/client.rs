//! Makes the calls, through teloxide's bot: its HTTP client, its methods and their parameters.
//!
//! The exchange itself is our own. The library waits ten seconds after any server error, drops the error
//! code, wants every message in an answer to be one that it knows (a message that was sent must not count
//! as failed because of a new field), and writes whole answers and URLs with the token into its errors.

use super::{
    api::{SentMessage, TelegramApi, TelegramCall, TelegramCallError, TelegramText, Thread},
    failure::{failure, unreachable, unreadable},
    upload,
};
use crate::{BoxFuture, Choice};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::time::Duration;
use teloxide_core::{
    Bot,
    payloads::{
        DeleteMessage, EditMessageText, EditMessageTextSetters as _, SendChatAction,
        SendChatActionSetters as _, SendMessage, SendMessageSetters as _, SetMessageReaction,
        SetMessageReactionSetters as _,
    },
    requests::Payload,
    types::{
        ChatAction, ChatId, InlineKeyboardButton, InlineKeyboardMarkup, LinkPreviewOptions, MessageId,
        ParseMode, ReactionType, ReplyParameters, ThreadId,
    },
};
use url::Url;

/// How long an ordinary call may take.
pub(super) const CALL_TIMEOUT: Duration = crate::recovery::CALL_TIMEOUT;

/// Maximum size of an API response, in bytes: a hundred updates are far from it.
const MAX_RESPONSE_BYTES: usize = 32 * 1024 * 1024;

/// A bot's access to the API. Not `Debug`: it holds the token.
pub(super) struct TelegramClient {
    bot: Bot,
}

impl TelegramClient {
    pub(super) fn new(token: &str, api_url: Url) -> Result<Self, String> {
        let settings = teloxide_core::net::default_reqwest_settings();
        let settings = match pudu_net::tls() {
            Some(tls) => settings.use_preconfigured_tls(tls),
            None => settings,
        };
        let client = settings
            // Each call sets its own: a long poll takes longer than all others.
            .timeout(Duration::from_secs(600))
            .pool_idle_timeout(Duration::from_secs(60))
            .pool_max_idle_per_host(8)
            .build()
            .map_err(|error| unreachable(error, token))?;
        Ok(Self { bot: Bot::with_client(token, client).set_api_url(api_url) })
    }

    /// Calls a method of teloxide's and reads of the result what `T` asks for.
    pub(super) async fn ask<P, T>(&self, payload: &P, patience: Duration) -> Result<T, TelegramCallError>
    where
        P: Payload + Serialize + Sync,
        T: DeserializeOwned,
    {
        self.ask_by_name(P::NAME, payload, patience).await
    }

    /// Calls a method by its name.
    pub(super) async fn ask_by_name<P, T>(
        &self,
        method: &str,
        payload: &P,
        patience: Duration,
    ) -> Result<T, TelegramCallError>
    where
        P: Serialize + Sync + ?Sized,
        T: DeserializeOwned,
    {
        let request = self.bot.client().post(self.method_url(method)?).json(payload);
        self.exchange(request.timeout(patience)).await
    }

    /// Sends a request and reads the answer.
    pub(super) async fn exchange<T: DeserializeOwned>(
        &self,
        request: reqwest_teloxide::RequestBuilder,
    ) -> Result<T, TelegramCallError> {
        let lost = |error: reqwest_teloxide::Error| {
            let unconnected = error.is_connect() || error.is_builder();
            let text = unreachable(error, self.bot.token());
            if unconnected { TelegramCallError::Unconnected(text) } else { TelegramCallError::Unknown(text) }
        };
        let mut response = request.send().await.map_err(lost)?;
        let status = response.status().as_u16();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(lost)? {
            if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
                return Err(TelegramCallError::Unknown("the answer is too large".to_owned()));
            }
            body.extend_from_slice(&chunk);
        }
        let Ok(answer) = serde_json::from_slice::<TelegramResponse<T>>(&body) else {
            return Err(unreadable(status));
        };
        match answer {
            TelegramResponse { ok: true, result: Some(result), .. } => Ok(result),
            TelegramResponse { error_code, description, parameters, .. } => {
                let Parameters { retry_after, migrate_to_chat_id } = parameters.unwrap_or_default();
                let code = error_code.unwrap_or(status);
                let what = description.unwrap_or_else(|| format!("error {code}"));
                Err(failure(code, &what, retry_after, migrate_to_chat_id))
            }
        }
    }

    pub(super) fn http(&self) -> &reqwest_teloxide::Client {
        self.bot.client()
    }

    /// Makes an error of the HTTP client fit to be shown.
    pub(super) fn describe(&self, error: reqwest_teloxide::Error) -> String {
        unreachable(error, self.bot.token())
    }

    pub(super) fn method_url(&self, name: &str) -> Result<Url, TelegramCallError> {
        self.url(&["", name])
    }

    pub(super) fn file_url(&self, path: &str) -> Result<Url, TelegramCallError> {
        let mut segments = vec!["file", ""];
        segments.extend(path.split('/').filter(|segment| !segment.is_empty()));
        self.url(&segments)
    }

    /// Returns a URL of the API; an empty segment stands for the bot.
    fn url(&self, segments: &[&str]) -> Result<Url, TelegramCallError> {
        let bot = format!("bot{}", self.bot.token());
        let mut url = self.bot.api_url();
        url.path_segments_mut()
            .map_err(|()| TelegramCallError::Refused("the API's address is no base".to_owned()))?
            .pop_if_empty()
            .extend(segments.iter().map(|segment| if segment.is_empty() { &bot } else { *segment }));
        Ok(url)
    }

    async fn done<P: Payload + Serialize + Sync>(
        &self,
        payload: P,
    ) -> Result<SentMessage, TelegramCallError> {
        self.ask::<_, bool>(&payload, CALL_TIMEOUT).await.map(|_| SentMessage::default())
    }
}

/// Common fields of every response.
#[derive(Deserialize)]
struct TelegramResponse<T> {
    ok: bool,
    result: Option<T>,
    error_code: Option<u16>,
    description: Option<String>,
    parameters: Option<Parameters>,
}

#[derive(Default, Deserialize)]
struct Parameters {
    retry_after: Option<u64>,
    migrate_to_chat_id: Option<i64>,
}

/// Telegram's response to sending a message of our own.
#[derive(Deserialize)]
pub(super) struct OwnMessage {
    message_id: i64,
    message_thread_id: Option<i64>,
    #[serde(default)]
    is_topic_message: bool,
    reply_to_message: Option<Answered>,
}

#[derive(Deserialize)]
struct Answered {
    message_id: i64,
}

impl From<OwnMessage> for SentMessage {
    fn from(message: OwnMessage) -> Self {
        let topic = message.message_thread_id.filter(|_| message.is_topic_message);
        let answered = message.reply_to_message.map(|answered| answered.message_id);
        // What opened the topic is named where nothing is answered.
        let reply_to = answered.filter(|answered| Some(*answered) != topic);
        Self { id: message.message_id, thread: Thread { topic, reply_to } }
    }
}

impl TelegramApi for TelegramClient {
    fn call<'a>(
        &'a self,
        chat: i64,
        call: &'a TelegramCall,
    ) -> BoxFuture<'a, Result<SentMessage, TelegramCallError>> {
        let chat_id = ChatId(chat);
        match call {
            TelegramCall::Send { to, text } => Box::pin(self.posted(send(chat_id, *to, text))),
            TelegramCall::Edit { id, text } => {
                Box::pin(async move { self.posted(edit(chat_id, *id, text)?).await })
            }
            TelegramCall::Delete { id } => {
                Box::pin(async move { self.done(DeleteMessage::new(chat_id, message_id(*id)?)).await })
            }
            TelegramCall::Upload { to, file, photo } => Box::pin(upload::send(self, chat, *to, file, *photo)),
            TelegramCall::Typing { topic } => {
                let mut typing = SendChatAction::new(chat_id, ChatAction::Typing);
                if let Some(topic) = thread_id(*topic) {
                    typing = typing.message_thread_id(topic);
                }
                Box::pin(self.done(typing))
            }
            TelegramCall::Seen { id } => Box::pin(async move {
                let eyes = ReactionType::Emoji { emoji: "👀".to_owned() };
                self.done(SetMessageReaction::new(chat_id, message_id(*id)?).reaction([eyes])).await
            }),
        }
    }
}

impl TelegramClient {
    async fn posted<P: Payload + Serialize + Sync>(
        &self,
        payload: P,
    ) -> Result<SentMessage, TelegramCallError> {
        self.ask::<_, OwnMessage>(&payload, CALL_TIMEOUT).await.map(SentMessage::from)
    }
}

fn send(chat: ChatId, to: Thread, text: &TelegramText) -> SendMessage {
    let mut message = SendMessage::new(chat, &text.body).link_preview_options(no_preview());
    if text.html {
        message = message.parse_mode(ParseMode::Html);
    }
    if let Some(topic) = thread_id(to.topic) {
        message = message.message_thread_id(topic);
    }
    if let Some(answered) = to.reply_to.and_then(|id| message_id(id).ok()) {
        message = message.reply_parameters(ReplyParameters::new(answered).allow_sending_without_reply());
    }
    match keyboard(&text.buttons) {
        Some(keyboard) => message.reply_markup(keyboard),
        None => message,
    }
}

/// A change without a keyboard takes away the one that is there.
fn edit(chat: ChatId, id: i64, text: &TelegramText) -> Result<EditMessageText, TelegramCallError> {
    let mut edit = EditMessageText::new(chat, message_id(id)?, &text.body).link_preview_options(no_preview());
    if text.html {
        edit = edit.parse_mode(ParseMode::Html);
    }
    Ok(match keyboard(&text.buttons) {
        Some(keyboard) => edit.reply_markup(keyboard),
        None => edit,
    })
}

/// A preview would fetch, and so tell, whatever address the model wrote.
fn no_preview() -> LinkPreviewOptions {
    LinkPreviewOptions {
        is_disabled: true,
        url: None,
        prefer_small_media: false,
        prefer_large_media: false,
        show_above_text: false,
    }
}

fn keyboard(buttons: &[Choice]) -> Option<InlineKeyboardMarkup> {
    let row = |choice: &Choice| [InlineKeyboardButton::callback(&choice.label, &choice.action)];
    (!buttons.is_empty()).then(|| InlineKeyboardMarkup::new(buttons.iter().map(row)))
}

fn message_id(id: i64) -> Result<MessageId, TelegramCallError> {
    i32::try_from(id).map(MessageId).map_err(|_| TelegramCallError::Gone)
}

fn thread_id(topic: Option<i64>) -> Option<ThreadId> {
    topic.and_then(|topic| message_id(topic).ok()).map(ThreadId)
}

#[cfg(test)]
mod tests;
