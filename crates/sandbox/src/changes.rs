//! Finds the file changes of a run: compares the workspace and the outputs at the end of the run with their state
//! before its first call that may write.
//!
//! Symlinks are listed but never followed. Deliberately absent: uploads, which belong to users, and changes within the
//! operator's mounts.

mod compare;
mod records;
mod scan;
#[cfg(test)]
mod tests;

pub use records::ChangeRecords;

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Maximum number of listed files. The summary counts all scanned files.
pub const MAX_LISTED_FILES: usize = 200;
/// Maximum number of scanned files.
pub const MAX_SCANNED_FILES: usize = 2000;
/// Maximum size of a file that gets a hash and a diff, in bytes.
pub const MAX_COMPARED_BYTES: u64 = 256 << 10;
/// Maximum total size of a run's diffs, in bytes.
pub const MAX_DIFF_BYTES: usize = 1 << 20;

/// Changes to files by a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceChanges {
    /// Numbers of changed files and lines.
    pub summary: ChangeSummary,
    /// Changed files in order of their paths, at most [`MAX_LISTED_FILES`].
    pub files: Vec<FileChange>,
}

/// Numbers of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeSummary {
    /// Number of new files.
    pub created: u64,
    /// Number of files with new contents.
    pub modified: u64,
    /// Number of deleted files.
    pub deleted: u64,
    /// Number of new symlinks.
    pub symlink_created: u64,
    /// Number of lines added in all files.
    pub additions: u64,
    /// Number of lines removed in all files.
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
    /// The file has new contents.
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
    /// The run's diffs or texts exceed the limit.
    Truncated,
    /// The file is or was a symlink.
    Symlink,
}

/// Change to one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Path of the file as the agent sees it.
    pub path: PathBuf,
    /// Folder of the thread that contains the file: `workspace` or `outputs`.
    pub root: String,
    /// Kind of the change.
    pub status: ChangeStatus,
    /// Whether the file is binary or was before.
    pub binary: bool,
    /// Whether the file's name suggests a secret.
    pub sensitive: bool,
    /// Whether the file is or was a symlink.
    pub symlink: bool,
    /// Target of the symlink before the run.
    #[serde(default)]
    pub symlink_target_before: Option<String>,
    /// Target of the symlink after the run.
    #[serde(default)]
    pub symlink_target_after: Option<String>,
    /// Size before the run, in bytes.
    pub size_before: Option<u64>,
    /// Size after the run, in bytes.
    pub size_after: Option<u64>,
    /// SHA-256 before the run.
    pub sha256_before: Option<String>,
    /// SHA-256 after the run.
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
