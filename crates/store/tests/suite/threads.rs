use crate::{
    audit::entry,
    fixture::{NOW, accept, turn},
    log::human_message,
};
use pudu_base::{Outcome, ThreadFolder, ThreadLog, Update, Usage, UserId};
use pudu_store::{AuditEntry, AuditLimits, AuditSize, Db, Deletion, FileSize, NewTurn, TurnId};

fn bytes(updates: &[Update]) -> i64 {
    updates.iter().map(|update| serde_json::to_string(update).unwrap().len() as i64).sum()
}

pub(crate) async fn the_size_of_a_thread_is_that_of_its_log_and_files(db: Db) {
    db.bind("key", "telegram", "-100", &"a".into(), NOW).await.unwrap();
    let rows = [human_message("1", "grüße"), human_message("2", "two"), human_message("3", "three")];
    db.append(&"a".into(), &"run".into(), 0, &rows[..1]).await.unwrap();
    db.append(&"a".into(), &"run".into(), 1, &rows[1..]).await.unwrap();
    db.thread_used(&"b".into(), "telegram", NOW).await.unwrap();

    let mut unmeasured = db.unmeasured(10).await.unwrap();
    unmeasured.sort();
    assert_eq!(unmeasured.iter().map(|(folder, _)| folder.thread.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let (folder, updated) = unmeasured[0].clone();
    let thread = folder.thread;
    db.measured(vec![FileSize { thread, updated, bytes: 70 }]).await.unwrap();
    assert_eq!(db.unmeasured(10).await.unwrap(), unmeasured[1..]);

    let mut threads = db.threads("telegram").await.unwrap();
    threads.sort_by(|a, b| a.id.cmp(&b.id));
    let sizes: Vec<_> = threads.iter().map(|row| (row.id.as_str(), row.log_bytes, row.file_bytes)).collect();
    assert_eq!(sizes, [("a", bytes(&rows), 70), ("b", 0, 0)]);
    assert_eq!(db.accounts().await.unwrap(), ["telegram"]);
    // The owner is already stored.
    db.thread_used(&"a".into(), "slack", NOW).await.unwrap();
    assert_eq!(db.threads("slack").await.unwrap(), []);
}

pub(crate) async fn a_deleted_thread_leaves_nothing_but_its_audit(db: Db) {
    for key in ["plain", "chosen"] {
        db.bind(key, "telegram", "-100", &"thread".into(), NOW).await.unwrap();
    }
    db.set_model("chosen", Some("gpt")).await.unwrap();
    let rows = vec![human_message("1", &"long ".repeat(20_000)); 4];
    db.append(&"thread".into(), &"run".into(), 0, &rows).await.unwrap();
    db.load(&"thread".into()).await.unwrap();
    db.run_started(&"run".into(), &"thread".into(), "gpt", None, NOW).await.unwrap();
    db.run_ended(&"run".into(), &Outcome::Success, NOW).await.unwrap();
    db.ask(&crate::approvals::question("1", "call")).await.unwrap();
    db.begin_audit_entry(entry("ls")).await.unwrap();

    let id = "thread".into();
    assert_eq!(db.delete_thread(&id, i64::MAX, &"next".into()).await.unwrap(), Deletion::Done);
    assert_eq!(db.load(&id).await.unwrap(), (0, pudu_base::ThreadState::default()));
    assert_eq!(db.usage(&id).await.unwrap(), (Usage::default(), 0));
    assert_eq!(db.approval("1").await.unwrap(), None);
    assert_eq!(db.audit_entries(None, 10).await.unwrap().len(), 1);
    assert_eq!(db.conversation("plain").await.unwrap(), None);
    let chosen = db.conversation("chosen").await.unwrap().unwrap();
    assert_eq!((chosen.thread.as_str(), chosen.model.as_deref()), ("next", Some("gpt")));

    assert_eq!(db.delete_thread(&id, i64::MAX, &"next".into()).await.unwrap(), Deletion::Unknown);
    assert_eq!(db.files_to_remove().await.unwrap(), [ThreadFolder::from("thread")]);
    db.files_removed(&id).await.unwrap();
    assert_eq!(db.files_to_remove().await.unwrap(), []);
    // A new thread with the same name keeps its files.
    assert!(
        db.append(&id, &"run".into(), 4, &rows).await.is_err(),
        "a run that outlived its thread has none"
    );
    db.append(&id, &"run".into(), 0, &rows[..1]).await.unwrap();
    db.delete_thread(&id, i64::MAX, &"next".into()).await.unwrap();
    db.append(&id, &"run".into(), 0, &rows[..1]).await.unwrap();
    assert_eq!(db.files_to_remove().await.unwrap(), []);
}

pub(crate) async fn a_thread_in_use_is_not_deleted(db: Db) {
    let id = "thread".into();
    let folder = ThreadFolder { owner: UserId::from_raw("ada").unwrap(), thread: "thread".into() };
    db.bind("key", "telegram", "-100", &folder, NOW).await.unwrap();
    // The location of its files is kept.
    db.thread_used(&"thread".into(), "telegram", NOW).await.unwrap();
    assert_eq!(db.owner(&id).await.unwrap(), Some(folder.owner.clone()));
    let item = accept(&db, "1").await;
    let elsewhere =
        NewTurn { folder: Some("other".into()), conversation: "key".into(), ..turn("late", &[item]) };
    assert!(db.open_turn(&elsewhere).await.is_err(), "the conversation uses another thread");
    db.open_turn(&NewTurn {
        folder: Some(folder.clone()),
        conversation: "key".into(),
        ..turn("turn", &[item])
    })
    .await
    .unwrap();
    let delete = async |since| db.delete_thread(&id, since, &"next".into()).await.unwrap();
    assert_eq!((delete(NOW).await, db.is_unused(&id, NOW).await.unwrap()), (Deletion::InUse, false));
    db.delivered(&TurnId("turn".into()), None, false, NOW).await.unwrap();
    assert_eq!((delete(NOW - 1).await, db.is_unused(&id, NOW - 1).await.unwrap()), (Deletion::InUse, false));
    assert!(db.is_unused(&id, NOW).await.unwrap());
    assert_eq!(delete(NOW).await, Deletion::Done);
    assert_eq!(db.files_to_remove().await.unwrap(), [folder]);
}

pub(crate) async fn audit_retention_is_set_by_account(db: Db) {
    for n in 0..1_210 {
        let account = if n % 2 == 0 { "telegram" } else { "slack" };
        db.begin_audit_entry(AuditEntry { at: NOW + n, account: account.into(), ..entry("ls") })
            .await
            .unwrap();
    }
    db.ask(&crate::approvals::question("1", "call")).await.unwrap();
    let limits = AuditLimits { since: Some(NOW + 1_180), rows: Some(20) };
    let size = async |account: &str, limits| db.audit_size(account, limits).await.unwrap();
    assert_eq!(size("telegram", limits).await, AuditSize { rows: 605, due: 590 });
    assert_eq!(db.prune_audit("telegram", AuditLimits::default()).await.unwrap(), 0);
    // The approval is from the same time as the first row.
    assert_eq!(db.prune_audit("telegram", limits).await.unwrap(), 591);
    assert_eq!(size("telegram", limits).await, AuditSize { rows: 15, due: 0 });
    assert_eq!(db.prune_audit("slack", AuditLimits { since: None, rows: Some(20) }).await.unwrap(), 585);
    let left = db.audit_entries(None, 1000).await.unwrap();
    assert_eq!((left.len(), left.last().unwrap().at), (35, NOW + 1_171));
}
