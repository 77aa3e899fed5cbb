//! Searches for threads: filters, orders, pages, and concurrent writes.

use crate::fixture::NOW;
use pudu_base::{Outcome, ThreadFolder, UserId};
use pudu_store::{
    Db, NewClientRun, NewThread, RunOrigin, ThreadChange, ThreadCursor, ThreadOrder, ThreadQuery,
    ThreadRunStatus,
};
use std::sync::Arc;

fn ada() -> UserId {
    UserId::from_raw("ada").unwrap()
}

async fn create(db: &Db, thread: &str, now: i64, metadata: &str) {
    let folder = ThreadFolder { owner: ada(), thread: thread.into() };
    let (account, assistant) = ("api".into(), String::new());
    let thread_row = NewThread { folder, account, assistant, metadata: metadata.into(), now };
    assert!(db.create_thread(thread_row.clone()).await.unwrap());
    assert!(!db.create_thread(thread_row).await.unwrap(), "a thread is created once");
}

async fn end(db: &Db, thread: &str, outcome: Option<Outcome>) {
    let run = NewClientRun {
        id: format!("run-{thread}").as_str().into(),
        folder: ThreadFolder { owner: ada(), thread: thread.into() },
        account: "api".into(),
        origin: RunOrigin::Api,
        user: ada(),
        assistant: "lead_agent".into(),
        request: "{}".into(),
        metadata: String::new(),
        multitask: "reject".into(),
        deletes_thread: false,
        cancels: None,
        now: NOW,
    };
    let id = run.id.clone();
    db.accept_run(run).await.unwrap();
    if let Some(outcome) = outcome {
        db.run_ended(&id, &outcome, NOW).await.unwrap();
    }
}

async fn find(db: &Db, filter: &ThreadQuery) -> Vec<String> {
    let threads = db.find_threads(&ada(), filter).await.unwrap().threads;
    threads.iter().map(|thread| thread.id.to_string()).collect()
}

pub(crate) async fn a_search_filters_sorts_and_counts(db: Db) {
    for (at, thread) in ["a", "b", "c", "d"].iter().enumerate() {
        create(&db, thread, NOW + i64::try_from(at).unwrap(), &format!("{{\"n\":{at}}}")).await;
    }
    end(&db, "a", Some(Outcome::Success)).await;
    end(&db, "b", Some(Outcome::Stopped)).await;
    end(&db, "c", Some(Outcome::Timeout)).await;
    let title =
        ThreadChange { title: Some("Über Größe".into()), pinned: Some(true), ..ThreadChange::default() };
    db.change_thread(&"b".into(), ThreadChange { updated: Some(NOW + 1), ..title }).await.unwrap();
    for (thread, updated) in [("a", NOW), ("c", NOW + 2), ("d", NOW + 3)] {
        let change = ThreadChange { updated: Some(updated), ..ThreadChange::default() };
        db.change_thread(&thread.into(), change).await.unwrap();
    }
    let usual = || ThreadQuery { limit: 10, ..ThreadQuery::default() };
    let busy = vec!["d".into()];
    let status = |status| ThreadQuery { status: Some(status), busy: busy.clone(), ..usual() };
    let order = |order, ascending| ThreadQuery { order, ascending, busy: busy.clone(), ..usual() };
    for (filter, expected) in [
        (usual(), "b d c a"),
        (ThreadQuery { ascending: true, ..usual() }, "a c d b"),
        (ThreadQuery { limit: 2, offset: 1, ..usual() }, "d c"),
        (ThreadQuery { ids: Some(vec!["a".into(), "none".into()]), ..usual() }, "a"),
        (ThreadQuery { ids: Some(Vec::new()), ..usual() }, ""),
        (status(ThreadRunStatus::Idle), "a"),
        (status(ThreadRunStatus::Busy), "d"),
        (status(ThreadRunStatus::Interrupted), "b"),
        (status(ThreadRunStatus::Error), "c"),
        (ThreadQuery { status: Some(ThreadRunStatus::Idle), ..usual() }, "d a"),
        (order(ThreadOrder::Created, false), "d c b a"),
        (order(ThreadOrder::Created, true), "a b c d"),
        (order(ThreadOrder::Id, false), "d c b a"),
        (order(ThreadOrder::Status, false), "b a c d"),
        (ThreadQuery { fits: Some(Arc::new(|facts| facts.title.contains("Größe"))), ..usual() }, "b"),
        (
            ThreadQuery { fits: Some(Arc::new(|facts| !facts.metadata.contains('2'))), offset: 1, ..usual() },
            "d a",
        ),
    ] {
        let (offset, fits) = (filter.offset, filter.fits.is_some());
        assert_eq!(
            find(&db, &filter).await.join(" "),
            expected,
            "{:?}",
            (filter.order, filter.ascending, fits)
        );
        let whole = ThreadQuery { offset: 0, ..filter };
        let count = find(&db, &ThreadQuery { limit: 10, ..whole.clone() }).await.len();
        assert_eq!(db.count_threads(&ada(), &whole).await.unwrap(), count, "{offset}");
    }
    let bob = UserId::from_raw("bob").unwrap();
    assert_eq!(db.count_threads(&bob, &usual()).await.unwrap(), 0);
}

pub(crate) async fn pages_repeat_and_lose_nothing_during_concurrent_writes(db: Db) {
    for at in 0..30_i64 {
        // Several threads were used at the same time.
        create(&db, &format!("t{at:02}"), NOW + at / 3, "").await;
    }
    let (mut seen, mut after) = (Vec::new(), None);
    for round in 0..10 {
        let filter = ThreadQuery { limit: 4, after: after.clone(), ..ThreadQuery::default() };
        let page = db.find_threads(&ada(), &filter).await.unwrap();
        seen.extend(page.threads.iter().map(|thread| thread.id.to_string()));
        after = page.threads.last().map(ThreadCursor::behind);
        // A thread of an earlier page and a new one move to the front.
        let used = ThreadChange { updated: Some(NOW + 1_000 + round), ..ThreadChange::default() };
        db.change_thread(&"t29".into(), used).await.unwrap();
        create(&db, &format!("new{round}"), NOW + 2_000 + round, "").await;
        if !page.has_more {
            break;
        }
    }
    let mut expected: Vec<String> = (0..30).map(|at| format!("t{at:02}")).collect();
    expected.reverse();
    let mut once = seen.clone();
    once.sort();
    once.reverse();
    assert_eq!(once, expected, "each once: {seen:?}");
}
