//! Limits on the contents of a document.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Limits on the contents of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DocumentLimits {
    /// Maximum size of a document, in bytes.
    pub input: u64,
    /// Maximum number of files in an archive.
    pub entries: usize,
    /// Maximum total size of an archive's files, extracted, in bytes.
    pub expanded: u64,
    /// Maximum compression ratio of an archive above [`DocumentLimits::MIN_BOMB_BYTES`].
    pub ratio: u64,
    /// Maximum nesting depth of elements.
    pub depth: usize,
    /// Maximum number of displayed rows of a sheet.
    pub rows: usize,
    /// Maximum number of columns of a sheet that are read.
    pub columns: usize,
    /// Maximum length of the Markdown, in bytes; the rest is cut, with a note.
    pub output: usize,
    /// Maximum duration. Enforced by a [`crate::Converter`] with a child process.
    pub time: Duration,
    /// Maximum address space, in bytes. Enforced like `time`.
    pub memory: u64,
}

impl DocumentLimits {
    /// Minimum extracted size of an archive that can count as a bomb, in bytes.
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
