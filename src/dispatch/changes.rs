//! Changes of files by a turn, for people at a terminal.

use super::shared::Shared;
use pudu_client::{
    base::{RunId, ThreadId},
    net::scrub,
    sandbox::{ChangeStatus, FileChange},
};

/// Maximum length of the diffs of a turn, in bytes.
const MAX_BYTES: usize = 32 * 1024;
/// Folder of the thread, which people need not read in front of each file.
const ROOT: &str = "/mnt/user-data/";

/// Returns the changes of a run as unified diffs; nothing where none are recorded.
pub(super) async fn diff(shared: &Shared, thread: &ThreadId, run: &RunId) -> String {
    let recorded = async {
        let Some(records) = shared.client.change_records(thread).await? else { return Ok(None) };
        records.of(run).await
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
        let whole = one(file);
        if text.len() + whole.len() > MAX_BYTES {
            text.push_str("…\n");
            break;
        }
        text.push_str(&whole);
    }
    scrub::hide_in_talk(&text).into_owned()
}

/// Writes the change of a file: its name and counts, and the hunks of its diff.
fn one(file: &FileChange) -> String {
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
    let hunks = file.diff.as_deref().unwrap_or_default();
    // The names above the first hunk are in the line before.
    let hunks = hunks.find("@@").and_then(|at| hunks.get(at..)).unwrap_or_default();
    let end = if hunks.is_empty() || hunks.ends_with('\n') { "" } else { "\n" };
    format!("{status} {}{counts}\n{hunks}{end}", path.strip_prefix(ROOT).unwrap_or(&path))
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
    fn each_file_has_its_name_its_counts_and_its_hunks() {
        let files = [
            change("outputs/a.md", Some("--- a/a.md\n+++ b/a.md\n@@ -1 +1 @@\n-old\n+new\n")),
            change("outputs/b.png", None),
        ];
        assert_eq!(written(&files), "M outputs/a.md +1 -1\n@@ -1 +1 @@\n-old\n+new\nM outputs/b.png\n");
    }

    #[test]
    fn what_is_too_much_is_left_out() {
        let long = format!("@@ -1 +1 @@\n+{}\n", "x".repeat(20_000));
        let files = [change("a", Some(&long)), change("b", Some(&long))];
        let text = written(&files);
        assert!(text.len() < MAX_BYTES && text.ends_with("\n…\n"), "{}", text.len());
    }
}
