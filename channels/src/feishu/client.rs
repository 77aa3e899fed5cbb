//! Calls of the open platform: the token that goes with each, and what their answers mean.
//!
//! The token is asked for once, however many calls want it; it is renewed in the last half hour of its life,
//! before which the platform gives out the same one. A token that the platform does not take any more is
//! dropped, and the call made once more.

use super::failure::{self, FeishuError};
use crate::{ChannelError, http, reply::CallError};
use pudu_net::{
    reqwest::{self, Method, RequestBuilder, Response, multipart::Form},
    scrub,
};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::time::{Duration, SystemTime};
use tokio::{sync::Mutex, time::Instant};
use url::Url;

/// How long a call may take.
pub(super) const CALL_TIMEOUT: Duration = crate::recovery::CALL_TIMEOUT;
/// A token with less than this left is renewed; within the platform's own half hour.
const RENEWAL: Duration = Duration::from_secs(25 * 60);
/// The largest answer that is read, in bytes.
const ANSWER: usize = 4 * 1024 * 1024;

/// The client of one app.
pub(super) struct FeishuClient {
    http: reqwest::Client,
    domain: Url,
    app_id: String,
    app_secret: SecretString,
    token: Mutex<Option<TenantToken>>,
}

#[derive(Clone)]
struct TenantToken {
    text: SecretString,
    ends: Instant,
    renew: Instant,
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
        let http = pudu_net::client().map_err(|error| ChannelError::Config(failure::describe(error)))?;
        Ok(Self { http, domain, app_id, app_secret, token: Mutex::default() })
    }

    pub(super) fn app_id(&self) -> &str {
        &self.app_id
    }

    /// Calls a path below `open-apis/`; returns what stands under `data`.
    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, FeishuError> {
        self.with_token(|token| {
            let request = self.request(method.clone(), path).bearer_auth(token.expose_secret());
            match body {
                Some(body) => request.json(body),
                None => request,
            }
        })
        .await
        .map(|envelope| envelope.data)
    }

    /// The same, of a call whose fields stand at the top of its answer.
    pub(super) async fn call_top(&self, path: &str) -> Result<Map<String, Value>, FeishuError> {
        let request =
            |token: &SecretString| self.request(Method::GET, path).bearer_auth(token.expose_secret());
        self.with_token(request).await.map(|envelope| envelope.rest)
    }

    /// Posts a form. It is made once: a stream cannot be sent again.
    pub(super) async fn post_form(
        &self,
        path: &str,
        form: Form,
        patience: Duration,
    ) -> Result<Value, FeishuError> {
        let token = self.token().await?;
        let request = self.request(Method::POST, path).bearer_auth(token.expose_secret());
        let answer = exchange(request.multipart(form).timeout(patience)).await;
        if answer.as_ref().is_err_and(FeishuError::is_token) {
            self.forget(&token).await;
        }
        answer.map(|envelope| envelope.data)
    }

    /// Starts a download below `open-apis/`. The token goes to the platform's own host alone: redirects are
    /// not followed with it.
    pub(super) async fn fetch(&self, path: &str, patience: Duration) -> Result<Response, FeishuError> {
        let mut renewed = false;
        loop {
            let token = self.token().await?;
            let request = self.request(Method::GET, path).bearer_auth(token.expose_secret());
            let response = request.timeout(patience).send().await.map_err(failure::unreachable)?;
            if response.status().is_success() && is_file(&response) {
                return Ok(response);
            }
            match read(response).await {
                Err(failure) if failure.is_token() && !renewed => {
                    renewed = true;
                    self.forget(&token).await;
                }
                Err(failure) => return Err(failure),
                Ok(_) => return Err(CallError::Refused("there is no file in the answer".to_owned()).into()),
            }
        }
    }

    /// Asks where the long connection is; returns the code, the words and the data as they come.
    pub(super) async fn endpoint(&self) -> Result<Value, FeishuError> {
        let body = json!({"AppID": self.app_id, "AppSecret": self.app_secret.expose_secret()});
        let request = self.http.post(self.url("callback/ws/endpoint")).header("locale", "zh");
        exchange(request.json(&body).timeout(CALL_TIMEOUT)).await.map(|envelope| envelope.data)
    }

    /// Returns the time by the platform's clock.
    pub(super) async fn clock(&self) -> Option<SystemTime> {
        let token = self.token().await.ok()?;
        let request = self.request(Method::GET, "bot/v3/info").bearer_auth(token.expose_secret());
        let response = request.send().await.ok()?;
        let told = response.headers().get(reqwest::header::DATE)?.to_str().ok()?;
        httpdate::parse_http_date(told).ok()
    }

    /// Returns a token, a new one if need be.
    // One asks, the others wait for the answer: the lock is the single flight.
    pub(super) async fn token(&self) -> Result<SecretString, FeishuError> {
        let mut kept = self.token.lock().await;
        let now = Instant::now();
        if let Some(token) = kept.as_ref().filter(|token| now < token.renew) {
            return Ok(token.text.clone());
        }
        match self.ask_token().await {
            Ok(token) => Ok(kept.insert(token).text.clone()),
            // The old one is good until its end.
            Err(error) => match kept.as_ref().filter(|token| now < token.ends) {
                Some(token) if !error.is_credentials() => Ok(token.text.clone()),
                _ => Err(error),
            },
        }
    }

    async fn ask_token(&self) -> Result<TenantToken, FeishuError> {
        let body = json!({"app_id": self.app_id, "app_secret": self.app_secret.expose_secret()});
        let request = self.request(Method::POST, "auth/v3/tenant_access_token/internal").json(&body);
        let told = exchange(request).await.map_err(nothing_done)?;
        let text =
            told.rest.get("tenant_access_token").and_then(Value::as_str).filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| CallError::Unconnected("the platform gave no token".to_owned()))?;
        scrub::remember_issued(text);
        let seconds = told.rest.get("expire").and_then(Value::as_u64).unwrap_or(0).clamp(60, 7200);
        let (life, now) = (Duration::from_secs(seconds), Instant::now());
        let renew = now + life.saturating_sub(RENEWAL.min(life / 4));
        Ok(TenantToken { text: SecretString::from(text), ends: now + life, renew })
    }

    /// Drops a token that is not taken, unless another has replaced it already.
    async fn forget(&self, bad: &SecretString) {
        let mut kept = self.token.lock().await;
        if kept.as_ref().is_some_and(|token| token.text.expose_secret() == bad.expose_secret()) {
            *kept = None;
        }
    }

    async fn with_token(
        &self,
        request: impl Fn(&SecretString) -> RequestBuilder,
    ) -> Result<FeishuResponse, FeishuError> {
        let token = self.token().await?;
        match exchange(request(&token)).await {
            Err(failure) if failure.is_token() => {
                self.forget(&token).await;
                let token = self.token().await?;
                exchange(request(&token)).await
            }
            answer => answer,
        }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, self.url(&format!("open-apis/{path}"))).timeout(CALL_TIMEOUT)
    }

    /// A path below the domain, which may itself have one.
    fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.domain.as_str().trim_end_matches('/'))
    }
}

/// Asking for a token changes nothing: the call that wanted it was not made.
fn nothing_done(failure: FeishuError) -> FeishuError {
    match failure.error {
        CallError::Unknown(what) => FeishuError { error: CallError::Unconnected(what), ..failure },
        _ => failure,
    }
}

async fn exchange(request: RequestBuilder) -> Result<FeishuResponse, FeishuError> {
    read(request.send().await.map_err(failure::unreachable)?).await
}

/// A refusal comes as JSON, also as a 200; a file that is JSON itself comes with a name.
fn is_file(response: &Response) -> bool {
    let kind = response.headers().get(reqwest::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    response.headers().contains_key(reqwest::header::CONTENT_DISPOSITION)
        || !kind.is_some_and(|kind| kind.starts_with("application/json"))
}

/// Reads an answer: its code first, its status where it has none.
async fn read(response: Response) -> Result<FeishuResponse, FeishuError> {
    let status = response.status().as_u16();
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    let reset = header("x-ogw-ratelimit-reset").and_then(|seconds| seconds.parse().ok());
    let log = header("x-tt-logid").unwrap_or_default().to_owned();
    let body = http::body(response, ANSWER).await.map_err(failure::unread)?;
    let Ok(envelope) = serde_json::from_slice::<FeishuResponse>(&body) else {
        return Err(failure::unreadable(status, reset));
    };
    if envelope.code == 0 && status < 400 {
        return Ok(envelope);
    }
    // The platform's support asks for the log's id.
    tracing::debug!(code = envelope.code, status, log, msg = envelope.msg, "the platform refused a call");
    Err(failure::failure(status, envelope.code, &envelope.msg, reset))
}

#[cfg(test)]
mod tests;
