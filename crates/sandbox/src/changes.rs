//! Changes of a thread's files by one run: compares the workspace and the outputs before its first call that may write
//! with those at its end.
//!
//! Symlinks are listed and never followed. Deliberately absent: uploads, which belong to users, and changes of a
//! command in the operator's mounts.

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
    /// Number of files and lines.
    pub summary: ChangeSummary,
    /// Files, by path, at most [`MAX_LISTED_FILES`].
    pub files: Vec<FileChange>,
}

/// Number of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeSummary {
    /// New files.
    pub created: u64,
    /// Files with other contents.
    pub modified: u64,
    /// Deleted files.
    pub deleted: u64,
    /// New symlinks.
    pub symlink_created: u64,
    /// Added lines.
    pub additions: u64,
    /// Removed lines.
    pub deletions: u64,
    /// Whether some files were not scanned or listed, or a diff was truncated.
    pub truncated: bool,
}

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeStatus {
    /// The file is new.
    Created,
    /// The file has other contents.
    Modified,
    /// The file was deleted.
    Deleted,
    /// The symlink is new.
    SymlinkCreated,
}

/// Reason why a change has no diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoDiff {
    /// The file is not text.
    Binary,
    /// The file is larger than [`MAX_COMPARED_BYTES`].
    Large,
    /// The file's name suggests a secret.
    Sensitive,
    /// The diffs of the run are too large.
    Truncated,
    /// The file is or was a symlink.
    Symlink,
}

/// Change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Path for the agent.
    pub path: PathBuf,
    /// Folder of the thread that contains it: `workspace` or `outputs`.
    pub root: String,
    /// Kind of the change.
    pub status: ChangeStatus,
    /// Whether it is or was not text.
    pub binary: bool,
    /// Whether its name suggests a secret.
    pub sensitive: bool,
    /// Whether it is or was a symlink.
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
    /// Whether the diff is truncated.
    pub diff_truncated: bool,
    /// Reason why there is no diff.
    pub diff_unavailable_reason: Option<NoDiff>,
    /// Number of added lines.
    pub additions: u64,
    /// Number of removed lines.
    pub deletions: u64,
}
