use crate::fixture::{NOW, accept, event, turn};
use futures_util::future::join_all;
use pudu_base::{RunId, ThreadId};
use pudu_store::{Db, InsertedEvent, NewInboxItem, StoreError};

/// Accepts events concurrently and returns how many were new.
async fn accept_all(db: &Db, events: Vec<NewInboxItem>) -> usize {
    let accepts = join_all(events.iter().map(|event| db.accept(event))).await;
    accepts.iter().filter(|answer| matches!(answer, Ok(InsertedEvent::New(_)))).count()
}

fn events(count: u32) -> Vec<NewInboxItem> {
    (0..count).map(|n| event(&n.to_string())).collect()
}

pub(crate) async fn many_accepts_share_a_commit(db: Db) {
    let before = db.commits();
    assert_eq!(accept_all(&db, events(1_000)).await, 1_000);
    let commits = db.commits() - before;
    // SQLite's writer commits on its own thread, while others are still being queued.
    assert!(commits <= 250, "1000 accepts took {commits} commits");
    assert_eq!(db.pending_count().await.unwrap(), 1_000);
}

pub(crate) async fn a_failing_write_does_not_affect_its_batch(db: Db) {
    let taken = accept(&db, "taken").await;
    db.open_turn(&turn("first", &[taken])).await.unwrap();
    let greedy = turn("greedy", &[taken]);
    let (run, thread) = (RunId::from("run"), ThreadId::from("thread"));
    let (first, conflict, second) = futures_util::join!(
        accept_all(&db, events(20)),
        db.open_turn(&greedy),
        db.run_started(&run, &thread, "gpt", None, NOW)
    );
    assert_eq!((first, second), (20, Ok(())));
    assert_eq!(conflict, Err(StoreError::Conflict("the event is done or has another turn")));
    assert_eq!(db.pending_count().await.unwrap(), 21);
    let turns: Vec<_> = db.open_turns().await.unwrap().into_iter().map(|turn| turn.id.0).collect();
    assert_eq!(turns, ["first"]);
}

/// PostgreSQL refuses an index key of this size and rolls the whole transaction back; SQLite accepts it.
pub(crate) async fn a_write_rejected_by_the_database_does_not_affect_its_batch(db: Db) {
    let mut all = events(20);
    // A random key, because repetitive ones are compressed.
    let noise: String = (0..9_000_u32).map(|n| format!("{:x}", n.wrapping_mul(2_654_435_761))).collect();
    all.insert(10, event(&noise));
    assert!(accept_all(&db, all).await >= 20);
    let payloads: Vec<_> = db.pending().await.unwrap().into_iter().map(|item| item.payload).collect();
    for event in events(20) {
        assert!(payloads.contains(&event.payload), "{} is missing", event.event_key);
    }
}

pub(crate) async fn a_closed_store_returns_an_error(db: Db) {
    db.ping().await.unwrap();
    db.close().await;
    assert_eq!(db.ping().await, Err(StoreError::Closed));
    assert_eq!(db.accept(&event("late")).await, Err(StoreError::Closed));
}
