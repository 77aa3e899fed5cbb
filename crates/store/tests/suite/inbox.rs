use crate::fixture::{NOW, accept, event, turn};
use proptest::prelude::*;
use pudu_store::{Db, DbLocation, InboxItemId, InboxRow, InsertedEvent, NewInboxItem, TurnId};
use std::collections::BTreeSet;

fn waiting(id: InboxItemId, key: &str) -> InboxRow {
    let NewInboxItem { account, payload, at, .. } = event(key);
    InboxRow { id, account, payload, at, turn: None }
}

pub(crate) async fn an_event_is_kept_once(db: Db) {
    let first = accept(&db, "1").await;
    assert_eq!(db.accept(&event("1")).await.unwrap(), InsertedEvent::Duplicate);
    let elsewhere = NewInboxItem { account: "slack".into(), ..event("1") };
    let InsertedEvent::New(second) = db.accept(&elsewhere).await.unwrap() else {
        panic!("another account's")
    };
    let slack = InboxRow { account: "slack".into(), ..waiting(second, "1") };
    assert_eq!(db.pending().await.unwrap(), [waiting(first, "1"), slack]);
    assert_eq!(db.pending_count().await.unwrap(), 2);
}

pub(crate) async fn the_position_of_a_stream_is_stored_with_or_without_an_event(db: Db) {
    let account = event("1").account;
    let at = |key: &str, position: &str| NewInboxItem { position: Some(position.into()), ..event(key) };
    assert_eq!(db.position(&account).await.unwrap(), None);
    db.accept(&at("1", "seq 1")).await.unwrap();
    db.accept(&event("2")).await.unwrap();
    assert_eq!(db.position(&account).await.unwrap().as_deref(), Some("seq 1"));
    // A duplicate moves the position as well.
    assert_eq!(db.accept(&at("1", "seq 3")).await.unwrap(), InsertedEvent::Duplicate);
    assert_eq!(db.position(&account).await.unwrap().as_deref(), Some("seq 3"));
    db.save_position(&account, "seq 4", NOW).await.unwrap();
    assert_eq!(db.position(&account).await.unwrap().as_deref(), Some("seq 4"));
    assert_eq!(db.position("another").await.unwrap(), None);
}

pub(crate) async fn an_edit_changes_only_a_waiting_event(db: Db) {
    let (one, two) = (accept(&db, "1").await, accept(&db, "2").await);
    assert!(db.amend(one, r#"{"text":"better"}"#).await.unwrap());
    let amended = InboxRow { payload: r#"{"text":"better"}"#.into(), ..waiting(one, "1") };
    assert_eq!(db.pending().await.unwrap(), [amended, waiting(two, "2")]);
    db.finish(&[one], NOW).await.unwrap();
    assert!(!db.amend(one, "{}").await.unwrap(), "it is no longer waiting");
}

pub(crate) async fn a_finished_event_no_longer_waits_and_is_still_a_duplicate(db: Db) {
    let (one, two) = (accept(&db, "1").await, accept(&db, "2").await);
    let three = accept(&db, "3").await;
    db.open_turn(&turn("t", &[three])).await.unwrap();
    db.finish(&[one], NOW).await.unwrap();
    let answered = InboxRow { turn: Some(TurnId("t".into())), ..waiting(three, "3") };
    assert_eq!(db.pending().await.unwrap(), [waiting(two, "2"), answered]);
    assert_eq!(db.accept(&event("1")).await.unwrap(), InsertedEvent::Duplicate);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn random_deliveries_keep_each_event_once(keys in prop::collection::vec(0u8..20, 0..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let db = Db::open(&DbLocation::Memory).await.unwrap();
            let deliveries = keys.iter().map(|key| {
                let (db, event) = (db.clone(), event(&key.to_string()));
                async move { db.accept(&event).await.unwrap() }
            });
            let answers = futures_util::future::join_all(deliveries).await;
            let new = answers.iter().filter(|answer| matches!(answer, InsertedEvent::New(_))).count();
            let distinct: BTreeSet<_> = keys.iter().map(|key| event(&key.to_string()).payload).collect();
            let kept: BTreeSet<_> = db.pending().await.unwrap().into_iter().map(|i| i.payload).collect();
            assert_eq!((new, &kept), (distinct.len(), &distinct));
            assert_eq!(db.pending_count().await.unwrap(), i64::try_from(new).unwrap());
        });
    }
}
