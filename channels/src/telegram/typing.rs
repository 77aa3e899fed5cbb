//! "typing…" while a reply is being made and nothing new is to be seen of it.

use super::{api::Call, desk::Desk};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;

/// A reply that is there before this never types.
const GRACE: Duration = Duration::from_millis(300);
/// Telegram shows it for five seconds.
const EVERY: Duration = Duration::from_millis(4500);

/// Types until it is dropped.
pub(super) struct Typing {
    changed: Arc<Notify>,
    _task: AbortOnDropHandle<()>,
}

impl Typing {
    pub(super) fn start(desk: Desk, topic: Option<i64>) -> Self {
        let changed = Arc::new(Notify::new());
        let task = tokio::spawn(types(desk, topic, Arc::clone(&changed)));
        Self { changed, _task: AbortOnDropHandle::new(task) }
    }

    /// Something new was shown: that says as much for a while.
    pub(super) fn changed(&self) {
        self.changed.notify_one();
    }
}

async fn types(mut desk: Desk, topic: Option<i64>, changed: Arc<Notify>) {
    sleep(GRACE).await;
    loop {
        // Best effort: nobody misses it, and the chat's wait is kept in any case.
        if let Err(error) = desk.call(&Call::Typing { topic }).await {
            tracing::debug!(%error, "typing could not be shown");
        }
        while timeout(EVERY, changed.notified()).await.is_ok() {}
    }
}
