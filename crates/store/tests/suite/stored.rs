//! Snapshots of stored data, whose changes need a migration.

use crate::{
    fixture::{NOW, Place},
    log::{artifact, human_message},
};
use pudu_base::{FailureCause, FailureClass, Outcome, RunFailure, ThreadId, ThreadLog, Update};
use sqlx::{AnyConnection, AssertSqlSafe, Connection};
use tempfile::TempDir;

async fn column(connection: &mut AnyConnection, sql: &str) -> Vec<String> {
    sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_all(connection).await.unwrap()
}

#[tokio::test]
async fn stored_json_is_unchanged() {
    let folder = TempDir::new().unwrap();
    let place = Place::file(&folder.path().join("pudu.db"));
    let db = place.open().await;
    let thread = ThreadId::from("thread");
    let updates = [
        human_message("1", "hello"),
        Update::Begin("call".into()),
        artifact("/mnt/user-data/outputs/a.txt"),
        Update::Remove("0".into()),
    ];
    db.append(&thread, &"run".into(), 0, &updates).await.unwrap();
    for (run, outcome) in [
        ("1", Outcome::Success),
        ("2", Outcome::Stopped),
        ("3", Outcome::Timeout),
        ("4", Outcome::Limit),
        (
            "5",
            Outcome::Error(RunFailure {
                class: FailureClass::Quota,
                hint: "Top up the account.".into(),
                cause: Some(FailureCause::NoModel),
            }),
        ),
    ] {
        db.run_started(&run.into(), &thread, "gpt", None, NOW).await.unwrap();
        db.run_ended(&run.into(), &outcome, NOW).await.unwrap();
    }
    let mut behind = place.connect().await;
    let log = column(&mut behind, "SELECT body FROM log ORDER BY seq").await.join("\n");
    insta::assert_snapshot!(log, @r#"
    {"op":"message","value":{"role":"human","id":"1","text":"hello"}}
    {"op":"begin","value":"call"}
    {"op":"artifacts","value":{"run":"run","paths":["/mnt/user-data/outputs/a.txt"]}}
    {"op":"remove","value":"0"}
    "#);
    let outcomes = column(&mut behind, "SELECT outcome FROM runs ORDER BY id").await.join("\n");
    insta::assert_snapshot!(outcomes, @r#"
    {"status":"success"}
    {"status":"stopped"}
    {"status":"timeout"}
    {"status":"limit"}
    {"status":"error","class":"quota","hint":"Top up the account.","cause":"no_model"}
    "#);
    behind.close().await.unwrap();
}

#[tokio::test]
async fn a_stored_snapshot_is_unchanged() {
    let folder = TempDir::new().unwrap();
    let place = Place::file(&folder.path().join("pudu.db"));
    let db = place.open().await;
    let thread = ThreadId::from("thread");
    let long = human_message("1", &"x".repeat(70_000));
    let again = vec![human_message("1", "short"); 5];
    db.append(&thread, &"run".into(), 0, &[long, Update::Begin("call".into()), artifact("/a")])
        .await
        .unwrap();
    db.append(&thread, &"run".into(), 3, &again).await.unwrap();
    db.load(&thread).await.unwrap();
    let mut behind = place.connect().await;
    let sql = "SELECT thread || ' ' || seq || ' ' || body FROM snapshots";
    insta::assert_snapshot!(column(&mut behind, sql).await.join("\n"), @r#"thread 8 {"messages":{"1":{"role":"human","id":"1","text":"short"}},"artifacts":{"/a":"run"},"begun":["call"]}"#);
    behind.close().await.unwrap();
}
