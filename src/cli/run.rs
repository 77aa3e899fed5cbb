//! `pudu`: the daemon, from start to shutdown.

use super::missing_agents;
use crate::logging;
use pudu_client::net::scrub;
use pudu_config::{self as config, CLOSING, LoadedConfig, Report, Start};
use pudu_daemon::{Daemon, Greeting, Scope};
use std::{
    io::{self, Write},
    process::ExitCode,
};
use tokio::signal::unix::{SignalKind, signal};

/// Runs the daemon until it receives a signal.
pub(super) fn daemon(start: Start) -> ExitCode {
    let loaded = match load(&start) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let missing = Report::new(loaded.report.file.clone(), missing_agents::problems(&loaded));
    missing.lines().for_each(|(_, line)| eprintln!("{line}"));
    logging::start(&loaded.config, start.env.get("RUST_LOG"));
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    let ended = runtime.block_on(run_until_signal(start, loaded));
    // Remaining runs resume after the next start; waiting for them here would only delay it.
    runtime.shutdown_background();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Reads the configuration and prints its warnings.
pub(super) fn load(start: &Start) -> Result<LoadedConfig, ExitCode> {
    match config::load(start) {
        Ok(loaded) => {
            loaded.remember_secrets();
            loaded.report.lines().for_each(|(_, line)| eprintln!("{line}"));
            Ok(loaded)
        }
        Err(error) => Err(fail(&error.into())),
    }
}

/// Prints the error.
pub(super) fn fail(error: &anyhow::Error) -> ExitCode {
    let text = format!("{error:#}");
    let text = scrub::hide(&text);
    // Each line of a configuration report already has a prefix.
    let prefix = if text.contains("error: ") { "" } else { "error: " };
    eprintln!("{prefix}{text}");
    ExitCode::FAILURE
}

async fn run_until_signal(start: Start, loaded: LoadedConfig) -> anyhow::Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (daemon, greeting) = Daemon::start(start, loaded, Scope::Whole).await?;
    print_greeting(&greeting);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = daemon.until_dispossessed() => anyhow::bail!("another pudu works on this database"),
        () = daemon.until_store_broke() => anyhow::bail!("the store broke down; the log says why"),
    }
    tracing::info!("stopping: no new turns, those at work may finish; a second signal stops at once");
    tokio::select! {
        _ = daemon.learn_and_drain() => {}
        _ = terminate.recv() => tracing::warn!("stopped at once"),
        _ = interrupt.recv() => tracing::warn!("stopped at once"),
    }
    Ok(())
}

fn print_greeting(greeting: &Greeting) {
    let accounts = match greeting.accounts.as_slice() {
        [] => "none yet: add one under `channels:` in config.yaml".to_owned(),
        names => names.join(", "),
    };
    let mut text = format!(
        "pudu {} is running\n  model    {}\n  store    {}\n  shell    {}\n  chats    {accounts}\n",
        env!("CARGO_PKG_VERSION"),
        greeting.model,
        greeting.store,
        greeting.sandbox,
    );
    if !greeting.open.is_empty() {
        text.push_str(&format!("  OPEN     everyone may use {}: {CLOSING}\n", greeting.open.join(", ")));
    }
    if let Some(file) = &greeting.token {
        text.push_str(&format!("  token    in {} (the page asks for it)\n", file.display()));
    }
    if let Some(address) = greeting.address {
        let place = match address.ip().is_unspecified() {
            true => format!("localhost:{}", address.port()),
            false => address.to_string(),
        };
        text.push_str(&format!("  page     http://{place}/   <- open this and say hello (or: pudu chat)\n"));
    }
    // The daemon also works if standard output is closed.
    io::stdout().write_all(text.as_bytes()).ok();
}
