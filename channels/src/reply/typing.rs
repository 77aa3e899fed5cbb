//! The typing indicator, shown while a reply in progress shows nothing new.

use crate::BoxFuture;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;

/// Delay before the indicator. A faster reply never shows it.
const TYPING_DELAY: Duration = Duration::from_millis(300);

/// Shows the typing indicator until it is dropped.
pub(crate) struct Typing {
    changed: Arc<Notify>,
    _task: AbortOnDropHandle<()>,
}

impl Typing {
    /// Calls `call` to show the indicator, and again after each interval `every`, slightly before the platform removes
    /// it. Best effort: `call` handles its own errors.
    pub(crate) fn start(
        every: Duration,
        call: impl Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        let changed = Arc::new(Notify::new());
        let task = tokio::spawn(types(every, call, Arc::clone(&changed)));
        Self { changed, _task: AbortOnDropHandle::new(task) }
    }

    /// Restarts the interval, because new text also shows activity.
    pub(super) fn changed(&self) {
        self.changed.notify_one();
    }
}

async fn types(
    every: Duration,
    call: impl Fn() -> BoxFuture<'static, ()> + Send + Sync,
    changed: Arc<Notify>,
) {
    sleep(TYPING_DELAY).await;
    loop {
        call().await;
        while timeout(every, changed.notified()).await.is_ok() {}
    }
}
