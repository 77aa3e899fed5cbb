//! Sends requests to a provider, with retries and a maximum size of responses. Errors help the model to decide whether
//! to retry, to change the request, or to continue without it.

use backon::{ExponentialBuilder, Retryable};
use pudu_base::ToolError;
use pudu_net::{
    read_body,
    reqwest::{Client, Error, RequestBuilder},
    retry, scrub,
};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// Maximum size of a provider's response, in bytes.
const MAX_RESPONSE_BYTES: usize = 8 * 1024 * 1024;
/// Maximum number of retries.
const MAX_RETRIES: usize = 2;
/// Maximum delay before a retry. If a provider asks for a longer one, the model gets the error instead.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);
/// Maximum length of a provider's error that the model gets, in characters.
const MAX_MESSAGE_CHARS: usize = 300;

/// Client for a provider.
pub(crate) struct Exchange {
    client: Client,
    title: &'static str,
    timeout: Duration,
}

/// A provider's response.
#[derive(Debug)]
pub(crate) struct ProviderResponse {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// Why a request failed.
#[derive(Debug)]
struct ProviderError {
    said: String,
    /// Minimum delay before an automatic retry; `None` if there is no retry.
    again: Option<Duration>,
}

impl Exchange {
    pub(crate) fn new(
        title: &'static str,
        api_key: Option<SecretString>,
        timeout: Duration,
    ) -> Result<Self, Error> {
        // A provider's error may repeat the key, which must not reach the chat.
        scrub::remember(api_key.map(|key| key.expose_secret().to_owned()));
        Ok(Self { client: pudu_net::client()?, title, timeout })
    }

    /// Sends a request and returns the response as JSON.
    pub(crate) async fn json(&self, request: impl Fn(&Client) -> RequestBuilder) -> Result<Value, ToolError> {
        let answer = self.send(request).await?;
        serde_json::from_slice(&answer.body).map_err(|_| {
            ToolError(format!("{} sent a response that is not JSON; try again later", self.title))
        })
    }

    /// Decodes a response.
    pub(crate) fn read<T: DeserializeOwned>(&self, answer: Value) -> Result<T, ToolError> {
        serde_json::from_value(answer).map_err(|error| {
            tracing::warn!(provider = self.title, %error, "failed to decode provider's response");
            ToolError(format!("{} sent an unexpected response; continue without it", self.title))
        })
    }

    /// Sends a request and returns the response if its status is a success.
    pub(crate) async fn send(
        &self,
        request: impl Fn(&Client) -> RequestBuilder,
    ) -> Result<ProviderResponse, ToolError> {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(500))
            .with_max_delay(MAX_RETRY_DELAY)
            .with_max_times(MAX_RETRIES);
        let once = || async {
            let exchange = tokio::time::timeout(self.timeout, self.once(request(&self.client)));
            exchange.await.unwrap_or_else(|_| {
                let said = format!("did not respond within {} s; try again later", self.timeout.as_secs());
                Err(ProviderError { said, again: None })
            })
        };
        let answer = once
            .retry(pauses)
            .when(|trouble| trouble.again.is_some_and(|wait| wait <= MAX_RETRY_DELAY))
            .adjust(|trouble, pause| Some(pause?.max(trouble.again?)));
        answer.await.map_err(|ProviderError { said, .. }| ToolError(format!("{} {said}", self.title)))
    }

    async fn once(&self, request: RequestBuilder) -> Result<ProviderResponse, ProviderError> {
        let unreachable = |error: Error| {
            let why = error.without_url().to_string();
            tracing::debug!(provider = self.title, %why, "failed to reach provider");
            ProviderError {
                said: "cannot be reached; try again later".to_owned(),
                again: Some(Duration::ZERO),
            }
        };
        let response = request.send().await.map_err(unreachable)?;
        let wait = retry::after(response.headers(), SystemTime::now());
        let status = response.status();
        let too_large = |_| ProviderError {
            said: format!("sent a response larger than {} MiB", MAX_RESPONSE_BYTES / 1024 / 1024),
            again: None,
        };
        let body = read_body(response, MAX_RESPONSE_BYTES, unreachable, too_large).await?;
        if status.is_success() {
            return Ok(ProviderResponse { status: status.as_u16(), body });
        }
        Err(self.trouble(status.as_u16(), wait, &body))
    }

    /// Maps an error status to an error for the model.
    fn trouble(&self, status: u16, wait: Option<Duration>, body: &[u8]) -> ProviderError {
        let detail = detail(body);
        let status_text = if detail.is_empty() { status.to_string() } else { format!("{status}: {detail}") };
        let operator = "the bot's admin has to fix it; continue without it";
        // Brave answers an unknown key with 422.
        let key = status == 422 && detail.to_lowercase().contains("token is invalid");
        let (said, again) = match status {
            _ if key => (format!("rejected the API key ({status_text}): {operator}"), None),
            401 | 403 => (format!("rejected the API key or the request ({status_text}): {operator}"), None),
            402 | 432 | 433 => {
                (format!("reports that the account has no credit left ({status_text}): {operator}"), None)
            }
            408 | 425 | 429 => {
                let when = match wait {
                    Some(wait) => format!("in {} s", wait.as_secs().max(1)),
                    None => "in a while".to_owned(),
                };
                let said = format!("limits the request rate ({status_text}); try again {when}");
                (said, Some(wait.unwrap_or(Duration::from_secs(1))))
            }
            300..=399 => (format!("redirects to another URL ({status_text}): {operator}"), None),
            400..=499 => (format!("rejected the request ({status_text}); change the request"), None),
            _ => (format!("failed ({status_text}); try again later"), Some(wait.unwrap_or(Duration::ZERO))),
        };
        ProviderError { said, again }
    }
}

/// Finds the message in an error response. Providers use different keys for it.
fn detail(body: &[u8]) -> String {
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return String::new() };
    let paths = [
        "/detail/error",
        "/error/detail",
        "/error/message",
        "/error",
        "/message",
        "/detail",
        "/readableMessage",
    ];
    let words = paths.iter().find_map(|path| value.pointer(path)?.as_str());
    super::foreign::line(&scrub::hide(words.unwrap_or_default()), MAX_MESSAGE_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_advises_to_retry_to_change_the_request_or_to_continue() {
        let key = SecretString::from("tvly-secret-key-1234");
        let exchange = Exchange::new("Tavily", Some(key), Duration::from_secs(1)).unwrap();
        let seconds = Duration::from_secs;
        for (status, wait, body, said, again) in [
            (
                401,
                None,
                r#"{"detail": {"error": "Unauthorized: tvly-secret-key-1234 is no key"}}"#,
                "rejected the API key or the request (401: Unauthorized: [secret] is no key): the bot's admin has to fix it; continue without it",
                None,
            ),
            (
                432,
                None,
                r#"{"detail": {"error": "over the plan's limit"}}"#,
                "reports that the account has no credit left (432: over the plan's limit): the bot's admin has to fix it; continue without it",
                None,
            ),
            (429, Some(seconds(7)), "", "limits the request rate (429); try again in 7 s", Some(seconds(7))),
            (429, None, "slow", "limits the request rate (429); try again in a while", Some(seconds(1))),
            (
                422,
                None,
                r#"{"error": {"detail": "q is too long"}}"#,
                "rejected the request (422: q is too long); change the request",
                None,
            ),
            (
                301,
                None,
                "",
                "redirects to another URL (301): the bot's admin has to fix it; continue without it",
                None,
            ),
            (503, None, "<html>", "failed (503); try again later", Some(Duration::ZERO)),
        ] {
            let trouble = exchange.trouble(status, wait, body.as_bytes());
            assert_eq!((trouble.said.as_str(), trouble.again), (said, again), "{status}");
        }
    }
}
