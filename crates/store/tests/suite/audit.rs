use crate::fixture::NOW;
use pudu_store::{Db, Deed};

pub(crate) fn deed(detail: &str) -> Deed {
    Deed {
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

pub(crate) async fn a_deed_is_there_before_it_ends(db: Db) {
    let first = db.deed_begins(deed("ls")).await.unwrap();
    let elsewhere = Deed { thread: "other".into(), verdict: "blocked".into(), ..deed("rm -rf /") };
    db.deed_begins(elsewhere.clone()).await.unwrap();
    assert_eq!(db.deeds(None, 10).await.unwrap(), [elsewhere.clone(), deed("ls")]);
    db.deed_ends(first, Some(0), NOW + 5).await.unwrap();
    let ended = Deed { code: Some(0), ended: Some(NOW + 5), ..deed("ls") };
    assert_eq!(db.deeds(Some(&"thread".into()), 10).await.unwrap(), [ended]);
    assert_eq!(db.deeds(None, 1).await.unwrap(), [elsewhere]);
}
