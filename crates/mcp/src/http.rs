//! A server over streamable HTTP. `rmcp` has its own client, but ours limits the size of answers, omits URLs from
//! errors (a query may contain a key), sends the entry's headers only to the same origin, and follows the redirect from
//! `/mcp` to `/mcp/` that many servers use.

use crate::{
    lines::MAX_MESSAGE_BYTES,
    message::{MessageReader, PendingRequests},
    server::Endpoint,
};
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
use pudu_net::{
    read_body,
    reqwest::{
        self, Method, Request, Response, StatusCode, Url,
        header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION},
    },
    sse::{SseDecoder, SseEvent},
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
/// Maximum number of redirects that a request follows.
const HOPS: usize = 3;

/// Reason why a request failed. The texts contain neither URLs nor headers.
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
    #[error("there is no token: {0}")]
    Token(String),
}

type HttpResult<T, E = StreamableHttpError<ExchangeError>> = Result<T, E>;
type Events = BoxStream<'static, HttpResult<Sse, SseError>>;

/// Creates the transport for a server.
pub(crate) fn transport(endpoint: Endpoint, http: reqwest::Client) -> StreamableHttpClientTransport<Http> {
    // Our client keeps the URL to itself, because rmcp would log it.
    let config = StreamableHttpClientTransportConfig::with_uri("mcp").max_sse_event_size(MAX_MESSAGE_BYTES);
    let client = Http { endpoint: Arc::new(endpoint), http, pending: PendingRequests::default() };
    StreamableHttpClientTransport::with_client(client, config)
}

/// The connection to one server.
#[derive(Clone)]
pub(crate) struct Http {
    endpoint: Arc<Endpoint>,
    http: reqwest::Client,
    pending: PendingRequests,
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
        self.pending.note_sent(&message);
        let answer = self.post(&message, session, headers).await;
        if let (Err(_), ClientJsonRpcMessage::Request(request)) = (&answer, &message) {
            self.pending.remove(&request.id);
        }
        answer
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
                true => Ok(events(response, MessageReader::shared(self.pending.clone()))),
                false => Err(broken(ExchangeError::Foreign)),
            }),
        }
    }
}

impl Http {
    async fn post(
        &self,
        message: &ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<StreamableHttpPostResponse> {
        let in_session = session.is_some();
        let body = serde_json::to_vec(message)?;
        let response = self.send(Method::POST, session, None, headers, Some(body)).await?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let wants_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        if status.is_success() && (!wants_answer || status == StatusCode::ACCEPTED) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        answer(response, MessageReader::response_to(self.pending.clone(), message)).await
    }

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
        let Some(tokens) = &self.endpoint.tokens else { return self.follow(&method, &all, body).await };
        let token = |refused| async move {
            let token = tokens.header(&self.http, refused).await;
            token.map_err(|why| broken(ExchangeError::Token(why)))
        };
        let Some(first) = token(None).await? else { return self.follow(&method, &all, body).await };
        all.insert(AUTHORIZATION, first.clone());
        let response = self.follow(&method, &all, body.clone()).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        // The provider may have withdrawn the token early.
        let Some(second) = token(Some(&first)).await?.filter(|second| *second != first) else {
            return Ok(response);
        };
        all.insert(AUTHORIZATION, second);
        self.follow(&method, &all, body).await
    }

    /// Sends a request, and follows redirects within the origin.
    async fn follow(
        &self,
        method: &Method,
        headers: &HeaderMap,
        body: Option<Vec<u8>>,
    ) -> HttpResult<Response> {
        let mut url = self.endpoint.url.clone();
        for _ in 0..=HOPS {
            let mut request = Request::new(method.clone(), url.clone());
            *request.headers_mut() = headers.clone();
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

/// Returns the target of a redirect within the same origin, which already knows the headers.
fn next_hop(url: &Url, response: &Response) -> Option<Url> {
    if !matches!(response.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
        return None;
    }
    let next = url.join(response.headers().get(LOCATION)?.to_str().ok()?).ok()?;
    (next.origin() == url.origin()).then_some(next)
}

/// Reads the response to a request: a single message or a stream.
async fn answer(response: Response, reader: MessageReader) -> HttpResult<StreamableHttpPostResponse> {
    let session = response.headers().get(SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    if response.status().is_success() && is(&response, "text/event-stream") {
        return Ok(StreamableHttpPostResponse::Sse(events(response, reader), session));
    }
    let status = response.status();
    // Some servers send a message with another content type or none at all.
    let is_text = is(&response, "application/json") || is(&response, "text/plain") || !has_type(&response);
    if !is_text {
        return accepted(status).and(Err(broken(ExchangeError::Foreign)));
    }
    let is_answer = |message: &ServerJsonRpcMessage| {
        matches!(message, ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_))
    };
    let message = reader.read(&body(response).await?).into_iter().find(is_answer);
    match (status.is_success(), message) {
        (true, Some(message)) => Ok(StreamableHttpPostResponse::Json(message, session)),
        // A server may report an error both as a protocol message and in the status.
        (false, Some(message @ ServerJsonRpcMessage::Error(_))) if !is_locked(status) => {
            Ok(StreamableHttpPostResponse::Json(message, session))
        }
        _ => accepted(status).and(Err(broken(ExchangeError::Foreign))),
    }
}

async fn body(response: Response) -> HttpResult<Vec<u8>> {
    let too_large = |_| broken(ExchangeError::TooLarge);
    read_body(response, MAX_MESSAGE_BYTES, |error| broken(unreachable(&error)), too_large).await
}

/// Decodes an event stream, which ends at its first error.
fn events(response: Response, reader: MessageReader) -> Events {
    let mut decoder = SseDecoder::default();
    let bytes = response.bytes_stream().map_err(|error| SseError::Body(Box::new(unreachable(&error))));
    let events = bytes.map(move |chunk| {
        let events = decoder.push(&chunk?).map_err(|_| SseError::Body(Box::new(ExchangeError::TooLarge)))?;
        let events: Vec<Sse> = events.into_iter().flat_map(|event| repaired(event, &reader)).collect();
        Ok(futures_util::stream::iter(events.into_iter().map(Ok)))
    });
    events.try_flatten().boxed()
}

/// Returns an event for each message in it, after lenient parsing. An event without a message is returned unchanged.
fn repaired(event: SseEvent, reader: &MessageReader) -> Vec<Sse> {
    let SseEvent { event, data, id } = event;
    let name = Some(event).filter(|name| !name.is_empty());
    let is_message = name.as_deref().is_none_or(|name| name == "message");
    let messages = if is_message { reader.read(data.as_bytes()) } else { Vec::new() };
    let texts: Vec<String> =
        messages.iter().filter_map(|message| serde_json::to_string(message).ok()).collect();
    let texts = if texts.is_empty() { vec![data] } else { texts };
    let sse = |data| Sse { event: name.clone(), data: Some(data), id: id.clone(), retry: None };
    texts.into_iter().map(sse).collect()
}

fn is(response: &Response, kind: &str) -> bool {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| value.trim_start().to_ascii_lowercase().starts_with(kind))
}

fn has_type(response: &Response) -> bool {
    response.headers().contains_key(CONTENT_TYPE)
}

fn is_locked(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

fn accepted(status: StatusCode) -> HttpResult<()> {
    match status {
        _ if status.is_success() => Ok(()),
        _ if is_locked(status) => Err(broken(ExchangeError::Status(
            status,
            ": log in with `pudu mcp login`, or look at `headers` or `oauth`",
        ))),
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
