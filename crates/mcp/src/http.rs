//! A server over streamable HTTP, with bounds. `rmcp` brings a client of its own; ours takes no answer of
//! any size, names no address in an error (a query may hold a key), sends the entry's headers to no other
//! host, and follows the redirect from `/mcp` to `/mcp/` that many servers answer with.

use crate::{server::Endpoint, stdout::MAX_MESSAGE_BYTES};
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
use pudu_net::{
    reqwest::{
        self, Method, Request, Response, StatusCode, Url,
        header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION},
    },
    sse::SseDecoder,
};
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::{
        StreamableHttpClientTransport,
        streamable_http_client::{
            SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
            StreamableHttpPostResponse,
        },
    },
};
use sse_stream::Sse;
use std::{collections::HashMap, sync::Arc};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// A request follows so many redirects.
const HOPS: usize = 3;

/// Why an exchange failed. The texts name neither address nor header.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    #[error("it cannot be reached: {0}")]
    Unreachable(&'static str),
    #[error("it answered {0}{1}")]
    Status(StatusCode, &'static str),
    #[error("it answered with something else than the protocol: is the url right?")]
    Foreign,
    #[error("it answered with more than {} MiB", MAX_MESSAGE_BYTES / 1024 / 1024)]
    TooLarge,
    #[error("it redirects to another place")]
    Redirect,
}

type HttpResult<T, E = StreamableHttpError<ExchangeError>> = Result<T, E>;
type Events = BoxStream<'static, HttpResult<Sse, SseError>>;

/// Makes the transport of a server.
pub(crate) fn transport(endpoint: Endpoint, http: reqwest::Client) -> StreamableHttpClientTransport<Http> {
    // The address stays with our client: rmcp would put it into its own log lines.
    let config = StreamableHttpClientTransportConfig::with_uri("mcp").max_sse_event_size(MAX_MESSAGE_BYTES);
    StreamableHttpClientTransport::with_client(Http { endpoint: Arc::new(endpoint), http }, config)
}

/// The exchange with one server.
#[derive(Clone)]
pub(crate) struct Http {
    endpoint: Arc<Endpoint>,
    http: reqwest::Client,
}

impl StreamableHttpClient for Http {
    type Error = ExchangeError;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<StreamableHttpPostResponse> {
        let in_session = session.is_some();
        let body = serde_json::to_vec(&message)?;
        let response = self.send(Method::POST, session, None, headers, Some(body)).await?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let wants_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        if status.is_success() && (!wants_answer || status == StatusCode::ACCEPTED) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        answer(response).await
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session: Arc<str>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<()> {
        let response = self.send(Method::DELETE, Some(session), None, headers, None).await?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Ok(()),
            status => accepted(status),
        }
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<Events> {
        let response = self.send(Method::GET, session, last_event, headers, None).await?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status => accepted(status).and_then(|()| match is(&response, "text/event-stream") {
                true => Ok(events(response)),
                false => Err(broken(ExchangeError::Foreign)),
            }),
        }
    }
}

impl Http {
    async fn send(
        &self,
        method: Method,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        body: Option<Vec<u8>>,
    ) -> HttpResult<Response> {
        let mut all = self.endpoint.headers.clone();
        all.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        all.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        all.extend(headers);
        put(&mut all, SESSION, session.as_deref());
        put(&mut all, LAST_EVENT, last_event.as_deref());
        let mut url = self.endpoint.url.clone();
        for _ in 0..=HOPS {
            let mut request = Request::new(method.clone(), url.clone());
            *request.headers_mut() = all.clone();
            *request.body_mut() = body.clone().map(Into::into);
            let response = self.http.execute(request).await.map_err(|error| broken(unreachable(&error)))?;
            match next_hop(&url, &response) {
                Some(next) => url = next,
                None if response.status().is_redirection() => break,
                None => return Ok(response),
            }
        }
        Err(broken(ExchangeError::Redirect))
    }
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: Option<&str>) {
    if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
        headers.insert(name, value);
    }
}

/// Returns where the same request is to go instead: only on the same host, which has the headers already.
fn next_hop(url: &Url, response: &Response) -> Option<Url> {
    if !matches!(response.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
        return None;
    }
    let next = url.join(response.headers().get(LOCATION)?.to_str().ok()?).ok()?;
    (next.origin() == url.origin()).then_some(next)
}

/// Reads the answer to a request: one message, or a stream of them.
async fn answer(response: Response) -> HttpResult<StreamableHttpPostResponse> {
    let session = response.headers().get(SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    if response.status().is_success() && is(&response, "text/event-stream") {
        return Ok(StreamableHttpPostResponse::Sse(events(response), session));
    }
    let status = response.status();
    if !is(&response, "application/json") {
        return accepted(status).and(Err(broken(ExchangeError::Foreign)));
    }
    let message = serde_json::from_slice(&body(response).await?);
    match (status.is_success(), message) {
        (true, Ok(message)) => Ok(StreamableHttpPostResponse::Json(message, session)),
        // A server may put its refusal into the protocol's words as well as into the status.
        (false, Ok(message @ ServerJsonRpcMessage::Error(_))) if !is_locked(status) => {
            Ok(StreamableHttpPostResponse::Json(message, session))
        }
        _ => accepted(status).and(Err(broken(ExchangeError::Foreign))),
    }
}

async fn body(response: Response) -> HttpResult<Vec<u8>> {
    let mut bytes = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(chunk) = bytes.next().await {
        body.extend_from_slice(&chunk.map_err(|error| broken(unreachable(&error)))?);
        if body.len() > MAX_MESSAGE_BYTES {
            return Err(broken(ExchangeError::TooLarge));
        }
    }
    Ok(body)
}

/// Decodes a stream of events; it ends with its first error.
fn events(response: Response) -> Events {
    let mut decoder = SseDecoder::default();
    let bytes = response.bytes_stream().map_err(|error| SseError::Body(Box::new(unreachable(&error))));
    let events = bytes.map(move |chunk| {
        let events = decoder.push(&chunk?).map_err(|_| SseError::Body(Box::new(ExchangeError::TooLarge)))?;
        Ok(futures_util::stream::iter(events.into_iter().map(|event| Ok(sse(event)))))
    });
    events.try_flatten().boxed()
}

fn sse(event: pudu_net::sse::SseEvent) -> Sse {
    let name = Some(event.event).filter(|name| !name.is_empty());
    Sse { event: name, data: Some(event.data), id: event.id, retry: None }
}

fn is(response: &Response, kind: &str) -> bool {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| value.trim_start().to_ascii_lowercase().starts_with(kind))
}

fn is_locked(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

fn accepted(status: StatusCode) -> HttpResult<()> {
    match status {
        _ if status.is_success() => Ok(()),
        _ if is_locked(status) => Err(broken(ExchangeError::Status(status, ": look at `headers`"))),
        StatusCode::NOT_FOUND => Err(broken(ExchangeError::Status(status, ": look at `url`"))),
        _ => Err(broken(ExchangeError::Status(status, ""))),
    }
}

fn unreachable(error: &reqwest::Error) -> ExchangeError {
    ExchangeError::Unreachable(match () {
        () if error.is_connect() => "no connection",
        () if error.is_timeout() => "no answer in time",
        () => "the exchange broke off",
    })
}

fn broken(error: ExchangeError) -> StreamableHttpError<ExchangeError> {
    StreamableHttpError::Client(error)
}
