//! Threads that are deleted after their run, as requested by `on_completion: "delete"`.

use crate::GatewayState;
use pudu_base::ThreadId;
use pudu_runs::RunReaders;
use pudu_store::Deletion;

impl GatewayState {
    /// Deletes the temporary threads of the previous process, each once its run has ended.
    pub(crate) async fn delete_left(&self) {
        match self.db().temporary_runs().await {
            Ok(left) => left.into_iter().for_each(|(thread, run)| {
                let live = self.runs().live_run(&run);
                self.delete_after(thread, live.map(|live| live.readers).unwrap_or_default());
            }),
            Err(error) => tracing::error!(%error, "failed to read temporary threads"),
        }
    }

    /// Deletes a thread once its run, which may not have begun yet, has ended and these readers are gone. If the daemon
    /// stops first, the next process deletes it.
    pub(crate) fn delete_after(&self, thread: ThreadId, readers: RunReaders) {
        let gateway = self.clone();
        self.0.shared.tasks.spawn(async move {
            gateway.0.stop.clone().run_until_cancelled(gateway.delete_behind(&thread, &readers)).await;
        });
    }

    async fn delete_behind(&self, thread: &ThreadId, readers: &RunReaders) {
        let runs = self.runs();
        loop {
            readers.gone().await;
            let live = runs.live_runs(thread);
            if live.is_empty() {
                match runs.delete_thread(thread).await {
                    // Another run has begun.
                    Ok(Deletion::InUse) if !runs.live_runs(thread).is_empty() => continue,
                    Ok(_) => {}
                    Err(error) => tracing::error!(%thread, %error, "failed to delete temporary thread"),
                }
                return;
            }
            for one in live {
                one.closed.cancelled().await;
            }
        }
    }
}
