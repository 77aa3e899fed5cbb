//! One HTTP exchange with a platform: sends the request, reads the whole response, and records the outcome for callers
//! that wait for the platform.

use super::{CallError, error::ErrorCase};
use crate::{lenient::from_bytes, recovery::Recovery};
use pudu_net::{
    read_body,
    reqwest::{Client, Method, RequestBuilder, Response, header::HeaderMap},
    retry,
};
use serde::de::DeserializeOwned;
use std::time::{Duration, SystemTime};
use url::Url;

/// The HTTP client of one bot, and whether the platform answers it.
#[derive(Clone)]
pub(crate) struct AccountTransport {
    pub(crate) http: Client,
    /// State of the calls that write: recovered when the platform accepts messages again.
    pub(crate) writes: Recovery,
    /// State of all calls: recovered when the platform answers again.
    pub(crate) reads: Recovery,
}

/// Effect of a call on the platform. A platform may answer reads while it refuses writes, so callers that wait to write
/// are woken only by successful writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallEffect {
    Reads,
    Writes,
}

/// Response of a server, not classified yet.
#[derive(Debug)]
pub(crate) struct RawResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl CallEffect {
    /// Returns the effect implied by an HTTP method.
    pub(crate) fn from_method(method: &Method) -> Self {
        if *method == Method::GET { Self::Reads } else { Self::Writes }
    }
}

impl AccountTransport {
    /// # Errors
    /// If the system's TLS roots cannot be loaded.
    pub(crate) fn new() -> Result<Self, String> {
        let http = pudu_net::client().map_err(super::error::describe)?;
        Ok(Self { http, writes: Recovery::default(), reads: Recovery::default() })
    }

    /// Sends a request. `read` classifies the response, of at most `max_bytes`. Records the outcome.
    pub(crate) async fn exchange<T, C: ErrorCase>(
        &self,
        effect: CallEffect,
        request: RequestBuilder,
        max_bytes: usize,
        read: impl FnOnce(RawResponse) -> Result<T, CallError<C>>,
    ) -> Result<T, CallError<C>> {
        self.note(effect, exchange(request, max_bytes, read).await)
    }

    /// Records the platform's state from the outcome of a call.
    pub(crate) fn note<T, C: ErrorCase>(
        &self,
        effect: CallEffect,
        outcome: Result<T, CallError<C>>,
    ) -> Result<T, CallError<C>> {
        // If the file cannot be read, no call is made.
        if matches!(outcome, Err(CallError::File(_))) {
            return outcome;
        }
        self.reads.note(&outcome, CallError::is_outage);
        match effect {
            CallEffect::Writes => self.writes.note(&outcome, CallError::is_outage),
            CallEffect::Reads => self.writes.note_read(&outcome, CallError::is_outage),
        }
        outcome
    }
}

/// Sends a request. `read` classifies the response, of at most `max_bytes`.
pub(crate) async fn exchange<T, C: ErrorCase>(
    request: RequestBuilder,
    max_bytes: usize,
    read: impl FnOnce(RawResponse) -> Result<T, CallError<C>>,
) -> Result<T, CallError<C>> {
    read(RawResponse::read(send(request).await?, max_bytes).await?)
}

/// Returns the URL of a path below a base, which may itself have a path (a proxy).
pub(crate) fn below(base: &Url, path: &str) -> String {
    format!("{}/{}", base.as_str().trim_end_matches('/'), path.trim_start_matches('/'))
}

/// Returns the URL of a path below a base. Escapes each segment of the path.
pub(crate) fn below_escaped<'a>(base: &Url, path: impl IntoIterator<Item = &'a str>) -> Url {
    let mut url = base.clone();
    // Only URLs without a host have no path, and no base URL is one.
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    url
}

/// Sends a request and waits for the headers of the response.
pub(crate) async fn send<C: ErrorCase>(request: RequestBuilder) -> Result<Response, CallError<C>> {
    pudu_net::send(request).await.map_err(CallError::of_client)
}

impl RawResponse {
    /// Reads a response of at most `max_bytes`. If it cannot be read, the call may have succeeded.
    pub(crate) async fn read<C: ErrorCase>(
        mut response: Response,
        max_bytes: usize,
    ) -> Result<Self, CallError<C>> {
        let (status, headers) = (response.status().as_u16(), std::mem::take(response.headers_mut()));
        let too_large = |_| CallError::Unknown("the response is too large".to_owned());
        let body = read_body(response, max_bytes, CallError::of_client, too_large).await?;
        Ok(Self { status, headers, body })
    }

    /// Decodes the body. If that fails, the response is not the platform's own.
    pub(crate) fn json<T: DeserializeOwned, C: ErrorCase>(&self) -> Result<T, CallError<C>> {
        from_bytes(&self.body).map_err(|_| self.unreadable())
    }

    /// Classifies the failure by the status alone.
    pub(crate) fn unreadable<C: ErrorCase>(&self) -> CallError<C> {
        CallError::of_status(self.status, self.wait())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Returns how long the platform asks to wait.
    pub(crate) fn wait(&self) -> Option<Duration> {
        retry::after(&self.headers, SystemTime::now())
    }

    /// Returns the platform's time.
    pub(crate) fn date(&self) -> Option<SystemTime> {
        httpdate::parse_http_date(self.header("date")?).ok()
    }
}
