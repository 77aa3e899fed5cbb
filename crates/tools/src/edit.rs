//! Calls run side by side; changes of one file come one after the other.

use crate::mark::plain;
use pudu_base::ToolCx;
use std::hash::{DefaultHasher, Hash, Hasher};
use tokio::sync::{Mutex, MutexGuard};

/// Files share this many locks; two that meet by chance only wait a little.
static LOCKS: [Mutex<()>; 64] = [const { Mutex::const_new(()) }; 64];

/// Waits until nobody else changes this file.
// Held while the file is read and written: that is what it is for.
pub(crate) async fn alone(cx: &ToolCx, path: &str) -> MutexGuard<'static, ()> {
    let mut hasher = DefaultHasher::new();
    (cx.thread.as_str(), plain(path)).hash(&mut hasher);
    let [first, ..] = &LOCKS;
    LOCKS.get(usize::try_from(hasher.finish() % 64).unwrap_or_default()).unwrap_or(first).lock().await
}
