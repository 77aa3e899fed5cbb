//! Urgency of a reply's final update.

use tokio_util::sync::CancellationToken;

/// Signals to a reply in delivery whether a user waits for its end. Clones share the signal.
#[derive(Clone, Debug, Default)]
pub struct Hurry {
    waits: CancellationToken,
    stops: CancellationToken,
}

impl Hurry {
    /// Returns a signal that is set from the beginning.
    #[must_use]
    pub fn waiting() -> Self {
        let hurry = Self::default();
        hurry.wait();
        hurry
    }

    /// Signals that a user is now waiting for the end: delays are soon cut short.
    pub fn wait(&self) {
        self.waits.cancel();
    }

    /// Signals that a user wants the end now: delays are cut short at once.
    pub fn stop(&self) {
        self.stops.cancel();
        self.waits.cancel();
    }

    /// Waits until a user waits for the end.
    pub async fn waited_for(&self) {
        self.waits.cancelled().await;
    }

    /// Waits until a user wants the end at once.
    pub async fn stopped(&self) {
        self.stops.cancelled().await;
    }

    /// Returns whether a user wants the end at once.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stops.is_cancelled()
    }

    /// Returns whether a user waits for the end.
    #[must_use]
    pub fn is_waited_for(&self) -> bool {
        self.waits.is_cancelled()
    }
}
