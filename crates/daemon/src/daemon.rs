//! A running daemon: recovery, dispatch of messages, reloads of the configuration, and shutdown.

use crate::{agent, machine::Machine, scope::Scope, servers::Extensions};
use anyhow::{Context, Result};
use pudu_config::{AuthConfig, HotConfig, SchedulerConfig, Watcher};
use pudu_dispatch::{
    DispatchRules, Dispatcher, ScheduleLauncher, Shared,
    bus::InboxItem,
    connections::{self, Connections},
};
use pudu_gateway::{AnsweringProcess, GatewayState, GatewayToken, SignIn};
use pudu_kit::home::Home;
use pudu_schedules::ScheduleRules;
use pudu_store::{Claim, RunOrigin};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::mpsc::Receiver};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Interval at which the configuration file is checked for changes.
const CONFIG_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long runs that a restart interrupted wait for the tools of MCP servers.
const EXTENSIONS_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum time for channels and HTTP to close after the last turn.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// A running daemon.
pub struct Daemon {
    /// Handles that chats and the HTTP API use.
    pub shared: Arc<Shared>,
    pub(crate) lines: Arc<Connections>,
    pub(crate) watcher: Arc<Watcher>,
    pub(crate) extensions: Arc<Extensions>,
    pub(crate) machine: Arc<Machine>,
    /// Keeps other processes out of the home folder.
    pub(crate) _home: Home,
    /// Keeps other processes out of the database.
    pub(crate) claim: Arc<tokio::sync::Mutex<Claim>>,
    /// Cancelled when another process has taken the database.
    pub(crate) dispossessed: CancellationToken,
    /// Stops channels and HTTP.
    pub(crate) stop: CancellationToken,
    /// Channels, HTTP, housekeeping.
    pub(crate) tasks: TaskTracker,
}

impl Daemon {
    /// Resumes work left by the previous process.
    pub(crate) async fn recover(&self, dispatcher: &Dispatcher) -> Result<()> {
        let runs = self.shared.runs.take_over_runs().await.context("cannot read unfinished runs")?;
        let (chats, others): (Vec<_>, Vec<_>) =
            runs.into_iter().partition(|run| run.row.origin == RunOrigin::Chat);
        dispatcher.recover(chats).await?;
        self.shared.runs.resume_runs(others, &self.shared.extended).await?;
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
            AnsweringProcess::Daemon(bound),
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
        watcher.follow(move |hot| apply(&shared, hot, &machine, &extensions));
        let (lines, stop, edited) = (self.lines.clone(), self.stop.clone(), watcher.clone());
        self.tasks.spawn(dispatcher.run(arrivals, move || drop(edited.current())));
        if scope == Scope::Whole {
            self.tasks.spawn(async move {
                while stop.run_until_cancelled(tokio::time::sleep(CONFIG_POLL_INTERVAL)).await.is_some() {
                    lines.follow(&watcher.current()).await;
                }
            });
        }
    }

    /// Starts the MCP servers, and restarts them on request. Their tools are available to runs that begin afterwards,
    /// and to runs interrupted by a restart, unless the servers are slow.
    pub(crate) fn extend(&self) {
        let (shared, watcher, extensions, machine) =
            (self.shared.clone(), self.watcher.clone(), self.extensions.clone(), self.machine.clone());
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let count = |is_new: bool| {
                if is_new {
                    apply(&shared, &watcher.current(), &machine, &extensions);
                    // Logged only now, because runs have the tools from here on.
                    tracing::info!(tools = extensions.lock().all().len(), "connected MCP servers");
                }
                shared.extended.cancel();
            };
            extensions.keep_connected(&stop, count).await;
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

    /// Starts scheduled tasks at their times, until the daemon drains.
    pub(crate) fn plan(&self) {
        let (launcher, drain) = (ScheduleLauncher::new(self.shared.clone()), self.shared.drain.clone());
        self.tasks.spawn(async move { launcher.plan(drain).await });
    }

    /// Shuts the daemon down: no turn begins, active turns get the grace period, and unfinished runs resume after a
    /// restart. Returns the number of those runs.
    pub async fn drain(&self) -> usize {
        let grace = self.watcher.current().timing.shutdown_grace_period;
        self.finish_turns(grace).await;
        self.shut_down().await
    }

    /// Shuts the daemon down like [`Self::drain`], after learning from waiting conversations. A terminal session uses
    /// `drain` instead, because its next chat learns from them.
    pub async fn learn_and_drain(&self) -> usize {
        let grace = self.watcher.current().timing.shutdown_grace_period;
        if self.finish_turns(grace).await && !grace.is_zero() {
            self.read_last().await;
        }
        self.shut_down().await
    }

    /// Waits until another process takes the database, and then stops without a grace period: that process resumes the
    /// active runs.
    pub async fn until_dispossessed(&self) {
        self.dispossessed.cancelled().await;
        self.finish_turns(Duration::ZERO).await;
        self.shut_down().await;
    }

    /// Waits until the store has permanently failed in this process. A new process can write again.
    pub async fn until_store_broke(&self) {
        self.shared.db.until_broken().await;
    }

    /// Prevents new turns, and waits up to `grace` for active ones. Returns whether all ended.
    async fn finish_turns(&self, grace: Duration) -> bool {
        self.shared.drain.cancel();
        self.shared.tasks.close();
        let finished = tokio::time::timeout(grace, self.shared.tasks.wait()).await.is_ok();
        if !finished {
            let runs = self.shared.runs.running();
            tracing::warn!(runs, ?grace, "ended drain: unfinished runs resume after a restart");
        }
        finished
    }

    async fn shut_down(&self) -> usize {
        let left = self.shared.runs.running();
        tokio::time::timeout(SHUTDOWN_TIMEOUT, self.shared.runs.suspend()).await.ok();
        let db = self.shared.db.within(SHUTDOWN_TIMEOUT);
        if let Err(error) = db.suspend_runs().await {
            tracing::warn!(%error, "failed to record clean stop of runs");
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

/// Returns the rules for scheduled tasks.
pub(crate) fn schedule_rules(scheduler: &SchedulerConfig) -> ScheduleRules {
    ScheduleRules {
        enabled: scheduler.enabled,
        poll_interval: scheduler.poll_interval,
        max_active: scheduler.max_concurrent_runs,
        min_once_delay: scheduler.min_once_delay.as_secs(),
        max_tasks: scheduler.max_tasks_per_user,
        max_failures: scheduler.max_failures,
    }
}

/// Applies an edited configuration from the next message on.
fn apply(shared: &Shared, hot: &HotConfig, machine: &Machine, extensions: &Extensions) {
    // The lock orders reloads, so that a later one never applies older settings.
    let tools = extensions.lock();
    match agent::setup(hot, machine, tools.all()) {
        Ok(setup) => {
            shared.agent.configure(pudu_agent::AgentSetup { prompts: tools.prompts().into(), ..setup });
        }
        Err(error) => tracing::error!(%error, "rejected edited models; the previous ones stay in effect"),
    }
    shared.set_rules(DispatchRules::new(hot));
    shared.outbox.set_oldest(hot.timing.outbox_max_age);
    shared.schedules.set_rules(schedule_rules(&hot.scheduler));
    connections::apply_policies(shared, hot);
}
