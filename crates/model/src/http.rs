//! A model behind HTTP, whatever its wire.

use crate::{ModelSettings, frames::ReplyDecoder, refusal, wires::wire_of};
use futures_util::{StreamExt, stream};
use pudu_base::{Delta, Model, ModelError, ModelStream, Request};
use pudu_net::reqwest::{
    self, Method, Url,
    header::{self, HeaderName, HeaderValue},
};
use secrecy::ExposeSecret;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// A model that a provider serves by HTTP.
pub struct HttpModel {
    settings: Arc<ModelSettings>,
    http: reqwest::Client,
}

impl HttpModel {
    /// Makes one; nothing is sent yet.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn new(settings: ModelSettings) -> Result<Self, ModelError> {
        let http = pudu_net::client().map_err(|error| ModelError::Unreachable(error.to_string()))?;
        Ok(Self { settings: Arc::new(settings), http })
    }
}

impl Model for HttpModel {
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
    settings: &ModelSettings,
    http: &reqwest::Client,
    request: &Request,
) -> Result<reqwest::Response, ModelError> {
    let wire = wire_of(settings.wire);
    let unwritten = |error: &dyn std::fmt::Display| {
        ModelError::Rejected(format!("the request cannot be written: {error}"))
    };
    let body = wire.body(settings, request).map_err(|error| unwritten(&error))?;
    let call = call(settings, http, Method::POST, &wire.path(settings))?;
    let call = call.header(header::CONTENT_TYPE, "application/json").body(body);
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

/// Makes a request with the headers that this provider and its operator want.
fn call(
    settings: &ModelSettings,
    http: &reqwest::Client,
    method: Method,
    path: &str,
) -> Result<reqwest::RequestBuilder, ModelError> {
    let mut call =
        http.request(method, url(&settings.base_url, path)).headers(wire_of(settings.wire).headers());
    for (name, value) in &settings.headers {
        call = call.header(name, value.expose_secret());
    }
    if let Some((name, value)) = key(settings)? {
        call = call.header(name, value);
    }
    Ok(call)
}

impl ModelSettings {
    /// Makes the request for the list of the provider's models, which costs nothing.
    ///
    /// # Errors
    /// When the key cannot be sent.
    pub fn list_request(&self, http: &reqwest::Client) -> Result<reqwest::RequestBuilder, ModelError> {
        call(self, http, Method::GET, &wire_of(self.wire).list_path(self))
    }

    /// Makes a request that asks nothing, which every provider refuses and none charges for.
    ///
    /// # Errors
    /// When the key cannot be sent.
    pub fn empty_request(&self, http: &reqwest::Client) -> Result<reqwest::RequestBuilder, ModelError> {
        let call = call(self, http, Method::POST, &wire_of(self.wire).path(self))?;
        Ok(call.header(header::CONTENT_TYPE, "application/json").body("{}"))
    }
}

/// Adds a wire's path to a base URL, whose query stays, such as Azure's version.
fn url(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    let queries = [base.query().unwrap_or_default(), query];
    let joined = queries.iter().filter(|query| !query.is_empty()).copied().collect::<Vec<_>>().join("&");
    url.set_query(Some(joined.as_str()).filter(|query| !query.is_empty()));
    url
}

/// Returns the header that carries the key.
fn key(settings: &ModelSettings) -> Result<Option<(HeaderName, HeaderValue)>, ModelError> {
    let Some(key) = &settings.api_key else { return Ok(None) };
    let (name, before) = match settings.dialect.key_header {
        Some((name, before)) => (HeaderName::from_static(name), before),
        None => wire_of(settings.wire).key_header(),
    };
    let mut value = HeaderValue::from_str(&format!("{before}{}", key.expose_secret()))
        .map_err(|_| ModelError::Auth("the key has signs that no header can carry".to_owned()))?;
    value.set_sensitive(true);
    Ok(Some((name, value)))
}

fn kind(response: &reqwest::Response) -> &str {
    response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// State of reading a reply while its bytes come.
struct ReplyReader {
    bytes: stream::BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    decoder: ReplyDecoder,
    gap: Duration,
    until: Instant,
    over: bool,
}

/// Turns a response's bytes into deltas. Dropping the stream closes the connection.
fn deltas(response: reqwest::Response, settings: &ModelSettings, until: Instant) -> ModelStream {
    let decoder = ReplyDecoder::of(settings);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_added_and_each_query_stays() {
        for (base, path, expect) in [
            ("https://a.b/v1", "/chat/completions", "https://a.b/v1/chat/completions"),
            ("https://a.b/v1/", "/messages", "https://a.b/v1/messages"),
            ("https://a.b", "/api/chat", "https://a.b/api/chat"),
            ("https://a.b/o/v1/", "/../api/chat", "https://a.b/o/api/chat"),
            ("https://a.b/d?api-version=1", "/x?alt=sse", "https://a.b/d/x?api-version=1&alt=sse"),
        ] {
            assert_eq!(url(&Url::parse(base).unwrap(), path).as_str(), expect);
        }
    }
}
