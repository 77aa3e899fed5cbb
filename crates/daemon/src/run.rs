//! A daemon from its start to its end, as the command line runs it.

use crate::{Daemon, Greeting, Scope, missing_agents};
use anyhow::{Result, bail};
use pudu_client::net::scrub;
use pudu_config::{self as config, ConfigError, LoadedConfig, Report, Start};
use tokio::sync::mpsc::Receiver;

/// Reads the configuration and passes each line about its oddities to `say`.
///
/// # Errors
/// When the configuration cannot be used.
pub fn load(start: &Start, mut say: impl FnMut(&str)) -> Result<LoadedConfig, ConfigError> {
    let loaded = config::load(start)?;
    loaded.remember_secrets();
    loaded.report.lines().for_each(|(_, line)| say(&line));
    Ok(loaded)
}

/// Passes a line to `say` for each agent that an account names and that does not exist.
pub fn say_missing_agents(loaded: &LoadedConfig, mut say: impl FnMut(&str)) {
    let missing = Report::new(loaded.report.file.clone(), missing_agents::problems(loaded));
    missing.lines().for_each(|(_, line)| say(&line));
}

/// Returns the text of an error for the person who started the daemon. No secret is in it.
pub fn describe(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    let text = scrub::hide(&text);
    // Each line of a report on the configuration has a prefix already.
    let prefix = if text.contains("error: ") { "" } else { "error: " };
    format!("{prefix}{text}")
}

/// Runs a daemon until `stop` receives a request, and then lets active turns finish. A second request ends it at once.
/// `greet` gets the greeting once the daemon runs.
///
/// # Errors
/// When the daemon cannot start, another process takes its database, or its store breaks.
pub async fn run(
    start: Start,
    loaded: LoadedConfig,
    greet: impl FnOnce(&Greeting),
    mut stop: Receiver<()>,
) -> Result<()> {
    let (daemon, greeting) = Daemon::start(start, loaded, Scope::Whole).await?;
    greet(&greeting);
    tokio::select! {
        biased;
        _ = stop.recv() => {}
        () = daemon.until_dispossessed() => bail!("another pudu works on this database"),
        () = daemon.until_store_broke() => bail!("the store broke down; the log says why"),
    }
    tracing::info!("stopping: no new turns, those at work may finish; a second signal stops at once");
    tokio::select! {
        biased;
        _ = daemon.learn_and_drain() => {}
        _ = stop.recv() => tracing::warn!("stopped at once"),
    }
    Ok(())
}
