//! "typing…" while a reply is being made and shows nothing new.

use crate::BoxFuture;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;

/// A reply that is there before this never shows a typing indicator.
const TYPING_DELAY: Duration = Duration::from_millis(300);

/// Types until it is dropped.
pub(crate) struct Typing {
    changed: Arc<Notify>,
    _task: AbortOnDropHandle<()>,
}

impl Typing {
    /// Shows the sign by `call`, and again after `every`: a little before the platform takes it away. Best
    /// effort: what `call` meets is its own business.
    pub(crate) fn start(
        every: Duration,
        call: impl Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        let changed = Arc::new(Notify::new());
        let task = tokio::spawn(types(every, call, Arc::clone(&changed)));
        Self { changed, _task: AbortOnDropHandle::new(task) }
    }

    /// Something new was shown: that says as much for a while.
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
