//! Fetches URLs from untrusted sources: a model, a page, a message. No other code fetches them.
//!
//! A URL is checked first (`target.rs`); its name is resolved once, the addresses are checked (`address.rs`), and the
//! connection uses a checked address (`resolve.rs`). Redirects are followed here and checked like new URLs, and headers
//! for one origin are not sent to another. The size limit applies after decompression; the timeout covers the whole
//! fetch.
//!
//! Deliberately absent: proxies, because one would connect to unchecked addresses; cookies; methods other than GET.
//! Endpoints that the operator configured are trusted and use [`client`](crate::client) instead.

mod address;
mod error;
mod resolve;
mod target;

pub use address::closed;
pub use error::GuardError;
pub use resolve::{Lookup, Resolver, System};
pub use target::AllowedTargets;

use crate::{read_body, retry};
use bytes::Bytes;
use reqwest::{
    Client, Response, StatusCode, Url,
    header::{ACCEPT, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION},
    redirect::Policy,
};
use resolve::Checked;
use std::{
    error::Error,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// Maximum number of redirects.
const HOPS: usize = 5;

/// Timeout of resolving a name that another service will resolve again.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// User agent, with a URL that describes pudu to sites.
const AGENT: &str = concat!(
    "Mozilla/5.0 (compatible; pudu/",
    env!("CARGO_PKG_VERSION"),
    "; +https://github.com/pudu-agent/pudu)"
);

/// Limits of one fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchBounds {
    /// Maximum size of the decompressed body, in bytes.
    pub size: usize,
    /// Timeout of the whole fetch, including redirects.
    pub time: Duration,
}

/// A fetched response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Final URL, after redirects.
    pub url: Url,
    /// The HTTP status.
    pub status: u16,
    /// The server's `Content-Type`; empty if missing.
    pub kind: String,
    /// Requested delay before a retry.
    pub retry_after: Option<Duration>,
    /// The body; empty unless the status is a success.
    pub body: Bytes,
}

/// Fetches only from the public internet.
#[derive(Clone)]
pub struct Guard {
    client: Client,
    checked: Checked,
}

impl Guard {
    /// Creates a guard that uses the system's resolver.
    ///
    /// # Errors
    /// When the system's TLS roots cannot be loaded.
    pub fn new(allowed: AllowedTargets) -> Result<Self, reqwest::Error> {
        Self::with(allowed, Arc::new(System))
    }

    /// Creates a guard with another resolver.
    ///
    /// # Errors
    /// When the system's TLS roots cannot be loaded.
    pub fn with(allowed: AllowedTargets, resolver: Arc<dyn Resolver>) -> Result<Self, reqwest::Error> {
        let checked = Checked { resolver, allowed: Arc::new(allowed) };
        let client = crate::builder()
            .dns_resolver(Arc::new(checked.clone()))
            .no_proxy()
            .redirect(Policy::none())
            .referer(false)
            .connect_timeout(Duration::from_secs(10))
            // Requests go to many hosts, so idle connections are closed quickly.
            .pool_idle_timeout(Duration::from_secs(5))
            .pool_max_idle_per_host(1)
            .http2_max_header_list_size(64 * 1024)
            .user_agent(AGENT)
            .build()?;
        Ok(Self { client, checked })
    }

    /// Checks a URL that another service fetches for us. A name that cannot be resolved here is accepted: the other
    /// service decides.
    ///
    /// # Errors
    /// When the URL must not be fetched.
    pub async fn check(&self, text: &str) -> Result<Url, GuardError> {
        let url = self.checked.allowed.read(text)?;
        let Some(name) = url.domain() else { return Ok(url) };
        match tokio::time::timeout(LOOKUP_TIMEOUT, self.checked.lookup(name)).await {
            Ok(Err(refused @ GuardError::Refused(_))) => Err(refused),
            _ => Ok(url),
        }
    }

    /// Fetches a URL. `headers` are for the URL's origin: after a redirect to another origin, only the accepted types
    /// and languages are sent.
    ///
    /// # Errors
    /// When the URL must not be fetched, the fetch fails, or a limit is exceeded.
    pub async fn fetch(
        &self,
        text: &str,
        headers: HeaderMap,
        bounds: FetchBounds,
    ) -> Result<Fetched, GuardError> {
        let url = self.checked.allowed.read(text)?;
        let fetch = async {
            // The timeout below fires first and returns its own error.
            let (url, response) = self.follow(url, headers, bounds.time.saturating_mul(2)).await?;
            read(url, response, bounds.size).await
        };
        tokio::time::timeout(bounds.time, fetch).await.map_err(|_| GuardError::TooSlow(bounds.time))?
    }

    /// Starts a fetch whose body is read in chunks. `timeout` limits the whole fetch, including the body.
    ///
    /// # Errors
    /// When the URL must not be fetched, or the fetch fails.
    pub async fn open(&self, text: &str, timeout: Duration) -> Result<Response, GuardError> {
        let url = self.checked.allowed.read(text)?;
        self.follow(url, HeaderMap::new(), timeout).await.map(|(_, response)| response)
    }

    async fn follow(
        &self,
        mut url: Url,
        mut headers: HeaderMap,
        timeout: Duration,
    ) -> Result<(Url, Response), GuardError> {
        for _ in 0..=HOPS {
            let request = self.client.get(url.clone()).headers(headers.clone()).timeout(timeout);
            let response = request.send().await.map_err(|error| failed(&url, &error))?;
            let Some(next) = redirect(&response) else { return Ok((url, response)) };
            let next = url.join(&next?).map_err(|_| refused("the site redirects to an invalid URL"))?;
            let next = self.checked.allowed.check(next).map_err(|error| {
                GuardError::Refused(format!("the site redirects to a refused URL: {error}"))
            })?;
            if next.origin() != url.origin() {
                headers = neutral(&headers);
            }
            url = next;
        }
        Err(refused("the site redirects more than 5 times: look for the page's final address"))
    }
}

fn refused(what: &str) -> GuardError {
    GuardError::Refused(what.to_owned())
}

/// Returns the target of a redirect, if the response is one.
fn redirect(response: &Response) -> Option<Result<String, GuardError>> {
    let redirects = [
        StatusCode::MOVED_PERMANENTLY,
        StatusCode::FOUND,
        StatusCode::SEE_OTHER,
        StatusCode::TEMPORARY_REDIRECT,
        StatusCode::PERMANENT_REDIRECT,
    ];
    let location = response.headers().get(LOCATION).filter(|_| redirects.contains(&response.status()))?;
    Some(location.to_str().map(str::to_owned).map_err(|_| refused("the site redirects to an invalid URL")))
}

/// Returns the headers that may be sent to any origin.
fn neutral(headers: &HeaderMap) -> HeaderMap {
    let keep = |name| headers.get(&name).cloned().map(|value| (name, value));
    [ACCEPT, ACCEPT_LANGUAGE].into_iter().filter_map(keep).collect()
}

async fn read(url: Url, response: Response, size: usize) -> Result<Fetched, GuardError> {
    let headers = response.headers();
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let mut fetched = Fetched {
        status: response.status().as_u16(),
        kind: kind.chars().take(200).collect(),
        retry_after: retry::after(headers, SystemTime::now()),
        body: Bytes::new(),
        url,
    };
    if !response.status().is_success() {
        return Ok(fetched);
    }
    // Decompressed bodies have lost the header; a remaining one means that the body is unreadable.
    if let Some(coding) = headers.get(CONTENT_ENCODING).filter(|coding| *coding != "identity") {
        let coding = String::from_utf8_lossy(coding.as_bytes()).into_owned();
        return Err(GuardError::Refused(format!(
            "the site uses a compression that was not requested: {coding}"
        )));
    }
    if response.content_length().is_some_and(|length| length > size as u64) {
        return Err(GuardError::TooLarge(size));
    }
    let broken = |error| failed(&fetched.url, &error);
    fetched.body = read_body(response, size, broken, |_| GuardError::TooLarge(size)).await?.into();
    Ok(fetched)
}

/// Finds our own refusal among the causes of the client's error; any other error is a network error.
fn failed(url: &Url, error: &reqwest::Error) -> GuardError {
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    let mut last = String::new();
    while let Some(inner) = cause {
        if let Some(ours) = inner.downcast_ref::<GuardError>() {
            return ours.clone();
        }
        last = inner.to_string();
        cause = inner.source();
    }
    let host = url.host_str().unwrap_or_default();
    let what =
        if error.is_timeout() { "does not answer" } else { "cannot be reached, or closed the connection" };
    let why = if last.is_empty() { String::new() } else { format!(": {last}") };
    GuardError::Unreachable(format!("{host} {what}{why}"))
}

#[cfg(test)]
mod tests;
