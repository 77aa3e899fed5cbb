//! Work that repeats while a daemon runs: the lease of the database, trimming, learning, retention.

use crate::daemon::Daemon;
use pudu_client::Pruned;
use pudu_config::HotConfig;
use pudu_dispatch::{Shared, sent};
use pudu_gateway as gateway;
use pudu_kit::clock;
use std::time::Duration;

/// Interval at which caches are trimmed and held messages are looked through.
const TRIM: Duration = Duration::from_secs(30);
/// Interval at which old rows and files are deleted.
const SWEEP: Duration = Duration::from_secs(15 * 60);

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
                tracing::error!(%error, "lost the database; stopping at once");
                dispossessed.cancel();
            }
        });
        let (shared, stop) = (self.shared.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            let mut trim = tokio::time::interval(TRIM);
            while stop.run_until_cancelled(trim.tick()).await.is_some() {
                shared.client.trim();
                shared.client.adopt_threads().await;
                shared.inbox.sweep().await;
            }
        });
        let (shared, stop) = (self.shared.clone(), self.stop.clone());
        self.tasks.spawn(async move { shared.client.learn(stop).await });
        let (shared, watcher, stop) = (self.shared.clone(), self.watcher.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            let mut tick = tokio::time::interval(SWEEP);
            let sweeps = async {
                loop {
                    tick.tick().await;
                    sweep(&shared, &watcher.current()).await;
                }
            };
            stop.run_until_cancelled(sweeps).await;
        });
    }

    /// Learns from the conversations that wait, as long as `last_reading` allows. The next start learns from the rest.
    pub(crate) async fn read_last(&self) {
        let Some(rules) = &self.watcher.current().memory.rules else { return };
        let reading = self.shared.client.read_waiting();
        if tokio::time::timeout(rules.last_reading, reading).await.is_err() {
            tracing::info!("left conversations to learn from for the next start");
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
    match shared.client.storage().prune(&hot.retention, clock::now()).await {
        Ok(pruned) if pruned != Pruned::default() => gateway::storage::report(&pruned),
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "failed to delete what `retention` does not keep"),
    }
}
