//! The start of a daemon, with the third of its phases: the built parts begin to run.

use crate::{build::Built, daemon::Daemon, open::Opened, scope::Scope};
use anyhow::Result;
use pudu_config::{CLOSING, LoadedConfig, Start};
use std::{net::SocketAddr, path::PathBuf};

/// Message of the daemon to the person who started it.
pub struct Greeting {
    /// Address of the page.
    pub address: SocketAddr,
    /// Which model answers, and why that one.
    pub model: String,
    /// Path of the token that was made for the gateway, if one was.
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
    /// Returns host and port of the page, as a browser on this machine reaches it.
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
    /// When the port, the home or the database is in use or cannot be used, or the configuration cannot be obeyed.
    pub async fn start(start: Start, loaded: LoadedConfig, scope: Scope) -> Result<(Self, Greeting)> {
        let opened = Opened::open(start, loaded, scope).await?;
        let built = Built::build(opened, scope).await?;
        Self::run(built, scope).await
    }

    /// The third phase: resumes the work of the previous process, then serves HTTP, connects the accounts, and dispatches.
    async fn run(built: Built, scope: Scope) -> Result<(Self, Greeting)> {
        let Built {
            daemon,
            dispatcher,
            arrivals,
            listener,
            token,
            auth,
            hot,
            start,
            file,
            model,
            made_token,
            store,
        } = built;
        // Before any run works on a thread.
        daemon.shared.client.adopt_threads().await;
        daemon.recover(&dispatcher).await?;
        let address = daemon.serve(listener, token, &auth)?;
        let wanted = scope.accounts(&hot);
        daemon.lines.open(wanted).await;
        daemon.extend(start, file);
        daemon.dispatch(dispatcher, arrivals, scope);
        daemon.keep_house();
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
