//! The chat of a daemon that runs elsewhere, over its HTTP API.

use super::wire::{Act, ChatNews, ChatWire, CommandEntry, Letter, Unsent};
use futures_util::{StreamExt, stream, stream::BoxStream};
use pudu_channels::BoxFuture;
use pudu_client::net::{
    self,
    reqwest::{
        Client, Error, RequestBuilder, Response, StatusCode,
        header::{ACCEPT_LANGUAGE, RETRY_AFTER},
    },
    sse::SseDecoder,
};
use pudu_dispatch::local::{TranscriptChange, TranscriptLine};
use pudu_texts::Language;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::json;
use std::{collections::VecDeque, time::Duration};

/// How long a request with a short answer may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The daemon gives a sign of life every 15 s; three missed ones mean that it is gone.
const SILENCE: Duration = Duration::from_secs(45);
const LOCKED: &str = "the daemon asks for its token: give --token or set PUDU_TOKEN";
const WRONG_TOKEN: &str = "the daemon does not take this token: see `gateway.token` of its configuration, or the file \
                           gateway-token in its home";

/// The chat of a daemon that runs elsewhere.
#[derive(Clone)]
pub(super) struct RemoteChat {
    client: Client,
    url: String,
    token: Option<SecretString>,
    chat: String,
    /// The person's language.
    language: Option<Language>,
}

impl RemoteChat {
    /// Makes a way to a chat of the daemon at `url`.
    pub(super) fn new(
        url: &str,
        token: Option<SecretString>,
        chat: &str,
        language: Option<Language>,
    ) -> Result<Self, Error> {
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { client: net::client()?, url, token, chat: chat.to_owned(), language })
    }

    /// Returns whether a pudu answers there within a time.
    pub(super) async fn answers(&self, within: Duration) -> bool {
        let asked = self.client.get(format!("{}/health", self.url)).timeout(within).send().await;
        let Ok(answer) = asked else { return false };
        let facts = answer.json::<serde_json::Value>().await.unwrap_or_default();
        facts.get("service").and_then(serde_json::Value::as_str) == Some("pudu")
    }

    /// Returns why the daemon refuses this client.
    fn locked(&self) -> String {
        if self.token.is_some() { WRONG_TOKEN } else { LOCKED }.to_owned()
    }

    fn here(&self, what: &str) -> String {
        format!("{}/api/chat/{}/{what}", self.url, self.chat)
    }

    fn known(&self, request: RequestBuilder) -> RequestBuilder {
        let request = match self.language {
            Some(language) => request.header(ACCEPT_LANGUAGE, language.tag()),
            None => request,
        };
        match &self.token {
            Some(token) => request.bearer_auth(token.expose_secret()),
            None => request,
        }
    }

    fn post(&self, letter: &Letter) -> RequestBuilder {
        let key = &letter.key;
        let (path, body) = match &letter.act {
            Act::Say(text) => ("messages", json!({ "text": text, "key": key })),
            Act::Press { line, action } => ("press", json!({ "line": line, "action": action, "key": key })),
        };
        self.known(self.client.post(self.here(path)).json(&body)).timeout(REQUEST_TIMEOUT)
    }

    async fn open(&self) -> Result<Following, Shut> {
        let request = self.known(self.client.get(self.here("events")));
        let asked = tokio::time::timeout(REQUEST_TIMEOUT, request.send()).await;
        let Ok(Ok(answer)) = asked else { return Err(Shut::Lost) };
        match answer.status() {
            StatusCode::OK => Ok(Following::new(answer)),
            StatusCode::UNAUTHORIZED => Err(Shut::Refused(self.locked())),
            status if status.is_client_error() => Err(Shut::Refused(reason(answer).await)),
            _ => Err(Shut::Lost),
        }
    }
}

impl ChatWire for RemoteChat {
    fn follow(&self) -> BoxStream<'static, ChatNews> {
        let state = ChatReader { remote: self.clone(), following: None, failures: 0 };
        stream::unfold(state, |mut reader| async move { Some((reader.next().await, reader)) }).boxed()
    }

    fn send<'a>(&'a self, letter: &'a Letter) -> BoxFuture<'a, Result<(), Unsent>> {
        Box::pin(async move {
            let Ok(answer) = self.post(letter).send().await else {
                return Err(Unsent::Later { reason: "pudu cannot be reached".to_owned(), after: None });
            };
            let status = answer.status();
            if status.is_success() {
                return Ok(());
            }
            if status == StatusCode::UNAUTHORIZED {
                return Err(Unsent::Refused(self.locked()));
            }
            let wait = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            let reason = reason(answer).await;
            match status.is_server_error() {
                true => Err(Unsent::Later { reason, after: wait.map(Duration::from_secs) }),
                false => Err(Unsent::Refused(reason)),
            }
        })
    }

    fn commands<'a>(&'a self) -> BoxFuture<'a, Vec<CommandEntry>> {
        #[derive(Default, Deserialize)]
        struct CommandsResponse {
            commands: Vec<CommandEntry>,
        }
        Box::pin(async move {
            let request = self.client.get(format!("{}/api/commands", self.url)).timeout(REQUEST_TIMEOUT);
            let Ok(answer) = self.known(request).send().await else { return Vec::new() };
            answer.json::<CommandsResponse>().await.unwrap_or_default().commands
        })
    }

    fn file(&self, line: &str, index: usize) -> Option<String> {
        Some(self.here(&format!("files/{line}/{index}")))
    }
}

/// Returns what the daemon says about an error.
async fn reason(answer: Response) -> String {
    let status = answer.status();
    let body = answer.json::<serde_json::Value>().await.unwrap_or_default();
    let detail = body.get("detail").and_then(serde_json::Value::as_str);
    detail.map_or_else(|| format!("the daemon answers with {status}"), str::to_owned)
}

/// Why there is nothing to follow.
enum Shut {
    Lost,
    Refused(String),
}

/// Follows a chat across lost connections.
struct ChatReader {
    remote: RemoteChat,
    following: Option<Following>,
    /// How often in a row the daemon could not be reached.
    failures: u32,
}

impl ChatReader {
    async fn next(&mut self) -> ChatNews {
        loop {
            if let Some(following) = &mut self.following {
                match following.next().await {
                    Some(change) => return ChatNews::Change(change),
                    None => self.following = None,
                }
                return self.lost();
            }
            tokio::time::sleep(backoff(self.failures)).await;
            match self.remote.open().await {
                Ok(following) => (self.following, self.failures) = (Some(following), 0),
                Err(Shut::Lost) => return self.lost(),
                Err(Shut::Refused(reason)) => {
                    self.failures += 1;
                    return ChatNews::Refused(reason);
                }
            }
        }
    }

    fn lost(&mut self) -> ChatNews {
        self.failures += 1;
        ChatNews::Lost
    }
}

/// Returns how long to wait after so many failures: 0.2 s, doubled up to 6.4 s.
pub(super) fn backoff(failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        count => Duration::from_millis(100) * 2_u32.pow(count.min(6)),
    }
}

/// One connection's events.
struct Following {
    bytes: BoxStream<'static, Result<Vec<u8>, Error>>,
    decoder: SseDecoder,
    ready: VecDeque<TranscriptChange>,
}

impl Following {
    fn new(answer: Response) -> Self {
        let bytes = answer.bytes_stream().map(|chunk| chunk.map(Vec::from)).boxed();
        Self { bytes, decoder: SseDecoder::default(), ready: VecDeque::new() }
    }

    /// Returns the next change; nothing when the connection is over.
    async fn next(&mut self) -> Option<TranscriptChange> {
        while self.ready.is_empty() {
            let chunk = tokio::time::timeout(SILENCE, self.bytes.next()).await.ok()??.ok()?;
            let events = self.decoder.push(&chunk).ok()?;
            self.ready.extend(events.iter().filter_map(|event| change(&event.event, &event.data)));
        }
        self.ready.pop_front()
    }
}

/// Reads an event; what a newer daemon may say besides is passed over.
fn change(event: &str, data: &str) -> Option<TranscriptChange> {
    match event {
        "transcript" => {
            serde_json::from_str::<Vec<TranscriptLine>>(data).ok().map(TranscriptChange::Transcript)
        }
        "line" => serde_json::from_str(data).ok().map(TranscriptChange::Line),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_and_strange_ones_passed_over() {
        let line = TranscriptLine::by_agent("1".into(), "*hi*", true);
        let data = r#"{"id":"1","from":"pudu","text":"*hi*","html":"<p></p>","done":true,"new":1}"#;
        assert_eq!(change("line", data), Some(TranscriptChange::Line(line.clone())));
        assert_eq!(
            change("transcript", &format!("[{data}]")),
            Some(TranscriptChange::Transcript(vec![line]))
        );
        assert_eq!(change("line", "oops"), None);
        assert_eq!(change("other", data), None);
    }

    #[test]
    fn the_daemon_is_asked_again_ever_more_slowly() {
        let millis: Vec<u128> = (0..9).map(|failures| backoff(failures).as_millis()).collect();
        assert_eq!(millis, [0, 200, 400, 800, 1600, 3200, 6400, 6400, 6400]);
    }
}
