//! Compares two snapshots.

use super::{
    ChangeStatus, ChangeSummary, FileChange, MAX_DIFF_BYTES, MAX_LISTED_FILES, NoDiff, WorkspaceChanges,
    scan::{FileEntry, FileSnapshot, is_sensitive},
};
use crate::ROOT;
use similar::{ChangeTag, TextDiff};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Number of context lines around a change.
const CONTEXT_LINES: usize = 3;
/// How long diffs are computed exactly. Later diffs may be longer than necessary, because finding the shortest one
/// takes too long for some texts.
const EXACT_DIFF_TIMEOUT: Duration = Duration::from_secs(1);

/// Compares two snapshots.
pub(super) fn compare(before: &FileSnapshot, after: &FileSnapshot) -> WorkspaceChanges {
    // Files beyond the end of either snapshot are unknown.
    let end = [&before.end, &after.end].into_iter().flatten().min();
    let paths: BTreeSet<&PathBuf> = before.files.keys().chain(after.files.keys()).collect();
    let mut comparison = Comparison {
        changes: WorkspaceChanges::default(),
        room: MAX_DIFF_BYTES,
        deadline: Instant::now() + EXACT_DIFF_TIMEOUT,
    };
    // Files in a folder that was unreadable in either snapshot are unknown as well.
    let closed: BTreeSet<&Path> = before.closed.union(&after.closed).map(PathBuf::as_path).collect();
    let is_known = |path: &Path| {
        end.is_none_or(|end| path <= end) && !path.ancestors().any(|above| closed.contains(above))
    };
    comparison.changes.summary.truncated = end.is_some() || !closed.is_empty();
    for path in paths.into_iter().filter(|path| is_known(path)) {
        comparison.file(path, before.files.get(path), after.files.get(path));
    }
    comparison.changes
}

struct Comparison {
    changes: WorkspaceChanges,
    /// Remaining space for diffs, in bytes.
    room: usize,
    deadline: Instant,
}

impl Comparison {
    fn file(&mut self, path: &Path, before: Option<&FileEntry>, after: Option<&FileEntry>) {
        let status = match (before, after) {
            (Some(before), Some(after)) if is_same(before, after) => return,
            (_, Some(after))
                if after.leads_to.is_some() && before.is_none_or(|old| old.leads_to.is_none()) =>
            {
                ChangeStatus::SymlinkCreated
            }
            (None, _) => ChangeStatus::Created,
            (Some(_), Some(_)) => ChangeStatus::Modified,
            (Some(_), None) => ChangeStatus::Deleted,
        };
        let either = |is: fn(&FileEntry) -> bool| before.is_some_and(is) || after.is_some_and(is);
        let root = path.strip_prefix(ROOT).ok().and_then(|below| below.iter().next()).unwrap_or_default();
        let mut change = FileChange {
            path: path.to_owned(),
            root: root.to_string_lossy().into_owned(),
            status,
            binary: either(|entry| entry.binary),
            sensitive: is_sensitive(path),
            symlink: either(|entry| entry.leads_to.is_some()),
            symlink_target_before: before.and_then(|entry| entry.leads_to.clone()),
            symlink_target_after: after.and_then(|entry| entry.leads_to.clone()),
            size_before: before.map(|entry| entry.version.0),
            size_after: after.map(|entry| entry.version.0),
            sha256_before: before.and_then(|entry| entry.sha256.clone()),
            sha256_after: after.and_then(|entry| entry.sha256.clone()),
            diff: None,
            diff_truncated: false,
            diff_unavailable_reason: None,
            additions: 0,
            deletions: 0,
        };
        self.diff(&mut change, before, after);
        self.count(&change);
        if self.changes.files.len() < MAX_LISTED_FILES {
            self.changes.files.push(change);
        } else {
            self.changes.summary.truncated = true;
        }
    }

    /// Adds the diff of the texts or the reason why there is none.
    fn diff(&mut self, change: &mut FileChange, before: Option<&FileEntry>, after: Option<&FileEntry>) {
        let text = |entry: Option<&FileEntry>| entry.map_or(Some(String::new()), |entry| entry.text.clone());
        let unread = |entry: &FileEntry| entry.sha256.is_none();
        let (old, new) = match (text(before), text(after)) {
            _ if change.symlink => return change.diff_unavailable_reason = Some(NoDiff::Symlink),
            _ if change.sensitive => return change.diff_unavailable_reason = Some(NoDiff::Sensitive),
            _ if change.binary => return change.diff_unavailable_reason = Some(NoDiff::Binary),
            (Some(old), Some(new)) => (old, new),
            _ if before.is_some_and(unread) || after.is_some_and(unread) => {
                return change.diff_unavailable_reason = Some(NoDiff::Large);
            }
            _ => {
                self.changes.summary.truncated = true;
                return change.diff_unavailable_reason = Some(NoDiff::Truncated);
            }
        };
        let diff = TextDiff::configure().deadline(self.deadline).diff_lines(&old, &new);
        for line in diff.iter_all_changes() {
            match line.tag() {
                ChangeTag::Insert => change.additions += 1,
                ChangeTag::Delete => change.deletions += 1,
                ChangeTag::Equal => {}
            }
        }
        if self.changes.files.len() >= MAX_LISTED_FILES {
            return;
        }
        let path = change.path.display().to_string();
        let [from, to] = [("a", before), ("b", after)]
            .map(|(side, entry)| entry.map_or("/dev/null".to_owned(), |_| format!("{side}{path}")));
        let mut diff = diff.unified_diff().context_radius(CONTEXT_LINES).header(&from, &to).to_string();
        if diff.len() > self.room {
            diff.truncate(line_end(&diff, self.room));
            (change.diff_truncated, self.changes.summary.truncated) = (true, true);
        }
        self.room -= diff.len();
        if change.diff_truncated && diff.is_empty() {
            change.diff_unavailable_reason = Some(NoDiff::Truncated);
        } else {
            change.diff = Some(diff);
        }
    }

    fn count(&mut self, change: &FileChange) {
        let ChangeSummary { created, modified, deleted, symlink_created, additions, deletions, .. } =
            &mut self.changes.summary;
        let counted = match change.status {
            ChangeStatus::Created => created,
            ChangeStatus::Modified => modified,
            ChangeStatus::Deleted => deleted,
            ChangeStatus::SymlinkCreated => symlink_created,
        };
        *counted += 1;
        *additions += change.additions;
        *deletions += change.deletions;
    }
}

fn is_same(before: &FileEntry, after: &FileEntry) -> bool {
    match (&before.sha256, &after.sha256) {
        (Some(before), Some(after)) => before == after,
        _ if before.leads_to.is_some() => before.leads_to == after.leads_to,
        _ => before.version == after.version && before.leads_to == after.leads_to,
    }
}

/// Returns the end of the last complete line within `bytes` bytes.
fn line_end(text: &str, bytes: usize) -> usize {
    text.as_bytes().iter().take(bytes).rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}
