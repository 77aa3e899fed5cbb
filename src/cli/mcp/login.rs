//! `pudu mcp login`: an operator logs in at a server in a browser, which returns to a port of this machine.

use crate::cli::remote::ApiRequest;
use anyhow::{Context, Result, bail};
use pudu_config::{Start, extensions};
use pudu_daemon::logins::LoginFile;
use pudu_mcp::{LoginVault, PendingLogin};
use pudu_net::reqwest::Method;
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use url::Url;

/// Time that a person has to log in.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// Timeout of a request of the browser.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a request of the browser, in bytes.
const MAX_REQUEST_BYTES: usize = 16 * 1024;
/// Path to which the browser returns.
const PATH: &str = "/callback";

/// Logs in at a server, and reconnects the servers of a running daemon.
pub(super) async fn login(start: &Start, name: &str, port: u16) -> Result<String> {
    let loaded = pudu_config::load(start)?;
    let config = extensions::load(start, loaded.report.file.as_deref());
    let config = config.map_err(|report| anyhow::anyhow!("{report}"))?.unwrap_or_default();
    let vault: Arc<dyn LoginVault> = Arc::new(LoginFile::new(loaded.config.fixed.home.clone()));
    let listener = TcpListener::bind(("127.0.0.1", port)).await.context("cannot listen for the browser")?;
    let redirect = format!("http://127.0.0.1:{}{PATH}", listener.local_addr()?.port());
    let pending = config.login(name, &redirect, vault).await.map_err(anyhow::Error::msg)?;
    eprintln!("Open this address in a browser on this machine, and log in:\n\n{}\n", pending.address());
    let query = timeout(LOGIN_TIMEOUT, returned(&listener, &pending)).await;
    let (query, browser) = query.context("nobody logged in within 10 minutes")??;
    let finished = pending.finish(&query).await;
    let shown = match &finished {
        Ok(()) => "You are logged in. You can close this page.".to_owned(),
        Err(why) => format!("The login failed: {why}"),
    };
    answer(browser, if finished.is_ok() { "200 OK" } else { "400 Bad Request" }, &shown).await;
    if let Err(why) = finished {
        bail!("the login at {name} failed: {why}");
    }
    // Without a daemon there is nothing to reconnect.
    let reset = ApiRequest::get(&["mcp", "cache", "reset"]).method(Method::POST).send(start).await;
    if let Err(error) = reset {
        return Ok(format!("Logged in at {name}. The servers could not be reconnected: {error}"));
    }
    Ok(format!("Logged in at {name}."))
}

/// Waits until a browser returns from this login. Other requests are refused.
async fn returned(listener: &TcpListener, pending: &PendingLogin) -> Result<(String, TcpStream)> {
    loop {
        let (mut browser, _) = listener.accept().await?;
        let Ok(Some(target)) = timeout(REQUEST_TIMEOUT, target(&mut browser)).await else { continue };
        let url = Url::parse("http://127.0.0.1").and_then(|root| root.join(&target)).ok();
        let Some(url) = url.filter(|url| url.path() == PATH) else {
            answer(browser, "404 Not Found", "There is nothing here.").await;
            continue;
        };
        let is_own = url.query_pairs().any(|(key, value)| key == "state" && value == pending.state());
        if is_own {
            return Ok((url.query().unwrap_or_default().to_owned(), browser));
        }
        answer(browser, "400 Bad Request", "This answer belongs to another login.").await;
    }
}

/// Reads a request up to the end of its headers, and returns its target.
async fn target(browser: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut bytes = [0; 1024];
        let count = browser.read(&mut bytes).await.ok().filter(|count| *count > 0)?;
        request.extend_from_slice(bytes.get(..count)?);
        if request.len() > MAX_REQUEST_BYTES {
            return None;
        }
    }
    let line = String::from_utf8_lossy(&request).lines().next()?.to_owned();
    let mut words = line.split(' ');
    (words.next() == Some("GET")).then(|| words.next().map(str::to_owned)).flatten()
}

/// Answers the browser with a text.
async fn answer(mut browser: TcpStream, status: &str, text: &str) {
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    // The browser may be gone; the login counts all the same.
    let sent = async {
        browser.write_all(response.as_bytes()).await.ok();
        browser.shutdown().await.ok();
    };
    timeout(REQUEST_TIMEOUT, sent).await.ok();
}
