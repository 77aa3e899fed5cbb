//! Outages of the server: calls to the store complete after it.

use crate::{
    fixture::{Place, accept, event},
    log::human_message,
};
use pudu_base::{ThreadId, ThreadLog};
use pudu_sim::{Break, Proxy};
use pudu_store::{Db, InsertedEvent, StoreError};
use sqlx::AnyConnection;
use std::time::Duration;

/// Advances all timers by this time.
async fn advance(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

async fn open_behind_a_proxy(place: &Place) -> (Proxy, Db) {
    let (proxy, place) = place.behind_a_proxy().await;
    (proxy, place.open().await)
}

pub(crate) async fn calls_during_a_restart_of_the_server_complete_after_it(place: Place) {
    let (proxy, db) = open_behind_a_proxy(&place).await;
    accept(&db, "before").await;
    proxy.cut().await;
    let repair = async {
        proxy.comers(3).await;
        proxy.mend();
    };
    let during = event("during");
    let (kept, pending, ()) = tokio::join!(db.accept(&during), db.pending(), repair);
    assert!(matches!(kept, Ok(InsertedEvent::New(_))), "{kept:?}");
    assert!(!pending.unwrap().is_empty());
    assert_eq!(db.pending_count().await.unwrap(), 2);
}

pub(crate) async fn a_commit_whose_answer_was_lost_is_not_repeated(place: Place) {
    let (proxy, db) = open_behind_a_proxy(&place).await;
    let thread = ThreadId::from("thread");
    for at in 0..2 {
        proxy.break_at("COMMIT", Break::AnswerLost);
        let human_message = [human_message(&at.to_string(), "hello")];
        assert_eq!(db.append(&thread, &"run".into(), at, &human_message).await.unwrap(), at + 1);
        assert!(!proxy.has_to_break());
        proxy.break_at("COMMIT", Break::AnswerLost);
        let kept = db.accept(&event(&at.to_string())).await.unwrap();
        assert!(matches!(kept, InsertedEvent::New(_)), "{kept:?}");
        assert!(!proxy.has_to_break());
    }
    assert_eq!(db.pending_count().await.unwrap(), 2);
}

pub(crate) async fn an_unfinished_transaction_of_a_lost_connection_blocks_nothing(place: Place) {
    let (proxy, db) = open_behind_a_proxy(&place).await;
    proxy.break_at("INSERT INTO inbox", Break::AnswerLost);
    let kept = db.accept(&event("1")).await.unwrap();
    assert!(matches!(kept, InsertedEvent::New(_)), "{kept:?}");
    assert_eq!(db.pending_count().await.unwrap(), 1);
}

pub(crate) async fn a_silent_connection_is_replaced(place: Place) {
    let (proxy, db) = open_behind_a_proxy(&place).await;
    accept(&db, "before").await;
    assert_eq!(db.pending_count().await.unwrap(), 1);
    proxy.silence().await;
    let outage = async {
        proxy.swallows().await;
        proxy.mend();
        // Connections are checked first, with a timeout.
        advance(Duration::from_secs(16)).await;
    };
    let during = event("during");
    let (kept, count, ()) = tokio::join!(db.accept(&during), db.pending_count(), outage);
    assert!(matches!(kept, Ok(InsertedEvent::New(_))), "{kept:?}");
    assert!((1..=2).contains(&count.unwrap()));
    assert_eq!(db.pending_count().await.unwrap(), 2);
}

pub(crate) async fn an_outage_between_two_calls_delays_neither(place: Place) {
    let (proxy, db) = open_behind_a_proxy(&place).await;
    for (key, words) in [("1", "SELECT COUNT"), ("2", "COMMIT")] {
        proxy.break_at(words, Break::SilentAfterAnswer);
        accept(&db, key).await;
        db.pending_count().await.unwrap();
        assert!(!proxy.has_to_break());
        let time = async {
            for _ in 0..4 {
                advance(Duration::from_secs(2)).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let next = event(&format!("after {key}"));
        let (kept, count, ()) = tokio::join!(db.accept(&next), db.pending_count(), time);
        assert!(matches!(kept, Ok(InsertedEvent::New(_))), "{kept:?}");
        count.unwrap();
    }
}

pub(crate) async fn an_impatient_caller_gets_an_error(place: Place) {
    let (proxy, db) = open_behind_a_proxy(&place).await;
    accept(&db, "before").await;
    proxy.cut().await;
    let hasty = db.within(Duration::from_millis(300));
    let away = |outcome: Result<(), StoreError>| matches!(outcome, Err(StoreError::Unavailable(_)));
    assert!(away(hasty.pending_count().await.map(drop)));
    assert!(away(hasty.accept(&event("late")).await.map(drop)));
    assert!(away(db.ping().await), "a ping fails soon");
    proxy.mend();
    // The write completes although its caller has given up.
    assert_eq!(db.accept(&event("late")).await, Ok(InsertedEvent::Duplicate));
}

pub(crate) async fn a_closed_store_fails_waiting_calls(place: Place) {
    let (proxy, db) = open_behind_a_proxy(&place).await;
    proxy.cut().await;
    let close = async {
        proxy.comers(2).await;
        db.close().await;
    };
    let last = event("last");
    let (kept, read, ()) = tokio::join!(db.accept(&last), db.pending_count(), close);
    assert_eq!(kept, Err(StoreError::Closed));
    assert_eq!(read, Err(StoreError::Closed));
}

/// Returns the server's ID of the session that holds the claim.
async fn holder(connection: &mut AnyConnection) -> Option<i32> {
    let sql = "SELECT pid FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
        WHERE locktype = 'advisory' AND granted AND datname = current_database()";
    sqlx::query_scalar(sql).fetch_optional(connection).await.unwrap()
}

pub(crate) async fn a_claim_outlives_its_session(place: Place) {
    let (proxy, db) = open_behind_a_proxy(&place).await;
    let mut claim = db.claim().await.unwrap();
    let checks = async {
        let mut behind = place.connect().await;
        let mut holder = holder(&mut behind).await;
        for silent in [false, true] {
            match silent {
                // The server still has the session and its lock.
                true => proxy.silence().await,
                false => proxy.cut().await,
            }
            proxy.mend();
            advance(Duration::from_secs(11)).await;
            let before = holder;
            let late = std::time::Instant::now() + Duration::from_secs(30);
            while holder == before || holder.is_none() {
                assert!(std::time::Instant::now() < late, "the claim was not renewed");
                holder = self::holder(&mut behind).await;
            }
        }
    };
    tokio::select! {
        lost = claim.keep() => panic!("the claim was lost: {lost}"),
        () = checks => {}
    }
}

pub(crate) async fn a_claim_taken_by_another_process_is_lost(place: Place) {
    let (proxy, db) = open_behind_a_proxy(&place).await;
    let mut claim = db.claim().await.unwrap();
    proxy.cut().await;
    let _other = place.open().await.claim().await.unwrap();
    proxy.mend();
    let (lost, ()) = tokio::join!(claim.keep(), advance(Duration::from_secs(6)));
    assert_eq!(lost, StoreError::Conflict("another pudu uses this database"));
    assert_eq!(db.accept(&event("late")).await, Err(StoreError::Closed), "writes are refused");
}
