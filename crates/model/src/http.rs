//! A model over HTTP, on any wire.

use crate::{
    ModelSettings, frames::ReplyDecoder, legal::make_legal, refusal, think::ThinkHabits, wires::wire_of,
};
use futures_util::{StreamExt, stream};
use pudu_base::{Delta, Model, ModelError, ModelStream, Request, Thinking};
use pudu_net::{
    json,
    reqwest::{
        self, Method, Url,
        header::{self, HeaderMap, HeaderName, HeaderValue},
    },
};
use secrecy::ExposeSecret;
use std::{borrow::Cow, sync::Arc, time::Duration};
use tokio::time::Instant;

/// Maximum number of model calls that a provider can bill for one request if it runs its own tools. Each call has the
/// whole context.
const MAX_PROVIDER_CALLS: u64 = 8;

/// A model served over HTTP.
pub struct HttpModel {
    settings: Arc<ModelSettings>,
    http: reqwest::Client,
    habits: ThinkHabits,
}

impl HttpModel {
    /// Creates a model without sending a request.
    ///
    /// # Errors
    /// When the HTTP client cannot be created.
    pub fn new(settings: ModelSettings) -> Result<Self, ModelError> {
        let http = pudu_net::client().map_err(|error| ModelError::Unreachable(error.to_string()))?;
        Ok(Self { settings: Arc::new(settings), http, habits: ThinkHabits::default() })
    }
}

impl Model for HttpModel {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn context_window(&self) -> u64 {
        self.settings.window
    }

    fn max_output(&self) -> Option<u64> {
        let wire = wire_of(self.settings.wire);
        let limit = |thinking| wire.limit(&self.settings, &Request { thinking, ..Request::default() });
        Thinking::ALL.into_iter().map(limit).try_fold(0, |most, limit| Some(most.max(limit?)))
    }

    fn supports_vision(&self) -> bool {
        self.settings.sees
    }

    fn stream(&self, mut request: Request) -> ModelStream {
        make_legal(&mut request);
        let (settings, http, habit) = (
            self.settings.sampled(request.sampling),
            self.http.clone(),
            self.habits.habit(request.thinking).clone(),
        );
        stream::once(async move {
            let until = Instant::now() + settings.total;
            match begin(&settings, &http, &request).await {
                Ok((response, sent)) => {
                    let max_tokens = settings.window.max(sent).saturating_mul(MAX_PROVIDER_CALLS);
                    deltas(response, ReplyDecoder::with_habit(&settings, &habit), settings.gap, until)
                        .map(move |delta| delta.map(|delta| with_credible_usage(delta, max_tokens)))
                        .boxed()
                }
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        })
        .flatten()
        .boxed()
    }
}

/// Limits a reported usage to the number of tokens that the request can have used.
fn with_credible_usage(delta: Delta, most: u64) -> Delta {
    let Delta::Usage(usage) = delta else { return delta };
    let credible = usage.at_most(most);
    if credible != usage {
        tracing::warn!(?usage, most, "limited an implausible usage");
    }
    Delta::Usage(credible)
}

/// Sends the request. Returns the response if its status is a success, and the size of the request in bytes.
async fn begin(
    settings: &ModelSettings,
    http: &reqwest::Client,
    request: &Request,
) -> Result<(reqwest::Response, u64), ModelError> {
    let wire = wire_of(settings.wire);
    let unwritten = |error: &dyn std::fmt::Display| {
        ModelError::Rejected(format!("the request cannot be written: {error}"))
    };
    let mut body = wire.body(settings, request).map_err(|error| unwritten(&error))?;
    // Providers refuse NUL, which older threads may contain.
    if let Cow::Owned(repaired) = json::repair(&body) {
        body = repaired.into_bytes();
    }
    let sent = body.len() as u64;
    let call = call(settings, http, Method::POST, &wire.path(settings))?;
    let response = tokio::time::timeout(settings.gap, pudu_net::send(call.body(body)))
        .await
        .map_err(|_| silent(settings.gap))?
        .map_err(|error| failed(&error))?;
    if !response.status().is_success() {
        return Err(refusal::read(response).await);
    }
    match kind(&response).starts_with("text/html") {
        true => Err(ModelError::NoApi("a web page responded".to_owned())),
        false => Ok((response, sent)),
    }
}

/// Creates a request with the headers of the provider and the operator.
fn call(
    settings: &ModelSettings,
    http: &reqwest::Client,
    method: Method,
    path: &str,
) -> Result<reqwest::RequestBuilder, ModelError> {
    Ok(http.request(method, url(&settings.base_url, path)).headers(headers(settings)?))
}

/// Returns the headers, each once. The operator's headers replace ours.
fn headers(settings: &ModelSettings) -> Result<HeaderMap, ModelError> {
    let mut headers = wire_of(settings.wire).headers();
    headers.extend(key(settings)?);
    for (name, value) in &settings.headers {
        let unsendable = || ModelError::Rejected(format!("the header \"{name}\" cannot be sent"));
        let name = HeaderName::try_from(name).map_err(|_| unsendable())?;
        let mut value = HeaderValue::try_from(value.expose_secret()).map_err(|_| unsendable())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(headers)
}

impl ModelSettings {
    /// Creates a request for the provider's list of models, which is free.
    ///
    /// # Errors
    /// When the key is not a valid header value.
    pub fn list_request(&self, http: &reqwest::Client) -> Result<reqwest::RequestBuilder, ModelError> {
        call(self, http, Method::GET, &wire_of(self.wire).list_path(self))
    }

    /// Creates an empty request, which every provider refuses without charging for it.
    ///
    /// # Errors
    /// When the key is not a valid header value.
    pub fn empty_request(&self, http: &reqwest::Client) -> Result<reqwest::RequestBuilder, ModelError> {
        let call = call(self, http, Method::POST, &wire_of(self.wire).path(self))?;
        Ok(call.body("{}"))
    }
}

/// Appends a wire's path to a base URL, and keeps the URL's query, such as Azure's API version.
fn url(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    let queries = [base.query().unwrap_or_default(), query];
    let joined = queries.iter().filter(|query| !query.is_empty()).copied().collect::<Vec<_>>().join("&");
    url.set_query(Some(joined.as_str()).filter(|query| !query.is_empty()));
    url
}

/// Returns the header with the API key.
fn key(settings: &ModelSettings) -> Result<Option<(HeaderName, HeaderValue)>, ModelError> {
    let Some(key) = &settings.api_key else { return Ok(None) };
    let (name, before) = match settings.dialect.key_header {
        Some((name, before)) => (HeaderName::from_static(name), before),
        None => wire_of(settings.wire).key_header(),
    };
    let mut value = HeaderValue::from_str(&format!("{before}{}", key.expose_secret())).map_err(|_| {
        ModelError::Auth("the key has characters that are not allowed in a header".to_owned())
    })?;
    value.set_sensitive(true);
    Ok(Some((name, value)))
}

fn kind(response: &reqwest::Response) -> &str {
    response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// State of a reply that is being read.
struct ReplyReader {
    bytes: stream::BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    decoder: ReplyDecoder,
    gap: Duration,
    until: Instant,
    over: bool,
}

/// Converts the bytes of a response to deltas. Dropping the stream closes the connection.
fn deltas(response: reqwest::Response, decoder: ReplyDecoder, gap: Duration, until: Instant) -> ModelStream {
    let bytes = response.bytes_stream().boxed();
    let reading = ReplyReader { bytes, decoder, gap, until, over: false };
    stream::unfold(reading, |mut reading| async move {
        let batch = next_batch(&mut reading).await?;
        Some((stream::iter(batch), reading))
    })
    .flatten()
    .boxed()
}

/// Waits until at least one delta is complete; `None` at the end.
async fn next_batch(reading: &mut ReplyReader) -> Option<Vec<Result<Delta, ModelError>>> {
    while !reading.over {
        let mut out = Vec::new();
        let patience = reading.gap.min(reading.until.saturating_duration_since(Instant::now()));
        let step = match tokio::time::timeout(patience, reading.bytes.next()).await {
            Err(_) if patience < reading.gap => {
                Err(ModelError::Unreachable("the complete answer took too long".to_owned()))
            }
            Err(_) => Err(silent(patience)),
            Ok(Some(Err(error))) => Err(failed(&error)),
            Ok(Some(Ok(chunk))) => reading.decoder.push(&chunk, &mut out),
            Ok(None) => {
                reading.over = true;
                reading.decoder.end(&mut out)
            }
        };
        let mut batch: Vec<_> = out.into_iter().map(Ok).collect();
        if let Err(error) = step {
            reading.over = true;
            batch.push(Err(error));
        }
        if !batch.is_empty() {
            return Some(batch);
        }
    }
    None
}

fn silent(gap: Duration) -> ModelError {
    ModelError::Unreachable(format!("no data for {} s", gap.as_secs()))
}

fn failed(error: &reqwest::Error) -> ModelError {
    let why = pudu_net::why(error);
    match error.is_connect() || error.is_timeout() {
        true => ModelError::Unreachable(why),
        false => ModelError::Cut(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WireKind;

    #[test]
    fn each_header_is_sent_once_and_the_operators_takes_precedence() {
        let own =
            [("Anthropic-Version", "2024-01-01"), ("x-api-key", "theirs"), ("content-type", "text/plain")];
        let settings = ModelSettings {
            api_key: Some("ours".into()),
            headers: own.map(|(name, value)| (name.to_owned(), value.into())).into(),
            ..ModelSettings::plain("m", WireKind::Messages)
        };
        let request = settings.empty_request(&pudu_net::client().unwrap()).unwrap().build().unwrap();
        let all = |name: &str| request.headers().get_all(name).iter().cloned().collect::<Vec<_>>();
        assert_eq!(all("anthropic-version"), ["2024-01-01"]);
        assert_eq!(all("x-api-key"), ["theirs"]);
        assert_eq!(all("content-type"), ["application/json"]);
        let headers = vec![("a b".to_owned(), "c".into())];
        let error =
            ModelSettings { headers, ..settings }.empty_request(&pudu_net::client().unwrap()).unwrap_err();
        assert_eq!(error, ModelError::Rejected("the header \"a b\" cannot be sent".into()));
    }

    #[test]
    fn an_implausible_usage_is_limited() {
        let usage = |input, output| Delta::Usage(pudu_base::Usage::plain(input, output));
        assert_eq!(with_credible_usage(usage(900, 100), 1_000), usage(900, 100));
        assert_eq!(with_credible_usage(usage(u64::MAX, 1_000_000_000), 1_000), usage(1_000, 1_000));
        assert_eq!(with_credible_usage(Delta::Text("a".into()), 0), Delta::Text("a".into()));
    }

    #[test]
    fn a_path_is_appended_and_both_queries_are_kept() {
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

    #[test]
    fn the_operators_header_replaces_ours() {
        let mut settings = ModelSettings::plain("m", WireKind::Messages);
        settings.headers = vec![("Anthropic-Version".to_owned(), "2030-01-01".into())];
        settings.api_key = Some("sk-1".into());
        let request = settings.empty_request(&pudu_net::client().unwrap()).unwrap().build().unwrap();
        let all: Vec<_> = request.headers().get_all("anthropic-version").iter().collect();
        assert_eq!(all, ["2030-01-01"]);
        assert_eq!(request.headers()["x-api-key"], "sk-1");
    }
}
