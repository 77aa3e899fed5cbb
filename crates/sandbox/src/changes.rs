//! Changes of a thread's files by one run: the workspace and the outputs as they were before its first call that may
//! write, and as they are at its end.
//!
//! Symlinks are listed and never followed. Deliberately absent: uploads, which are people's, and changes of a command
//! in mounts of the operator's.

mod compare;
mod records;
mod scan;
#[cfg(test)]
mod tests;

pub use records::ChangeRecords;

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Maximum number of listed files; the summary counts all.
pub const MAX_LISTED_FILES: usize = 200;
/// Maximum number of scanned files.
pub const MAX_SCANNED_FILES: usize = 2000;
/// Maximum size of a file with a hash and a diff, in bytes.
pub const MAX_COMPARED_BYTES: u64 = 256 << 10;
/// Maximum size of all diffs of a run, in bytes.
pub const MAX_DIFF_BYTES: usize = 1 << 20;

/// Changes of files by a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceChanges {
    /// How many files and lines.
    pub summary: ChangeSummary,
    /// The files, by path, [`MAX_LISTED_FILES`] at most.
    pub files: Vec<FileChange>,
}

/// How much was changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeSummary {
    /// New files.
    pub created: u64,
    /// Files with other contents.
    pub modified: u64,
    /// Files that are gone.
    pub deleted: u64,
    /// New symlinks.
    pub symlink_created: u64,
    /// Lines that were added.
    pub additions: u64,
    /// Lines that were removed.
    pub deletions: u64,
    /// Whether there were more files than are scanned or listed, or longer diffs than are kept.
    pub truncated: bool,
}

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeStatus {
    /// It is new.
    Created,
    /// It has other contents.
    Modified,
    /// It is gone.
    Deleted,
    /// It is a new symlink.
    SymlinkCreated,
}

/// Why a change has no diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoDiff {
    /// It is no text.
    Binary,
    /// It is larger than [`MAX_COMPARED_BYTES`].
    Large,
    /// Its name marks a secret.
    Sensitive,
    /// There is too much text in all.
    Truncated,
    /// It is a symlink, or was one.
    Symlink,
}

/// Change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Path, as the agent knows it.
    pub path: PathBuf,
    /// Folder of the thread's that it is in: `workspace` or `outputs`.
    pub root: String,
    /// Kind of the change.
    pub status: ChangeStatus,
    /// Whether it is no text, or was none.
    pub binary: bool,
    /// Whether its name marks a secret.
    pub sensitive: bool,
    /// Whether it is a symlink, or was one.
    pub symlink: bool,
    /// Size in bytes before.
    pub size_before: Option<u64>,
    /// Size in bytes after.
    pub size_after: Option<u64>,
    /// SHA-256 before.
    pub sha256_before: Option<String>,
    /// SHA-256 after.
    pub sha256_after: Option<String>,
    /// The change as a unified diff.
    pub diff: Option<String>,
    /// Whether the end of the diff is cut off.
    pub diff_truncated: bool,
    /// Why there is no diff.
    pub diff_unavailable_reason: Option<NoDiff>,
    /// Lines that were added.
    pub additions: u64,
    /// Lines that were removed.
    pub deletions: u64,
}
