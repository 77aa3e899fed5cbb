//! Counts the readers of a run. A run can be set to stop when its last reader disconnects.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The readers of one run.
#[derive(Clone, Debug, Default)]
pub struct RunReaders(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<ReadersState>,
    /// Notified when the last reader disconnects.
    left: Notify,
}

#[derive(Debug, Default)]
struct ReadersState {
    count: usize,
    /// If set, the run stops when its last reader disconnects, unless this token is cancelled.
    stops_unless: Option<CancellationToken>,
}

impl RunReaders {
    fn lock(&self) -> MutexGuard<'_, ReadersState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is no reader.
    pub async fn gone(&self) {
        loop {
            let left = self.0.left.notified();
            if self.lock().count == 0 {
                return;
            }
            left.await;
        }
    }

    pub(crate) fn enter(&self, stops_unless: Option<CancellationToken>) {
        let mut state = self.lock();
        state.count += 1;
        state.stops_unless = stops_unless.or(state.stops_unless.take());
    }

    /// Removes a reader, and returns whether the run has to stop.
    pub(crate) fn leave(&self) -> bool {
        let mut state = self.lock();
        state.count -= 1;
        let is_last = state.count == 0;
        let stops_unless = state.stops_unless.take_if(|_| is_last);
        drop(state);
        if is_last {
            self.0.left.notify_waiters();
        }
        stops_unless.is_some_and(|never| !never.is_cancelled())
    }
}
