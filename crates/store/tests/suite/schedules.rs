//! Scheduled tasks: each due time starts once, and its end reaches the task.

use crate::{
    client_runs::request,
    fixture::{NOW, turn},
};
use pudu_base::{FailureCause, Outcome, RunId, ThreadFolder, UserId};
use pudu_store::{
    Db, InboxItemId, InsertedEvent, NewClientRun, NewInboxItem, NewThread, NewTurn, RunOrigin, ScheduleKind,
    ScheduledCause, ScheduledChat, ScheduledClaim, ScheduledRunStatus, ScheduledStart, ScheduledTask,
    ScheduledTaskStatus, ScheduledWork,
};

const HOUR: i64 = 3_600_000;

pub(crate) fn hourly(id: &str) -> ScheduledTask {
    ScheduledTask {
        id: id.into(),
        user: UserId::from_raw("ada").unwrap(),
        thread: None,
        title: "News".into(),
        prompt: "Read the news".into(),
        kind: ScheduleKind::Cron,
        spec: r#"{"cron":"0 * * * *"}"#.into(),
        zone: "UTC".into(),
        status: ScheduledTaskStatus::Enabled,
        agent: None,
        model: None,
        budget: Some(5),
        chat: None,
        next_run: Some(NOW),
        last_run: None,
        last_run_id: None,
        last_thread: None,
        last_error: None,
        run_count: 0,
        failures: 0,
        created: NOW - 9,
        updated: NOW - 9,
    }
}

fn once(id: &str) -> ScheduledTask {
    ScheduledTask { kind: ScheduleKind::Once, ..hourly(id) }
}

fn in_chat(id: &str) -> ScheduledTask {
    let chat =
        ScheduledChat { account: "slack".into(), chat: "C".into(), person: "U1".into(), target: "{}".into() };
    ScheduledTask { chat: Some(chat), ..hourly(id) }
}

fn run_of(run: &str, thread: &str) -> NewClientRun {
    NewClientRun { origin: RunOrigin::Schedule, ..request(run, thread, NOW) }
}

fn on_thread(run: &str) -> ScheduledWork {
    ScheduledWork::Thread { run: Box::new(run_of(run, &format!("thread of {run}"))), needs_thread: false }
}

fn event(key: &str) -> NewInboxItem {
    NewInboxItem {
        account: "slack".into(),
        event_key: key.into(),
        chat: "C".into(),
        message: None,
        payload: "{}".into(),
        at: NOW,
        position: None,
    }
}

/// The claim of the due time `hour` hours after the first.
fn due_claim(task: &str, hour: i64, work: ScheduledWork) -> ScheduledClaim {
    ScheduledClaim {
        task: task.into(),
        id: format!("{task} {hour}"),
        cause: ScheduledCause::Scheduled,
        scheduled_for: NOW + hour * HOUR,
        next: Some(NOW + (hour + 1) * HOUR),
        work,
        max_active: 3,
        now: NOW + hour * HOUR + 1,
    }
}

fn manual_claim(task: &str, run: &str) -> ScheduledClaim {
    ScheduledClaim {
        id: format!("{task} by hand {run}"),
        cause: ScheduledCause::Manual,
        next: None,
        ..due_claim(task, 0, on_thread(run))
    }
}

async fn statuses(db: &Db, task: &str) -> Vec<(i64, &'static str)> {
    let runs = db.scheduled_runs(task, 99, 0).await.unwrap();
    runs.iter().rev().map(|run| ((run.scheduled_for - NOW) / HOUR, run.status.as_str())).collect()
}

async fn task(db: &Db, id: &str) -> ScheduledTask {
    db.scheduled_task(id).await.unwrap().unwrap()
}

/// Makes each kind of write of this part once.
pub(crate) async fn script(db: &Db) {
    db.add_scheduled_task(in_chat("task"), 9).await.unwrap();
    let rename = |task: &mut ScheduledTask| {
        task.failures = 3;
        Ok::<_, ()>(())
    };
    db.change_scheduled_task("task", rename).await.unwrap().unwrap().unwrap();
    let work = ScheduledWork::Chat(Box::new(event("task 0")));
    let ScheduledStart::Started(Some(item)) = db.claim_scheduled(due_claim("task", 0, work)).await.unwrap()
    else {
        return;
    };
    db.refuse_scheduled("task 0", item, "no access", NOW).await.unwrap();
    db.pause_failing("task", 3, Some(turn("notice", &[]))).await.unwrap();
    db.delete_scheduled_task("task").await.unwrap();
}

pub(crate) async fn a_due_time_starts_once_and_the_task_gets_its_next_time(db: Db) {
    assert!(db.add_scheduled_task(hourly("a"), 1).await.unwrap());
    assert!(!db.add_scheduled_task(hourly("b"), 1).await.unwrap(), "the limit is reached");
    assert_eq!(db.next_scheduled().await.unwrap(), Some(NOW));
    assert_eq!(db.due_scheduled(NOW - 1, 9).await.unwrap(), Vec::new());
    assert_eq!(db.due_scheduled(NOW, 9).await.unwrap(), [hourly("a")]);
    // Of two planners, one starts the run.
    let claim = due_claim("a", 0, on_thread("one"));
    let other = ScheduledClaim { id: "other".into(), ..due_claim("a", 0, on_thread("two")) };
    let (one, two) = tokio::join!(db.claim_scheduled(claim), db.claim_scheduled(other));
    assert_eq!((one.unwrap(), two.unwrap()), (ScheduledStart::Started(None), ScheduledStart::Stale));
    let run = db.run(&"one".into()).await.unwrap().unwrap();
    assert_eq!((run.origin, run.user.as_str()), (RunOrigin::Schedule, "ada"));
    assert_eq!(db.run(&"two".into()).await.unwrap(), None);
    let now = task(&db, "a").await;
    assert_eq!((now.next_run, now.run_count), (Some(NOW + HOUR), 1));
    assert_eq!((now.last_run_id.as_deref(), now.last_run), (Some("one"), Some(NOW + 1)));
    // The next due time is skipped, because the run is active. The one after it starts again.
    assert_eq!(db.claim_scheduled(due_claim("a", 1, on_thread("x"))).await.unwrap(), ScheduledStart::Skipped);
    db.run_ended(&"one".into(), &Outcome::Success, NOW + HOUR + 5).await.unwrap();
    let started = db.claim_scheduled(due_claim("a", 2, on_thread("three"))).await.unwrap();
    assert_eq!(started, ScheduledStart::Started(None));
    assert_eq!(statuses(&db, "a").await, [(0, "success"), (1, "skipped"), (2, "running")]);
    assert!(db.delete_scheduled_task("a").await.unwrap());
    assert!(!db.delete_scheduled_task("a").await.unwrap());
    assert_eq!(statuses(&db, "a").await.len(), 3, "the history is kept");
}

pub(crate) async fn starts_by_hand_launch_one_run_and_keep_the_schedule(db: Db) {
    let paused = ScheduledTask { status: ScheduledTaskStatus::Paused, ..hourly("a") };
    db.add_scheduled_task(paused, 9).await.unwrap();
    let (one, two) =
        tokio::join!(db.claim_scheduled(manual_claim("a", "1")), db.claim_scheduled(manual_claim("a", "2")));
    assert_eq!((one.unwrap(), two.unwrap()), (ScheduledStart::Started(None), ScheduledStart::Active));
    let now = task(&db, "a").await;
    assert_eq!((now.status, now.next_run, now.run_count), (ScheduledTaskStatus::Paused, Some(NOW), 1));
    db.add_scheduled_task(once("b"), 9).await.unwrap();
    db.claim_scheduled(manual_claim("b", "3")).await.unwrap();
    db.run_ended(&"3".into(), &Outcome::Success, NOW).await.unwrap();
    let now = task(&db, "b").await;
    assert_eq!(
        (now.status, now.next_run),
        (ScheduledTaskStatus::Enabled, Some(NOW)),
        "its next time is unchanged"
    );
    // The limit counts the active runs of all tasks.
    let full = ScheduledClaim { max_active: 1, ..manual_claim("b", "4") };
    assert_eq!(db.claim_scheduled(full).await.unwrap(), ScheduledStart::Full);
    assert_eq!(db.claim_scheduled(manual_claim("none", "5")).await.unwrap(), ScheduledStart::Stale);
}

pub(crate) async fn the_only_run_of_a_task_ends_it(db: Db) {
    let failed = Outcome::from(FailureCause::Broken);
    for (id, outcome, expected) in [
        ("a", Outcome::Success, ScheduledTaskStatus::Completed),
        ("b", Outcome::Stopped, ScheduledTaskStatus::Cancelled),
        ("c", failed, ScheduledTaskStatus::Failed),
    ] {
        db.add_scheduled_task(once(id), 9).await.unwrap();
        db.claim_scheduled(ScheduledClaim { next: None, ..due_claim(id, 0, on_thread(id)) }).await.unwrap();
        let now = task(&db, id).await;
        assert_eq!((now.status, now.next_run), (ScheduledTaskStatus::Running, None));
        db.run_ended(&id.into(), &outcome, NOW).await.unwrap();
        // A later end changes nothing.
        db.run_ended(&id.into(), &Outcome::Timeout, NOW).await.unwrap();
        assert_eq!(task(&db, id).await.status, expected);
    }
}

pub(crate) async fn a_task_that_keeps_failing_is_paused_with_one_notice(db: Db) {
    db.add_scheduled_task(in_chat("a"), 9).await.unwrap();
    let needs = ScheduledWork::Thread { run: Box::new(run_of("x", "gone")), needs_thread: true };
    let gone = ScheduledStart::Failed("Thread not found".into());
    assert_eq!(db.claim_scheduled(due_claim("a", 0, needs)).await.unwrap(), gone);
    let impossible = ScheduledWork::Impossible("no bot".into());
    assert_eq!(
        db.claim_scheduled(due_claim("a", 1, impossible)).await.unwrap(),
        ScheduledStart::Failed("no bot".into())
    );
    assert_eq!(db.failing_scheduled(3).await.unwrap(), Vec::new());
    db.claim_scheduled(due_claim("a", 2, on_thread("run"))).await.unwrap();
    db.run_ended(&"run".into(), &Outcome::Timeout, NOW).await.unwrap();
    let failing = db.failing_scheduled(3).await.unwrap();
    assert_eq!(failing[0].last_error.as_deref(), Some("the run took too long"));
    assert!(db.pause_failing("a", 3, Some(turn("notice", &[]))).await.unwrap());
    assert!(!db.pause_failing("a", 3, Some(turn("again", &[]))).await.unwrap());
    assert_eq!(db.open_turns().await.unwrap().len(), 1);
    assert_eq!(task(&db, "a").await.status, ScheduledTaskStatus::Paused);
    // A success ends the row of failures.
    db.add_scheduled_task(ScheduledTask { failures: 2, ..hourly("b") }, 9).await.unwrap();
    db.claim_scheduled(due_claim("b", 0, on_thread("good"))).await.unwrap();
    db.run_ended(&"good".into(), &Outcome::Success, NOW).await.unwrap();
    assert_eq!(task(&db, "b").await.failures, 0);
}

pub(crate) async fn a_chat_gets_a_due_time_as_an_event(db: Db) {
    db.add_scheduled_task(in_chat("a"), 9).await.unwrap();
    let start = async |hour: i64| -> InboxItemId {
        let work = ScheduledWork::Chat(Box::new(event(&format!("a {hour}"))));
        match db.claim_scheduled(due_claim("a", hour, work)).await.unwrap() {
            ScheduledStart::Started(Some(item)) => item,
            other => panic!("{other:?}"),
        }
    };
    let item = start(0).await;
    assert_eq!(statuses(&db, "a").await, [(0, "queued")]);
    let folder = ThreadFolder { owner: UserId::from_raw("ada").unwrap(), thread: "t".into() };
    let answer = NewTurn {
        account: "slack".into(),
        folder: Some(folder),
        run: Some("run".into()),
        ..turn("first", &[item])
    };
    db.open_turn(&answer).await.unwrap();
    let row = db.scheduled_runs("a", 1, 0).await.unwrap().remove(0);
    assert_eq!((row.status, row.run), (ScheduledRunStatus::Running, Some(RunId::from("run"))));
    assert_eq!(task(&db, "a").await.last_thread, Some("t".into()));
    db.run_ended(&"run".into(), &Outcome::Success, NOW).await.unwrap();
    // An event without an answer, and one whose answer needs no run, have failed.
    let item = start(1).await;
    db.refuse_scheduled("a 1", item, "no access", NOW).await.unwrap();
    let item = start(2).await;
    let refusal = NewTurn { account: "slack".into(), folder: None, run: None, ..turn("second", &[item]) };
    db.open_turn(&refusal).await.unwrap();
    assert_eq!(statuses(&db, "a").await, [(0, "success"), (1, "failed"), (2, "failed")]);
    assert_eq!(task(&db, "a").await.failures, 2);
    assert_eq!(db.prune_scheduled_runs(NOW + HOUR).await.unwrap(), 1);
    assert_eq!(statuses(&db, "a").await.len(), 2);
}

pub(crate) async fn a_command_that_drops_waiting_tasks_ends_each_as_stopped(db: Db) {
    let mut items = Vec::new();
    for id in ["a", "b"] {
        db.add_scheduled_task(ScheduledTask { kind: ScheduleKind::Once, ..in_chat(id) }, 9).await.unwrap();
        let work = ScheduledWork::Chat(Box::new(event(&format!("{id} 0"))));
        let claim = ScheduledClaim { next: None, ..due_claim(id, 0, work) };
        let ScheduledStart::Started(Some(item)) = db.claim_scheduled(claim).await.unwrap() else {
            panic!("task {id} does not start");
        };
        items.push(item);
    }
    let InsertedEvent::New(command) = db.accept(&event("/stop")).await.unwrap() else { panic!("it is new") };
    items.push(command);
    let stop = NewTurn { account: "slack".into(), folder: None, run: None, ..turn("stop", &items) };
    db.open_turn(&stop).await.unwrap();
    for id in ["a", "b"] {
        assert_eq!(statuses(&db, id).await, [(0, "interrupted")]);
        let ended = task(&db, id).await;
        assert_eq!((ended.status, ended.failures), (ScheduledTaskStatus::Cancelled, 0));
        assert_eq!(ended.last_error.as_deref(), Some("the run was stopped before it began"));
    }
}

pub(crate) async fn a_task_follows_its_persons_user_and_is_deleted_with_them(db: Db) {
    let keys = crate::person::ada();
    let mine = ScheduledTask { user: UserId::from_raw("slack.U1").unwrap(), ..in_chat("a") };
    db.add_scheduled_task(mine, 9).await.unwrap();
    db.add_scheduled_task(ScheduledTask { user: UserId::from_raw("bob").unwrap(), ..hourly("b") }, 9)
        .await
        .unwrap();
    let identity = pudu_store::Identity {
        account: "slack".into(),
        person: "U1".into(),
        user: keys.user.clone(),
        name: "Ada".into(),
        at: NOW,
    };
    db.identify(identity).await.unwrap();
    assert_eq!(db.scheduled_tasks(&keys.user).await.unwrap().len(), 1);
    db.claim_scheduled(due_claim("a", 0, on_thread("run"))).await.unwrap();
    db.run_ended(&"run".into(), &Outcome::Success, NOW).await.unwrap();
    let tables = db.person_tables(&keys).await.unwrap();
    let rows =
        |name: &str| tables.iter().find(|table| table.name == name).map_or(0, |table| table.rows.len());
    assert_eq!((rows("scheduled_tasks"), rows("scheduled_task_runs")), (1, 1));
    assert!(db.forget_person(&keys, Vec::new(), Vec::new()).await.unwrap());
    assert_eq!(db.all_scheduled_tasks().await.unwrap().len(), 1);
    assert_eq!(statuses(&db, "a").await, []);
}

pub(crate) async fn a_required_existing_thread_is_used(db: Db) {
    let folder = ThreadFolder { owner: UserId::from_raw("ada").unwrap(), thread: "mine".into() };
    let thread = NewThread {
        folder,
        account: "api".into(),
        assistant: "lead_agent".into(),
        metadata: String::new(),
        now: NOW,
    };
    db.create_thread(thread).await.unwrap();
    db.add_scheduled_task(hourly("a"), 9).await.unwrap();
    let work = |user: &str| {
        let run = NewClientRun { user: UserId::from_raw(user).unwrap(), ..run_of(user, "mine") };
        ScheduledWork::Thread { run: Box::new(run), needs_thread: true }
    };
    let foreign = ScheduledStart::Failed("Thread not found".into());
    assert_eq!(db.claim_scheduled(due_claim("a", 0, work("bob"))).await.unwrap(), foreign);
    let started = db.claim_scheduled(due_claim("a", 1, work("ada"))).await.unwrap();
    assert_eq!(started, ScheduledStart::Started(None));
}
