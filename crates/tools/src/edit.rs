//! Calls run side by side; changes of one file come one after the other, and one knows what the other did.

use pudu_base::ToolCx;
use std::hash::{DefaultHasher, Hash, Hasher};
use tokio::sync::{Mutex, MutexGuard};

/// So many states of a file are remembered: more calls of one reply do not change it.
const MAX_STATES: usize = 32;

/// Files share this many locks; two that meet by chance only wait a little.
static LOCKS: [Mutex<OwnEdits>; 64] = [const { Mutex::const_new(OwnEdits::new()) }; 64];

/// The changes that calls made to the file that was changed last under a lock.
#[derive(Debug)]
struct OwnEdits {
    file: u64,
    /// Digests of the file from change to change.
    states: Vec<String>,
}

impl OwnEdits {
    const fn new() -> Self {
        Self { file: 0, states: Vec::new() }
    }
}

/// A file that nobody else changes meanwhile.
pub(crate) struct EditedFile {
    file: u64,
    own: MutexGuard<'static, OwnEdits>,
}

impl EditedFile {
    /// Returns whether calls made a file of one state what it is now, and nobody else did: calls of one reply know
    /// only what was read before it.
    pub(crate) fn led(&self, from: &str, now: &str) -> bool {
        let OwnEdits { file, states } = &*self.own;
        *file == self.file
            && states.last().is_some_and(|last| last == now)
            && states.iter().any(|state| state == from)
    }

    /// Notes a change.
    pub(crate) fn changed(&mut self, before: &[u8], after: &[u8]) {
        let (before, after) = (digest(before), digest(after));
        let goes_on = self.own.file == self.file && self.own.states.last() == Some(&before);
        if !goes_on || self.own.states.len() >= MAX_STATES {
            *self.own = OwnEdits { file: self.file, states: vec![before] };
        }
        self.own.states.push(after);
    }
}

/// Waits until nobody else changes this file.
// Held while the file is read and written: that is what it is for.
pub(crate) async fn alone(cx: &ToolCx, path: &str) -> EditedFile {
    let mut hasher = DefaultHasher::new();
    (cx.thread.as_str(), plain(path)).hash(&mut hasher);
    let file = hasher.finish();
    let [first, ..] = &LOCKS;
    let own = LOCKS.get(usize::try_from(file % 64).unwrap_or_default()).unwrap_or(first).lock().await;
    EditedFile { file, own }
}

/// Returns the one way to spell a path: what leads upwards is no path of a file here.
pub(crate) fn plain(path: &str) -> String {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.flat_map(|part| ["/", part]).collect()
}

/// Sixteen bytes of SHA-256, in hex.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let mut digest = pudu_base::digest(bytes);
    digest.truncate(32);
    digest
}
