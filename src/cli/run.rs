//! `pudu`: runs the daemon, from start to shutdown.

use pudu_config::{CLOSING, LoadedConfig, Start};
use pudu_daemon::{Greeting, logging, run};
use std::{
    io::{self, Write},
    process::ExitCode,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

/// Number of signals that are queued: the first stops the daemon gracefully, the second at once.
const MAX_SIGNALS: usize = 2;

/// Runs the daemon until it receives a signal.
pub(super) fn daemon(start: Start) -> ExitCode {
    let loaded = match load(&start) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    run::say_missing_agents(&loaded, |line| eprintln!("{line}"));
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
    run::load(start, |line| eprintln!("{line}")).map_err(|error| fail(&error.into()))
}

/// Prints the error.
pub(super) fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("{}", run::describe(error));
    ExitCode::FAILURE
}

async fn run_until_signal(start: Start, loaded: LoadedConfig) -> anyhow::Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (ask, stop) = mpsc::channel(MAX_SIGNALS);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            // Further signals have no effect.
            ask.try_send(()).ok();
        }
    });
    run::run(start, loaded, print_greeting, stop).await
}

fn print_greeting(greeting: &Greeting) {
    let accounts = match greeting.accounts.as_slice() {
        [] => "none; add one under `channels:` in config.yaml".to_owned(),
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
    let address = greeting.page();
    text.push_str(&format!("  page     http://{address}/   <- open this in a browser (or run: pudu chat)\n"));
    // The daemon also works if standard output is closed.
    io::stdout().write_all(text.as_bytes()).ok();
}
