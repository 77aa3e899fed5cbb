//! A daemon that runs: what it receives, what it follows, and how it is taken down.

use crate::{agent, machine::Machine, scope::Scope, servers::Extensions};
use anyhow::{Context, Result};
use pudu_client::{CutRun, store::Claim};
use pudu_config::{AuthConfig, HotConfig, Start, Watcher};
use pudu_dispatch::{
    DispatchRules, Dispatcher, Shared,
    bus::InboxItem,
    connections::{self, Connections},
    local::LocalChannel,
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
    /// The channel of the terminal.
    pub local: Arc<LocalChannel>,
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
    /// Takes up what the process before left. What was at work on a thread has its place there before what waited.
    pub(crate) async fn recover(&self, dispatcher: &Dispatcher) -> Result<()> {
        let (client, extended) = (&self.shared.client, &self.shared.extended);
        let cut = gateway::cut_runs(&self.shared).await.context("cannot read the runs of clients")?;
        let (begun, waiting): (Vec<_>, Vec<_>) = cut.into_iter().partition(CutRun::has_begun);
        begun.into_iter().for_each(|run| client.resume(run, extended.clone()));
        dispatcher.recover().await?;
        waiting.into_iter().for_each(|run| client.resume(run, extended.clone()));
        Ok(())
    }

    pub(crate) fn serve(
        &self,
        listener: TcpListener,
        token: GatewayToken,
        auth: &AuthConfig,
    ) -> Result<SocketAddr> {
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

    /// Takes what arrives, and follows edits of the configuration: each message counts with the newest one,
    /// and accounts that were edited connect anew.
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

    /// Starts the MCP servers, and anew when asked to; their tools are there from the next run after that, and for what a
    /// restart cut, unless they are slow.
    pub(crate) fn extend(&self, start: Start, file: Option<PathBuf>) {
        let (shared, watcher, extensions, machine) =
            (self.shared.clone(), self.watcher.clone(), self.extensions.clone(), self.machine.clone());
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let count = |is_new: bool| {
                if is_new {
                    apply(&shared, &watcher.current(), &machine, &extensions);
                    // Said when it is true for whoever reads it: from here on runs have the tools.
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

    /// Takes the daemon down: no new turns, those at work get their grace, the rest goes on after a restart. Returns
    /// how many runs that is.
    pub async fn drain(&self) -> usize {
        let grace = self.watcher.current().timing.shutdown_grace_period;
        self.finish_turns(grace).await;
        self.shut_down().await
    }

    /// Takes the daemon down likewise, once what can be learnt from conversations that wait was learnt. Nobody waits for
    /// that at a terminal, whose next chat learns it.
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

    /// Lets no turn begin, and waits so long for those at work. Returns whether all are over.
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
        // What a run would say of what is taken from it below would be wrong.
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
    // Whoever comes later has seen what the one before has seen, and more.
    let tools = extensions.lock();
    match agent::setup(hot, machine, tools.all()) {
        Ok(setup) => shared.client.configure(setup),
        Err(error) => tracing::error!(%error, "refused edited models, those before stay"),
    }
    shared.set_rules(DispatchRules::new(hot));
    shared.outbox.set_oldest(hot.timing.outbox_max_age);
    connections::apply_policies(shared, hot);
}
