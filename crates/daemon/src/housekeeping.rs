//! Periodic work of a daemon: the claim on the database, trimming, learning, retention.

use crate::daemon::Daemon;
use pudu_agent::Pruned;
use pudu_config::HotConfig;
use pudu_dispatch::{Shared, sent};
use pudu_gateway as gateway;
use pudu_kit::clock;
use std::time::Duration;

/// Interval at which caches are trimmed and stored messages without a handler are dispatched again.
const TRIM_INTERVAL: Duration = Duration::from_secs(30);
/// Interval at which old rows and files are deleted.
const SWEEP_INTERVAL: Duration = Duration::from_secs(15 * 60);

impl Daemon {
    /// Starts all housekeeping tasks. They end when the daemon stops.
    pub(crate) fn keep_house(&self) {
        let (machine, stop) = (self.machine.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            stop.run_until_cancelled(machine.keep()).await;
        });
        let (claim, stop, dispossessed) = (self.claim.clone(), self.stop.clone(), self.dispossessed.clone());
        self.tasks.spawn(async move {
            let keep = async { claim.lock().await.keep().await };
            if let Some(error) = stop.run_until_cancelled(keep).await {
                tracing::error!(%error, "lost the database; stopping immediately");
                dispossessed.cancel();
            }
        });
        let (shared, stop) = (self.shared.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            let mut trim = tokio::time::interval(TRIM_INTERVAL);
            while stop.run_until_cancelled(trim.tick()).await.is_some() {
                shared.runs.trim();
                shared.runs.adopt_threads().await;
                shared.inbox.sweep().await;
            }
        });
        let (shared, stop) = (self.shared.clone(), self.stop.clone());
        self.tasks.spawn(async move { shared.agent.learn(stop).await });
        let (shared, watcher, stop) = (self.shared.clone(), self.watcher.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            let mut tick = tokio::time::interval(SWEEP_INTERVAL);
            let sweeps = async {
                loop {
                    tick.tick().await;
                    sweep(&shared, &watcher.current()).await;
                }
            };
            stop.run_until_cancelled(sweeps).await;
        });
    }

    /// Learns from waiting conversations for at most `last_reading`. The next process learns from the remaining ones.
    pub(crate) async fn read_last(&self) {
        let Some(rules) = &self.watcher.current().memory.rules else { return };
        let reading = self.shared.agent.read_waiting();
        if tokio::time::timeout(rules.last_reading, reading).await.is_err() {
            tracing::info!("postponed learning from conversations to the next start");
        }
    }
}

/// Deletes rows and files that are too old or too many.
async fn sweep(shared: &Shared, hot: &HotConfig) {
    sent::sweep(&shared.home).await;
    match shared.db.sweep(clock::now()).await {
        Ok(swept) => tracing::debug!(?swept, "deleted old rows"),
        Err(error) => tracing::warn!(%error, "failed to delete old rows"),
    }
    if let Err(error) = shared.expire_buffered().await {
        tracing::warn!(%error, "failed to delete old messages of groups");
    }
    let history = hot.scheduler.history_max_age;
    if !history.is_zero()
        && let Err(error) = shared.db.prune_scheduled_runs(clock::now() - clock::millis(history)).await
    {
        tracing::warn!(%error, "failed to delete old runs of scheduled tasks");
    }
    match shared.agent.storage().prune(&hot.retention, clock::now()).await {
        Ok(pruned) if pruned != Pruned::default() => gateway::log_pruned(&pruned),
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "failed to delete data beyond `retention`"),
    }
}
