//! Stored data of chats, as an operator sees, prunes and limits it.

use crate::house::{House, Talker};
use pudu_sim::model::Reply;
use serde_json::{Value, json};
use sqlx::{AnyConnection, Connection};
use std::path::PathBuf;

/// A house whose agent may write files.
async fn furnished(telegram: &str, retention: &str) -> House {
    let rest = format!("approvals: {{dangerous: allow}}\nsandbox: {{allow_host_bash: true}}\n{retention}");
    let mut house = House::furnish(Default::default(), telegram, &rest).await;
    house.start();
    house
}

/// Makes the agent write a file of this size, and returns the thread's folder.
async fn write(house: &House, talker: &Talker, name: &str, bytes: usize) -> PathBuf {
    let path = format!("/mnt/user-data/workspace/{name}");
    house.model.next(Reply::tool("write_file", &json!({"path": path, "content": "x".repeat(bytes)})));
    talker.says(name, &format!("echo: {name}")).await;
    let mut folders = folders(house);
    folders.retain(|folder| folder.join("user-data/workspace").join(name).exists());
    folders.remove(0)
}

fn folders(house: &House) -> Vec<PathBuf> {
    house.threads()
}

fn id(folder: &std::path::Path) -> String {
    folder.file_name().unwrap().to_str().unwrap().to_owned()
}

fn usage(house: &House) -> Value {
    let (well, told) = house.pudu(&["storage", "show", "--json"]);
    assert!(well, "{told}");
    serde_json::from_str(&told).unwrap()
}

/// Makes a thread older while no daemon is running.
async fn age(house: &House, thread: &str, days: i64) {
    sqlx::any::install_default_drivers();
    let url = format!("sqlite://{}", house.path(".pudu/data/pudu.db").display());
    let mut store = AnyConnection::connect(&url).await.unwrap();
    let update =
        sqlx::query("UPDATE threads SET updated = updated - $1, measured = measured - $1 WHERE id = $2");
    let done = update.bind(days * 24 * 3600 * 1000).bind(thread).execute(&mut store).await.unwrap();
    assert_eq!(done.rows_affected(), 1);
}

#[tokio::test]
async fn a_thread_that_nobody_uses_goes_with_its_files_and_its_chat_starts_anew() {
    let retention = "retention: {threads_max_age_days: 30, audit_max_age_days: 0}\n";
    let mut house = furnished("retention: {threads_max_age_days: 7}\n", retention).await;
    let (ada, bob) = (Talker::new(&house, "Ada"), Talker::new(&house, "Bob"));
    let old = write(&house, &ada, "old.txt", 50_000).await;
    let young = write(&house, &bob, "young.txt", 10).await;
    let of = |told: &Value| {
        let accounts = told["accounts"].as_array().unwrap();
        accounts.iter().find(|account| account["account"] == "telegram").cloned().unwrap()
    };
    let told = of(&usage(&house));
    assert_eq!((told["threads"].as_u64(), told["audit_rows"].as_u64()), (Some(2), Some(2)), "{told}");
    assert!(told["file_bytes"].as_u64().unwrap() >= 50_010, "{told}");
    assert!(told["log_bytes"].as_u64().unwrap() > 50_000, "the log has what was written: {told}");
    assert_eq!(told["due"]["threads"], 0, "{told}");
    assert_eq!(told["retention"]["threads_max_age_days"], 7, "the account's own: {told}");
    assert_eq!(told["retention"]["files_max_bytes"], 0, "no limit: {told}");
    assert_eq!(usage(&house)["retention"]["threads_max_age_days"], 30);

    house.stop().await;
    age(&house, &id(&old), 8).await;
    age(&house, &id(&young), 6).await;
    let (_, shown) = house.pudu(&["storage", "show"]);
    let line = shown.lines().find(|line| line.starts_with("telegram")).unwrap();
    assert!(line.contains("1 thread (") && line.contains("KiB"), "{shown}");
    assert!(line.contains("  threads 7 days  "), "{shown}");
    house.start();
    house.logs("deleted data beyond the limits of `retention`").await;
    assert_eq!(folders(&house), [young], "{old:?} is gone with all that was in it");
    let told = of(&usage(&house));
    assert_eq!((told["threads"].as_u64(), told["audit_rows"].as_u64()), (Some(1), Some(2)), "{told}");

    let before = house.model.requests().len();
    ada.says("hello again", "echo: hello again").await;
    let messages = house.model.requests()[before].messages().to_vec();
    assert_eq!(messages.len(), 2, "nothing is remembered but the prompt and the question: {messages:?}");
    ada.says("and again", "echo: and again").await;
    bob.says("still here", "echo: still here").await;
    let messages = house.model.requests().last().unwrap().messages().to_vec();
    assert!(messages.iter().any(|message| message["content"] == "young.txt"), "{messages:?}");
}

#[tokio::test]
async fn too_many_bytes_take_the_files_of_the_threads_that_were_unused_for_longest() {
    let mut house = furnished("", "").await;
    let (ada, bob) = (Talker::new(&house, "Ada"), Talker::new(&house, "Bob"));
    let first = write(&house, &ada, "first.txt", 200_000).await;
    let second = write(&house, &bob, "second.txt", 100_000).await;
    // Recently used files stay. The text of each file is also stored in the changes of its run.
    house.configure("", "retention: {files_max_bytes: 300000}\n");
    assert_eq!(house.pudu(&["storage", "prune"]), (true, "Deleted nothing.\n".to_owned()));
    house.stop().await;
    for folder in [&first, &second] {
        age(&house, &id(folder), 1).await;
    }
    let (well, told) = house.pudu(&["storage", "prune"]);
    assert!(
        well && told.starts_with("Deleted the files of 1 thread (4") && told.ends_with("KiB).\n"),
        "{told}"
    );
    let written =
        |folder: &std::path::Path, name: &str| folder.join("user-data/workspace").join(name).exists();
    assert!(!written(&first, "first.txt") && written(&second, "second.txt"));
    house.start();
    ada.says("what was it?", "echo: what was it?").await;
    let messages = house.model.requests().last().unwrap().messages().to_vec();
    assert!(messages.iter().any(|message| message["content"] == "first.txt"), "the words stay: {messages:?}");
}

#[tokio::test]
async fn a_thread_is_deleted_on_demand_but_not_while_it_works() {
    let mut house = furnished("", "").await;
    let ada = Talker::new(&house, "Ada");
    let folder = write(&house, &ada, "plan.txt", 10).await;
    let thread = id(&folder);
    let delete = |house: &House| house.pudu(&["storage", "delete", &thread]);

    house.model.next(Reply::tool("bash", &json!({"command": "sleep 600"})));
    ada.say("work");
    let deadline = std::time::Instant::now() + crate::house::SOON;
    while !house.pudu(&["audit"]).1.contains("not ended") {
        assert!(std::time::Instant::now() < deadline);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(!delete(&house).0 && folder.exists(), "a run is at work in it");
    ada.says("/stop", "Stopped.").await;
    let deadline = std::time::Instant::now() + crate::house::SOON;
    while !delete(&house).0 {
        assert!(std::time::Instant::now() < deadline, "{}", house.log());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(folders(&house), [] as [PathBuf; 0]);
    assert!(!delete(&house).0, "there is none any more");
    let before = house.model.requests().len();
    ada.says("hello", "echo: hello").await;
    assert_eq!(house.model.requests()[before].messages().len(), 2);
    assert_eq!(folders(&house), [] as [PathBuf; 0], "a thread of words has no folder");

    house.stop().await;
    assert!(!house.pudu(&["storage", "delete", "nosuch"]).0);
    let told = usage(&house);
    assert_eq!(told["accounts"][0]["threads"], 1, "{told}");
    for wrong in ["", "../threads", "a\n"] {
        let (well, told) = house.pudu(&["storage", "delete", wrong]);
        assert!(!well && told.contains("a thread id must have 1 to 64"), "{wrong:?}: {told}");
    }
    house.set("PUDU_CRASH_AT", "thread.files.before");
    house.start();
    let thread = told_thread(&house).await;
    house.pudu(&["storage", "delete", &thread]);
    house
        .ended(crate::house::SOON)
        .await
        .expect("the daemon dies before it has noted that the files are gone");
    house.set("PUDU_CRASH_AT", "");
    house.start();
    ada.says("once more", "echo: once more").await;
    assert_eq!(usage(&house)["accounts"][0]["threads"], 1);
}

/// Returns the only thread in the store.
async fn told_thread(house: &House) -> String {
    let threads = house.database().await.threads("telegram").await.unwrap();
    threads[0].id.to_string()
}

#[tokio::test]
async fn an_account_that_is_off_and_a_chat_with_a_choice_keep_their_own_limits() {
    let mut house =
        furnished("retention: {threads_max_age_days: 0}\n", "retention: {threads_max_age_days: 1}\n").await;
    let ada = Talker::new(&house, "Ada");
    ada.says("/mode steer", "Mode steer: a new message reaches me while I work.").await;
    ada.says("one", "echo: one").await;
    let first = told_thread(&house).await;
    assert!(house.pudu(&["storage", "delete", &first]).0);
    ada.says("two", "echo: two").await;
    let second = told_thread(&house).await;
    assert_ne!(first, second);
    house.stop().await;
    age(&house, &second, 10).await;
    let text = std::fs::read_to_string(house.path("config.yaml")).unwrap();
    std::fs::write(house.path("config.yaml"), text.replace("enabled: true", "enabled: false")).unwrap();
    let (_, told) = house.pudu(&["storage", "show"]);
    assert!(told.lines().any(|line| line.starts_with("telegram  1 ") && line.ends_with("nothing")), "{told}");
    assert_eq!(house.pudu(&["storage", "prune"]), (true, "Deleted nothing.\n".to_owned()));
}
