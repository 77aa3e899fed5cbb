//! Requests to the daemon of this folder.

use anyhow::{Context, Result, bail};
use pudu_client::net::{
    self,
    reqwest::{Method, Response},
};
use pudu_config::{self as config, Start};
use pudu_gateway::token;
use pudu_kit::home;
use secrecy::ExposeSecret;
use serde_json::Value;
use std::{fs, io::Write, os::unix::fs::OpenOptionsExt, path::Path, process::ExitCode, time::Duration};

/// Default timeout of a request to the daemon.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Calls the daemon's API with the operator's token; returns its refusal as an error.
pub(super) async fn call(
    start: &Start,
    method: Method,
    path: &[&str],
    query: &[(&str, &str)],
) -> Result<Value> {
    call_within(start, REQUEST_TIMEOUT, method, path, query).await
}

/// Calls the daemon's API with a custom timeout.
pub(super) async fn call_within(
    start: &Start,
    timeout: Duration,
    method: Method,
    path: &[&str],
    query: &[(&str, &str)],
) -> Result<Value> {
    read(send(start, timeout, method, path, query, None).await?).await
}

/// Sends a POST request to the daemon's API.
pub(super) async fn post(
    start: &Start,
    path: &[&str],
    query: &[(&str, &str)],
    body: &Value,
) -> Result<Value> {
    read(send(start, REQUEST_TIMEOUT, Method::POST, path, query, Some(body)).await?).await
}

/// Sends a PUT request to the daemon's API.
pub(super) async fn put(start: &Start, path: &[&str], body: &Value) -> Result<Value> {
    read(send(start, REQUEST_TIMEOUT, Method::PUT, path, &[], Some(body)).await?).await
}

async fn read(answer: Response) -> Result<Value> {
    let good = answer.status().is_success();
    let facts: Value = answer.json().await.context("the daemon's answer cannot be read")?;
    if !good {
        bail!("{}", facts.get("detail").and_then(Value::as_str).unwrap_or("the daemon refused"));
    }
    Ok(facts)
}

async fn send(
    start: &Start,
    timeout: Duration,
    method: Method,
    path: &[&str],
    query: &[(&str, &str)],
    body: Option<&Value>,
) -> Result<Response> {
    let home = start.home();
    let place = home::running_url(&home).context("no pudu runs in this folder: start it first")?;
    let mut url = url::Url::parse(&place)?;
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.clear().push("api").extend(path);
    }
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    let mut request = net::client()?.request(method, url).timeout(timeout);
    let chosen = config::load(start).ok().and_then(|loaded| loaded.config.fixed.gateway.token);
    if let Some(token) = chosen.or_else(|| token::found(&home)) {
        request = request.bearer_auth(token.expose_secret());
    }
    if let Some(body) = body {
        request = request.json(body);
    }
    request.send().await.context("the daemon does not answer")
}

/// Downloads a file from the daemon's API; the file must not exist yet.
pub(super) async fn download(start: &Start, timeout: Duration, path: &[&str], to: &Path) -> Result<()> {
    let mut answer = send(start, timeout, Method::GET, path, &[], None).await?;
    if !answer.status().is_success() {
        let facts: Value = answer.json().await.context("the daemon's answer cannot be read")?;
        bail!("{}", facts.get("detail").and_then(Value::as_str).unwrap_or("the daemon refused"));
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
pub(super) fn address(text: &str) -> Result<url::Url> {
    let url =
        url::Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
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
