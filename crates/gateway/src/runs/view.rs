//! Frames of the stream mode `view`: the whole view of a run, as a chat shows it, whenever it changes. A view frame has
//! no id, because each one is complete.

use crate::GatewayState;
use pudu_base::{RunId, ThreadId};
use pudu_dispatch::view::RunView;
use pudu_runs::LiveRun;
use pudu_texts::Language;
use std::time::Duration;
use tokio::{sync::watch, time::Instant};

/// Minimum time between two views of an active run.
const VIEW_INTERVAL: Duration = Duration::from_millis(40);

/// The views of a run, until its end.
pub(super) struct RunViews {
    gateway: GatewayState,
    thread: ThreadId,
    run: RunId,
    language: Language,
    /// The run, and a counter of its events; `None` once it has ended.
    live: Option<(LiveRun, watch::Receiver<u64>)>,
    sent: Option<RunView>,
    /// When the next view may be sent.
    due: Instant,
    is_over: bool,
}

impl RunViews {
    pub(super) fn new(gateway: &GatewayState, thread: &ThreadId, run: &RunId, language: Language) -> Self {
        let live = gateway.runs().live_run(run).filter(|live| !live.closed.is_cancelled());
        let live = live.map(|live| {
            let ticks = live.replay.ticks();
            (live, ticks)
        });
        let (gateway, thread, run) = (gateway.clone(), thread.clone(), run.clone());
        Self { gateway, thread, run, language, live, sent: None, due: Instant::now(), is_over: false }
    }

    /// Returns the next view; `None` after the final one, or if the store fails.
    ///
    /// # Cancel safety
    /// Dropping the future loses no view.
    pub(super) async fn next(&mut self) -> Option<RunView> {
        while let Some((live, ticks)) = &mut self.live {
            tokio::time::sleep_until(self.due).await;
            ticks.borrow_and_update();
            let progress = live.replay.progress();
            let view = RunView::of_progress(&self.run, &progress, self.language);
            // After the last event, only the final view is worth a frame.
            if progress.outcome.is_none() && self.sent.as_ref() != Some(&view) {
                self.due = Instant::now() + VIEW_INTERVAL;
                return Some(self.sent.insert(view).clone());
            }
            tokio::select! {
                biased;
                () = live.closed.cancelled() => self.live = None,
                Ok(()) = ticks.changed() => {}
            }
        }
        if self.is_over {
            return None;
        }
        let view = self.last().await;
        self.is_over = true;
        view
    }

    /// Returns the final view.
    async fn last(&self) -> Option<RunView> {
        let shared = &self.gateway.0.shared;
        let view = async {
            let Some(end) = shared.runs.run_end(&self.run).await? else { return Ok(None) };
            RunView::of_end(shared, &self.thread, &self.run, self.language, &end).await.map(Some)
        };
        view.await.unwrap_or_else(|error| {
            tracing::error!(run = %self.run, %error, "failed to read the end of a run");
            None
        })
    }
}
