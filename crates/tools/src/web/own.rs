//! pudu's own fetch: requests a page through the guard and converts it to text.

use super::{FetchedPage, ProviderClient, page};
use pudu_base::ToolError;
use pudu_net::{
    guard::{FetchBounds, Fetched, GuardError},
    reqwest::{
        Url,
        header::{ACCEPT, ACCEPT_LANGUAGE, HeaderMap, HeaderValue},
    },
};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Maximum size of a page, in bytes.
const MAX_PAGE_BYTES: usize = 10 * 1024 * 1024;
/// Limits concurrent conversions of pages, which are CPU-bound.
static READERS: Semaphore = Semaphore::const_new(2);
/// Timeout for the conversion of a page. An abandoned conversion keeps its permit until it ends.
const PARSE_TIMEOUT: Duration = Duration::from_secs(20);
/// Delay before the single retry if a host fails.
const RETRY_DELAY: Duration = Duration::from_millis(500);

pub(super) async fn fetch(desk: &ProviderClient, url: &str) -> Result<FetchedPage, ToolError> {
    let mut fetched = once(desk, url).await;
    let again = match &fetched {
        Ok(fetched) => matches!(fetched.status, 502..=504),
        Err(error) => matches!(error, GuardError::Unreachable(_)),
    };
    if again {
        tokio::time::sleep(RETRY_DELAY).await;
        fetched = once(desk, url).await;
    }
    let fetched = fetched.map_err(|error| ToolError(format!("cannot fetch {url}: {error}")))?;
    match status(&fetched) {
        Some(said) => Err(ToolError(format!("cannot fetch {}: {said}", fetched.url))),
        None => read(fetched.url, fetched.kind, fetched.body.into()).await,
    }
}

async fn once(desk: &ProviderClient, url: &str) -> Result<Fetched, GuardError> {
    let mut headers = HeaderMap::new();
    let accept = "text/html,application/xhtml+xml,text/markdown,text/plain;q=0.9,*/*;q=0.5";
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    headers.insert(ACCEPT_LANGUAGE, HeaderValue::from_static("en,*;q=0.5"));
    let bounds = FetchBounds { size: MAX_PAGE_BYTES, time: desk.settings.timeout };
    desk.guard.fetch(url, headers, bounds).await
}

/// Returns the text for the model about a site's error status; `None` for a success.
fn status(fetched: &Fetched) -> Option<String> {
    let said = match fetched.status {
        200..=299 => return None,
        401 | 403 | 407 | 451 => "the site denies access; look for the same content elsewhere".to_owned(),
        404 | 410 => "the page does not exist; search for it instead of guessing its URL".to_owned(),
        429 => match fetched.retry_after {
            Some(wait) => {
                format!("the site limits the request rate; try again in {} s", wait.as_secs().max(1))
            }
            None => "the site limits the request rate; try again later".to_owned(),
        },
        500.. => "the site failed; try again later, or look elsewhere".to_owned(),
        _ => "the site rejected the request".to_owned(),
    };
    Some(format!("status {}: {said}", fetched.status))
}

/// Converts a page on a blocking thread.
pub(super) async fn read(url: Url, kind: String, body: Vec<u8>) -> Result<FetchedPage, ToolError> {
    let address = url.clone();
    let failed = |said: &str| ToolError(format!("cannot read {address}: {said}"));
    let reading = async {
        // The semaphore is never closed.
        let permit = READERS.acquire().await.ok();
        tokio::task::spawn_blocking(move || {
            let _place = permit;
            page::read(&url, &kind, &body)
        })
        .await
    };
    match tokio::time::timeout(PARSE_TIMEOUT, reading).await {
        Ok(Ok(page)) => page.map_err(|said| failed(&said)),
        Ok(Err(_)) => Err(failed("the parser failed")),
        Err(_) => Err(failed("the page is too complex")),
    }
}
