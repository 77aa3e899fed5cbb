//! Requests to the HTTP API of a daemon.

use super::wire::Unsent;
use futures_util::{StreamExt, stream::BoxStream};
use pudu_client::net::{
    self,
    reqwest::{
        Client, Error, Method, RequestBuilder, Response, StatusCode,
        header::{ACCEPT_LANGUAGE, RETRY_AFTER},
    },
    sse::SseDecoder,
};
use pudu_dispatch::view::RunView;
use pudu_texts::Language;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use std::{collections::VecDeque, time::Duration};

/// Timeout of a request with a short answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a command, which may ask a model.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(180);
/// The daemon gives a sign of life every 15 s; three missed ones mean that it is gone.
const SILENCE: Duration = Duration::from_secs(45);
const LOCKED: &str = "the daemon asks for its token: give --token or set PUDU_TOKEN";
const WRONG_TOKEN: &str = "the daemon does not take this token: see `gateway.token` of its configuration, or the file \
                           gateway-token in its home";

/// The HTTP API of a daemon.
#[derive(Clone)]
pub(super) struct Api {
    client: Client,
    url: String,
    token: Option<SecretString>,
    /// The person's language.
    language: Option<Language>,
}

/// Why a request has no answer.
#[derive(Debug)]
pub(super) enum ApiFailure {
    /// There is nothing at this address.
    Missing(String),
    /// The daemon refuses it.
    Refused(String),
    /// The daemon cannot answer now, or not be reached.
    Later { reason: String, after: Option<Duration> },
}

impl From<ApiFailure> for Unsent {
    fn from(error: ApiFailure) -> Self {
        match error {
            ApiFailure::Missing(reason) | ApiFailure::Refused(reason) => Self::Refused(reason),
            ApiFailure::Later { reason, after } => Self::Later { reason, after },
        }
    }
}

impl Api {
    /// Makes a client of the daemon at `url`.
    pub(super) fn new(
        url: &str,
        token: Option<SecretString>,
        language: Option<Language>,
    ) -> Result<Self, Error> {
        Ok(Self { client: net::client()?, url: url.trim_end_matches('/').to_owned(), token, language })
    }

    /// Returns whether a pudu answers there within a time.
    pub(super) async fn answers(&self, within: Duration) -> bool {
        let asked = self.client.get(format!("{}/health", self.url)).timeout(within).send().await;
        let Ok(answer) = asked else { return false };
        let facts = answer.json::<Value>().await.unwrap_or_default();
        facts.get("service").and_then(Value::as_str) == Some("pudu")
    }

    /// Returns the address of a path below `/api`.
    pub(super) fn address(&self, path: &str) -> String {
        format!("{}/api/{path}", self.url)
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value, ApiFailure> {
        read(self.send(self.request(Method::GET, path).timeout(REQUEST_TIMEOUT)).await?).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, ApiFailure> {
        self.post_within(REQUEST_TIMEOUT, path, body).await
    }

    /// Posts a slash command.
    pub(super) async fn command(&self, path: &str, body: &Value) -> Result<Value, ApiFailure> {
        self.post_within(COMMAND_TIMEOUT, path, body).await
    }

    async fn post_within(&self, timeout: Duration, path: &str, body: &Value) -> Result<Value, ApiFailure> {
        read(self.send(self.request(Method::POST, path).json(body).timeout(timeout)).await?).await
    }

    /// Follows the views of a run.
    pub(super) async fn views(&self, thread: &str, run: &str) -> Result<Views, ApiFailure> {
        let path = format!("threads/{thread}/runs/{run}/stream?stream_mode=view");
        let opened = tokio::time::timeout(REQUEST_TIMEOUT, self.send(self.request(Method::GET, &path))).await;
        Ok(Views::new(opened.unwrap_or_else(|_| Err(unreachable()))?))
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, self.address(path));
        let request = match self.language {
            Some(language) => request.header(ACCEPT_LANGUAGE, language.tag()),
            None => request,
        };
        match &self.token {
            Some(token) => request.bearer_auth(token.expose_secret()),
            None => request,
        }
    }

    /// Sends a request; an answer that is an error is returned as one.
    async fn send(&self, request: RequestBuilder) -> Result<Response, ApiFailure> {
        let answer = request.send().await.map_err(|_| unreachable())?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        if status == StatusCode::UNAUTHORIZED {
            let locked = if self.token.is_some() { WRONG_TOKEN } else { LOCKED };
            return Err(ApiFailure::Refused(locked.to_owned()));
        }
        let wait = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let reason = reason(answer).await;
        Err(match status {
            StatusCode::NOT_FOUND => ApiFailure::Missing(reason),
            status if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() => {
                ApiFailure::Later { reason, after: wait.map(Duration::from_secs) }
            }
            _ => ApiFailure::Refused(reason),
        })
    }
}

fn unreachable() -> ApiFailure {
    ApiFailure::Later { reason: "pudu cannot be reached".to_owned(), after: None }
}

async fn read(answer: Response) -> Result<Value, ApiFailure> {
    let bytes = answer.bytes().await.map_err(|_| unreachable())?;
    match bytes.is_empty() {
        true => Ok(Value::Null),
        false => serde_json::from_slice(&bytes).map_err(|_| unreachable()),
    }
}

/// Returns the daemon's text about an error.
async fn reason(answer: Response) -> String {
    let status = answer.status();
    let body = answer.json::<Value>().await.unwrap_or_default();
    let detail = body.get("detail").and_then(Value::as_str);
    detail.map_or_else(|| format!("the daemon answers with {status}"), str::to_owned)
}

/// The views of a run on one connection.
pub(super) struct Views {
    bytes: BoxStream<'static, Result<Vec<u8>, Error>>,
    decoder: SseDecoder,
    ready: VecDeque<RunView>,
}

impl Views {
    fn new(answer: Response) -> Self {
        let bytes = answer.bytes_stream().map(|chunk| chunk.map(Vec::from)).boxed();
        Self { bytes, decoder: SseDecoder::default(), ready: VecDeque::new() }
    }

    /// Returns the next view; nothing when the connection is over.
    ///
    /// # Cancel safety
    /// Dropping the future loses no view.
    pub(super) async fn next(&mut self) -> Option<RunView> {
        while self.ready.is_empty() {
            let chunk = tokio::time::timeout(SILENCE, self.bytes.next()).await.ok()??.ok()?;
            let events = self.decoder.push(&chunk).ok()?;
            let views = events.iter().filter(|event| event.event == "view");
            self.ready.extend(views.filter_map(|event| serde_json::from_str(&event.data).ok()));
        }
        self.ready.pop_front()
    }
}

/// Returns how long to wait after a number of failures: 0.2 s, doubled up to 6.4 s.
pub(super) fn backoff(failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        count => Duration::from_millis(100) * 2_u32.pow(count.min(6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemon_is_asked_again_ever_more_slowly() {
        let millis: Vec<u128> = (0..9).map(|failures| backoff(failures).as_millis()).collect();
        assert_eq!(millis, [0, 200, 400, 800, 1600, 3200, 6400, 6400, 6400]);
    }
}
