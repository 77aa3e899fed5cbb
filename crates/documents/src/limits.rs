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
    /// Maximum total size of an archive's extracted files, in bytes.
    pub expanded: u64,
    /// Maximum compression ratio of an archive above [`DocumentLimits::MIN_BOMB_BYTES`].
    pub ratio: u64,
    /// Maximum nesting depth of elements.
    pub depth: usize,
    /// Maximum number of rows shown per sheet.
    pub rows: usize,
    /// Maximum number of columns read per sheet.
    pub columns: usize,
    /// Maximum length of the Markdown, in bytes. Longer Markdown is cut, with a note.
    pub output: usize,
    /// Maximum duration of a conversion. Only a [`crate::Converter`] with a child process enforces it.
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
