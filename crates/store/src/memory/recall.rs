//! Recall: entries of memory, found by their words. This is the table of an index, not the memory itself: it can be
//! filled again from the facts and the threads.
//!
//! An entry belongs to one user and one agent, and a search sees nothing else: each word is indexed together with its
//! scope's number, so that no question, whatever is in it, can name a word of another scope. The engine's full-text index
//! (FTS5, or a `tsvector` with GIN) says which entries have a word; the order is computed here, by BM25 over the scope's
//! own statistics. So both engines give the same order, and other people's entries do not change a user's results.
//!
//! Deliberately absent: which hits are worth telling, and the facts' own storage.

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

/// The longest text of an entry, in characters. The rest is neither kept nor found.
pub const MAX_RECALL_CHARS: usize = 4_000;

/// A longer id of an entry, a thread or an agent is cut.
const MAX_KEY_BYTES: usize = 512;

/// Which memory an entry belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecallScope {
    /// The person, or the room.
    pub user: UserId,
    /// The agent's name, as DeerFlow's folders have it.
    pub agent: String,
}

/// The two kinds of entries, which are searched and counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RecallKind {
    /// A fact that was extracted.
    Fact,
    /// A person's or the agent's words in a thread.
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

/// Returns a text without what PostgreSQL cannot keep.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Returns an id as it is stored: one that is too long for an index is cut and gets a digest of the whole.
fn key(id: &str) -> String {
    let id = storable(id);
    if id.len() <= MAX_KEY_BYTES {
        return id;
    }
    let head: String = id.chars().take(MAX_KEY_BYTES / 8).collect();
    format!("{head}-{}", digest(&id))
}
