use crate::fixture::NOW;
use pudu_base::Outcome;
use pudu_store::{ABANDONED, AuditEntry, Db, STOPPED};

pub(crate) fn entry(detail: &str) -> AuditEntry {
    AuditEntry {
        at: NOW,
        thread: "thread".into(),
        run: "run".into(),
        account: "telegram".into(),
        person: "7".into(),
        action: "exec".into(),
        detail: detail.into(),
        verdict: "allowed".into(),
        code: None,
        ended: None,
    }
}

pub(crate) async fn an_action_is_recorded_before_it_ends(db: Db) {
    let first = db.begin_audit_entry(entry("ls")).await.unwrap();
    let elsewhere = AuditEntry { thread: "other".into(), verdict: "blocked".into(), ..entry("rm -rf /") };
    db.begin_audit_entry(elsewhere.clone()).await.unwrap();
    assert_eq!(db.audit_entries(None, 10).await.unwrap(), [elsewhere.clone(), entry("ls")]);
    db.end_audit_entry(first, Some(0), NOW + 5).await.unwrap();
    let ended = AuditEntry { code: Some(0), ended: Some(NOW + 5), ..entry("ls") };
    assert_eq!(db.audit_entries(Some(&"thread".into()), 10).await.unwrap(), [ended]);
    assert_eq!(db.audit_entries(None, 1).await.unwrap(), [elsewhere]);
}

pub(crate) async fn an_action_without_a_recorded_end_ends_with_its_run_or_the_process(db: Db) {
    let of = |run: &str| AuditEntry { run: run.into(), ..entry("sleep 600") };
    for run in ["stopped", "open"] {
        db.run_started(&run.into(), &"thread".into(), "model", None, NOW).await.unwrap();
        db.begin_audit_entry(of(run)).await.unwrap();
    }
    assert_eq!(
        db.audit_entries(None, 10).await.unwrap(),
        [of("open"), of("stopped")],
        "both are in progress"
    );
    db.run_ended(&"stopped".into(), &Outcome::Stopped, NOW + 5).await.unwrap();
    let ended = |run: &str, code: i64, at: i64| AuditEntry { code: Some(code), ended: Some(at), ..of(run) };
    let stopped = ended("stopped", STOPPED, NOW + 5);
    assert_eq!(db.audit_entries(None, 10).await.unwrap(), [of("open"), stopped]);
    db.abandon_audit_entries(NOW + 9).await.unwrap();
    db.abandon_audit_entries(NOW + 99).await.unwrap();
    let now = [ended("open", ABANDONED, NOW + 9), ended("stopped", STOPPED, NOW + 5)];
    assert_eq!(db.audit_entries(Some(&"thread".into()), 10).await.unwrap(), now);
}
