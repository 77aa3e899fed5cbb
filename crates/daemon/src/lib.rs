//! The daemon. Its start has three phases: [`open`] finds, locks and reads everything outside of the process, [`build`]
//! makes the parts and connects them, and [`Daemon::start`] runs them. [`Daemon::drain`] takes them down in order.

pub mod agent;
mod build;
pub mod crash_point;
pub mod discover;
mod housekeeping;
pub mod machine;
mod open;
pub mod servers;
pub mod skills;
pub mod store;

use anyhow::{Context, Result};
use build::Built;
use machine::Machine;
use open::Opened;
use pudu_client::{CutRun, store::Claim};
use pudu_config::{AccountConfig, AuthConfig, CLOSING, HotConfig, LoadedConfig, Start, Watcher};
use pudu_dispatch::{
    DispatchRules, Dispatcher, Shared,
    bus::InboxItem,
    connections::{self, Connections},
    local::LocalChannel,
};
use pudu_gateway::{self as gateway, GatewayState, GatewayToken, SignIn};
use pudu_kit::home::Home;
use servers::Extensions;
use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{net::TcpListener, sync::mpsc::Receiver};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Interval at which the configuration file is checked for changes.
const CONFIG_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long runs that a restart interrupted wait for the tools of MCP servers.
const EXTENSIONS_TIMEOUT: Duration = Duration::from_secs(20);
/// How long channels and HTTP may take to close after the last turn.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// A daemon that runs.
pub struct Daemon {
    /// Handles that chats and the HTTP API use.
    pub shared: Arc<Shared>,
    /// The channel of the terminal.
    pub local: Arc<LocalChannel>,
    lines: Arc<Connections>,
    watcher: Arc<Watcher>,
    extensions: Arc<Extensions>,
    machine: Arc<Machine>,
    /// Keeps other processes out of the home.
    _home: Home,
    /// Keeps other processes out of the database.
    claim: Arc<tokio::sync::Mutex<Claim>>,
    /// Another process has the database.
    dispossessed: CancellationToken,
    /// Stops channels and HTTP.
    stop: CancellationToken,
    /// Channels, HTTP, housekeeping.
    tasks: TaskTracker,
}

/// Extent of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    Whole,
    /// The local chat only: no platform, no HTTP.
    Local,
}

impl Scope {
    /// Returns the accounts that are connected.
    fn accounts(self, hot: &HotConfig) -> &[AccountConfig] {
        match self {
            Self::Whole => &hot.accounts,
            Self::Local => &[],
        }
    }
}

/// Message of the daemon to the person who started it.
pub struct Greeting {
    /// Address of the page.
    pub address: Option<SocketAddr>,
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

    /// The third phase: resumes the previous process's work, then serves HTTP, connects the accounts, and dispatches.
    async fn run(built: Built, scope: Scope) -> Result<(Self, Greeting)> {
        let Built { daemon, dispatcher, arrivals, door, auth, hot, start, file, model, made_token, store } =
            built;
        // Before anything works on them.
        daemon.shared.client.adopt_threads().await;
        daemon.recover(&dispatcher).await?;
        let address = match door {
            Some((listener, token)) => Some(daemon.serve(listener, token, &auth)?),
            None => None,
        };
        let wanted = scope.accounts(&hot);
        daemon.lines.open(wanted, daemon.local.clone()).await;
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
            sandbox: daemon.machine.words(&daemon.watcher.current()),
            accounts: wanted.iter().map(|account| account.name.clone()).collect(),
            open: open.into_iter().map(str::to_owned).collect(),
        };
        Ok((daemon, greeting))
    }

    /// Resumes work left by the previous process. Runs that had begun get their place on a thread before those that
    /// waited.
    async fn recover(&self, dispatcher: &Dispatcher) -> Result<()> {
        let (client, extended) = (&self.shared.client, &self.shared.extended);
        let cut = gateway::cut_runs(&self.shared).await.context("cannot read the runs of clients")?;
        let (begun, waiting): (Vec<_>, Vec<_>) = cut.into_iter().partition(CutRun::has_begun);
        begun.into_iter().for_each(|run| client.resume(run, extended.clone()));
        dispatcher.recover().await?;
        waiting.into_iter().for_each(|run| client.resume(run, extended.clone()));
        Ok(())
    }

    fn serve(&self, listener: TcpListener, token: GatewayToken, auth: &AuthConfig) -> Result<SocketAddr> {
        let bound = listener.local_addr()?;
        let (shared, local) = (self.shared.clone(), self.local.clone());
        let gateway = GatewayState::new(
            shared,
            local,
            self.lines.clone(),
            self.watcher.clone(),
            bound,
            (token, SignIn::open(auth, &self.shared.home)?),
            self.stop.clone(),
        );
        self.tasks.spawn(async move { gateway.serve(listener).await });
        Ok(bound)
    }

    /// Dispatches arriving messages and follows edits of the configuration: each message uses the newest one, and
    /// edited accounts reconnect.
    fn dispatch(&self, dispatcher: Dispatcher, arrivals: Receiver<InboxItem>, scope: Scope) {
        let (shared, watcher, extensions, machine) =
            (self.shared.clone(), self.watcher.clone(), self.extensions.clone(), self.machine.clone());
        let last = Mutex::new(watcher.current());
        let refresh = Arc::new(move || {
            let hot = watcher.current();
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if !Arc::ptr_eq(&last, &hot) {
                apply(&shared, &hot, &machine, &extensions);
                *last = hot.clone();
            }
            hot
        });
        let (lines, stop, look) = (self.lines.clone(), self.stop.clone(), refresh.clone());
        self.tasks.spawn(dispatcher.run(arrivals, move || drop(refresh())));
        if scope == Scope::Whole {
            self.tasks.spawn(async move {
                while stop.run_until_cancelled(tokio::time::sleep(CONFIG_POLL_INTERVAL)).await.is_some() {
                    lines.follow(&look()).await;
                }
            });
        }
    }

    /// Starts the MCP servers, and restarts them on request. Their tools are available from the next run after that,
    /// and to the runs that a restart cut, unless the servers are slow.
    fn extend(&self, start: Start, file: Option<PathBuf>) {
        let (shared, watcher, extensions, machine) =
            (self.shared.clone(), self.watcher.clone(), self.extensions.clone(), self.machine.clone());
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let count = |is_new: bool| {
                if is_new {
                    apply(&shared, &watcher.current(), &machine, &extensions);
                    // Logged once it is true: runs have the tools from here on.
                    tracing::info!(tools = extensions.lock().all().len(), "connected MCP servers");
                }
                shared.extended.cancel();
            };
            let place = (&start, file.as_deref());
            extensions.keep_connected(place, &shared.reconnect_extensions, &stop, count).await;
            shared.extended.cancel();
        });
        let extended = self.shared.extended.clone();
        self.tasks.spawn(async move {
            if tokio::time::timeout(EXTENSIONS_TIMEOUT, extended.cancelled()).await.is_err() {
                tracing::warn!("continuing without slow MCP servers");
                extended.cancel();
            }
        });
    }

    /// Shuts the daemon down: no turn begins, active turns get the grace period, and the rest continues after a
    /// restart. Returns the number of those runs.
    pub async fn drain(&self) -> usize {
        let grace = self.watcher.current().timing.shutdown_grace_period;
        self.finish_turns(grace).await;
        self.shut_down().await
    }

    /// Shuts the daemon down like [`Self::drain`], after learning from waiting conversations. At a terminal, where the
    /// next chat learns from them, nothing waits for that.
    pub async fn learn_and_drain(&self) -> usize {
        let grace = self.watcher.current().timing.shutdown_grace_period;
        if self.finish_turns(grace).await && !grace.is_zero() {
            self.read_last().await;
        }
        self.shut_down().await
    }

    /// Waits until another process has the database, and then stops without any grace: whatever is at work here is at
    /// work there, too.
    pub async fn until_dispossessed(&self) {
        self.dispossessed.cancelled().await;
        self.finish_turns(Duration::ZERO).await;
        self.shut_down().await;
    }

    /// Waits until nothing can be stored any more, whatever is done: a new process can.
    pub async fn until_store_broke(&self) {
        self.shared.db.until_broken().await;
    }

    /// Lets no turn begin, and waits up to `grace` for active ones. Returns whether all ended.
    async fn finish_turns(&self, grace: Duration) -> bool {
        self.shared.drain.cancel();
        self.shared.tasks.close();
        let finished = tokio::time::timeout(grace, self.shared.tasks.wait()).await.is_ok();
        if !finished {
            let runs = self.shared.client.running();
            tracing::warn!(runs, ?grace, "ended drain: what is left goes on after a restart");
        }
        finished
    }

    async fn shut_down(&self) -> usize {
        let left = self.shared.client.running();
        // A run's own report of the interruption below would be wrong.
        let runs = self.shared.client.runs().into_iter().map(|(run, _)| run).collect();
        tokio::time::timeout(SHUTDOWN_TIMEOUT, self.shared.client.suspend()).await.ok();
        let db = self.shared.db.within(SHUTDOWN_TIMEOUT);
        for noted in [db.suspend_turns(runs).await, db.suspend_runs().await] {
            if let Err(error) = noted {
                tracing::warn!(%error, "failed to note that runs were stopped in order");
            }
        }
        self.stop.cancel();
        self.lines.close().await;
        self.tasks.close();
        tokio::time::timeout(SHUTDOWN_TIMEOUT, self.tasks.wait()).await.ok();
        tokio::time::timeout(SHUTDOWN_TIMEOUT, self.extensions.close()).await.ok();
        self.machine.close().await;
        self.shared.db.close().await;
        left
    }
}

/// Makes an edited configuration count from the next message on.
fn apply(shared: &Shared, hot: &HotConfig, machine: &Machine, extensions: &Extensions) {
    // The lock orders reloads: a later one has seen everything that an earlier one has seen, and more.
    let tools = extensions.lock();
    match agent::setup(hot, machine, tools.all()) {
        Ok(setup) => shared.client.configure(setup),
        Err(error) => tracing::error!(%error, "refused edited models, those before stay"),
    }
    shared.set_rules(DispatchRules::new(hot));
    shared.outbox.set_oldest(hot.timing.outbox_max_age);
    connections::apply_policies(shared, hot);
}
