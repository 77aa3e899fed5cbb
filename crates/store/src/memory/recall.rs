//! Recall: an index for searching memory entries by their words. It does not store memory itself, and can be rebuilt
//! from the facts and the threads.
//!
//! An entry belongs to one user and one agent, and a search sees only their entries: each word is indexed together with
//! its scope's number, so no question can match a word of another scope. The engine's full-text index (FTS5, or a
//! `tsvector` with GIN) finds the entries that contain a word. The order is computed here, by BM25 over the scope's own
//! statistics, so both engines return the same order, and other users' entries do not affect a user's results.
//!
//! Deliberately absent: the choice of hits for a prompt, and the storage of facts.

mod forget;
mod index;
mod rank;
mod search;
mod sql;
mod transfer;
mod words;

pub use index::RecallEntry;
pub use search::{RecallHit, RecallHits, RecallLimits};
pub use words::{recall_words, telling_words};

use pudu_base::{UserId, digest};

/// Maximum length of an entry's text, in characters. Text beyond it is neither stored nor found.
pub const MAX_RECALL_CHARS: usize = 4_000;

/// Maximum length of the id of an entry, thread or agent, in bytes. Longer ids are truncated.
const MAX_KEY_BYTES: usize = 512;

/// The memory to which an entry belongs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecallScope {
    /// The user or room.
    pub user: UserId,
    /// The agent's name, as in DeerFlow's folders.
    pub agent: String,
}

/// The two kinds of entries, which are searched and counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RecallKind {
    /// An extracted fact.
    Fact,
    /// A message of a person or of the agent in a thread.
    Turn,
}

impl RecallKind {
    const ALL: [Self; 2] = [Self::Fact, Self::Turn];

    fn as_str(self) -> &'static str {
        match self {
            Self::Fact => "fact",
            Self::Turn => "turn",
        }
    }
}

/// Returns a text without characters that PostgreSQL cannot store.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Returns an id as it is stored. An id that is too long for an index is truncated, and a digest of the whole is
/// appended.
fn key(id: &str) -> String {
    let id = storable(id);
    if id.len() <= MAX_KEY_BYTES {
        return id;
    }
    let head: String = id.chars().take(MAX_KEY_BYTES / 8).collect();
    format!("{head}-{}", digest(&id))
}
