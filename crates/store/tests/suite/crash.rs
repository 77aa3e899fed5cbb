//! Kills the process at each point of each write: acknowledged writes are kept, uncommitted ones
//! are not.

use crate::{
    fixture::{NOW, Place, event, turn},
    log::human_message,
};
use pudu_base::{Outcome, ThreadLog, UserId};
use pudu_store::{
    ApprovalDecision, AuditLimits, Db, FileSize, Identity, ImportNote, InboxItemId, InsertedEvent, JoinCode,
    KEEP_DONE, LearningReader, MemoryMerge, Paired, RecallKind, ShownReply, TurnId, crash,
};
use std::{
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Command, ExitStatus},
};
use tempfile::TempDir;

const KILL: i32 = 9;

/// Runs [`script`] in a child process that is killed at `point`.
fn die_at(point: &str, path: &Path) -> ExitStatus {
    let test = std::env::current_exe().unwrap();
    let mut child = Command::new(test);
    child
        .args(["--exact", "crash::child", "--quiet"])
        .env("PUDU_STORE_CRASH", point)
        .env("PUDU_STORE_FILE", path);
    child.output().unwrap().status
}

/// Makes each kind of write once.
async fn script(db: &Db) {
    let accept = async |key| match db.accept(&event(key)).await.unwrap() {
        InsertedEvent::New(id) => id,
        InsertedEvent::Duplicate => InboxItemId(0),
    };
    let (one, two, three) = (accept("1").await, accept("2").await, accept("3").await);
    let (first, second) = (TurnId("first".into()), TurnId("second".into()));
    db.amend(one, "{}").await.unwrap();
    db.finish(&[three], NOW).await.unwrap();
    db.bind("key", "telegram", "-100", &"thread".into(), NOW).await.unwrap();
    db.set_model("key", Some("gpt")).await.unwrap();
    db.set_mode("key", Some("queue")).await.unwrap();
    db.set_thinking("key", Some("low")).await.unwrap();
    db.set_agent("key", Some("poet")).await.unwrap();
    db.open_turn(&turn("first", &[one])).await.unwrap();
    db.join_turn(&first, &[two], Vec::new()).await.unwrap();
    db.leave_turn(&first, &[two]).await.unwrap();
    db.run_started(&"run".into(), &"thread".into(), "gpt", None, NOW).await.unwrap();
    let updates = ["a", "b", "c"].map(|text| human_message("1", &text.repeat(30_000)));
    db.append(&"thread".into(), &"run".into(), 0, &updates).await.unwrap();
    db.load(&"thread".into()).await.unwrap();
    let shown = ShownReply {
        handle: "{}".into(),
        conversation: "key".into(),
        account: "telegram".into(),
        chat: "-100".into(),
        messages: vec!["9".into()],
    };
    db.save_handle(&first, &shown, NOW).await.unwrap();
    db.run_ended(&"run".into(), &Outcome::Success, NOW).await.unwrap();
    db.replace_title(&"thread".into(), "", "Greetings").await.unwrap();
    crate::budgets::script(db).await;
    crate::schedules::script(db).await;
    db.drop_goal(&first).await.unwrap();
    db.conclude(&first, "said").await.unwrap();
    db.failed(&first, "flooded", NOW).await.unwrap();
    db.choose_below(&first, one, "chosen", NOW).await.unwrap();
    db.delivered(&first, None, false, NOW).await.unwrap();
    db.open_turn(&turn("second", &[])).await.unwrap();
    db.park(&second, "blocked", NOW).await.unwrap();
    db.record("telegram", "-100", &["10".into()], "key", true, NOW).await.unwrap();
    db.offer_code("telegram", "hash", NOW + 1, NOW).await.unwrap();
    let (account, person, name) = ("telegram".into(), "7".into(), "Ada".into());
    db.redeem_code("hash", Paired { account, person, name, at: NOW }).await.unwrap();
    db.unpair("telegram", "7").await.unwrap();
    let learning = crate::learning::learning("run", NOW);
    let reader = LearningReader { name: "reader".into(), until: NOW + 1 };
    db.keep_learning(learning.clone(), 0).await.unwrap();
    db.claim_learning(&learning, &reader, NOW).await.unwrap();
    db.put_off_learning(&learning, &reader).await.unwrap();
    db.release_learnings().await.unwrap();
    db.learnt(&learning, &reader, "1").await.unwrap();
    db.drop_learning(&learning).await.unwrap();
    let merge = MemoryMerge { source: UserId::from_raw("ada").unwrap(), target: UserId::local() };
    db.move_turns(&merge.source, &merge.target).await.unwrap();
    db.memory_merged(&merge).await.unwrap();
    db.forget_turns_before(NOW).await.unwrap();
    db.set_memory_off(&UserId::local(), true).await.unwrap();
    let (account, person, name) = ("telegram".into(), "7".into(), "Ada".into());
    db.identify(Identity { account, person, user: UserId::local(), name, at: NOW }).await.unwrap();
    db.part("telegram", "7").await.unwrap();
    let (hash, account, issuer) = ("join".into(), "telegram".into(), "7".into());
    db.offer_join(JoinCode { hash, account, issuer, offer: "{}".into(), expires: NOW + 1 }).await.unwrap();
    let identity = |account: &str| {
        let (account, person, name) = (account.to_owned(), "7".into(), "Ada".into());
        Identity { account, person, user: UserId::local(), name, at: NOW }
    };
    db.identify(identity("telegram")).await.unwrap();
    db.join("join", identity("slack"), identity("telegram"), None, "").await.unwrap();
    db.ask(&crate::approvals::question("1", "call")).await.unwrap();
    db.decide("1", ApprovalDecision { approved: true, by: None, at: NOW }).await.unwrap();
    let entry = db.begin_audit_entry(crate::audit::entry("ls")).await.unwrap();
    db.end_audit_entry(entry, Some(0), NOW).await.unwrap();
    db.save_position("discord", "5", NOW).await.unwrap();
    crate::buffer::script(db).await;
    db.thread_used(&"thread".into(), "telegram", NOW).await.unwrap();
    db.measured(vec![FileSize { thread: "thread".into(), updated: NOW, bytes: 1 }]).await.unwrap();
    db.delete_thread(&"thread".into(), i64::MAX, &"next".into()).await.unwrap();
    db.files_removed(&"thread".into()).await.unwrap();
    let (ada, turn) = (crate::recall::scope("ada"), crate::recall::turn("ada", "1", "thread", "tea"));
    db.index(&[turn]).await.unwrap();
    db.unindex(&ada, RecallKind::Turn, &["1".into()]).await.unwrap();
    db.forget_thread(&"thread".into()).await.unwrap();
    db.forget_user(&ada.user).await.unwrap();
    let note = crate::imports::thread(0, vec![human_message("1", "moved in")]);
    db.import_thread(note, NOW).await.unwrap();
    db.import_records(crate::imports::records()).await.unwrap();
    let (kind, item, digest) = ("memory".into(), "ada".into(), "d".into());
    let (ada, token) =
        (crate::accounts::account("u", "u@example.org", "user"), crate::accounts::token("1", "u"));
    db.add_account(ada.clone()).await.unwrap();
    db.rehash_password(&ada.user, "hash of u", "hash").await.unwrap();
    db.change_password(crate::accounts::change("u", 0, None)).await.unwrap();
    db.add_api_token(token.clone(), "hash").await.unwrap();
    db.note_api_token_use(&token, NOW).await.unwrap();
    db.revoke_api_token("1", None).await.unwrap();
    db.remove_account(&ada.user).await.unwrap();
    db.provider_login(crate::accounts::provider_login("v", "https://a.example", true)).await.unwrap();
    crate::client_runs::script(db).await;
    crate::adoption::script(db).await;
    db.note_import(ImportNote { kind, item, digest, seq: 0, done: false }, NOW).await.unwrap();
    db.forget_learnings(&crate::person::ada()).await.unwrap();
    db.forget_person(&crate::person::ada(), Vec::new(), Vec::new()).await.unwrap();
    db.prune_audit("telegram", AuditLimits { since: Some(NOW), rows: None }).await.unwrap();
    db.sweep(NOW + KEEP_DONE + 1).await.unwrap();
}

/// The child process of [`die_at`]; otherwise does nothing.
#[tokio::test]
async fn child() {
    let Ok(point) = std::env::var("PUDU_STORE_CRASH") else { return };
    let file = std::env::var("PUDU_STORE_FILE").unwrap();
    crash::arm(&point, 1);
    script(&Place::file(Path::new(&file)).open().await).await;
}

#[tokio::test]
async fn a_kill_at_any_point_of_a_write_leaves_the_file_intact() {
    for point in crash::POINTS {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("pudu.db");
        assert_eq!(die_at(point, &path).signal(), Some(KILL), "no write reached {point}");
        let db = Place::file(&path).open().await;
        let pending = db.pending().await.unwrap_or_else(|error| panic!("after {point}: {error}"));
        let expected = match *point {
            "inbox.accept.before" => 0,
            "inbox.accept.after" => 1,
            _ => continue,
        };
        assert_eq!(pending.len(), expected, "after {point}");
    }
}

#[tokio::test]
async fn a_process_without_a_kill_point_completes() {
    let folder = TempDir::new().unwrap();
    let status = die_at("no such point", &folder.path().join("pudu.db"));
    assert!(status.success(), "{status}");
}
