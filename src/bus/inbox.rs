//! The inbox: durable, deduplicated, bounded.

use crate::clock;
use pudu_channels::{BoxFuture, Inbound, Intake, Kept, Kind, Refusal};
use pudu_client::store::{Accepted, Db, ItemId, NewItem, StoreError};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};
use tokio::sync::mpsc;

/// An event that was kept and waits for its outcome.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// Its number in the inbox.
    pub(crate) id: ItemId,
    /// What happened.
    pub(crate) inbound: Inbound,
    /// When this process got it.
    pub(crate) came: Instant,
}

/// Keeps what comes in and hands it to the dispatcher.
#[derive(Clone)]
pub(crate) struct Inbox {
    db: Db,
    out: mpsc::Sender<Arrival>,
    waiting: Arc<AtomicUsize>,
    limit: usize,
}

impl Inbox {
    /// Makes an inbox in which at most `limit` events wait, and the end from which they are taken.
    pub(crate) fn new(db: Db, limit: usize) -> (Self, mpsc::Receiver<Arrival>) {
        let (out, taken) = mpsc::channel(limit.max(1));
        (Self { db, out, waiting: Arc::default(), limit: limit.max(1) }, taken)
    }

    /// Returns what a process before this one kept and did not finish. Called once, before anything is
    /// accepted.
    pub(crate) async fn recover(&self) -> Result<Vec<(Arrival, Option<String>)>, StoreError> {
        let mut left = Vec::new();
        for item in self.db.pending().await? {
            match serde_json::from_str(&item.payload) {
                Ok(inbound) => {
                    let arrival = Arrival { id: item.id, inbound, came: Instant::now() };
                    left.push((arrival, item.turn.map(|turn| turn.0)));
                }
                Err(error) => {
                    tracing::error!(item = item.id.0, %error, "a kept event cannot be read and is given up");
                    self.db.finish(&[item.id], clock::now()).await?;
                }
            }
        }
        self.waiting.store(left.len(), Ordering::SeqCst);
        Ok(left)
    }

    /// Says that events are done that get no reply of their own.
    pub(crate) async fn finish(&self, ids: &[ItemId]) {
        if let Err(error) = self.db.finish(ids, clock::now()).await {
            tracing::error!(%error, "events could not be marked as done");
        }
        self.release(ids.len());
    }

    /// Makes room: this many events are done.
    pub(crate) fn release(&self, count: usize) {
        let less = |waiting: usize| Some(waiting.saturating_sub(count));
        self.waiting.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).ok();
    }

    /// Returns how many events wait for their outcome.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Returns how many events may wait.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Tells whether no more events are taken.
    pub(crate) fn full(&self) -> bool {
        self.waiting() >= self.limit
    }

    async fn keep(&self, inbound: Inbound) -> Result<Kept, Refusal> {
        // What is said in a group to others is none of our business: not even kept.
        if !inbound.addressed && matches!(inbound.kind, Kind::Message { .. }) {
            return Ok(Kept::New);
        }
        self.reserve()?;
        let kept = self.store(&inbound).await;
        match kept {
            Ok(Accepted::New(id)) => {
                let arrival = Arrival { id, inbound, came: Instant::now() };
                if self.out.send(arrival).await.is_err() {
                    tracing::debug!(item = id.0, "kept for the next start: the dispatcher takes no more");
                }
                Ok(Kept::New)
            }
            Ok(Accepted::Duplicate) => {
                self.release(1);
                Ok(Kept::Duplicate)
            }
            Err(error) => {
                self.release(1);
                Err(error)
            }
        }
    }

    async fn store(&self, inbound: &Inbound) -> Result<Accepted, Refusal> {
        let failed = |error: String| Refusal::Store(error);
        let payload = serde_json::to_string(inbound).map_err(|error| failed(error.to_string()))?;
        let theirs = matches!(inbound.kind, Kind::Message { .. });
        let item = NewItem {
            account: inbound.address.account.clone(),
            event_key: inbound.key.0.clone(),
            chat: inbound.address.chat.clone(),
            message: theirs.then(|| inbound.message.clone()),
            payload,
            at: clock::now(),
        };
        self.db.accept(&item).await.map_err(|error| failed(error.to_string()))
    }

    fn reserve(&self) -> Result<(), Refusal> {
        let more = |waiting: usize| (waiting < self.limit).then_some(waiting + 1);
        match self.waiting.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more) {
            Ok(_) => Ok(()),
            Err(_) => Err(Refusal::Full),
        }
    }
}

impl Intake for Inbox {
    fn accept<'a>(&'a self, inbound: Inbound) -> BoxFuture<'a, Result<Kept, Refusal>> {
        Box::pin(self.keep(inbound))
    }
}
