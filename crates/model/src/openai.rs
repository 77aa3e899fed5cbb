//! The chat completions wire that OpenAI made and most others took over.

mod decode;
mod encode;
mod refusal;
mod settings;

pub use settings::OpenAiSettings;

use decode::ChunkDecoder;
use futures_util::{StreamExt, stream};
use pudu_base::{Delta, Model, ModelError, ModelStream, Request};
use pudu_net::reqwest::{self, header};
use secrecy::ExposeSecret;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// A model that speaks chat completions.
pub struct OpenAi {
    settings: Arc<OpenAiSettings>,
    http: reqwest::Client,
}

impl OpenAi {
    /// Makes one; nothing is sent yet.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn new(settings: OpenAiSettings) -> Result<Self, ModelError> {
        let http = pudu_net::client().map_err(|error| ModelError::Unreachable(error.to_string()))?;
        Ok(Self { settings: Arc::new(settings), http })
    }
}

impl Model for OpenAi {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn context_window(&self) -> u64 {
        self.settings.window
    }

    fn supports_vision(&self) -> bool {
        self.settings.sees
    }

    fn stream(&self, request: Request) -> ModelStream {
        let (settings, http) = (self.settings.clone(), self.http.clone());
        stream::once(async move {
            let until = Instant::now() + settings.total;
            match begin(&settings, &http, &request).await {
                Ok(response) => deltas(response, &settings, until),
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        })
        .flatten()
        .boxed()
    }
}

/// Sends the request and returns the response once its head is there and says success.
async fn begin(
    settings: &OpenAiSettings,
    http: &reqwest::Client,
    request: &Request,
) -> Result<reqwest::Response, ModelError> {
    let url = format!("{}/chat/completions", settings.base_url.trim_end_matches('/'));
    let body = encode::body(settings, request)
        .map_err(|error| ModelError::Rejected(format!("the request cannot be written: {error}")))?;
    let mut call = http.post(url).header(header::CONTENT_TYPE, "application/json").body(body);
    for (name, value) in &settings.headers {
        call = call.header(name, value.expose_secret());
    }
    if let Some(key) = &settings.api_key {
        call = call.bearer_auth(key.expose_secret());
    }
    let response = tokio::time::timeout(settings.gap, call.send())
        .await
        .map_err(|_| silent(settings.gap))?
        .map_err(|error| unreachable(&error))?;
    if !response.status().is_success() {
        return Err(refusal::read(response).await);
    }
    match kind(&response).starts_with("text/html") {
        true => Err(ModelError::NoApi("a web page answers".to_owned())),
        false => Ok(response),
    }
}

fn kind(response: &reqwest::Response) -> &str {
    response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// State of reading a reply while its bytes come.
struct ReplyReader {
    bytes: stream::BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    decoder: ChunkDecoder,
    gap: Duration,
    until: Instant,
    over: bool,
}

/// Turns a response's bytes into deltas. Dropping the stream closes the connection.
fn deltas(response: reqwest::Response, settings: &OpenAiSettings, until: Instant) -> ModelStream {
    let whole = kind(&response).starts_with("application/json");
    let decoder = ChunkDecoder::new(whole, settings.thoughts.is_some());
    let bytes = response.bytes_stream().boxed();
    let reading = ReplyReader { bytes, decoder, gap: settings.gap, until, over: false };
    stream::unfold(reading, |mut reading| async move {
        let batch = next_batch(&mut reading).await?;
        Some((stream::iter(batch), reading))
    })
    .flatten()
    .boxed()
}

/// Waits for bytes that complete something; `None` after the end.
async fn next_batch(reading: &mut ReplyReader) -> Option<Vec<Result<Delta, ModelError>>> {
    while !reading.over {
        let patience = reading.gap.min(reading.until.saturating_duration_since(Instant::now()));
        let step = match tokio::time::timeout(patience, reading.bytes.next()).await {
            Err(_) => Err(silent(patience)),
            Ok(Some(Err(error))) => Err(unreachable(&error)),
            Ok(Some(Ok(chunk))) => reading.decoder.push(&chunk),
            Ok(None) => {
                reading.over = true;
                reading.decoder.end()
            }
        };
        let batch = match step {
            Ok(deltas) => deltas.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => {
                reading.over = true;
                vec![Err(error)]
            }
        };
        if !batch.is_empty() {
            return Some(batch);
        }
    }
    None
}

fn silent(gap: Duration) -> ModelError {
    ModelError::Unreachable(format!("nothing came for {} s", gap.as_secs()))
}

/// Returns the error without the URL, which may hold a key.
fn unreachable(error: &reqwest::Error) -> ModelError {
    use std::error::Error;
    let what = if error.is_timeout() {
        "timed out"
    } else if error.is_connect() {
        "cannot connect"
    } else {
        "the connection broke"
    };
    let cause = std::iter::successors(error.source(), |&source| source.source()).last();
    ModelError::Unreachable(cause.map_or_else(|| what.to_owned(), |cause| format!("{what}: {cause}")))
}
