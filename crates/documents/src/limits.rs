//! How much of everything there may be in a document.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How much of everything there may be in a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DocumentLimits {
    /// The largest document, in bytes.
    pub input: u64,
    /// How many files an archive may have.
    pub entries: usize,
    /// How large an archive's files may be together, unpacked, in bytes.
    pub expanded: u64,
    /// How many times its own size an archive may unpack to, above [`DocumentLimits::MIN_BOMB_BYTES`].
    pub ratio: u64,
    /// How deep elements may be nested.
    pub depth: usize,
    /// How many rows of a sheet are shown.
    pub rows: usize,
    /// How many columns of a sheet are looked at.
    pub columns: usize,
    /// How long the Markdown may be, in bytes; the rest is cut with a word.
    pub output: usize,
    /// How long it may take. Held by a [`crate::Converter`] that works in a child process.
    pub time: Duration,
    /// How much address space it may take, in bytes. Held like `time`.
    pub memory: u64,
}

impl DocumentLimits {
    /// An archive that unpacks to no more than this is never taken for a bomb, in bytes.
    pub const MIN_BOMB_BYTES: u64 = 16 * 1024 * 1024;
}

impl Default for DocumentLimits {
    fn default() -> Self {
        Self {
            input: 64 * 1024 * 1024,
            entries: 10_000,
            expanded: 256 * 1024 * 1024,
            ratio: 100,
            depth: 256,
            rows: 100_000,
            columns: 1_000,
            output: 4 * 1024 * 1024,
            time: Duration::from_secs(60),
            memory: 1024 * 1024 * 1024,
        }
    }
}
