//! Fetching what somebody else chose: a model, a page, a message. This is the one way to do it.
//!
//! A URL is looked at before anything happens (`target.rs`); a name is resolved once, its addresses are judged
//! (`address.rs`), and the connection goes to one that was judged (`resolve.rs`). Redirects are followed here,
//! each as if it were a new URL, and what was sent along for one origin is not sent to another. Size is counted
//! behind the decompression, time over everything.
//!
//! Deliberately absent: proxies, because one would connect where nobody has looked; cookies; methods other than
//! GET. Endpoints that the operator configured are trusted and go through [`client`](crate::client) instead.

mod address;
mod error;
mod resolve;
mod target;

pub use address::closed;
pub use error::GuardError;
pub use resolve::{Lookup, Resolver, System};
pub use target::AllowedTargets;

use crate::retry;
use bytes::{Bytes, BytesMut};
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

/// How many redirects are followed.
const HOPS: usize = 5;

/// How long a name is looked up that somebody else will resolve anyway.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Sites tell by this name whom they serve, and where to complain.
const AGENT: &str = concat!(
    "Mozilla/5.0 (compatible; pudu/",
    env!("CARGO_PKG_VERSION"),
    "; +https://github.com/pudu-agent/pudu)"
);

/// How much one fetch may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchBounds {
    /// The largest body, in bytes, decompressed.
    pub size: usize,
    /// How long everything may take, redirects included.
    pub time: Duration,
}

/// A fetched response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Final URL, behind redirects.
    pub url: Url,
    /// The HTTP status.
    pub status: u16,
    /// The server's `Content-Type`, as it is; empty if it sends none.
    pub kind: String,
    /// How long the server wants to be left alone.
    pub retry_after: Option<Duration>,
    /// The body; empty unless the status is one of success.
    pub body: Bytes,
}

/// Fetches from the open internet, and from nowhere else.
#[derive(Clone)]
pub struct Guard {
    client: Client,
    checked: Checked,
}

impl Guard {
    /// Makes one that asks the system for addresses.
    ///
    /// # Errors
    /// When the system's TLS roots cannot be loaded.
    pub fn new(allowed: AllowedTargets) -> Result<Self, reqwest::Error> {
        Self::with(allowed, Arc::new(System))
    }

    /// Makes one with another resolver.
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
            // Sites are many: what is idle is not kept for long.
            .pool_idle_timeout(Duration::from_secs(5))
            .pool_max_idle_per_host(1)
            .http2_max_header_list_size(64 * 1024)
            .user_agent(AGENT)
            .build()?;
        Ok(Self { client, checked })
    }

    /// Looks at a URL that somebody else will fetch for us: what cannot be told here, because the name is
    /// not known here, is theirs to tell.
    ///
    /// # Errors
    /// When it may not be fetched.
    pub async fn check(&self, text: &str) -> Result<Url, GuardError> {
        let url = self.checked.allowed.read(text)?;
        let Some(name) = url.domain() else { return Ok(url) };
        match tokio::time::timeout(LOOKUP_TIMEOUT, self.checked.lookup(name)).await {
            Ok(Err(refused @ GuardError::Refused(_))) => Err(refused),
            _ => Ok(url),
        }
    }

    /// Fetches. `headers` are for the URL's own origin: after a redirect to another one only what says which
    /// kinds and languages are wanted goes along.
    ///
    /// # Errors
    /// When it may not be fetched, cannot be, or is more than the bounds allow.
    pub async fn fetch(
        &self,
        text: &str,
        headers: HeaderMap,
        bounds: FetchBounds,
    ) -> Result<Fetched, GuardError> {
        let url = self.checked.allowed.read(text)?;
        let whole = async {
            // It is this function's time that ends it, in its words.
            let (url, response) = self.follow(url, headers, bounds.time.saturating_mul(2)).await?;
            read(url, response, bounds.size).await
        };
        tokio::time::timeout(bounds.time, whole).await.map_err(|_| GuardError::TooSlow(bounds.time))?
    }

    /// Starts to fetch, for what is read part by part. Everything may take `patience`, the body included.
    ///
    /// # Errors
    /// When it may not be fetched, or cannot be.
    pub async fn open(&self, text: &str, patience: Duration) -> Result<Response, GuardError> {
        let url = self.checked.allowed.read(text)?;
        self.follow(url, HeaderMap::new(), patience).await.map(|(_, response)| response)
    }

    async fn follow(
        &self,
        mut url: Url,
        mut headers: HeaderMap,
        patience: Duration,
    ) -> Result<(Url, Response), GuardError> {
        for _ in 0..=HOPS {
            let request = self.client.get(url.clone()).headers(headers.clone()).timeout(patience);
            let response = request.send().await.map_err(|error| failed(&url, &error))?;
            let Some(next) = redirect(&response) else { return Ok((url, response)) };
            let next = url.join(&next?).map_err(|_| refused("the site redirects to what is no URL"))?;
            let next = self.checked.allowed.check(next).map_err(|error| {
                GuardError::Refused(format!("the site redirects elsewhere, which is refused: {error}"))
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

/// Returns where a response sends the client, if it does.
fn redirect(response: &Response) -> Option<Result<String, GuardError>> {
    let sends = [
        StatusCode::MOVED_PERMANENTLY,
        StatusCode::FOUND,
        StatusCode::SEE_OTHER,
        StatusCode::TEMPORARY_REDIRECT,
        StatusCode::PERMANENT_REDIRECT,
    ];
    let place = response.headers().get(LOCATION).filter(|_| sends.contains(&response.status()))?;
    Some(place.to_str().map(str::to_owned).map_err(|_| refused("the site redirects to what is no URL")))
}

/// Returns the headers that may go to any origin.
fn neutral(headers: &HeaderMap) -> HeaderMap {
    let keep = |name| headers.get(&name).cloned().map(|value| (name, value));
    [ACCEPT, ACCEPT_LANGUAGE].into_iter().filter_map(keep).collect()
}

async fn read(url: Url, mut response: Response, size: usize) -> Result<Fetched, GuardError> {
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
    // What was decompressed has lost the header; what has it still is not readable.
    if let Some(coding) = headers.get(CONTENT_ENCODING).filter(|coding| *coding != "identity") {
        let coding = String::from_utf8_lossy(coding.as_bytes()).into_owned();
        return Err(GuardError::Refused(format!(
            "the site compresses in a way that was not asked for: {coding}"
        )));
    }
    if response.content_length().is_some_and(|length| length > size as u64) {
        return Err(GuardError::TooLarge(size));
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(&fetched.url, &error))? {
        if body.len() + chunk.len() > size {
            return Err(GuardError::TooLarge(size));
        }
        body.extend_from_slice(&chunk);
    }
    fetched.body = body.freeze();
    Ok(fetched)
}

/// Finds our own refusal below the client's error; anything else is the network's fault.
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
    let what = if error.is_timeout() { "does not answer" } else { "cannot be reached, or broke off" };
    let why = if last.is_empty() { String::new() } else { format!(": {last}") };
    GuardError::Unreachable(format!("{host} {what}{why}"))
}

#[cfg(test)]
mod tests;
