//! A custom provider over HTTP. The request is posted as JSON, and the response is the decision.
//!
//! The operator configures the URL, so it may be in the internal network. Redirects are not followed, because they
//! would send users' requests and the operator's headers to another host.

use crate::{GuardrailDecision, GuardrailError, GuardrailProvider, GuardrailRequest};
use pudu_base::BoxFuture;
use pudu_net::{
    client, read_body,
    reqwest::{
        self, Client, StatusCode,
        header::{HeaderMap, HeaderName, HeaderValue},
    },
};
use secrecy::{ExposeSecret, SecretString};
use std::time::{Duration, Instant};
use url::Url;

/// Maximum size of a response, in bytes.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// Name of the tool in a check's request. There is no such tool.
const PROBE: &str = "pudu_doctor";

/// Settings of an HTTP provider.
#[derive(Clone, Debug)]
pub struct HttpGuardrailSettings {
    /// URL to post requests to.
    pub url: Url,
    /// Additional headers.
    pub headers: Vec<(String, SecretString)>,
    /// Timeout of a decision.
    pub timeout: Duration,
}

/// A provider over HTTP.
pub struct HttpGuardrail {
    client: Client,
    url: Url,
    headers: HeaderMap,
    timeout: Duration,
}

impl HttpGuardrail {
    /// Creates a provider. Invalid headers, which the configuration refuses, are skipped.
    ///
    /// # Errors
    /// When the system's TLS roots cannot be loaded.
    pub fn new(settings: &HttpGuardrailSettings) -> Result<Self, reqwest::Error> {
        let header = |(name, value): &(String, SecretString)| {
            let mut value = HeaderValue::try_from(value.expose_secret()).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::try_from(name.as_str()).ok()?, value))
        };
        let headers = settings.headers.iter().filter_map(header).collect();
        Ok(Self { client: client()?, url: settings.url.clone(), headers, timeout: settings.timeout })
    }

    async fn ask(&self, request: &GuardrailRequest) -> Result<GuardrailDecision, GuardrailError> {
        let call = self.client.post(self.url.clone()).headers(self.headers.clone()).json(request);
        // The URL may contain a secret.
        let broken = |error: reqwest::Error| GuardrailError::Unreachable(cause(&error.without_url()));
        let response = call.send().await.map_err(broken)?;
        if response.status() != StatusCode::OK {
            return Err(GuardrailError::Status(response.status().as_u16()));
        }
        let too_large = |_| GuardrailError::TooLarge(MAX_ANSWER_BYTES);
        let body = read_body(response, MAX_ANSWER_BYTES, broken, too_large).await?;
        serde_json::from_slice(&body).map_err(|error| GuardrailError::Garbled(error.to_string()))
    }
}

/// Returns the innermost cause of an error, which is the most specific.
fn cause(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

impl GuardrailProvider for HttpGuardrail {
    fn name(&self) -> &'static str {
        "http"
    }

    fn evaluate<'a>(
        &'a self,
        request: &'a GuardrailRequest,
    ) -> BoxFuture<'a, Result<GuardrailDecision, GuardrailError>> {
        Box::pin(async move {
            let late = |_| GuardrailError::TooSlow(self.timeout);
            tokio::time::timeout(self.timeout, self.ask(request)).await.map_err(late)?
        })
    }

    fn check(&self) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move {
            let request = GuardrailRequest {
                tool_name: PROBE.to_owned(),
                tool_input: serde_json::json!({}),
                timestamp: jiff::Timestamp::now().to_string(),
                is_internal: true,
                ..GuardrailRequest::default()
            };
            let start = Instant::now();
            let decision = self.evaluate(&request).await.map_err(|error| error.to_string())?;
            Ok(format!(
                "it responds in {} ms: {} on a call of {PROBE}",
                start.elapsed().as_millis(),
                decision.code()
            ))
        })
    }
}

#[cfg(test)]
mod tests;
