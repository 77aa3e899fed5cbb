//! `pudu connect`: a code by which one person makes themselves known to a bot.

use crate::{
    config::{self, Start},
    gateway::token,
    home,
};
use anyhow::{Context, Result, bail};
use pudu_client::net;
use secrecy::ExposeSecret;
use serde_json::Value;
use std::{process::ExitCode, time::Duration};

/// The daemon answers at once or not at all.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks the daemon of this folder for a code and says what to do with it.
pub(super) fn connect(start: &Start, account: &str) -> ExitCode {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    match runtime.block_on(ask(start, account)) {
        Ok(offer) => {
            println!("{offer}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn ask(start: &Start, account: &str) -> Result<String> {
    let home = start.home();
    let place = home::neighbour(&home).context("no pudu runs in this folder: start it first")?;
    let mut url = url::Url::parse(&place)?;
    if let Ok(mut path) = url.path_segments_mut() {
        path.clear().extend(["api", "channels", account, "connect"]);
    }
    let mut request = net::client()?.post(url).timeout(PATIENCE);
    let chosen = config::load(start).ok().and_then(|loaded| loaded.config.fixed.gateway.token);
    if let Some(token) = chosen.or_else(|| token::found(&home)) {
        request = request.bearer_auth(token.expose_secret());
    }
    let answer = request.send().await.context("the daemon does not answer")?;
    let good = answer.status().is_success();
    let facts: Value = answer.json().await.context("the daemon's answer cannot be read")?;
    let text = |key: &str| facts.get(key).and_then(Value::as_str);
    if !good {
        bail!("{}", text("detail").unwrap_or("the daemon refused"));
    }
    let link = text("url").map(|url| format!("\nor open {url}")).unwrap_or_default();
    let instruction = text("instruction").unwrap_or_default();
    Ok(format!("{instruction}{link}\nIt is good for one person and ten minutes."))
}
