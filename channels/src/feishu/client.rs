//! Calls to the open platform, with their tokens, and the interpretation of responses.
//!
//! Concurrent calls share one request for a token. The token is renewed in the last half hour of its lifetime; before
//! that, the platform returns the same one. If the platform rejects the token, it is dropped, and the call is repeated
//! once.

use super::facts::{FeishuCase, FeishuError, failure, unreadable};
use crate::{
    ChannelError,
    recovery::CALL_TIMEOUT,
    transport::{
        AccountTransport, CallEffect, CallError, IssuedToken, RawResponse, TokenCache, below, send,
        transfer_timeout,
    },
};
use pudu_net::reqwest::{Method, RequestBuilder, Response, header, multipart::Form};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::time::{Duration, SystemTime};
use url::Url;

/// How long before its expiry a token is renewed. Less than the half hour in which the platform issues a new one.
const TOKEN_RENEWAL: Duration = Duration::from_secs(25 * 60);
/// Maximum size of an API response, in bytes.
const MAX_RESPONSE_BYTES: usize = 4 * 1024 * 1024;

/// API client of one app.
pub(super) struct FeishuClient {
    pub(super) transport: AccountTransport,
    domain: Url,
    app_id: String,
    app_secret: SecretString,
    token: TokenCache<FeishuCase>,
}

/// Common fields of every response.
#[derive(Deserialize)]
struct FeishuResponse {
    code: i64,
    #[serde(default)]
    msg: String,
    #[serde(default)]
    data: Value,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl FeishuClient {
    pub(super) fn new(domain: Url, app_id: String, app_secret: SecretString) -> Result<Self, ChannelError> {
        let transport = AccountTransport::new().map_err(ChannelError::Config)?;
        Ok(Self { transport, domain, app_id, app_secret, token: TokenCache::new(TOKEN_RENEWAL) })
    }

    pub(super) fn app_id(&self) -> &str {
        &self.app_id
    }

    /// Calls a path below `open-apis/` and returns the content of `data`.
    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, FeishuError> {
        let effect = CallEffect::from_method(&method);
        self.with_token(|token| {
            let request = self.request(method.clone(), path, &token);
            self.exchange(
                effect,
                match body {
                    Some(body) => request.json(body),
                    None => request,
                },
            )
        })
        .await
        .map(|response| response.data)
    }

    /// Like [`Self::call`], for a method whose response has no `data` object: returns the top-level fields.
    pub(super) async fn call_top(&self, path: &str) -> Result<Map<String, Value>, FeishuError> {
        let call = |token| self.exchange(CallEffect::Reads, self.request(Method::GET, path, &token));
        self.with_token(call).await.map(|response| response.rest)
    }

    /// Posts a form. The form is rebuilt for each attempt, because a stream cannot be sent twice.
    pub(super) async fn post_form<F>(
        &self,
        path: &str,
        form: impl Fn() -> F,
        timeout: Duration,
    ) -> Result<Value, FeishuError>
    where
        F: Future<Output = Result<Form, FeishuError>>,
    {
        let post = |token| {
            let form = form();
            async move {
                let request = self.request(Method::POST, path, &token).multipart(form.await?);
                self.exchange(CallEffect::Writes, request.timeout(timeout)).await
            }
        };
        self.with_token(post).await.map(|response| response.data)
    }

    /// Starts a download below `open-apis/`. The token is sent only to the platform's own host: redirects are not
    /// followed with it.
    pub(super) async fn fetch(&self, path: &str, limit: u64) -> Result<Response, FeishuError> {
        self.with_token(|token| async move {
            let request = self.request(Method::GET, path, &token).timeout(transfer_timeout(limit));
            let response = send(request).await?;
            if response.status().is_success() && is_file(&response) {
                return Ok(response);
            }
            read(&RawResponse::read(response, MAX_RESPONSE_BYTES).await?)?;
            Err(CallError::Refused("the response contains no file".to_owned()))
        })
        .await
    }

    /// Fetches the endpoint of the long connection and returns the raw data.
    pub(super) async fn endpoint(&self) -> Result<Value, FeishuError> {
        let body = json!({"AppID": self.app_id, "AppSecret": self.app_secret.expose_secret()});
        let request =
            self.transport.http.post(below(&self.domain, "callback/ws/endpoint")).header("locale", "zh");
        let request = request.json(&body).timeout(CALL_TIMEOUT);
        self.exchange(CallEffect::Reads, request).await.map(|response| response.data)
    }

    /// Returns the platform's time.
    pub(super) async fn clock(&self) -> Option<SystemTime> {
        let date = |token| {
            let request = self.request(Method::GET, "bot/v3/info", &token);
            let date = |response: RawResponse| Ok::<_, FeishuError>(response.date());
            self.transport.exchange(CallEffect::Reads, request, MAX_RESPONSE_BYTES, date)
        };
        self.with_token(date).await.ok()?
    }

    /// Tests the credentials: returns a token, and requests one if needed.
    pub(super) async fn token(&self) -> Result<SecretString, FeishuError> {
        self.token.get(self.issue()).await
    }

    async fn issue(&self) -> Result<IssuedToken, FeishuError> {
        let body = json!({"app_id": self.app_id, "app_secret": self.app_secret.expose_secret()});
        let url = below(&self.domain, "open-apis/auth/v3/tenant_access_token/internal");
        let request = self.transport.http.post(url).json(&body).timeout(CALL_TIMEOUT);
        let decoded = self.exchange(CallEffect::Reads, request).await?;
        let text =
            decoded.rest.get("tenant_access_token").and_then(Value::as_str).filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| CallError::Unconnected("the response contains no token".to_owned()))?;
        let seconds = decoded.rest.get("expire").and_then(Value::as_u64).unwrap_or(0).clamp(60, 7200);
        Ok(IssuedToken { text: text.into(), lifetime: Duration::from_secs(seconds) })
    }

    async fn with_token<T, F>(&self, call: impl Fn(SecretString) -> F) -> Result<T, FeishuError>
    where
        F: Future<Output = Result<T, FeishuError>>,
    {
        self.token.call(|| self.issue(), call).await
    }

    async fn exchange(
        &self,
        effect: CallEffect,
        request: RequestBuilder,
    ) -> Result<FeishuResponse, FeishuError> {
        self.transport.exchange(effect, request, MAX_RESPONSE_BYTES, |response| read(&response)).await
    }

    fn request(&self, method: Method, path: &str, token: &SecretString) -> RequestBuilder {
        let request = self.transport.http.request(method, below(&self.domain, &format!("open-apis/{path}")));
        request.bearer_auth(token.expose_secret()).timeout(CALL_TIMEOUT)
    }
}

/// Returns whether a response is a file. Errors are JSON, even with status 200; a file that is JSON has a file name.
fn is_file(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    response.headers().contains_key(header::CONTENT_DISPOSITION)
        || !kind.is_some_and(|kind| kind.starts_with("application/json"))
}

/// Reads a response. Its code decides, or its status if it has no code.
fn read(response: &RawResponse) -> Result<FeishuResponse, FeishuError> {
    let status = response.status;
    let reset = response.header("x-ogw-ratelimit-reset").and_then(|seconds| seconds.parse().ok());
    let Ok(decoded) = crate::lenient::from_bytes::<FeishuResponse>(&response.body) else {
        return Err(unreadable(status, reset));
    };
    if decoded.code == 0 && status < 400 {
        return Ok(decoded);
    }
    // The platform's support asks for the log id.
    let log = response.header("x-tt-logid").unwrap_or_default();
    tracing::debug!(code = decoded.code, status, log, msg = decoded.msg, "refused call");
    Err(failure(status, decoded.code, &decoded.msg, reset))
}

#[cfg(test)]
mod tests;
