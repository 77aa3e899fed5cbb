//! Files changed by a turn, shown at a terminal.

use super::shared::Shared;
use pudu_base::{RunId, ThreadId};
use pudu_net::scrub;
use pudu_sandbox::{ChangeStatus, FileChange};

/// Maximum length of the text, in bytes. Hunks that exceed it are omitted.
const MAX_BYTES: usize = 32 * 1024;
/// Folder of the thread, omitted from the shown paths.
const ROOT: &str = "/mnt/user-data/";

/// Returns the changes of a run as unified diffs; empty if none are recorded.
pub(super) async fn diff(shared: &Shared, thread: &ThreadId, run: &RunId) -> String {
    let recorded = async {
        let Some(records) = shared.agent.change_records(thread).await? else { return Ok(None) };
        records.read_changes(run).await
    };
    match recorded.await {
        Ok(changes) => written(&changes.map(|changes| changes.files).unwrap_or_default()),
        Err(error) => {
            tracing::warn!(%run, %error, "failed to read changes of run");
            String::new()
        }
    }
}

fn written(files: &[FileChange]) -> String {
    let mut text = String::new();
    for file in files {
        let (head, hunks) = (head(file), hunks(file));
        let fits = hunks.is_empty() || text.len() + head.len() + hunks.len() <= MAX_BYTES;
        text.push_str(&head);
        text.push_str(if fits { &hunks } else { "…\n" });
    }
    scrub::hide_in_talk(&text).into_owned()
}

/// Writes the name and the counts of a change.
fn head(file: &FileChange) -> String {
    let path = file.path.to_string_lossy();
    let status = match file.status {
        ChangeStatus::Created => "A",
        ChangeStatus::Modified => "M",
        ChangeStatus::Deleted => "D",
        ChangeStatus::SymlinkCreated => "L",
    };
    let counts = match &file.diff {
        Some(_) => format!(" +{} -{}", file.additions, file.deletions),
        None => String::new(),
    };
    format!("{status} {}{counts}\n", path.strip_prefix(ROOT).unwrap_or(&path))
}

/// Writes the hunks of a change.
fn hunks(file: &FileChange) -> String {
    let diff = file.diff.as_deref().unwrap_or_default();
    // The lines above the first hunk only repeat the file's name.
    let hunks = diff.find("@@").and_then(|at| diff.get(at..)).unwrap_or_default();
    let end = if hunks.is_empty() || hunks.ends_with('\n') { "" } else { "\n" };
    format!("{hunks}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, diff: Option<&str>) -> FileChange {
        serde_json::from_value(serde_json::json!({
            "path": format!("{ROOT}{path}"), "root": "outputs", "status": "modified", "binary": false,
            "sensitive": false, "symlink": false, "size_before": 1, "size_after": 1, "sha256_before": null,
            "sha256_after": null, "diff": diff, "diff_truncated": false, "diff_unavailable_reason": null,
            "additions": 1, "deletions": 1,
        }))
        .unwrap()
    }

    #[test]
    fn each_file_has_its_name_counts_and_hunks() {
        let files = [
            change("outputs/a.md", Some("--- a/a.md\n+++ b/a.md\n@@ -1 +1 @@\n-old\n+new\n")),
            change("outputs/b.png", None),
        ];
        assert_eq!(written(&files), "M outputs/a.md +1 -1\n@@ -1 +1 @@\n-old\n+new\nM outputs/b.png\n");
    }

    #[test]
    fn hunks_above_the_limit_are_omitted_but_the_name_stays() {
        let long = format!("@@ -1 +1 @@\n+{}\n", "x".repeat(MAX_BYTES));
        let files = [change("a", Some(&long)), change("b", Some("@@ -1 +1 @@\n-old\n+new\n"))];
        assert_eq!(written(&files), "M a +1 -1\n…\nM b +1 -1\n@@ -1 +1 @@\n-old\n+new\n");
    }
}
