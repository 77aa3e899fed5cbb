//! Requests to the HTTP API of a daemon.

use super::wire::Unsent;
use futures_util::{StreamExt, stream::BoxStream};
use pudu_dispatch::view::RunView;
use pudu_net::{
    self as net,
    reqwest::{
        Client, Error, Method, RequestBuilder, Response, StatusCode,
        header::{ACCEPT_LANGUAGE, RETRY_AFTER},
    },
    sse::{SseDecoder, SseEvent},
};
use pudu_texts::Language;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use std::{collections::VecDeque, time::Duration};

/// Timeout of a request with a short answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a command, which may ask a model.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(180);
/// Timeout of a silent stream. The daemon sends a heartbeat every 15 s, so three have been missed by then.
const SILENCE: Duration = Duration::from_secs(45);
const LOCKED: &str = "the daemon requires a token; give --token or set PUDU_TOKEN";
const WRONG_TOKEN: &str = "the daemon rejected this token; see `gateway.token` in its configuration, or the file \
                           gateway-token in its home";

/// The HTTP API of a daemon.
#[derive(Clone)]
pub(in crate::cli) struct Api {
    client: Client,
    url: String,
    token: Option<SecretString>,
    /// The person's language, if known.
    language: Option<Language>,
}

/// Reason why a request failed.
#[derive(Debug)]
pub(in crate::cli) enum ApiFailure {
    /// The daemon has nothing at this URL.
    Missing(String),
    /// The daemon refused the request.
    Refused(String),
    /// The daemon is unreachable, or cannot answer now.
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
    /// Creates a client for the daemon at `url`.
    pub(in crate::cli) fn new(
        url: &str,
        token: Option<SecretString>,
        language: Option<Language>,
    ) -> Result<Self, Error> {
        Ok(Self { client: net::client()?, url: url.trim_end_matches('/').to_owned(), token, language })
    }

    /// Returns whether pudu answers at the URL within this time.
    pub(in crate::cli) async fn answers(&self, within: Duration) -> bool {
        let response = self.client.get(format!("{}/health", self.url)).timeout(within).send().await;
        let Ok(answer) = response else { return false };
        let facts = answer.json::<Value>().await.unwrap_or_default();
        facts.get("service").and_then(Value::as_str) == Some("pudu")
    }

    /// Returns the URL of a path below `/api`.
    pub(in crate::cli) fn address(&self, path: &str) -> String {
        format!("{}/api/{path}", self.url)
    }

    pub(in crate::cli) async fn get(&self, path: &str) -> Result<Value, ApiFailure> {
        read(self.send(self.request(Method::GET, path).timeout(REQUEST_TIMEOUT)).await?).await
    }

    pub(in crate::cli) async fn post(&self, path: &str, body: &Value) -> Result<Value, ApiFailure> {
        self.post_within(REQUEST_TIMEOUT, path, body).await
    }

    pub(in crate::cli) async fn patch(&self, path: &str, body: &Value) -> Result<Value, ApiFailure> {
        read(self.send(self.request(Method::PATCH, path).json(body).timeout(REQUEST_TIMEOUT)).await?).await
    }

    /// Sends a slash command.
    pub(in crate::cli) async fn command(&self, path: &str, body: &Value) -> Result<Value, ApiFailure> {
        self.post_within(COMMAND_TIMEOUT, path, body).await
    }

    async fn post_within(&self, timeout: Duration, path: &str, body: &Value) -> Result<Value, ApiFailure> {
        read(self.send(self.request(Method::POST, path).json(body).timeout(timeout)).await?).await
    }

    /// Follows the frames of a run in these stream modes, from the start or after the frame with an id.
    pub(in crate::cli) async fn frames(
        &self,
        thread: &str,
        run: &str,
        modes: &str,
        after: Option<&str>,
    ) -> Result<RunFrames, ApiFailure> {
        let request =
            self.request(Method::GET, &format!("threads/{thread}/runs/{run}/stream?stream_mode={modes}"));
        let request = match after {
            Some(id) => request.header("Last-Event-ID", id),
            None => request,
        };
        let opened = tokio::time::timeout(REQUEST_TIMEOUT, self.send(request)).await;
        Ok(RunFrames::new(opened.unwrap_or_else(|_| Err(unreachable()))?))
    }

    /// Follows the views of a run.
    pub(in crate::cli) async fn views(&self, thread: &str, run: &str) -> Result<Views, ApiFailure> {
        Ok(Views(self.frames(thread, run, "view", None).await?))
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

    /// Sends a request. An error status becomes an error.
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

/// Returns the daemon's error message.
async fn reason(answer: Response) -> String {
    let status = answer.status();
    let body = answer.json::<Value>().await.unwrap_or_default();
    let detail = body.get("detail").and_then(Value::as_str);
    detail.map_or_else(|| format!("the daemon answers with {status}"), str::to_owned)
}

/// The frames of a run on one connection.
pub(in crate::cli) struct RunFrames {
    bytes: BoxStream<'static, Result<Vec<u8>, Error>>,
    decoder: SseDecoder,
    ready: VecDeque<SseEvent>,
}

impl RunFrames {
    fn new(answer: Response) -> Self {
        let bytes = answer.bytes_stream().map(|chunk| chunk.map(Vec::from)).boxed();
        Self { bytes, decoder: SseDecoder::default(), ready: VecDeque::new() }
    }

    /// Returns the next frame; `None` once the connection has ended.
    ///
    /// # Cancel safety
    /// Dropping the future loses no frame.
    pub(in crate::cli) async fn next(&mut self) -> Option<SseEvent> {
        while self.ready.is_empty() {
            let chunk = tokio::time::timeout(SILENCE, self.bytes.next()).await.ok()??.ok()?;
            self.ready.extend(self.decoder.push(&chunk).ok()?);
        }
        self.ready.pop_front()
    }
}

/// The views of a run on one connection.
pub(in crate::cli) struct Views(RunFrames);

impl Views {
    /// Returns the next view; `None` once the connection has ended.
    ///
    /// # Cancel safety
    /// Dropping the future loses no view.
    pub(in crate::cli) async fn next(&mut self) -> Option<RunView> {
        loop {
            let frame = self.0.next().await?;
            if frame.event == "view"
                && let Ok(view) = serde_json::from_str(&frame.data)
            {
                return Some(view);
            }
        }
    }
}

/// Returns the delay after a number of failures: 0.2 s, doubled up to 6.4 s.
pub(in crate::cli) fn backoff(failures: u32) -> Duration {
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
