//! The REST API of DeerFlow's provisioner: requests, responses, and the mapping of errors to messages for the operator.
//! This module does not depend on the contents of sandboxes.

use backon::{ExponentialBuilder, Retryable};
use pudu_net::{
    read_body,
    reqwest::{
        self, Method, RequestBuilder, Response, StatusCode,
        header::{HeaderName, HeaderValue},
    },
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{error::Error, time::Duration};
use url::Url;

/// Header that carries the API key.
const KEY: HeaderName = HeaderName::from_static("x-api-key");
/// Timeouts for creating, inspecting and deleting a sandbox.
const CREATE_TIMEOUT: Duration = Duration::from_secs(30);
const READ_TIMEOUT: Duration = Duration::from_secs(10);
const DELETE_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;
/// Maximum length of a provisioner's error message when it is quoted, in characters.
const MAX_MESSAGE_CHARS: usize = 300;

/// Client for a provisioner.
pub(crate) struct ProvisionerApi {
    http: reqwest::Client,
    base: Url,
    key: Option<HeaderValue>,
}

/// Request for a sandbox.
#[derive(Debug, Serialize)]
pub(crate) struct SandboxRequest<'a> {
    pub(crate) sandbox_id: &'a str,
    pub(crate) thread_id: &'a str,
    pub(crate) user_id: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) extra_mounts: Vec<ExtraMount>,
}

/// A folder of the cluster's nodes that is mounted in a sandbox.
#[derive(Debug, Serialize)]
pub(crate) struct ExtraMount {
    pub(crate) host_path: String,
    pub(crate) container_path: String,
    pub(crate) read_only: bool,
}

/// A sandbox in a provisioner's response.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct SandboxResponse {
    pub(crate) sandbox_id: String,
    pub(crate) sandbox_url: String,
    pub(crate) status: SandboxStatus,
}

/// State of a sandbox's Pod.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub(crate) enum SandboxStatus {
    /// The Pod is starting.
    Pending,
    /// The Pod is running.
    Running,
    /// The Pod has ended. Contains the provisioner's text.
    Over(String),
}

impl From<String> for SandboxStatus {
    fn from(word: String) -> Self {
        match word.as_str() {
            "Pending" => Self::Pending,
            "Running" => Self::Running,
            _ => Self::Over(word.chars().take(40).collect()),
        }
    }
}

#[derive(Deserialize)]
struct All {
    sandboxes: Vec<SandboxResponse>,
}

/// Reason why a request to the provisioner failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProvisionerError {
    /// The sandbox does not exist.
    #[error("the provisioner does not have this sandbox")]
    Missing,
    /// The sandbox already exists.
    #[error("the provisioner already has this sandbox and does not return it: {0}")]
    Taken(String),
    /// The provisioner is unavailable. A retry may succeed.
    #[error("{0}")]
    Away(String),
    /// The request is refused until the operator fixes something.
    #[error("{0}")]
    Refused(String),
}

impl ProvisionerApi {
    /// Creates a client for the provisioner at this URL.
    pub(crate) fn new(base: Url, key: Option<&SecretString>) -> Result<Self, ProvisionerError> {
        let bad = |_| {
            ProvisionerError::Refused(
                "sandbox.provisioner_api_key has characters that an HTTP header cannot \
                                       contain"
                    .to_owned(),
            )
        };
        let header = |key: &SecretString| {
            let mut value = HeaderValue::from_str(key.expose_secret()).map_err(bad)?;
            value.set_sensitive(true);
            Ok(value)
        };
        let key = key.map(header).transpose()?;
        let http = pudu_net::client().map_err(|error| ProvisionerError::Refused(error.to_string()))?;
        Ok(Self { http, base, key })
    }

    /// Checks that the provisioner responds.
    pub(crate) async fn health(&self) -> Result<(), ProvisionerError> {
        self.retry(|| async {
            self.send(self.request(Method::GET, &["health"], READ_TIMEOUT)).await.map(drop)
        })
        .await
    }

    /// Returns the sandbox with this ID. Creates it if it does not exist.
    pub(crate) async fn create_sandbox(
        &self,
        wanted: &SandboxRequest<'_>,
    ) -> Result<SandboxResponse, ProvisionerError> {
        let path = ["api", "sandboxes"];
        let created = self
            .retry(|| async {
                self.read(self.request(Method::POST, &path, CREATE_TIMEOUT).json(wanted)).await
            })
            .await;
        match created {
            // DeerFlow's provisioner returns the same sandbox to two concurrent requests; others return an error.
            Err(ProvisionerError::Taken(why)) => match self.fetch_sandbox(wanted.sandbox_id).await {
                Err(ProvisionerError::Missing) => Err(ProvisionerError::Taken(why)),
                found => found,
            },
            Err(ProvisionerError::Missing) => Err(self.wrong_service()),
            created => created.and_then(|created: SandboxResponse| require_id(created, wanted.sandbox_id)),
        }
    }

    /// Returns a sandbox.
    pub(crate) async fn fetch_sandbox(&self, id: &str) -> Result<SandboxResponse, ProvisionerError> {
        let path = ["api", "sandboxes", id];
        let made =
            self.retry(|| async { self.read(self.request(Method::GET, &path, READ_TIMEOUT)).await }).await;
        made.and_then(|made| require_id(made, id))
    }

    /// Returns all sandboxes, including those of other clients.
    pub(crate) async fn list(&self) -> Result<Vec<SandboxResponse>, ProvisionerError> {
        let path = ["api", "sandboxes"];
        let all =
            self.retry(|| async { self.read(self.request(Method::GET, &path, READ_TIMEOUT)).await }).await;
        match all {
            Err(ProvisionerError::Missing) => Err(self.wrong_service()),
            all => all.map(|all: All| all.sandboxes),
        }
    }

    /// Deletes a sandbox. It is not an error if the sandbox is missing.
    pub(crate) async fn take_away(&self, id: &str) -> Result<(), ProvisionerError> {
        let path = ["api", "sandboxes", id];
        let gone = self
            .retry(|| async {
                self.send(self.request(Method::DELETE, &path, DELETE_TIMEOUT)).await.map(drop)
            })
            .await;
        match gone {
            Err(ProvisionerError::Missing) => Ok(()),
            gone => gone,
        }
    }

    /// Makes up to three attempts while a retry may succeed. All requests are idempotent.
    async fn retry<T, F: Future<Output = Result<T, ProvisionerError>>>(
        &self,
        ask: impl FnMut() -> F,
    ) -> Result<T, ProvisionerError> {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(250))
            .with_max_delay(Duration::from_secs(2))
            .with_max_times(2)
            .with_jitter();
        ask.retry(pauses).when(|trouble| matches!(trouble, ProvisionerError::Away(_))).await
    }

    fn request(&self, method: Method, path: &[&str], timeout: Duration) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        let request = self.http.request(method, url).timeout(timeout);
        match &self.key {
            Some(key) => request.header(KEY, key),
            None => request,
        }
    }

    async fn read<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ProvisionerError> {
        let body = self.send(request).await?;
        serde_json::from_slice(&body).map_err(|error| {
            let what = format!("sent an invalid response ({error})");
            ProvisionerError::Refused(
                self.advice(&what, "check that sandbox.provisioner_url is the URL of DeerFlow's provisioner"),
            )
        })
    }

    /// Sends a request and returns the body of a successful response.
    async fn send(&self, request: RequestBuilder) -> Result<Vec<u8>, ProvisionerError> {
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let body = self.body(response).await?;
        if status.is_success() { Ok(body) } else { Err(self.trouble(status, &body)) }
    }

    async fn body(&self, response: Response) -> Result<Vec<u8>, ProvisionerError> {
        let too_large = |_| {
            let help = "check that sandbox.provisioner_url is the URL of DeerFlow's provisioner";
            ProvisionerError::Refused(self.advice("sent a response larger than 1 MiB", help))
        };
        read_body(response, MAX_RESPONSE_BYTES, |error| self.unreachable(&error), too_large).await
    }

    fn unreachable(&self, error: &reqwest::Error) -> ProvisionerError {
        let why = if error.is_timeout() {
            "the request timed out".to_owned()
        } else {
            // The innermost error has the cause; the outer ones repeat the URL.
            let mut inner: &dyn Error = error;
            while let Some(source) = inner.source() {
                inner = source;
            }
            inner.to_string()
        };
        let help = "check that it is running, and check sandbox.provisioner_url";
        ProvisionerError::Away(self.advice(&format!("cannot be reached: {why}"), help))
    }

    /// Maps an error response.
    fn trouble(&self, status: StatusCode, body: &[u8]) -> ProvisionerError {
        let said = error_message(body);
        match status {
            StatusCode::NOT_FOUND => ProvisionerError::Missing,
            StatusCode::CONFLICT => ProvisionerError::Taken(said),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let help = "set sandbox.provisioner_api_key to the provisioner's PROVISIONER_API_KEY";
                ProvisionerError::Refused(self.advice(&format!("rejected the key ({status}): {said}"), help))
            }
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                let help = "see the provisioner's log";
                ProvisionerError::Away(self.advice(&format!("failed ({status}): {said}"), help))
            }
            status if status.is_redirection() => {
                let help = "set sandbox.provisioner_url to its final URL";
                ProvisionerError::Refused(self.advice(&format!("redirects to another URL ({status})"), help))
            }
            status => {
                let help = "check that the provisioner's DeerFlow version is compatible with pudu";
                ProvisionerError::Refused(
                    self.advice(&format!("rejected the request ({status}): {said}"), help),
                )
            }
        }
    }

    /// Returns the error for a URL at which another service responds.
    fn wrong_service(&self) -> ProvisionerError {
        let help = "check that sandbox.provisioner_url is the URL of DeerFlow's provisioner";
        ProvisionerError::Refused(self.advice("has no /api/sandboxes", help))
    }

    fn advice(&self, what: &str, help: &str) -> String {
        let port = self.base.port().map_or_else(String::new, |port| format!(":{port}"));
        let host = self.base.host_str().unwrap_or_default();
        format!("the provisioner at {host}{port} {what}; {help}")
    }
}

/// Refuses a response about another sandbox.
fn require_id(response: SandboxResponse, id: &str) -> Result<SandboxResponse, ProvisionerError> {
    if response.sandbox_id == id {
        return Ok(response);
    }
    let text = "the provisioner returned another sandbox than the requested one; see its log";
    Err(ProvisionerError::Refused(text.to_owned()))
}

/// Returns the error message in a body: FastAPI's `detail` or, without one, the beginning of the body.
fn error_message(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct ErrorDetail {
        detail: serde_json::Value,
    }
    let text = match serde_json::from_slice::<ErrorDetail>(body) {
        Ok(ErrorDetail { detail: serde_json::Value::String(text) }) => text,
        Ok(ErrorDetail { detail }) => detail.to_string(),
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    };
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.trim().chars().take(MAX_MESSAGE_CHARS).map(plain).collect();
    if text.is_empty() { "no message".to_owned() } else { text }
}
