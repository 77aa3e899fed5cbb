//! Serializes concurrent changes to the same file, and records which changes were the agent's own.

use pudu_base::ToolCx;
use std::hash::{DefaultHasher, Hash, Hasher};
use tokio::sync::{Mutex, MutexGuard};

/// Maximum number of remembered states of a file. One reply is not expected to make more changes.
const MAX_STATES: usize = 32;

/// Locks shared by all files. Calls for two files that share a lock wait for each other only briefly.
static LOCKS: [Mutex<OwnEdits>; 64] = [const { Mutex::const_new(OwnEdits::new()) }; 64];

/// The agent's changes to the file that was last changed under a lock.
#[derive(Debug)]
struct OwnEdits {
    file: u64,
    /// Digests of the file after each change.
    states: Vec<String>,
}

impl OwnEdits {
    const fn new() -> Self {
        Self { file: 0, states: Vec::new() }
    }
}

/// A file that is locked for changes.
pub(crate) struct EditedFile {
    file: u64,
    own: MutexGuard<'static, OwnEdits>,
}

impl EditedFile {
    /// Returns whether only the agent's own calls led from one state of a file to the current one. All calls of one
    /// reply know only the state that was read before the reply.
    pub(crate) fn led(&self, from: &str, now: &str) -> bool {
        let OwnEdits { file, states } = &*self.own;
        *file == self.file
            && states.last().is_some_and(|last| last == now)
            && states.iter().any(|state| state == from)
    }

    /// Records a change.
    pub(crate) fn changed(&mut self, before: &[u8], after: &[u8]) {
        let (before, after) = (digest(before), digest(after));
        let follows_own_edit = self.own.file == self.file && self.own.states.last() == Some(&before);
        if !follows_own_edit || self.own.states.len() >= MAX_STATES {
            *self.own = OwnEdits { file: self.file, states: vec![before] };
        }
        self.own.states.push(after);
    }
}

/// Locks a file for changes.
// The guard is intentionally held while the file is read and written.
pub(crate) async fn alone(cx: &ToolCx, path: &str) -> EditedFile {
    let mut hasher = DefaultHasher::new();
    (cx.thread.as_str(), plain(path)).hash(&mut hasher);
    let file = hasher.finish();
    let [first, ..] = &LOCKS;
    let own = LOCKS.get(usize::try_from(file % 64).unwrap_or_default()).unwrap_or(first).lock().await;
    EditedFile { file, own }
}

/// Returns the canonical spelling of a path. `..` is kept, because the sandbox has no files at such paths.
pub(crate) fn plain(path: &str) -> String {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.flat_map(|part| ["/", part]).collect()
}

/// Returns sixteen bytes of SHA-256, in hex.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let mut digest = pudu_base::digest(bytes);
    digest.truncate(32);
    digest
}
