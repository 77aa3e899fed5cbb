//! File changes of a run in its thread, as shown to users.

use super::Client;
use crate::house::House;
use pudu_sim::model::{At, Reply};
use serde_json::{Value, json};
use std::{fs, path::PathBuf};

const ALL: &str = "?include_files=true&include_diff=true";

impl Client<'_> {
    async fn changes(&self, thread: &str, run: &str, query: &str) -> Value {
        self.get(&format!("/threads/{thread}/runs/{run}/workspace-changes{query}")).await
    }

    /// Makes a run call these tools, and returns it at its end.
    async fn does(&self, thread: &str, calls: &[(&str, Value)]) -> String {
        for (tool, arguments) in calls {
            self.0.model.next(Reply::tool(tool, arguments));
        }
        self.0.model.next(Reply::text("done"));
        let run = self.begin(thread, "work", json!({})).await;
        self.until(thread, &run, "success").await;
        run
    }
}

fn write(path: &str, text: &str) -> (&'static str, Value) {
    ("write_file", json!({"path": format!("/mnt/user-data/{path}"), "content": text, "description": "d"}))
}

fn bash(script: &str) -> (&'static str, Value) {
    ("bash", json!({"command": format!("cd /mnt/user-data; {script}"), "description": "d"}))
}

/// The folder of a thread on this machine.
fn folder(house: &House, thread: &str) -> PathBuf {
    house.path(format!(".pudu/users/default/threads/{thread}"))
}

/// Returns the file of this path.
fn file<'c>(changes: &'c Value, path: &str) -> &'c Value {
    let path = format!("/mnt/user-data/{path}");
    let files = changes["files"].as_array().unwrap();
    files.iter().find(|file| file["path"] == path.as_str()).unwrap_or_else(|| panic!("{path}: {changes:#}"))
}

fn summary(numbers: [u64; 6], truncated: bool) -> Value {
    let [created, modified, deleted, symlink_created, additions, deletions] = numbers;
    json!({
        "created": created, "modified": modified, "deleted": deleted, "symlink_created": symlink_created,
        "additions": additions, "deletions": deletions, "truncated": truncated,
    })
}

#[tokio::test]
async fn a_run_tells_which_files_it_changed_though_the_daemon_died_meanwhile() {
    let mut house = House::open("").await;
    let (thread, second) = {
        let client = Client(&house);
        let thread = client.thread().await;
        let first = client
            .does(
                &thread,
                &[
                    write("workspace/notes.txt", "one\ntwo\nthree\n"),
                    write("workspace/old.txt", "gone soon\n"),
                    write("workspace/same.txt", "as it is\n"),
                ],
            )
            .await;
        let changes = client.changes(&thread, &first, ALL).await;
        assert_eq!((&changes["available"], &changes["reason"]), (&json!(true), &Value::Null));
        assert_eq!(changes["summary"], summary([3, 0, 0, 0, 5, 0], false), "{changes:#}");
        // A run without tools scans nothing.
        client.waits(&thread, "hello").await;
        let silent = client.get(&format!("/threads/{thread}/runs?limit=1")).await[0]["run_id"].clone();
        let changes = client.changes(&thread, silent.as_str().unwrap(), ALL).await;
        assert_eq!((&changes["available"], &changes["files"]), (&json!(false), &json!([])));
        assert!(changes["reason"].as_str().unwrap().contains("no tool"), "{changes}");
        assert_eq!(fs::read_dir(folder(&house, &thread).join("changes")).unwrap().count(), 2);

        let script = "sed -i s/two/2/ workspace/notes.txt; rm workspace/old.txt; cp workspace/same.txt s; mv s workspace/same.txt; \
                      echo PASSWORD=quagga > workspace/.env.local; mkdir workspace/secrets; echo okapi > workspace/secrets/a; \
                      head -c 300000 /dev/zero | tr '\\0' a > workspace/giant.txt; printf 'a\\0b' > outputs/picture.bin; \
                      ln -s /etc/passwd outputs/link; ln -s /etc outputs/folder; mkdir workspace/node_modules; \
                      echo x > workspace/node_modules/a.js; mkfifo workspace/pipe; echo '# Report' > outputs/report.md";
        let (tool, arguments) = bash(script);
        let mut hold = house.model.hold(2, At::Start);
        house.model.next(Reply::tool(tool, &arguments));
        let run = client.begin(&thread, "work", json!({})).await;
        hold.reached().await.unwrap();
        let changes = client.changes(&thread, &run, ALL).await;
        assert_eq!(changes["reason"], "the run is still running");
        // After the restart nothing more is written.
        house.model.next(Reply::text("done"));
        (thread, run)
    };
    house.kill();
    house.start();
    let client = Client(&house);
    client.until(&thread, &second, "success").await;
    let changes = client.changes(&thread, &second, ALL).await;
    assert_eq!(changes["summary"], summary([5, 1, 1, 2, 2, 2], false), "{changes:#}");
    let notes = file(&changes, "workspace/notes.txt");
    let diff = "--- a/mnt/user-data/workspace/notes.txt\n+++ b/mnt/user-data/workspace/notes.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
    assert_eq!(
        (&notes["status"], &notes["root"], &notes["diff"]),
        (&json!("modified"), &json!("workspace"), &json!(diff))
    );
    assert_eq!((&notes["size_before"], &notes["size_after"]), (&json!(14), &json!(12)));
    assert_ne!(notes["sha256_before"], notes["sha256_after"]);
    assert_eq!(file(&changes, "workspace/old.txt")["status"], "deleted");
    for (path, reason, hashed) in [
        ("workspace/.env.local", "sensitive", false),
        ("workspace/secrets/a", "sensitive", false),
        ("workspace/giant.txt", "large", false),
        ("outputs/picture.bin", "binary", true),
        ("outputs/link", "symlink", false),
        ("outputs/folder", "symlink", false),
    ] {
        let file = file(&changes, path);
        assert_eq!(
            (&file["diff"], &file["diff_unavailable_reason"]),
            (&Value::Null, &json!(reason)),
            "{file:#}"
        );
        assert_eq!(file["sha256_after"].is_string(), hashed, "{file:#}");
        assert_eq!(file["status"] == "symlink_created", reason == "symlink", "{file:#}");
    }
    assert_eq!(file(&changes, "outputs/report.md")["additions"], 1);
    let told = changes.to_string();
    assert!(!told.contains("root:") && !told.contains("quagga") && !told.contains("node_modules"), "{told}");

    let plain = client.changes(&thread, &second, "?include_files=true&include_diff=false").await;
    assert_eq!(
        (&plain["summary"], &file(&plain, "workspace/notes.txt")["diff"]),
        (&changes["summary"], &Value::Null)
    );
    assert_eq!(client.changes(&thread, &second, "?include_files=yes&include_diff=1").await, changes);
    let (status, wrong) = client
        .call("GET", &format!("/threads/{thread}/runs/{second}/workspace-changes?include_diff=perhaps"), None)
        .await;
    assert_eq!(
        (status, &wrong["detail"]),
        (422, &json!("include_diff: expected true or false, got `perhaps`"))
    );
    let short = client.changes(&thread, &second, "?include_files=No").await;
    assert_eq!((&short["summary"], &short["files"]), (&changes["summary"], &json!([])));
    let events = client
        .get(&format!("/threads/{thread}/runs/{second}/events?event_types=workspace_changes,run.end"))
        .await;
    assert_eq!(events[0]["category"], "workspace");
    assert_eq!(events[0]["content"]["summary"], changes["summary"]);
    assert!(events[0]["seq"].as_i64() < events[1]["seq"].as_i64(), "{events:#}");

    // Records contain no secrets, and are deleted with the run and the thread.
    let own = folder(&house, &thread).join("changes");
    for entry in fs::read_dir(&own).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!text.contains("quagga") && !text.contains("okapi"), "{text}");
    }
    assert_eq!(client.call("DELETE", &format!("/threads/{thread}/runs/{second}"), None).await.0, 204);
    assert!(
        fs::read_dir(&own).unwrap().all(|entry| !entry
            .unwrap()
            .file_name()
            .to_string_lossy()
            .contains(&second))
    );
    assert_eq!(client.call("DELETE", &format!("/threads/{thread}"), None).await.0, 200);
    assert!(!own.exists());
}

#[tokio::test]
async fn many_and_long_changes_are_counted_and_cut() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let script = "cd workspace; for i in $(seq 250); do echo a > f$i; done; for i in 1 2 3 4 5 6; do seq 40000 > 0$i; done";
    let run = client.does(&thread, &[bash(script)]).await;
    let changes = client.changes(&thread, &run, ALL).await;
    assert_eq!(changes["summary"], summary([256, 0, 0, 0, 240_250, 0], true));
    let files = changes["files"].as_array().unwrap();
    assert_eq!((files.len(), &changes["limits"]["max_files"]), (200, &json!(200)));
    let bytes: usize = files.iter().filter_map(|file| Some(file["diff"].as_str()?.len())).sum();
    assert!((900_000..=1 << 20).contains(&bytes), "{bytes}");
    let cut = files.iter().find(|file| file["diff_truncated"] == true).unwrap();
    assert!(cut["diff"].as_str().is_some_and(|diff| diff.ends_with('\n')), "whole lines");
    assert_eq!(files.last().unwrap()["diff_unavailable_reason"], "truncated");

    // More files than can be scanned: those after the limit count as unchanged.
    let run = client.does(&thread, &[bash("cd workspace; seq 3000 | xargs touch; echo b > 02")]).await;
    let changes = client.changes(&thread, &run, ALL).await;
    assert_eq!(
        (&changes["summary"]["truncated"], &changes["summary"]["modified"]),
        (&json!(true), &json!(1))
    );
    assert_eq!(changes["summary"]["deleted"], 0, "{}", changes["summary"]);
    let other = client.thread().await;
    let path = format!("/threads/{other}/runs/{run}/workspace-changes");
    assert_eq!(client.call("GET", &path, None).await.0, 404, "the run of another thread");
}
