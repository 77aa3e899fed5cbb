//! Threads, runs and feedback of API clients.

use crate::{
    fixture::{NOW, accept, turn},
    log::human_message,
};
use pudu_base::{Outcome, RunId, ThreadFolder, ThreadId, ThreadLog, ThreadState, UserId};
use pudu_store::{
    CancelAction, Db, Deletion, Feedback, NewClientRun, NewThread, NewTurn, RunEnding, RunOrigin, RunTitles,
    ThreadChange, ThreadQuery,
};
use std::sync::Arc;

fn ada() -> UserId {
    UserId::from_raw("ada").unwrap()
}

pub(crate) fn request(run: &str, thread: &str, now: i64) -> NewClientRun {
    NewClientRun {
        id: run.into(),
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
        now,
    }
}

fn feedback(id: &str, run: &str, rating: i64) -> Feedback {
    let (id, run, thread) = (id.to_owned(), run.to_owned(), "mine".to_owned());
    Feedback { id, run, thread, user: ada(), message: None, rating, comment: None, created: NOW }
}

fn new_thread(thread: &str, now: i64) -> NewThread {
    let folder = ThreadFolder { owner: ada(), thread: thread.into() };
    let (account, assistant) = ("api".into(), "lead_agent".into());
    NewThread { folder, account, assistant, metadata: "{\"a\":1}".into(), now }
}

/// Makes each kind of write of this part once.
pub(crate) async fn script(db: &Db) {
    db.create_thread(new_thread("mine", NOW)).await.unwrap();
    db.change_thread(&"mine".into(), ThreadChange { pinned: Some(true), ..ThreadChange::default() })
        .await
        .unwrap();
    db.accept_run(request("asked", "mine", NOW)).await.unwrap();
    db.cancel_run(&"asked".into(), CancelAction::Interrupt).await.unwrap();
    db.suspend_runs().await.unwrap();
    db.take_over_runs().await.unwrap();
    db.resume_run(&"asked".into()).await.unwrap();
    db.run_ended(&"asked".into(), &Outcome::Stopped, NOW).await.unwrap();
    db.put_feedback(feedback("1", "asked", 1)).await.unwrap();
    db.delete_feedback(&"asked".into(), &ada(), None).await.unwrap();
    db.delete_run(&"mine".into(), &"asked".into()).await.unwrap();
}

pub(crate) async fn an_accepted_run_is_listed_until_it_ends(db: Db) {
    let (run, thread): (RunId, ThreadId) = ("one".into(), "mine".into());
    db.accept_run(request("one", "mine", NOW)).await.unwrap();
    db.accept_run(request("two", "mine", NOW + 1)).await.unwrap();
    assert!(db.accept_run(request("one", "mine", NOW)).await.is_err(), "an id belongs to one run");
    let row = db.run(&run).await.unwrap().unwrap();
    assert_eq!((row.origin, row.begun, row.cancelled), (RunOrigin::Api, None, None));
    db.run_started(&run, &thread, "gpt", None, NOW + 5).await.unwrap();
    db.cancel_run(&run, CancelAction::Rollback).await.unwrap();
    db.cancel_run(&run, CancelAction::Interrupt).await.unwrap();
    db.suspend_runs().await.unwrap();
    let row = db.run(&run).await.unwrap().unwrap();
    assert_eq!(
        (row.begun, row.cancelled, row.suspended),
        (Some(NOW + 5), Some(CancelAction::Rollback), true)
    );
    assert!(!db.delete_run(&thread, &run).await.unwrap(), "it has not ended");
    let ending = RunEnding { last_words: "done".into(), messages: 2, ..RunEnding::from(&Outcome::Success) };
    db.run_ended(&run, ending, NOW + 9).await.unwrap();
    db.run_ended(&run, &Outcome::Stopped, NOW + 10).await.unwrap();
    let row = db.run(&run).await.unwrap().unwrap();
    assert_eq!((row.outcome(), row.ended, row.messages), (Some(Outcome::Success), Some(NOW + 9), 2));
    let listed = db.thread_runs(&thread, 10, 0).await.unwrap();
    assert_eq!(listed.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["two", "one"]);
    assert!(db.delete_run(&thread, &run).await.unwrap() && db.run(&run).await.unwrap().is_none());
}

pub(crate) async fn accepting_a_run_stops_others_in_the_same_write(db: Db) {
    for run in ["one", "two", "ended"] {
        db.accept_run(request(run, "mine", NOW)).await.unwrap();
    }
    db.cancel_run(&"two".into(), CancelAction::Interrupt).await.unwrap();
    db.run_ended(&"ended".into(), &Outcome::Success, NOW).await.unwrap();
    let others = ["one", "two", "ended"].map(RunId::from).to_vec();
    let cancels = Some((CancelAction::Rollback, others));
    let next = NewClientRun { cancels: cancels.clone(), ..request("next", "mine", NOW) };
    db.accept_run(next).await.unwrap();
    let cancelled = async |run: &str| db.run(&run.into()).await.unwrap().unwrap().cancelled;
    assert_eq!(cancelled("one").await, Some(CancelAction::Rollback));
    assert_eq!(cancelled("two").await, Some(CancelAction::Interrupt), "the first request counts");
    assert_eq!((cancelled("ended").await, cancelled("next").await), (None, None));
    db.accept_run(request("three", "mine", NOW)).await.unwrap();
    let again = NewClientRun {
        cancels: Some((CancelAction::Rollback, vec!["three".into()])),
        ..request("next", "mine", NOW)
    };
    assert!(
        db.accept_run(again).await.is_err() && cancelled("three").await.is_none(),
        "what is refused stops nothing"
    );
}

pub(crate) async fn a_run_with_a_temporary_thread_is_listed_until_the_thread_is_deleted(db: Db) {
    db.accept_run(request("stays", "mine", NOW)).await.unwrap();
    db.accept_run(NewClientRun { deletes_thread: true, ..request("deleted", "temporary", NOW) })
        .await
        .unwrap();
    let remaining = [(ThreadId::from("temporary"), RunId::from("deleted"))];
    assert_eq!(db.temporary_runs().await.unwrap(), remaining);
    db.run_ended(&"deleted".into(), &Outcome::Success, NOW).await.unwrap();
    assert_eq!(db.temporary_runs().await.unwrap(), remaining);
    db.delete_thread(&"temporary".into(), i64::MAX, &"next".into()).await.unwrap();
    assert_eq!(db.temporary_runs().await.unwrap(), []);
}

pub(crate) async fn a_run_has_the_titles_before_and_after_it(db: Db) {
    let (run, thread): (RunId, ThreadId) = ("one".into(), "mine".into());
    let titles = async |run: &str| {
        let RunTitles { found, left } = db.run_titles(&"mine".into(), &run.into()).await.unwrap();
        [found.unwrap_or_default(), left.unwrap_or_default()]
    };
    let entitle = async |title: &str| {
        let change = ThreadChange { title: Some(title.to_owned()), ..ThreadChange::default() };
        db.change_thread(&"mine".into(), change).await.unwrap();
    };
    db.accept_run(request("one", "mine", NOW)).await.unwrap();
    assert_eq!(titles("one").await, ["", ""]);
    db.run_started(&run, &thread, "gpt", Some("First"), NOW).await.unwrap();
    assert_eq!(titles("one").await, ["", "First"]);
    db.run_started(&run, &thread, "gpt", None, NOW).await.unwrap();
    assert_eq!(titles("one").await, ["", "First"], "a resumed run keeps its first title");
    db.run_ended(&run, &Outcome::Success, NOW).await.unwrap();
    entitle("Better").await;
    assert_eq!(titles("one").await, ["", "First"]);
    db.run_started(&"chat".into(), &thread, "gpt", Some("Never"), NOW).await.unwrap();
    assert_eq!(titles("chat").await, ["Better", "Better"]);
    assert_eq!(titles("unknown").await, ["Better", "Better"]);
    assert_eq!(db.run_titles(&"none".into(), &run).await.unwrap(), RunTitles::default());
}

pub(crate) async fn an_orderly_stop_is_recorded_until_the_run_resumes(db: Db) {
    db.accept_run(request("one", "mine", NOW)).await.unwrap();
    let id = RunId::from("one");
    let seen = async || {
        let row = db.run(&id).await.unwrap().unwrap();
        (row.suspended, row.resumed)
    };
    assert_eq!(seen().await, (false, 0));
    db.suspend_runs().await.unwrap();
    assert_eq!(seen().await, (true, 0));
    db.resume_run(&id).await.unwrap();
    assert_eq!(seen().await, (false, 0), "the process was shut down");
    db.resume_run(&id).await.unwrap();
    assert_eq!(seen().await, (false, 1), "the process crashed");
}

pub(crate) async fn a_chat_run_is_kept_until_its_answer_is_delivered(db: Db) {
    let (run, item) = (RunId::from("run"), accept(&db, "1").await);
    db.bind("key", "telegram", "-100", &"thread".into(), NOW).await.unwrap();
    let folder = ThreadFolder { owner: ada(), thread: "thread".into() };
    let turn = NewTurn {
        run: Some(run.clone()),
        folder: Some(folder),
        conversation: "key".into(),
        ..turn("turn", &[item])
    };
    db.open_turn(&turn).await.unwrap();
    db.run_started(&run, &"thread".into(), "gpt", None, NOW).await.unwrap();
    db.run_ended(&run, &Outcome::Success, NOW).await.unwrap();
    assert!(!db.delete_run(&"thread".into(), &run).await.unwrap(), "a restart needs its outcome");
    db.delivered(&turn.id, None, false, NOW).await.unwrap();
    assert!(db.delete_run(&"thread".into(), &run).await.unwrap());
}

pub(crate) async fn an_active_run_prevents_deletion_of_its_thread_and_user(db: Db) {
    let (thread, later) = (ThreadId::from("mine"), NOW + 1_000);
    db.create_thread(new_thread("mine", NOW)).await.unwrap();
    assert!(db.is_unused(&thread, NOW).await.unwrap());
    db.accept_run(request("one", "mine", later)).await.unwrap();
    let delete = async |since| db.delete_thread(&thread, since, &"next".into()).await.unwrap();
    let keys = crate::person::ada();
    let at_work = async || db.is_person_at_work(&keys).await.unwrap();
    assert_eq!(
        (delete(i64::MAX).await, db.is_unused(&thread, i64::MAX).await.unwrap()),
        (Deletion::InUse, false)
    );
    assert!(at_work().await);
    db.run_ended(&"one".into(), &Outcome::Success, later).await.unwrap();
    assert!(!at_work().await);
    assert!(!db.is_unused(&thread, later - 1).await.unwrap(), "it was used when the run was requested");
    assert_eq!(delete(later).await, Deletion::Done);
}

pub(crate) async fn a_users_threads_are_listed_with_pinned_ones_first(db: Db) {
    for (thread, now) in [("a", NOW), ("b", NOW + 1), ("c", NOW + 2)] {
        db.create_thread(new_thread(thread, now)).await.unwrap();
    }
    let other = ThreadFolder { owner: UserId::from_raw("bob").unwrap(), thread: "a".into() };
    db.create_thread(NewThread { folder: other, ..new_thread("a", NOW) }).await.unwrap();
    assert_eq!(
        db.client_thread(&"a".into()).await.unwrap().unwrap().user,
        ada(),
        "whose it is does not change"
    );
    let pin = ThreadChange { pinned: Some(true), title: Some("First".into()), ..ThreadChange::default() };
    assert!(db.change_thread(&"a".into(), pin.clone()).await.unwrap());
    assert!(!db.change_thread(&"none".into(), pin).await.unwrap());
    let listed = ThreadQuery { limit: 10, ..ThreadQuery::default() };
    let all = db.find_threads(&ada(), &listed).await.unwrap().threads;
    assert_eq!(all.iter().map(|thread| thread.id.as_str()).collect::<Vec<_>>(), ["a", "c", "b"]);
    assert_eq!((all[0].title.as_str(), all[0].metadata.as_str()), ("First", "{\"a\":1}"));
    assert!(db.find_threads(&UserId::from_raw("bob").unwrap(), &listed).await.unwrap().threads.is_empty());
}

pub(crate) async fn a_thread_can_be_read_as_of_any_row(db: Db) {
    let thread = ThreadId::from("mine");
    for (at, text) in ["a", "b", "c"].into_iter().enumerate() {
        let run = format!("run-{text}");
        db.append(&thread, &run.as_str().into(), at as i64, &[human_message(text, text)]).await.unwrap();
    }
    let count = async |seq| db.state_at(&thread, seq).await.map(|(at, state)| (at, state.messages.len()));
    assert_eq!(count(0).await.unwrap(), (0, 0));
    assert_eq!(count(2).await.unwrap(), (2, 2));
    assert_eq!(count(99).await.unwrap(), (3, 3));
    let before = Arc::new(db.state_at(&thread, 1).await.unwrap().1);
    db.append(&thread, &"back".into(), 3, &[pudu_base::Update::Restore(before.clone())]).await.unwrap();
    let (_, now) = db.load(&thread).await.unwrap();
    assert_eq!(now, ThreadState::clone(&before));
    assert_eq!(count(3).await.unwrap(), (3, 3), "later rows are still there");
    let rows = db.log_after(&thread, None, 1, 2).await.unwrap();
    assert_eq!(
        rows.iter().map(|row| (row.seq, row.run.as_str())).collect::<Vec<_>>(),
        [(2, "run-b"), (3, "run-c")]
    );
    let rows = db.log_before(&thread, 3, 10).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(db.span_of_run(&thread, &"run-b".into()).await.unwrap(), Some((2, 2)));
    assert_eq!(db.span_of_run(&thread, &"none".into()).await.unwrap(), None);
}

pub(crate) async fn the_newest_judgement_of_a_person_counts(db: Db) {
    db.create_thread(new_thread("mine", NOW)).await.unwrap();
    db.put_feedback(feedback("1", "run", 1)).await.unwrap();
    db.put_feedback(feedback("2", "run", -1)).await.unwrap();
    let kept = db.feedback(&"mine".into(), &ada()).await.unwrap();
    assert_eq!((kept.len(), kept[0].rating, kept[0].id.as_str()), (1, -1, "1"));
    assert!(!db.delete_feedback(&"run".into(), &ada(), Some("2")).await.unwrap());
    assert!(!db.delete_feedback(&"run".into(), &UserId::local(), None).await.unwrap());
    assert!(db.delete_feedback(&"run".into(), &ada(), Some("1")).await.unwrap());
}
