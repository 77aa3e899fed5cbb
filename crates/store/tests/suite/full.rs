//! A disk that fills up and is freed again: writes wait, reads continue, and nothing is lost or duplicated.

use crate::fixture::{Place, accept, event};
use futures_util::future::join_all;
use pudu_store::{InsertedEvent, NewInboxItem, StoreError};
use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Output},
    time::Duration,
};
use tempfile::TempDir;

/// Mounts a small disk on the folder and runs [`child`] there.
const SCRIPT: &str = "mount -t tmpfs -o size=16m tmpfs \"$PUDU_STORE_DISK\" || exit 77
    exec \"$0\" --exact full::child --nocapture";
/// The exit code of the script if it cannot mount a disk.
const NO_MOUNT: i32 = 77;

fn on_a_small_disk(folder: &Path) -> Output {
    let mut child = Command::new("unshare");
    child.args(["--user", "--map-root-user", "--mount", "sh", "-c", SCRIPT]);
    child.arg(std::env::current_exe().unwrap()).env("PUDU_STORE_DISK", folder);
    child.output().unwrap()
}

#[test]
fn writes_wait_while_the_disk_is_full() {
    let folder = TempDir::new().unwrap();
    let Output { status, stdout, stderr } = on_a_small_disk(folder.path());
    let output = [stdout, stderr].map(|output| String::from_utf8_lossy(&output).into_owned()).concat();
    if status.code() == Some(NO_MOUNT) || output.contains("unshare") {
        let required = std::env::var("PUDU_REQUIRE_SERVERS").is_ok_and(|value| value == "1");
        assert!(!required, "cannot mount a disk: {output}");
        println!("SKIPPED: no disk can be mounted: {output}");
        return;
    }
    assert!(status.success() && output.contains("1 passed"), "{output}");
}

/// Fills the remaining space.
fn fill(path: &Path) {
    let mut ballast = fs::File::create(path).unwrap();
    for size in [64 * 1024, 1024, 1] {
        while ballast.write_all(&vec![1; size]).is_ok() {}
    }
}

/// The child process of [`on_a_small_disk`]; otherwise does nothing.
#[tokio::test]
async fn child() {
    let Ok(disk) = std::env::var("PUDU_STORE_DISK") else { return };
    let (disk, ballast) = (Path::new(&disk), Path::new(&disk).join("ballast"));
    let db = Place::file(&disk.join("pudu.db")).open().await;
    accept(&db, "before").await;
    for round in 0..2 {
        fill(&ballast);
        let large =
            |n: u32| NewInboxItem { payload: "x".repeat(16 * 1024), ..event(&format!("{round} {n}")) };
        let events: Vec<NewInboxItem> = (0..60).map(large).collect();
        let frees = async {
            let hasty = db.within(Duration::from_millis(500));
            let refused = loop {
                match hasty.accept(&large(99)).await {
                    Ok(_) => {}
                    refused => break refused,
                }
            };
            assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
            for _ in 0..8 {
                // Including reads that have to open another connection.
                let reads = (0..4).map(|_| hasty.pending());
                assert!(join_all(reads).await.iter().all(Result::is_ok));
            }
            hasty.ping().await.unwrap();
            fs::remove_file(&ballast).unwrap();
        };
        let (kept, ()) = tokio::join!(join_all(events.iter().map(|event| db.accept(event))), frees);
        assert!(kept.iter().all(|kept| matches!(kept, Ok(InsertedEvent::New(_)))), "{kept:?}");
        for event in events.iter().chain([&large(99)]) {
            assert_eq!(db.accept(event).await, Ok(InsertedEvent::Duplicate));
        }
        let ids: Vec<_> = db.pending().await.unwrap().into_iter().map(|item| item.id).collect();
        assert_eq!(ids.len(), 62);
        db.finish(&ids[1..], crate::fixture::NOW).await.unwrap();
        assert_eq!(db.pending_count().await.unwrap(), 1);
    }
    db.close().await;
}
