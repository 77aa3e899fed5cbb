//! How urgently the end of a reply is waited for.

use tokio_util::sync::CancellationToken;

/// Signals to a reply that is being delivered whether somebody waits for its end. A clone is the same one.
#[derive(Clone, Debug, Default)]
pub struct Hurry {
    waits: CancellationToken,
    stops: CancellationToken,
}

impl Hurry {
    /// Somebody waits from the beginning.
    #[must_use]
    pub fn waiting() -> Self {
        let hurry = Self::default();
        hurry.wait();
        hurry
    }

    /// Somebody waits for the end from now on: what holds it up is given up soon.
    pub fn wait(&self) {
        self.waits.cancel();
    }

    /// Somebody wants the end now: what holds it up is given up at once.
    pub fn stop(&self) {
        self.stops.cancel();
        self.waits.cancel();
    }

    /// Returns as soon as somebody waits for the end.
    pub async fn waited_for(&self) {
        self.waits.cancelled().await;
    }

    /// Returns as soon as somebody wants the end at once.
    pub async fn stopped(&self) {
        self.stops.cancelled().await;
    }

    /// Returns whether somebody wants the end at once.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stops.is_cancelled()
    }

    /// Returns whether somebody waits for the end.
    #[must_use]
    pub fn is_waited_for(&self) -> bool {
        self.waits.is_cancelled()
    }
}
