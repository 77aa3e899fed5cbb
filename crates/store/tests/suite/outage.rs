//! A server that goes away and comes back: what was asked of the store is done.

use crate::{
    fixture::{Place, accept, event},
    log::said,
};
use pudu_base::{ThreadId, ThreadLog};
use pudu_sim::{Break, Proxy};
use pudu_store::{Db, InsertedEvent, StoreError};
use sqlx::AnyConnection;
use std::time::Duration;

/// Lets this much time pass for all timers at once.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

async fn opened(place: &Place) -> (Proxy, Db) {
    let (proxy, place) = place.behind_a_proxy().await;
    (proxy, place.open().await)
}

pub(crate) async fn what_is_asked_while_a_server_restarts_is_done_after_it(place: Place) {
    let (proxy, db) = opened(&place).await;
    accept(&db, "before").await;
    proxy.cut().await;
    let mend = async {
        proxy.comers(3).await;
        proxy.mend();
    };
    let during = event("during");
    let (kept, pending, ()) = tokio::join!(db.accept(&during), db.pending(), mend);
    assert!(matches!(kept, Ok(InsertedEvent::New(_))), "{kept:?}");
    assert!(!pending.unwrap().is_empty());
    assert_eq!(db.pending_count().await.unwrap(), 2);
}

pub(crate) async fn what_was_committed_while_the_answer_was_lost_is_not_done_again(place: Place) {
    let (proxy, db) = opened(&place).await;
    let thread = ThreadId::from("thread");
    for at in 0..2 {
        proxy.break_at("COMMIT", Break::AnswerLost);
        let said = [said(&at.to_string(), "hello")];
        assert_eq!(db.append(&thread, &"run".into(), at, &said).await.unwrap(), at + 1);
        assert!(!proxy.has_to_break());
        proxy.break_at("COMMIT", Break::AnswerLost);
        let kept = db.accept(&event(&at.to_string())).await.unwrap();
        assert!(matches!(kept, InsertedEvent::New(_)), "{kept:?}");
        assert!(!proxy.has_to_break());
    }
    assert_eq!(db.pending_count().await.unwrap(), 2);
}

pub(crate) async fn what_a_lost_connection_began_and_did_not_end_locks_nobody_out(place: Place) {
    let (proxy, db) = opened(&place).await;
    proxy.break_at("INSERT INTO inbox", Break::AnswerLost);
    let kept = db.accept(&event("1")).await.unwrap();
    assert!(matches!(kept, InsertedEvent::New(_)), "{kept:?}");
    assert_eq!(db.pending_count().await.unwrap(), 1);
}

pub(crate) async fn a_server_that_vanishes_without_a_word_is_left_for_a_new_connection(place: Place) {
    let (proxy, db) = opened(&place).await;
    accept(&db, "before").await;
    assert_eq!(db.pending_count().await.unwrap(), 1);
    proxy.silence().await;
    let vanished = async {
        proxy.swallows().await;
        proxy.mend();
        // Connections are tried first: nothing that hangs is waited for longer than that.
        pass(Duration::from_secs(16)).await;
    };
    let during = event("during");
    let (kept, count, ()) = tokio::join!(db.accept(&during), db.pending_count(), vanished);
    assert!(matches!(kept, Ok(InsertedEvent::New(_))), "{kept:?}");
    assert!((1..=2).contains(&count.unwrap()));
    assert_eq!(db.pending_count().await.unwrap(), 2);
}

pub(crate) async fn a_server_that_vanishes_between_two_calls_holds_up_neither(place: Place) {
    let (proxy, db) = opened(&place).await;
    for (key, words) in [("1", "SELECT COUNT"), ("2", "COMMIT")] {
        proxy.break_at(words, Break::SilentAfterAnswer);
        accept(&db, key).await;
        db.pending_count().await.unwrap();
        assert!(!proxy.has_to_break());
        let time = async {
            for _ in 0..4 {
                pass(Duration::from_secs(2)).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let next = event(&format!("after {key}"));
        let (kept, count, ()) = tokio::join!(db.accept(&next), db.pending_count(), time);
        assert!(matches!(kept, Ok(InsertedEvent::New(_))), "{kept:?}");
        count.unwrap();
    }
}

pub(crate) async fn a_caller_that_cannot_wait_gets_an_error(place: Place) {
    let (proxy, db) = opened(&place).await;
    accept(&db, "before").await;
    proxy.cut().await;
    let hasty = db.within(Duration::from_millis(300));
    let away = |outcome: Result<(), StoreError>| matches!(outcome, Err(StoreError::Unavailable(_)));
    assert!(away(hasty.pending_count().await.map(drop)));
    assert!(away(hasty.accept(&event("late")).await.map(drop)));
    assert!(away(db.ping().await), "whether it answers is said soon");
    proxy.mend();
    // What was given up by its caller alone is done all the same.
    assert_eq!(db.accept(&event("late")).await, Ok(InsertedEvent::Duplicate));
}

pub(crate) async fn nobody_waits_for_a_store_that_is_closed(place: Place) {
    let (proxy, db) = opened(&place).await;
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

/// Returns the server's number of the session that has the claim.
async fn holder(connection: &mut AnyConnection) -> Option<i32> {
    let sql = "SELECT pid FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
        WHERE locktype = 'advisory' AND granted AND datname = current_database()";
    sqlx::query_scalar(sql).fetch_optional(connection).await.unwrap()
}

pub(crate) async fn a_claim_outlives_its_session(place: Place) {
    let (proxy, db) = opened(&place).await;
    let mut claim = db.claim().await.unwrap();
    let checks = async {
        let mut behind = place.connect().await;
        let mut holder = holder(&mut behind).await;
        for silent in [false, true] {
            match silent {
                // The server goes on believing in the session, and in its lock.
                true => proxy.silence().await,
                false => proxy.cut().await,
            }
            proxy.mend();
            pass(Duration::from_secs(11)).await;
            let before = holder;
            let late = std::time::Instant::now() + Duration::from_secs(30);
            while holder == before || holder.is_none() {
                assert!(std::time::Instant::now() < late, "it is not claimed again");
                holder = self::holder(&mut behind).await;
            }
        }
    };
    tokio::select! {
        lost = claim.keep() => panic!("the claim was lost: {lost}"),
        () = checks => {}
    }
}

pub(crate) async fn a_claim_that_another_process_took_is_lost(place: Place) {
    let (proxy, db) = opened(&place).await;
    let mut claim = db.claim().await.unwrap();
    proxy.cut().await;
    let _other = place.open().await.claim().await.unwrap();
    proxy.mend();
    let (lost, ()) = tokio::join!(claim.keep(), pass(Duration::from_secs(6)));
    assert_eq!(lost, StoreError::Conflict("another pudu works on this database"));
    assert_eq!(db.accept(&event("late")).await, Err(StoreError::Closed), "it writes nothing any more");
}
