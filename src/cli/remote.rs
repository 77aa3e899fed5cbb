//! Requests to the HTTP API of this folder's daemon, or of this process if there is none.

use super::run;
use anyhow::{Context, Result, anyhow, bail};
use pudu_config::{self as config, LoadedConfig, Start};
use pudu_daemon::{
    offline::{OfflineApi, StoreAccess},
    store,
};
use pudu_gateway::token;
use pudu_kit::home;
use pudu_net::{
    self as net,
    reqwest::{Method, Response},
};
use secrecy::ExposeSecret;
use serde_json::Value;
use std::{fs, io::Write, os::unix::fs::OpenOptionsExt, path::Path, process::ExitCode, time::Duration};
use url::Url;

/// Default timeout of a request to the daemon.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a request that reads or deletes much data.
const LONG_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// A request to the API with the operator's rights.
pub(super) struct ApiRequest<'r> {
    method: Method,
    path: Vec<&'r str>,
    query: Vec<(&'r str, String)>,
    body: Option<Value>,
    timeout: Duration,
    access: StoreAccess,
    loaded: Option<&'r LoadedConfig>,
}

impl<'r> ApiRequest<'r> {
    /// Creates a request that reads from the store.
    pub(super) fn get(path: &[&'r str]) -> Self {
        Self {
            method: Method::GET,
            path: path.to_vec(),
            query: Vec::new(),
            body: None,
            timeout: REQUEST_TIMEOUT,
            access: StoreAccess::Read,
            loaded: None,
        }
    }

    /// Creates a request that changes the store.
    pub(super) fn change(method: Method, path: &[&'r str]) -> Self {
        Self { method, access: StoreAccess::Write, ..Self::get(path) }
    }

    /// Sets the method of a request that does not change the store.
    pub(super) fn method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// Adds a parameter to the query.
    pub(super) fn query(mut self, key: &'r str, value: &impl ToString) -> Self {
        self.query.push((key, value.to_string()));
        self
    }

    /// Sets the body.
    pub(super) fn body(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }

    /// Sets the long timeout.
    pub(super) fn long(self) -> Self {
        Self { timeout: LONG_TIMEOUT, ..self }
    }

    /// Marks a request as accessing users' files, which needs exclusive access, and sets the long timeout.
    pub(super) fn with_files(self) -> Self {
        Self { access: StoreAccess::WriteFiles, ..self.long() }
    }

    /// Sets the configuration, if it is already loaded.
    pub(super) fn loaded(self, loaded: Option<&'r LoadedConfig>) -> Self {
        Self { loaded, ..self }
    }

    /// Returns the response; an error status is an error. A missing store is read as empty, or created for a change.
    pub(super) async fn send(&self, start: &Start) -> Result<Value> {
        self.answered(start, true, read).await.map(Option::unwrap_or_default)
    }

    /// Returns the response; an error status is an error. `None` without a store.
    pub(super) async fn send_to_store(&self, start: &Start) -> Result<Option<Value>> {
        self.answered(start, false, read).await
    }

    /// Returns the response of this folder's daemon. An error status is an error.
    pub(super) async fn send_to_daemon(&self, start: &Start) -> Result<Value> {
        let url = home::running_url(&start.home());
        read(self.ask(start, &url.context("no pudu is running in this folder; start it first")?).await?).await
    }

    /// Writes the response to a new file. `None` without a store.
    pub(super) async fn download(&self, start: &Start, to: &Path) -> Result<Option<()>> {
        self.answered(start, false, async |answer| save(answer, to).await).await
    }

    /// Passes the response to `read`. Returns `None` if there is neither a daemon nor a store, unless one `is_made`.
    async fn answered<T>(
        &self,
        start: &Start,
        is_made: bool,
        read: impl AsyncFnOnce(Response) -> Result<T>,
    ) -> Result<Option<T>> {
        if let Some(place) = home::running_url(&start.home()) {
            return read(self.ask(start, &place).await?).await.map(Some);
        }
        let own;
        let loaded = match self.loaded {
            Some(loaded) => loaded,
            None => {
                own = run::load(start).map_err(|_| anyhow!("the configuration is invalid"))?;
                &own
            }
        };
        if !is_made && !store::has_store(&loaded.config.fixed.database.backend)? {
            return Ok(None);
        }
        let api = OfflineApi::open(start, loaded, self.access).await?;
        let url = self.url("http://localhost")?;
        let answer = api.answer(self.method.clone(), url.as_str(), self.body.as_ref()).await;
        let done = match answer {
            Ok(answer) => read(answer).await,
            Err(error) => Err(error),
        };
        api.close().await;
        done.map(Some)
    }

    /// Sends the request to the daemon at a URL.
    async fn ask(&self, start: &Start, place: &str) -> Result<Response> {
        let mut request = net::client()?.request(self.method.clone(), self.url(place)?).timeout(self.timeout);
        let chosen = match self.loaded {
            Some(loaded) => loaded.config.fixed.gateway.token.clone(),
            None => config::load(start).ok().and_then(|loaded| loaded.config.fixed.gateway.token),
        };
        if let Some(token) = chosen.or_else(|| token::found(&start.home())) {
            request = request.bearer_auth(token.expose_secret());
        }
        if let Some(body) = &self.body {
            request = request.json(body);
        }
        request.send().await.context("the daemon does not answer")
    }

    fn url(&self, place: &str) -> Result<Url> {
        let mut url = Url::parse(place)?;
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.clear().push("api").extend(&self.path);
        }
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        Ok(url)
    }
}

async fn read(answer: Response) -> Result<Value> {
    let is_good = answer.status().is_success();
    let facts: Value = answer.json().await.context("cannot read the daemon's answer")?;
    if !is_good {
        bail!("{}", facts.get("detail").and_then(Value::as_str).unwrap_or("the daemon refused the request"));
    }
    Ok(facts)
}

async fn save(mut answer: Response, to: &Path) -> Result<()> {
    if !answer.status().is_success() {
        return read(answer).await.map(drop);
    }
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(to);
    let mut file = file.with_context(|| format!("cannot write {}", to.display()))?;
    let write = async {
        while let Some(part) = answer.chunk().await.context("the daemon's answer broke off")? {
            file.write_all(&part)?;
        }
        Ok::<_, anyhow::Error>(file.sync_all()?)
    };
    let written = write.await;
    if written.is_err() {
        // A partial archive would look complete.
        fs::remove_file(to).ok();
    }
    written
}

/// Parses a URL from the command line.
pub(super) fn address(text: &str) -> Result<Url> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.with_context(|| {
        format!("\"{text}\" is not an address: write http://HOST:PORT, such as http://127.0.0.1:8001")
    })
}

/// Runs a future on a new runtime.
pub(super) fn wait<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// Runs a future on a new runtime and prints its result.
pub(super) fn print(work: impl Future<Output = Result<String>>) -> ExitCode {
    match wait(work) {
        Ok(text) => super::print_output(text + "\n", ExitCode::SUCCESS),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
