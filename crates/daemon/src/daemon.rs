//! A running daemon: recovery, dispatch of messages, reloads of the configuration, and shutdown.

use crate::{agent, machine::Machine, scope::Scope, servers::Extensions};
use anyhow::{Context, Result};
use pudu_client::store::{Claim, RunOrigin};
use pudu_config::{AuthConfig, HotConfig, Start, Watcher};
use pudu_dispatch::{
    DispatchRules, Dispatcher, Shared,
    bus::InboxItem,
    connections::{self, Connections},
};
use pudu_gateway::{self as gateway, GatewayState, GatewayToken, SignIn};
use pudu_kit::home::Home;
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
    pub(crate) lines: Arc<Connections>,
    pub(crate) watcher: Arc<Watcher>,
    pub(crate) extensions: Arc<Extensions>,
    pub(crate) machine: Arc<Machine>,
    /// Keeps other processes out of the home.
    pub(crate) _home: Home,
    /// Keeps other processes out of the database.
    pub(crate) claim: Arc<tokio::sync::Mutex<Claim>>,
    /// Another process has the database.
    pub(crate) dispossessed: CancellationToken,
    /// Stops channels and HTTP.
    pub(crate) stop: CancellationToken,
    /// Channels, HTTP, housekeeping.
    pub(crate) tasks: TaskTracker,
}

impl Daemon {
    /// Resumes work left by the previous process.
    pub(crate) async fn recover(&self, dispatcher: &Dispatcher) -> Result<()> {
        let runs = self.shared.client.take_over_runs().await.context("cannot read unfinished runs")?;
        let (chats, others): (Vec<_>, Vec<_>) =
            runs.into_iter().partition(|run| run.row.origin == RunOrigin::Chat);
        dispatcher.recover(chats).await?;
        gateway::resume_runs(&self.shared, others).await?;
        Ok(())
    }

    pub(crate) fn serve(
        &self,
        listener: TcpListener,
        token: GatewayToken,
        auth: &AuthConfig,
    ) -> Result<SocketAddr> {
        let bound = listener.local_addr()?;
        let gateway = GatewayState::new(
            self.shared.clone(),
            self.lines.clone(),
            self.watcher.clone(),
            bound,
            token,
            SignIn::open(auth, &self.shared.home)?,
            self.stop.clone(),
        );
        self.tasks.spawn(async move { gateway.serve(listener).await });
        Ok(bound)
    }

    /// Dispatches arriving messages and follows edits of the configuration: each message uses the newest one, and
    /// edited accounts reconnect.
    pub(crate) fn dispatch(&self, dispatcher: Dispatcher, arrivals: Receiver<InboxItem>, scope: Scope) {
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
    pub(crate) fn extend(&self, start: Start, file: Option<PathBuf>) {
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
            let file = file.as_deref();
            extensions.keep_connected(&start, file, &shared.reconnect_extensions, &stop, count).await;
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

    /// Waits until another process has the database, and then stops without a grace period: that process resumes the
    /// runs that are active here.
    pub async fn until_dispossessed(&self) {
        self.dispossessed.cancelled().await;
        self.finish_turns(Duration::ZERO).await;
        self.shut_down().await;
    }

    /// Waits until the store is broken for good in this process. A new process can write again.
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
        tokio::time::timeout(SHUTDOWN_TIMEOUT, self.shared.client.suspend()).await.ok();
        let db = self.shared.db.within(SHUTDOWN_TIMEOUT);
        if let Err(error) = db.suspend_runs().await {
            tracing::warn!(%error, "failed to record that runs were stopped in order");
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

/// Applies an edited configuration from the next message on.
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
