//! Threads that are deleted after their run, as LangGraph's clients ask by `on_completion: "delete"`.

use crate::GatewayState;
use pudu_client::{
    base::{RunId, ThreadId},
    store::Deletion,
};

impl GatewayState {
    /// Deletes the temporary threads that the process before has left, each once its run is over.
    pub(crate) async fn delete_left(&self) {
        match self.db().temporary_runs().await {
            Ok(left) => left.into_iter().for_each(|(thread, run)| self.delete_after(thread, run)),
            Err(error) => tracing::error!(%error, "failed to read temporary threads"),
        }
    }

    /// Deletes a thread once its run, which may be about to begin, is over and has no reader any more. A daemon that
    /// stops before deletes it at its next start.
    pub(crate) fn delete_after(&self, thread: ThreadId, run: RunId) {
        let gateway = self.clone();
        self.0.shared.tasks.spawn(async move {
            gateway.0.stop.clone().run_until_cancelled(gateway.delete_behind(&thread, &run)).await;
        });
    }

    async fn delete_behind(&self, thread: &ThreadId, run: &RunId) {
        let client = &self.client();
        loop {
            self.0.readers.gone(run).await;
            let live = client.live_runs(thread);
            if live.is_empty() {
                match client.delete_thread(thread).await {
                    // Another run began meanwhile.
                    Ok(Deletion::InUse) if !client.live_runs(thread).is_empty() => continue,
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
