//! Space and time of writes do not grow with the history.

use crate::{
    fixture::{NOW, Place, accept, event, turn},
    log::human_message,
};
use futures_util::future::join_all;
use pudu_base::{Outcome, Seq, ThreadId, ThreadLog};
use pudu_store::{Db, InsertedEvent, NewInboxItem, ShownReply, TurnId};
use std::{fs, path::Path, process::Command};
use tempfile::TempDir;

fn bytes(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).unwrap().map(Result::unwrap);
    files
        .filter(|file| file.path().extension().is_some_and(|e| e == "db"))
        .map(|f| f.metadata().unwrap().len())
        .sum()
}

#[tokio::test]
async fn an_update_takes_little_more_space_than_its_json() {
    let folder = TempDir::new().unwrap();
    let place = Place::file(&folder.path().join("pudu.db"));
    let db = place.open().await;
    accept(&db, "1").await;
    db.close().await;
    let empty = bytes(folder.path());
    let db = place.open().await;
    let thread = ThreadId::fresh();
    let text = "x".repeat(400);
    let mut json = 0;
    for seq in 0..1_000_i64 {
        let update = human_message(ThreadId::fresh().as_str(), &text);
        json += serde_json::to_string(&update).unwrap().len() as u64;
        db.append(&thread, &"run".into(), seq, &[update]).await.unwrap();
    }
    db.close().await;
    let overhead = (bytes(folder.path()) - empty - json) / 1_000;
    println!("{overhead} bytes beyond the JSON for each update");
    assert!(overhead < 300, "{overhead} bytes beyond the JSON for each update");
}

/// Makes all writes of a plain question and its answer, of 1 KB each.
async fn answer_one(db: &Db, thread: &ThreadId, n: Seq) {
    let text = "x".repeat(1_000);
    let id = format!("019a0000-0000-7000-8000-{n:012}");
    let item = NewInboxItem {
        message: Some(n.to_string()),
        payload: format!(r#"{{"text":"{text}","more":"{}"}}"#, "y".repeat(200)),
        ..event(&n.to_string())
    };
    let InsertedEvent::New(item) = db.accept(&item).await.unwrap() else { panic!("{n} must be new") };
    let turn_id = TurnId(id.clone());
    db.open_turn(&turn(&id, &[item])).await.unwrap();
    db.run_started(&id.as_str().into(), thread, "gpt", None, NOW).await.unwrap();
    let at = 2 * n;
    db.append(thread, &"run".into(), at, &[human_message(&id, &text)]).await.unwrap();
    let shown = ShownReply {
        handle: r#"{"messages":[1]}"#.into(),
        conversation: "telegram:-100".into(),
        account: "telegram".into(),
        chat: "-100".into(),
        messages: vec![format!("{}", 1_000_000 + n)],
    };
    db.save_handle(&turn_id, &shown, NOW).await.unwrap();
    db.append(thread, &"run".into(), at + 1, &[human_message(&format!("{id}-a"), &text)]).await.unwrap();
    db.run_ended(&id.as_str().into(), &Outcome::Success, NOW).await.unwrap();
    db.conclude(&turn_id, &format!(r#"{{"text":"{text}"}}"#)).await.unwrap();
    db.delivered(&turn_id, None, false, NOW).await.unwrap();
}

#[tokio::test]
async fn space_grows_linearly_with_turns() {
    let folder = TempDir::new().unwrap();
    let place = Place::file(&folder.path().join("pudu.db"));
    let mut marks = Vec::new();
    let thread = ThreadId::fresh();
    for part in 0..4 {
        let db = place.open().await;
        for n in 0..250 {
            answer_one(&db, &thread, part * 250 + n).await;
        }
        db.close().await;
        marks.push(bytes(folder.path()));
    }
    let per_turn = marks[3] / 1_000;
    println!("bytes after each 250 turns of 2 KB: {marks:?}; {per_turn} for each turn");
    assert!(per_turn < 2_000 + 3_000, "{per_turn} bytes for each turn of 2 KB text");
}

/// Returns how often the threads of this process have waited for each other or for the disk.
fn waits() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path().join("status"));
    let waits = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    tasks.filter_map(|status| fs::read_to_string(status).ok()).map(waits).sum()
}

/// Runs alone in a child process, so that no other test waits in it.
#[tokio::test]
async fn a_write_needs_less_than_one_thread_switch() {
    if std::env::var_os("PUDU_STORE_ALONE").is_none() {
        let test = ["--exact", "size::a_write_needs_less_than_one_thread_switch"];
        let mut alone = Command::new(std::env::current_exe().unwrap());
        let output = alone.args(test).env("PUDU_STORE_ALONE", "1").output().unwrap();
        let output_text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && output_text.contains("1 passed"), "{output_text}");
        return;
    }
    let folder = TempDir::new().unwrap();
    let db = Place::file(&folder.path().join("pudu.db")).open().await;
    accept(&db, "first").await;
    let before = waits();
    let events: Vec<_> = (0..1_000).map(|n| event(&n.to_string())).collect();
    join_all(events.iter().map(|event| db.accept(event))).await;
    let waited = waits().saturating_sub(before);
    assert!(waited < 1_000, "1000 writes took {waited} thread switches");
}
