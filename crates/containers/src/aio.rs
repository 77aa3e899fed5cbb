//! Client for the HTTP API of the all-in-one sandbox image, which may run on an engine on this machine, behind a
//! provisioner or in a cluster. The API serves both commands and files. If the thread's folder is shared with this
//! machine, a [`Pair`](crate::Pair) accesses the files there instead.
//!
//! Deliberately absent: creation of the container, and the parts of the API for other purposes (browser, notebooks,
//! desktop).

mod exec;
mod files;
mod wire;

use crate::Runner;
use pudu_base::{BoxFuture, DirEntry, Exec, Sandbox, SandboxError, ShellCommand};
use pudu_net::{
    read_body,
    reqwest::{self, Client, Response, StatusCode},
};
use pudu_sandbox::{Mount, ROOT, THREAD_FOLDERS};
use serde::{Serialize, de::DeserializeOwned};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio_util::task::TaskTracker;
use url::Url;
use wire::AioResponse;

/// Maximum size of an API response, in bytes.
const MAX_RESPONSE_BYTES: usize = 32 << 20;
/// Timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a call that does not wait for a command.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval between readiness checks while a container is starting.
const READY_INTERVAL: Duration = Duration::from_millis(250);

/// A container that serves the API.
#[derive(Clone)]
pub struct Aio(Arc<Inner>);

struct Inner {
    base: Url,
    http: Client,
    mounts: Vec<Mount>,
    environment: Vec<(String, String)>,
    /// Tasks that kill the commands of abandoned calls.
    tasks: TaskTracker,
}

impl Aio {
    /// Creates a client for the API at this base URL. The mounts define which paths the agent sees and which
    /// are read-only; their locations on this machine do not matter. Cleanup after abandoned calls runs in `tasks`, for
    /// which the caller should wait at shutdown.
    ///
    /// # Errors
    /// When the URL is invalid, or the HTTP client cannot be created.
    pub fn new(base: &str, mounts: Vec<Mount>, tasks: TaskTracker) -> Result<Self, SandboxError> {
        Self::with_environment(base, mounts, Vec::new(), tasks)
    }

    /// Like [`Aio::new`], for a container that was created without the commands' environment, which is sent with each
    /// command instead.
    ///
    /// # Errors
    /// When the URL is invalid, or the HTTP client cannot be created.
    pub fn with_environment(
        base: &str,
        mounts: Vec<Mount>,
        environment: Vec<(String, String)>,
        tasks: TaskTracker,
    ) -> Result<Self, SandboxError> {
        let refused = |error: String| SandboxError::Refused(format!("invalid URL of the sandbox: {error}"));
        let base = Url::parse(base).map_err(|error| refused(error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() {
            return Err(refused(format!("the scheme `{}` is not http or https", base.scheme())));
        }
        Ok(Self(Arc::new(Inner { base, http: client()?, mounts, environment, tasks })))
    }

    /// Returns whether the API responds.
    pub async fn ready(&self) -> bool {
        let response = self.0.http.get(self.url("/v1/sandbox")).timeout(CONNECT_TIMEOUT).send().await;
        response.is_ok_and(|answer| answer.status() == StatusCode::OK)
    }

    /// Waits until the API responds. Returns `false` on timeout.
    pub async fn wait(&self, patience: Duration) -> bool {
        let asking = async {
            while !self.ready().await {
                tokio::time::sleep(READY_INTERVAL).await;
            }
        };
        tokio::time::timeout(patience, asking).await.is_ok()
    }

    /// Creates the thread's folders if they are missing, because commands start in the workspace.
    ///
    /// # Errors
    /// When the folders cannot be created.
    pub async fn create_folders(&self) -> Result<(), SandboxError> {
        let folders = THREAD_FOLDERS.map(|folder| format!("{ROOT}/{folder}")).join(" ");
        let command = ShellCommand::new(format!("mkdir -p {folders}"), CALL_TIMEOUT);
        let done = exec::run_at(self, &command, BTreeMap::new(), "/").await?;
        match done.code {
            Some(0) => Ok(()),
            _ => Err(SandboxError::Refused(format!(
                "cannot create the thread's folders in its sandbox: {}; make the mounted folders writable",
                done.stderr.trim()
            ))),
        }
    }

    fn url(&self, path: &str) -> Url {
        let mut url = self.0.base.clone();
        url.set_path(&format!("{}{path}", self.0.base.path().trim_end_matches('/')));
        url
    }

    /// Calls the API and returns the data in the response. The HTTP status reports whether the request was valid, and
    /// the envelope whether it succeeded.
    async fn call<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        patience: Duration,
    ) -> Result<T, SandboxError> {
        let sent = self.0.http.post(self.url(path)).json(body).timeout(patience).send().await;
        let answer = sent.map_err(api_gone)?;
        let status = answer.status();
        let bytes = all(answer).await?;
        let envelope: Result<AioResponse<T>, _> = serde_json::from_slice(&bytes);
        match envelope {
            Ok(AioResponse { success: true, data: Some(data), .. }) if status.is_success() => Ok(data),
            Ok(envelope) => Err(refused(path, status, envelope.message.as_deref().unwrap_or_default())),
            Err(error) if status.is_success() => Err(refused(path, status, &error.to_string())),
            Err(_) => Err(refused(path, status, "")),
        }
    }
}

/// Creates a client that connects directly to the sandbox, without a proxy from the daemon's environment.
fn client() -> Result<Client, SandboxError> {
    pudu_net::install_crypto();
    let builder = Client::builder()
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .redirect(reqwest::redirect::Policy::none());
    builder.build().map_err(|error| SandboxError::Refused(format!("cannot create an HTTP client: {error}")))
}

/// Reads a response to its end, up to the size limit.
async fn all(answer: Response) -> Result<Vec<u8>, SandboxError> {
    let too_large = |_| {
        let text = format!("the response of the sandbox is larger than {} MiB", MAX_RESPONSE_BYTES >> 20);
        SandboxError::Refused(text)
    };
    read_body(answer, MAX_RESPONSE_BYTES, api_gone, too_large).await
}

fn api_gone(error: reqwest::Error) -> SandboxError {
    // The URL would not help the reader.
    let why = match error.is_timeout() {
        true => "the request timed out".to_owned(),
        false => crate::root(&error.without_url()),
    };
    SandboxError::Refused(format!("the sandbox does not respond ({why}); try again"))
}

/// Returns the error for a request that the API refused. The model sees it.
fn refused(path: &str, status: StatusCode, message: &str) -> SandboxError {
    if status == StatusCode::NOT_FOUND && message.is_empty() {
        let text = format!(
            "the sandbox's image does not support {path}; the operator has to install a newer \
                            image"
        );
        return SandboxError::Refused(text);
    }
    let message: String = message.chars().take(500).collect();
    SandboxError::Refused(format!("the sandbox refused the request ({}): {message}", status.as_u16()))
}

impl Runner for Aio {
    fn exec<'a>(&'a self, command: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        Box::pin(exec::run(self, command))
    }
}

impl Sandbox for Aio {
    fn exec<'a>(&'a self, command: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        Box::pin(exec::run(self, command))
    }

    fn read<'a>(&'a self, path: &'a str, limit: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>> {
        Box::pin(files::read(self, path, limit))
    }

    fn write<'a>(
        &'a self,
        path: &'a str,
        bytes: &'a [u8],
        append: bool,
    ) -> BoxFuture<'a, Result<(), SandboxError>> {
        Box::pin(files::write(self, path, bytes, append))
    }

    fn list<'a>(
        &'a self,
        path: &'a str,
        depth: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DirEntry>, SandboxError>> {
        Box::pin(files::list(self, path, depth, limit))
    }
}
