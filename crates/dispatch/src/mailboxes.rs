//! Mailboxes by key, each with a task that reads it. A task is started with the first event of its key.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::mpsc;

/// The mailboxes of running tasks.
pub(super) struct Mailboxes<E>(Mutex<HashMap<String, mpsc::Sender<E>>>);

impl<E> Default for Mailboxes<E> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<E> Mailboxes<E> {
    /// Puts an event into the mailbox of a key; `wake` starts its task if none reads it.
    pub(super) fn post(&self, key: &str, event: E, wake: impl Fn() -> mpsc::Sender<E>) {
        let mut boxes = self.lock();
        let mailbox = boxes.entry(key.to_owned()).or_insert_with(&wake);
        let sent = match mailbox.try_send(event) {
            Err(mpsc::error::TrySendError::Closed(event)) => {
                *mailbox = wake();
                mailbox.try_send(event)
            }
            sent => sent,
        };
        if sent.is_err() {
            // A mailbox has room for everything that the inbox accepts, so this happens only while the daemon shuts
            // down.
            tracing::warn!(key, "leaving event to the next process");
        }
    }

    /// Removes the mailbox of an idle task, unless an event has just arrived. Returns whether it was removed.
    pub(super) fn retire(&self, key: &str, events: &mpsc::Receiver<E>) -> bool {
        let mut boxes = self.lock();
        let empty = events.is_empty();
        if empty {
            boxes.remove(key);
            boxes.shrink_to_fit();
        }
        empty
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, mpsc::Sender<E>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
