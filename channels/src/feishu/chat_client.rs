//! Calls for one reply, with its chat, rate limits and idempotency keys.

use super::{
    card::{ELEMENT, FeishuPage},
    chat_cache::{ChatCache, MessageInfo, plain},
    client::FeishuClient,
    facts::FeishuError,
};
use crate::{ReplyTarget, bucket::Bucket, pace::Pacer, reply::NumberedChoices, transport::CallError};
use pudu_net::reqwest::{Method, multipart::Form};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

/// Delays before a call is retried during an outage. Every call may be repeated: messages have idempotency keys, and
/// operations on a card are idempotent and get a new sequence number each time.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(800)];
/// Number of pages of 50 messages to search for a message that may have been sent.
const PAGES: usize = 4;

/// Returns the rate limit of one API method: fifty calls a second, and a thousand a minute.
pub(super) fn bucket() -> Bucket {
    Bucket::new(50, Duration::from_millis(60))
}

/// State shared by all replies of one bot.
#[derive(Clone)]
pub(super) struct FeishuAccountState {
    pub(super) client: Arc<FeishuClient>,
    pub(super) pacer: Arc<Pacer<String>>,
    /// Rate limit shared by all chats.
    pub(super) bucket: Arc<Bucket>,
    pub(super) places: Arc<ChatCache>,
    pub(super) numbered: Arc<NumberedChoices>,
    /// Minimum interval between two updates of an unfinished reply.
    pub(super) interval: Duration,
}

/// Calls of one bot for one reply.
#[derive(Clone)]
pub(super) struct FeishuChatClient {
    pub(super) state: FeishuAccountState,
    chat: String,
    topic: Option<String>,
    private: bool,
    /// The message being replied to.
    answered: Option<String>,
    /// Whether every message has to be sent as a reply, so that it appears in the thread.
    threaded: bool,
}

/// An operation on a card.
pub(super) enum Operation<'a> {
    /// Replaces the streamed text.
    Text(&'a str),
    /// Replaces the card.
    Whole(&'a FeishuPage),
    /// Opens the stream.
    Open,
    /// Closes the stream, and sets the preview in the list of chats.
    Close(&'a FeishuPage),
}

impl FeishuChatClient {
    pub(super) fn new(state: FeishuAccountState, target: &ReplyTarget) -> Self {
        let hinted = target.hint.as_ref().is_some_and(|hint| hint["thread"].is_string());
        let topic = target.address.topic.clone();
        Self {
            state,
            chat: target.address.chat.clone(),
            threaded: topic.is_some() || hinted,
            topic,
            private: target.private,
            answered: target.reply_to.clone().filter(|id| plain(id).is_some()),
        }
    }

    pub(super) async fn ready(&self) {
        self.state.pacer.ready(&self.chat, self.state.interval).await;
        self.state.bucket.ready().await;
    }

    pub(super) fn check_rate_limit(&self) -> Result<(), FeishuError> {
        self.state.pacer.held(&self.chat).map_or(Ok(()), |left| Err(CallError::Wait(left)))
    }

    /// Sends a message and returns its id. `first` means that it is the reply's first message.
    pub(super) async fn send(
        &self,
        kind: &str,
        content: &Value,
        key: &str,
        first: bool,
    ) -> Result<String, FeishuError> {
        // In a private chat it is obvious which message is answered.
        let answers = self.answered.as_ref().filter(|_| self.threaded || (first && !self.private));
        let body = json!({"msg_type": kind, "content": content.to_string(), "uuid": key});
        let sent = match answers {
            Some(message) => match self.reply(message, &body).await {
                Err(failure) if failure.is_unanswerable() => self.create(body).await,
                sent => sent,
            },
            None => self.create(body).await,
        }?;
        let id = sent["message_id"].as_str().unwrap_or_default().to_owned();
        if id.is_empty() {
            return Err(CallError::Unknown("the response contains no message id".to_owned()));
        }
        let info = MessageInfo {
            chat: self.chat.clone(),
            topic: self.topic.clone(),
            private: self.private,
            sender: None,
        };
        self.state.places.record_seen(&id, info);
        self.state.places.record_part(&id, true);
        Ok(id)
    }

    async fn reply(&self, message: &str, body: &Value) -> Result<Value, FeishuError> {
        let mut body = body.clone();
        body["reply_in_thread"] = self.topic.is_some().into();
        self.call(Method::POST, &format!("im/v1/messages/{message}/reply"), Some(&body)).await
    }

    async fn create(&self, mut body: Value) -> Result<Value, FeishuError> {
        body["receive_id"] = self.chat.as_str().into();
        self.call(Method::POST, "im/v1/messages?receive_id_type=chat_id", Some(&body)).await
    }

    /// Replaces the card of a message.
    pub(super) async fn patch(&self, message: &str, page: &FeishuPage) -> Result<(), FeishuError> {
        let path = format!("im/v1/messages/{}", checked(message)?);
        let body = json!({"content": page.card(false).to_string()});
        self.call(Method::PATCH, &path, Some(&body)).await.map(drop)
    }

    pub(super) async fn delete(&self, message: &str) -> Result<(), FeishuError> {
        let path = format!("im/v1/messages/{}", checked(message)?);
        self.call(Method::DELETE, &path, None).await.map(drop)
    }

    /// Creates a card with streamed text and returns its id.
    pub(super) async fn make_card(&self) -> Result<String, FeishuError> {
        let body = json!({"type": "card_json", "data": FeishuPage::sign().card(true).to_string()});
        let created = self.call(Method::POST, "cardkit/v1/cards", Some(&body)).await?;
        let id = created["card_id"].as_str().and_then(plain);
        id.map(str::to_owned).ok_or_else(|| CallError::Refused("the response contains no card id".to_owned()))
    }

    /// Performs an operation on a card. Each attempt has its own sequence number, because CardKit refuses a number that
    /// it has seen.
    pub(super) async fn operate(
        &self,
        card: &str,
        operation: &Operation<'_>,
        mut number: impl FnMut() -> i32 + Send,
    ) -> Result<(), FeishuError> {
        let card = checked(card)?;
        let settings = |config: Value| {
            let settings = json!({"config": config}).to_string();
            (Method::PATCH, format!("cardkit/v1/cards/{card}/settings"), json!({"settings": settings}))
        };
        let (method, path, mut body) = match operation {
            Operation::Text(text) => {
                let path = format!("cardkit/v1/cards/{card}/elements/{ELEMENT}/content");
                (Method::PUT, path, json!({"content": text}))
            }
            Operation::Whole(page) => {
                let data = page.card(!page.done).to_string();
                let body = json!({"card": {"type": "card_json", "data": data}});
                (Method::PUT, format!("cardkit/v1/cards/{card}"), body)
            }
            Operation::Open => settings(json!({"streaming_mode": true})),
            Operation::Close(page) => {
                settings(json!({"streaming_mode": false, "summary": {"content": page.summary()}}))
            }
        };
        let numbered = || {
            body["sequence"] = number().into();
            Some(body.clone())
        };
        self.call_each(method, &path, numbered).await.map(drop)
    }

    /// Returns the messages of this bot in the chat between two times in milliseconds, oldest first.
    pub(super) async fn own_between(&self, from: i64, to: i64) -> Result<Vec<String>, FeishuError> {
        let chat = checked(&self.chat)?;
        let base = format!(
            "im/v1/messages?container_id_type=chat&container_id={chat}&sort_type=ByCreateTimeAsc\
             &page_size=50&start_time={}&end_time={}",
            from / 1000,
            to / 1000 + 1,
        );
        let (mut found, mut page) = (Vec::new(), String::new());
        for _ in 0..PAGES {
            // The token's `+`, `/` and `=` have a special meaning in a query.
            let token: String = url::form_urlencoded::byte_serialize(page.as_bytes()).collect();
            let next = if token.is_empty() { token } else { format!("&page_token={token}") };
            let response = self.call(Method::GET, &format!("{base}{next}"), None).await?;
            let items = response["items"].as_array().into_iter().flatten();
            let own =
                items.filter(|item| item.pointer("/sender/id") == Some(&json!(self.state.client.app_id())));
            found.extend(own.filter_map(|item| item["message_id"].as_str().map(str::to_owned)));
            page = response["page_token"].as_str().unwrap_or_default().to_owned();
            if response["has_more"] != true || page.is_empty() {
                break;
            }
        }
        Ok(found)
    }

    /// Uploads a form to `path` and returns the key in `field` of the response.
    pub(super) async fn upload<F>(
        &self,
        path: &str,
        form: impl Fn() -> F,
        field: &str,
        timeout: Duration,
    ) -> Result<String, FeishuError>
    where
        F: Future<Output = Result<Form, FeishuError>>,
    {
        self.check_rate_limit()?;
        let response = self.record_rate_limit(self.state.client.post_form(path, form, timeout).await)?;
        let key = response[field].as_str().map(str::to_owned);
        key.ok_or_else(|| CallError::Unknown("the response contains no file key".to_owned()))
    }

    /// Makes a call, unless the chat has to wait. If a POST fails after an attempt that may have succeeded, the outcome
    /// is unknown: only repeating the call under its key, or a search, settles it.
    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, FeishuError> {
        self.call_each(method, path, || body.cloned()).await
    }

    /// Like [`Self::call`], with a new body for each attempt.
    async fn call_each(
        &self,
        method: Method,
        path: &str,
        mut body: impl FnMut() -> Option<Value> + Send,
    ) -> Result<Value, FeishuError> {
        self.check_rate_limit()?;
        if method != Method::GET {
            self.state.pacer.spend(&self.chat, self.state.interval);
            self.state.bucket.spend();
        }
        let (mut pauses, mut doubt) = (PAUSES.iter(), None);
        loop {
            let result = self.state.client.call(method.clone(), path, body().as_ref()).await;
            let pause = pauses.next().filter(|_| result.as_ref().is_err_and(FeishuError::is_outage));
            let result = self.record_rate_limit(result);
            // Only a POST creates something. Any other call can simply be repeated, so its uncertainty does not matter.
            match (pause, result) {
                (Some(pause), result) => {
                    doubt = doubt.or(result.err().filter(FeishuError::may_be_done));
                    sleep(*pause).await;
                }
                (None, Err(failure)) if method == Method::POST => return Err(doubt.unwrap_or(failure)),
                (None, result) => return result,
            }
        }
    }

    /// Records the wait requested by a response.
    fn record_rate_limit<T>(&self, result: Result<T, FeishuError>) -> Result<T, FeishuError> {
        match &result {
            Err(CallError::Wait(pause)) => self.state.pacer.hold(&self.chat, *pause),
            Err(CallError::WaitForAll(pause)) => {
                self.state.pacer.hold(&self.chat, *pause);
                self.state.bucket.hold(*pause);
            }
            _ => {}
        }
        result
    }
}

/// Returns an id that is safe in a path, or an error.
fn checked(id: &str) -> Result<&str, FeishuError> {
    plain(id).ok_or_else(|| CallError::Refused("the message does not exist".to_owned()))
}
