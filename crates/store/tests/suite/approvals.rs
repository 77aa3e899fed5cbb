use crate::fixture::NOW;
use pudu_store::{Approval, ApprovalDecision, Db};

pub(crate) fn question(id: &str, call: &str) -> Approval {
    Approval {
        id: id.into(),
        run: "run".into(),
        call: call.into(),
        thread: "thread".into(),
        tool: "bash".into(),
        arguments: "digest".into(),
        request: "`rm -rf /mnt/user-data`".into(),
        account: "telegram".into(),
        person: "7".into(),
        name: "Ada".into(),
        asked: NOW,
        deadline: NOW + 600_000,
        decision: None,
    }
}

pub(crate) fn decision(approved: bool, by: Option<&str>) -> ApprovalDecision {
    ApprovalDecision { approved, by: by.map(str::to_owned), at: NOW + 1 }
}

pub(crate) async fn a_question_is_answered_once(db: Db) {
    let asked = question("1", "call");
    assert_eq!(db.ask(&asked).await.unwrap(), asked);
    assert_eq!(db.approval("1").await.unwrap(), Some(asked.clone()));
    let decided = Some(Approval { decision: Some(decision(true, Some("Ada"))), ..asked });
    assert_eq!(db.decide("1", decision(true, Some("Ada"))).await.unwrap(), decided);
    assert_eq!(db.decide("1", decision(false, None)).await.unwrap(), decided, "the first decision is kept");
    assert_eq!(db.approval("1").await.unwrap(), decided);
    assert_eq!(db.decide("2", decision(true, None)).await.unwrap(), None);
    assert_eq!(db.approval("2").await.unwrap(), None);
}

pub(crate) async fn a_call_creates_only_one_question(db: Db) {
    let first = question("1", "call");
    db.ask(&first).await.unwrap();
    let again = Approval { asked: NOW + 5, deadline: NOW + 900_000, ..question("2", "call") };
    assert_eq!(db.ask(&again).await.unwrap(), first, "a restart asks the same question");
    let other = question("2", "other");
    assert_eq!(db.ask(&other).await.unwrap(), other);
}
