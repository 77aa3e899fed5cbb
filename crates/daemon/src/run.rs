//! Runs a daemon from start to end, for the command line.

use crate::{Daemon, Greeting, Scope, missing_agents};
use anyhow::{Result, bail};
use pudu_config::{self as config, ConfigError, LoadedConfig, Report, Start};
use pudu_net::scrub;
use tokio::sync::mpsc::Receiver;

/// Reads the configuration and passes each line about its problems to `say`.
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

/// Returns the text of an error for the person who started the daemon, without secrets.
pub fn describe(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    let text = scrub::hide(&text);
    // The lines of a configuration report already have a prefix.
    let prefix = if text.contains("error: ") { "" } else { "error: " };
    format!("{prefix}{text}")
}

/// Runs a daemon until `stop` receives a request, then lets active turns finish. A second request ends it at once.
/// Calls `greet` once the daemon is running.
///
/// # Errors
/// When the daemon cannot start, another process takes over its database, or its store fails.
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
        () = daemon.until_dispossessed() => bail!("another pudu uses this database"),
        () = daemon.until_store_broke() => bail!("the store failed; see the log"),
    }
    tracing::info!("stopping: no new runs, active ones may finish; a second signal stops immediately");
    tokio::select! {
        biased;
        _ = daemon.learn_and_drain() => {}
        _ = stop.recv() => tracing::warn!("stopped immediately"),
    }
    Ok(())
}
