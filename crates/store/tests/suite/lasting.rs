use crate::{
    fixture::{Place, accept, event, run, turn},
    log::said,
};
use futures_util::future::join_all;
use pudu_base::{LogError, ThreadId, ThreadLog};
use pudu_store::{Db, InsertedEvent, StoreError, TurnId};
use sqlx::Connection;

pub(crate) async fn what_was_answered_is_there_after_a_hard_end(place: Place) {
    let db = place.open().await;
    let item = accept(&db, "1").await;
    db.open_turn(&turn("t", &[item])).await.unwrap();
    db.conclude(&TurnId("t".into()), "said").await.unwrap();
    db.append(&"thread".into(), 0, &[said("1", "hello")]).await.unwrap();
    let before = (db.pending().await.unwrap(), db.open_turns().await.unwrap());
    let thread = db.load(&"thread".into()).await.unwrap();
    drop(db);

    let db = place.open().await;
    assert_eq!((db.pending().await.unwrap(), db.open_turns().await.unwrap()), before);
    assert_eq!(db.load(&"thread".into()).await.unwrap(), thread);
    assert_eq!(db.accept(&event("1")).await.unwrap(), InsertedEvent::Duplicate);
}

pub(crate) async fn closing_writes_what_waits(place: Place) {
    let db = place.open().await;
    let events: Vec<_> = (0..500).map(|n| event(&n.to_string())).collect();
    let accepts = join_all(events.iter().map(|event| db.accept(event)));
    let (answers, ()) = futures_util::join!(accepts, db.close());
    let kept = answers.iter().filter(|answer| answer.is_ok()).count();
    assert!(kept > 0, "some came before the end");
    let db = place.open().await;
    assert_eq!(db.pending_count().await.unwrap(), i64::try_from(kept).unwrap());
}

pub(crate) async fn two_that_start_at_once_both_start(place: Place) {
    let starts = (0..8).map(|n: i32| {
        let place = place.clone();
        tokio::spawn(async move {
            let db = place.open().await;
            accept(&db, &n.to_string()).await;
        })
    });
    for started in join_all(starts).await {
        started.unwrap();
    }
    assert_eq!(place.open().await.pending_count().await.unwrap(), 8);
}

pub(crate) async fn two_instances_do_not_overwrite_each_other(place: Place) {
    let (one, two) = (place.open().await, place.open().await);
    let thread = ThreadId::from("thread");
    for at in 0..20 {
        let (mine, yours) = ([said("mine", "1")], [said("yours", "2")]);
        let answers = tokio::join!(one.append(&thread, at, &mine), two.append(&thread, at, &yours));
        match answers {
            (Ok(seq), Err(LogError::Conflict { .. })) | (Err(LogError::Conflict { .. }), Ok(seq)) => {
                assert_eq!(seq, at + 1);
            }
            other => panic!("not exactly one was first: {other:?}"),
        }
    }
    let same = event("same");
    let answers = tokio::join!(one.accept(&same), two.accept(&same));
    let new =
        [answers.0.unwrap(), answers.1.unwrap()].iter().filter(|a| **a != InsertedEvent::Duplicate).count();
    assert_eq!(new, 1);
    assert_eq!(one.open_turns().await.unwrap(), two.open_turns().await.unwrap());
}

pub(crate) async fn a_newer_database_is_refused(place: Place) {
    let db = place.open().await;
    accept(&db, "1").await;
    db.close().await;
    let mut behind = place.connect().await;
    run(&mut behind, "INSERT INTO schema_version (version) VALUES (99)".into()).await;
    behind.close().await.unwrap();
    let refused = Db::open(&place.location).await.map(drop).unwrap_err();
    assert_eq!(refused, StoreError::Newer { found: 99, known: 7 });
    let text = "the database has schema version 99, this pudu knows 7: run a newer pudu";
    assert_eq!(refused.to_string(), text);
}
