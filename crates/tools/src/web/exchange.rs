//! One request to a provider: retried where that helps, with a bounded response. Its errors indicate to a model whether
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
/// Maximum number of retries of a request that may succeed later.
const MAX_RETRIES: usize = 2;
/// Maximum delay before a retry. If a provider asks for a longer one, the model gets the error instead.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);
/// Maximum length of a provider's error that is passed on, in characters.
const WORDS: usize = 300;

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
    /// Minimum delay before an automatic retry; `None` for no retry.
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
            ToolError(format!("{} answered with something that is no JSON: try again later", self.title))
        })
    }

    /// Decodes a response.
    pub(crate) fn read<T: DeserializeOwned>(&self, answer: Value) -> Result<T, ToolError> {
        serde_json::from_value(answer).map_err(|error| {
            tracing::warn!(provider = self.title, %error, "failed to decode provider's answer");
            ToolError(format!("{} answered with something that is not understood: go on without", self.title))
        })
    }

    /// Sends a request and returns a successful response.
    pub(crate) async fn send(
        &self,
        request: impl Fn(&Client) -> RequestBuilder,
    ) -> Result<ProviderResponse, ToolError> {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(500))
            .with_max_delay(MAX_RETRY_DELAY)
            .with_max_times(MAX_RETRIES);
        let once = || async {
            let asked = tokio::time::timeout(self.timeout, self.once(request(&self.client)));
            asked.await.unwrap_or_else(|_| {
                let said = format!("does not answer within {} s: try again later", self.timeout.as_secs());
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
                said: "cannot be reached: try again later".to_owned(),
                again: Some(Duration::ZERO),
            }
        };
        let response = request.send().await.map_err(unreachable)?;
        let wait = retry::after(response.headers(), SystemTime::now());
        let status = response.status();
        let too_large = |_| ProviderError {
            said: format!("answered with more than {} MiB", MAX_RESPONSE_BYTES / 1024 / 1024),
            again: None,
        };
        let body = read_body(response, MAX_RESPONSE_BYTES, unreachable, too_large).await?;
        if status.is_success() {
            return Ok(ProviderResponse { status: status.as_u16(), body });
        }
        Err(self.trouble(status.as_u16(), wait, &body))
    }

    /// Maps an error status for the model.
    fn trouble(&self, status: u16, wait: Option<Duration>, body: &[u8]) -> ProviderError {
        let detail = detail(body);
        let told = if detail.is_empty() { status.to_string() } else { format!("{status}: {detail}") };
        let operator = "whoever runs this bot has to mend it; go on without";
        // Brave answers an unknown key with 422.
        let key = status == 422 && detail.to_lowercase().contains("token is invalid");
        let (said, again) = match status {
            _ if key => (format!("refused the API key ({told}): {operator}"), None),
            401 | 403 => (format!("refused the API key or the request ({told}): {operator}"), None),
            402 | 432 | 433 => (format!("has no credit left for us ({told}): {operator}"), None),
            408 | 425 | 429 => {
                let when = match wait {
                    Some(wait) => format!("in {} s", wait.as_secs().max(1)),
                    None => "in a while".to_owned(),
                };
                let said = format!("was asked too often ({told}): try again {when}");
                (said, Some(wait.unwrap_or(Duration::from_secs(1))))
            }
            300..=399 => (format!("redirects elsewhere ({told}): {operator}"), None),
            400..=499 => (format!("did not accept the request ({told}): ask otherwise"), None),
            _ => (format!("is in trouble ({told}): try again later"), Some(wait.unwrap_or(Duration::ZERO))),
        };
        ProviderError { said, again }
    }
}

/// Finds the message of an error: providers use different keys.
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
    super::foreign::line(&scrub::hide(words.unwrap_or_default()), WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_whether_to_try_again_to_ask_otherwise_or_to_go_on_without() {
        let key = SecretString::from("tvly-secret-key-1234");
        let exchange = Exchange::new("Tavily", Some(key), Duration::from_secs(1)).unwrap();
        let seconds = Duration::from_secs;
        for (status, wait, body, said, again) in [
            (
                401,
                None,
                r#"{"detail": {"error": "Unauthorized: tvly-secret-key-1234 is no key"}}"#,
                "refused the API key or the request (401: Unauthorized: [secret] is no key): whoever runs this bot has to mend it; go on without",
                None,
            ),
            (
                432,
                None,
                r#"{"detail": {"error": "over the plan's limit"}}"#,
                "has no credit left for us (432: over the plan's limit): whoever runs this bot has to mend it; go on without",
                None,
            ),
            (429, Some(seconds(7)), "", "was asked too often (429): try again in 7 s", Some(seconds(7))),
            (429, None, "slow", "was asked too often (429): try again in a while", Some(seconds(1))),
            (
                422,
                None,
                r#"{"error": {"detail": "q is too long"}}"#,
                "did not accept the request (422: q is too long): ask otherwise",
                None,
            ),
            (
                301,
                None,
                "",
                "redirects elsewhere (301): whoever runs this bot has to mend it; go on without",
                None,
            ),
            (503, None, "<html>", "is in trouble (503): try again later", Some(Duration::ZERO)),
        ] {
            let trouble = exchange.trouble(status, wait, body.as_bytes());
            assert_eq!((trouble.said.as_str(), trouble.again), (said, again), "{status}");
        }
    }
}
