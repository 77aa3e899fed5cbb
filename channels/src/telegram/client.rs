//! Calls to Telegram: teloxide's methods, or methods by name.
//!
//! This replaces teloxide's client, which waits ten seconds after any server error, drops the error code, puts whole
//! responses and URLs with the token into its errors, and rejects a response if it does not know the form of a message
//! in it, so that a message that was sent would count as failed because of a new field.

use super::{
    api::{SentMessage, Thread},
    facts::{TelegramError, failure},
};
use crate::transport::{self, AccountTransport, RawResponse, below_escaped};
use pudu_net::reqwest::RequestBuilder;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::time::Duration;
use teloxide_core::requests::Payload;
use url::Url;

/// Timeout of an ordinary call.
pub(super) const CALL_TIMEOUT: Duration = crate::recovery::CALL_TIMEOUT;

/// Maximum size of an API response, in bytes. A hundred updates are far smaller.
const MAX_RESPONSE_BYTES: usize = 32 * 1024 * 1024;

/// A bot's access to the API. Not `Debug`: it holds the token.
pub(super) struct TelegramClient {
    pub(super) transport: AccountTransport,
    api_url: Url,
    token: SecretString,
}

impl TelegramClient {
    pub(super) fn new(token: SecretString, api_url: Url) -> Result<Self, String> {
        Ok(Self { transport: AccountTransport::new()?, api_url, token })
    }

    /// Calls a method that teloxide defines and decodes the result as `T`.
    pub(super) async fn ask<P, T>(&self, payload: &P, timeout: Duration) -> Result<T, TelegramError>
    where
        P: Payload + Serialize + Sync,
        T: DeserializeOwned,
    {
        self.ask_by_name(P::NAME, payload, timeout).await
    }

    /// Calls a method by its name.
    pub(super) async fn ask_by_name<P, T>(
        &self,
        method: &str,
        payload: &P,
        timeout: Duration,
    ) -> Result<T, TelegramError>
    where
        P: Serialize + Sync + ?Sized,
        T: DeserializeOwned,
    {
        self.exchange(self.post(method).json(payload).timeout(timeout)).await
    }

    /// Sends a request and reads the response. The caller, which knows the chat, records the outcome.
    pub(super) async fn exchange<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<T, TelegramError> {
        transport::exchange(request, MAX_RESPONSE_BYTES, |response| read(&response)).await
    }

    /// Builds the request of a method.
    pub(super) fn post(&self, method: &str) -> RequestBuilder {
        self.transport.http.post(below_escaped(&self.api_url, [self.bot().as_str(), method]))
    }

    /// Builds the request to download a file.
    pub(super) fn get_file(&self, path: &str) -> RequestBuilder {
        let path = path.split('/').filter(|segment| !segment.is_empty());
        self.transport
            .http
            .get(below_escaped(&self.api_url, ["file", self.bot().as_str()].into_iter().chain(path)))
    }

    fn bot(&self) -> String {
        format!("bot{}", self.token.expose_secret())
    }
}

fn read<T: DeserializeOwned>(response: &RawResponse) -> Result<T, TelegramError> {
    match response.json()? {
        TelegramResponse { ok: true, result: Some(result), .. } => Ok(result),
        TelegramResponse { error_code, description, parameters, .. } => {
            let Parameters { retry_after, migrate_to_chat_id } = parameters.unwrap_or_default();
            let code = error_code.unwrap_or(response.status);
            let what = description.unwrap_or_else(|| format!("error {code}"));
            Err(failure(code, &what, retry_after, migrate_to_chat_id))
        }
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

/// A message of the bot, as returned by Telegram.
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
        // In a topic, a message that is not a reply also has `reply_to_message`: the message that opened the topic.
        let reply_to = answered.filter(|answered| Some(*answered) != topic);
        Self { id: message.message_id, thread: Thread { topic, reply_to } }
    }
}
