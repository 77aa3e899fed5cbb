//! How urgently the end of a reply is waited for.

use tokio_util::sync::CancellationToken;

/// Signals to a reply that is being delivered whether a person waits for its end. A clone shares the signal.
#[derive(Clone, Debug, Default)]
pub struct Hurry {
    waits: CancellationToken,
    stops: CancellationToken,
}

impl Hurry {
    /// Returns a signal for a person who waits from the beginning.
    #[must_use]
    pub fn waiting() -> Self {
        let hurry = Self::default();
        hurry.wait();
        hurry
    }

    /// Signals that a person waits for the end from now on: delays are given up soon.
    pub fn wait(&self) {
        self.waits.cancel();
    }

    /// Signals that a person wants the end now: delays are given up at once.
    pub fn stop(&self) {
        self.stops.cancel();
        self.waits.cancel();
    }

    /// Returns as soon as a person waits for the end.
    pub async fn waited_for(&self) {
        self.waits.cancelled().await;
    }

    /// Returns as soon as a person wants the end at once.
    pub async fn stopped(&self) {
        self.stops.cancelled().await;
    }

    /// Returns whether a person wants the end at once.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stops.is_cancelled()
    }

    /// Returns whether a person waits for the end.
    #[must_use]
    pub fn is_waited_for(&self) -> bool {
        self.waits.is_cancelled()
    }
}
