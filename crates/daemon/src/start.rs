//! Third startup phase: starts the parts.

use crate::{build::Built, daemon::Daemon, open::Opened, scope::Scope};
use anyhow::Result;
use pudu_config::{CLOSING, LoadedConfig, Start};
use std::{net::SocketAddr, path::PathBuf};

/// Facts shown to the person who started the daemon.
pub struct Greeting {
    /// Address of the page.
    pub address: SocketAddr,
    /// The default model, and why it was chosen.
    pub model: String,
    /// Path of the gateway's generated token, if one was generated.
    pub token: Option<PathBuf>,
    /// Description of the store.
    pub store: String,
    /// Description of the sandbox.
    pub sandbox: String,
    /// The accounts.
    pub accounts: Vec<String>,
    /// Accounts that are open to everyone.
    pub open: Vec<String>,
}

impl Greeting {
    /// Returns the page's host and port for a browser on this machine.
    pub fn page(&self) -> String {
        match self.address.ip().is_unspecified() {
            true => format!("localhost:{}", self.address.port()),
            false => self.address.to_string(),
        }
    }
}

impl Daemon {
    /// Opens, builds and runs a daemon.
    ///
    /// # Errors
    /// When the port, the home folder or the database is in use or unusable, or the configuration cannot be applied.
    pub async fn start(start: Start, loaded: LoadedConfig, scope: Scope) -> Result<(Self, Greeting)> {
        let opened = Opened::open(start, loaded, scope).await?;
        let built = Built::build(opened, scope).await?;
        Self::run(built, scope).await
    }

    /// Runs the third phase: resumes the previous process's work, serves HTTP, connects the accounts, and dispatches.
    async fn run(built: Built, scope: Scope) -> Result<(Self, Greeting)> {
        let Built { daemon, dispatcher, arrivals, listener, token, auth, hot, model, made_token, store } =
            built;
        // This must happen before any run works on a thread.
        daemon.shared.runs.adopt_threads().await;
        daemon.recover(&dispatcher).await?;
        let address = daemon.serve(listener, token, &auth)?;
        let wanted = scope.accounts(&hot);
        daemon.lines.open(wanted).await;
        daemon.extend();
        daemon.dispatch(dispatcher, arrivals, scope);
        daemon.keep_house();
        if scope == Scope::Whole {
            daemon.plan();
        }
        let open = if scope == Scope::Whole { hot.open_to_the_world() } else { Vec::new() };
        for account in &open {
            tracing::warn!(account, "opened account to everyone: {CLOSING}");
        }
        let greeting = Greeting {
            address,
            model,
            token: made_token,
            store,
            sandbox: daemon.machine.describe_sandbox(&daemon.watcher.current()),
            accounts: wanted.iter().map(|account| account.name.clone()).collect(),
            open: open.into_iter().map(str::to_owned).collect(),
        };
        Ok((daemon, greeting))
    }
}
