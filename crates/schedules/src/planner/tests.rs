use super::*;
use crate::{ScheduleLimits, TaskDraft};
use pudu_base::{FailureCause, Outcome, ThreadFolder, UserId};
use pudu_kit::simulation::Simulation;
use pudu_store::{
    DbLocation, NewClientRun, RunOrigin, ScheduledClaim, ScheduledRunStatus, ScheduledTaskStatus,
    ScheduledWork,
};
use serde_json::json;
use std::{cell::Cell, collections::BTreeMap};
use tokio::time::Instant;

/// 1 January 2026, 00:00 UTC.
const START: i64 = 1_767_225_600_000;
const HOUR: i64 = 3_600_000;
const YEAR: i64 = 365 * 24 * HOUR;

thread_local! {
    static BEGIN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Makes the clock of this thread follow tokio's paused time.
fn simulate() {
    BEGIN.set(Some(Instant::now()));
    let now = || START + BEGIN.get().map_or(0, |begin| clock::millis(begin.elapsed()));
    Simulation { now, step: |_| Ok(()) }.enter();
}

/// Work that ends at once, as given.
struct InstantWork {
    db: Db,
    outcome: Outcome,
    /// Whether the work ends.
    ends: bool,
}

impl Launcher for InstantWork {
    fn launch<'a>(
        &'a self,
        task: &'a ScheduledTask,
        start: TaskStart,
    ) -> BoxFuture<'a, Result<ScheduledStart, StoreError>> {
        Box::pin(async move {
            let run = NewClientRun {
                id: start.id.as_str().into(),
                folder: ThreadFolder { owner: task.user.clone(), thread: task.id.as_str().into() },
                account: "api".into(),
                origin: RunOrigin::Schedule,
                user: task.user.clone(),
                assistant: String::new(),
                request: String::new(),
                metadata: String::new(),
                multitask: "enqueue".into(),
                deletes_thread: false,
                cancels: None,
                now: start.now,
            };
            let id = run.id.clone();
            let claim = ScheduledClaim {
                task: task.id.clone(),
                id: start.id,
                cause: start.cause,
                scheduled_for: start.scheduled_for,
                next: start.next,
                work: ScheduledWork::Thread { run: Box::new(run), needs_thread: false },
                max_active: i64::from(start.max_active),
                now: start.now,
            };
            let started = self.db.claim_scheduled(claim).await?;
            if self.ends {
                self.db.run_ended(&id, &self.outcome, clock::now()).await?;
            }
            Ok(started)
        })
    }

    fn give_up<'a>(&'a self, task: &'a ScheduledTask, most: u32) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { self.db.pause_failing(&task.id, i64::from(most), None).await.map(drop) })
    }
}

const SETTINGS: PlannerSettings = PlannerSettings {
    enabled: true,
    // A year takes fewer steps if nothing but due times wakes the planner.
    poll_interval: Duration::from_secs(30 * 24 * 3600),
    max_active: 3,
    max_failures: 3,
};

async fn open() -> (Db, InstantWork) {
    simulate();
    let db = Db::open(&DbLocation::Memory).await.unwrap();
    (db.clone(), InstantWork { db, outcome: Outcome::Success, ends: true })
}

async fn add(db: &Db, cron: &str, zone: &str) -> String {
    let draft = TaskDraft {
        user: UserId::local(),
        title: format!("{cron} {zone}"),
        prompt: "Go".into(),
        kind: ScheduleKind::Cron,
        spec: json!({ "cron": cron }),
        zone: zone.into(),
        thread: None,
        agent: None,
        model: None,
        budget: None,
        chat: None,
    };
    let task = draft.into_task(ScheduleLimits { min_once_delay: 60, now: clock::now() }).unwrap();
    assert!(db.add_scheduled_task(task.clone(), 99).await.unwrap());
    task.id
}

/// Runs the planner for some time, and stops it at an arbitrary point.
async fn plan_for(db: &Db, launcher: &InstantWork, settings: PlannerSettings, millis: i64) {
    let (changed, stop) = (Notify::new(), CancellationToken::new());
    let planning = plan(db, launcher, move || settings, &changed, stop);
    tokio::time::timeout(Duration::from_millis(millis.unsigned_abs()), planning).await.ok();
}

/// Returns the planned times of a task with their states, oldest first.
async fn history(db: &Db, task: &str) -> Vec<(i64, &'static str)> {
    let runs = db.scheduled_runs(task, 10_000, 0).await.unwrap();
    runs.iter().rev().map(|run| (run.scheduled_for, run.status.as_str())).collect()
}

#[tokio::test(start_paused = true)]
async fn in_a_year_in_six_zones_each_due_time_starts_once_although_planners_are_killed() {
    let (db, launcher) = open().await;
    let mut tasks = BTreeMap::new();
    let zones = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo"];
    for zone in zones.iter().chain(&["Asia/Kathmandu", "Africa/Casablanca"]) {
        for cron in ["30 2 * * *", "0 */12 * * *"] {
            tasks.insert(add(&db, cron, zone).await, (cron, *zone));
        }
    }
    let mut random = fastrand::Rng::with_seed(7);
    let mut left = YEAR;
    while left > 0 {
        let life = random.i64(1..20 * HOUR).min(left);
        plan_for(&db, &launcher, SETTINGS, life).await;
        left -= life;
    }
    for (id, (cron, zone)) in tasks {
        let schedule = Schedule::parse(ScheduleKind::Cron, &json!({ "cron": cron }), zone).unwrap();
        let due = std::iter::successors(schedule.next_after(START), |time| schedule.next_after(*time));
        let due: Vec<_> = due.take_while(|time| *time < START + YEAR).map(|time| (time, "success")).collect();
        assert_eq!(history(&db, &id).await, due, "{cron} in {zone}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_break_a_task_runs_once_late() {
    let (db, launcher) = open().await;
    let id = add(&db, "0 * * * *", "UTC").await;
    tokio::time::sleep(Duration::from_secs(5 * 3600 + 600)).await;
    plan_for(&db, &launcher, SETTINGS, 2 * HOUR).await;
    let hours: Vec<i64> = history(&db, &id).await.iter().map(|(time, _)| (time - START) / HOUR).collect();
    assert_eq!(hours, [1, 6, 7], "the first missed time, then those after the break");
}

#[tokio::test(start_paused = true)]
async fn a_disabled_planner_starts_nothing_and_a_change_wakes_it() {
    let (db, launcher) = open().await;
    let id = add(&db, "0 * * * *", "UTC").await;
    plan_for(&db, &launcher, PlannerSettings { enabled: false, ..SETTINGS }, 3 * HOUR).await;
    assert_eq!(history(&db, &id).await, []);
    // The planner sleeps for days. A new task wakes it, and starts on time.
    let (changed, stop) = (Notify::new(), CancellationToken::new());
    db.delete_scheduled_task(&id).await.unwrap();
    let create = async {
        tokio::time::sleep(Duration::from_secs(1800)).await;
        let id = add(&db, "0 * * * *", "UTC").await;
        changed.notify_one();
        tokio::time::sleep(Duration::from_secs(3600)).await;
        stop.cancel();
        id
    };
    let planning = plan(&db, &launcher, || SETTINGS, &changed, stop.clone());
    let (id, ()) = tokio::join!(create, planning);
    assert_eq!(history(&db, &id).await, [(START + 4 * HOUR, "success")]);
}

#[tokio::test(start_paused = true)]
async fn active_runs_are_limited_and_the_others_wait() {
    let (db, launcher) = open().await;
    let launcher = InstantWork { ends: false, ..launcher };
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(add(&db, "0 * * * *", "UTC").await);
    }
    let soon = PlannerSettings { poll_interval: Duration::from_secs(5), ..SETTINGS };
    plan_for(&db, &launcher, soon, HOUR + 20_000).await;
    let mut waiting = Vec::new();
    for id in &ids {
        match db.scheduled_runs(id, 9, 0).await.unwrap().first() {
            Some(run) => assert_eq!(run.status, ScheduledRunStatus::Running),
            None => waiting.push(id),
        }
    }
    assert_eq!(waiting.len(), 1);
    let busy = ids.iter().find(|id| !waiting.contains(id)).unwrap();
    let run = db.scheduled_runs(busy, 1, 0).await.unwrap().remove(0).run.unwrap();
    db.run_ended(&run, &Outcome::Success, clock::now()).await.unwrap();
    plan_for(&db, &launcher, soon, 20_000).await;
    assert_eq!(history(&db, waiting[0]).await, [(START + HOUR, "running")], "with its planned time");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_keeps_failing_is_paused() {
    let (db, launcher) = open().await;
    let failing = InstantWork { outcome: FailureCause::Broken.into(), ..launcher };
    let id = add(&db, "0 * * * *", "UTC").await;
    plan_for(&db, &failing, SETTINGS, 24 * HOUR).await;
    assert_eq!(history(&db, &id).await.len(), 3);
    let task = db.scheduled_task(&id).await.unwrap().unwrap();
    assert_eq!((task.status, task.failures), (ScheduledTaskStatus::Paused, 3));
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_zone_is_gone_fails_and_is_tried_again() {
    let (db, launcher) = open().await;
    let id = add(&db, "0 * * * *", "UTC").await;
    let gone = |task: &mut ScheduledTask| {
        task.zone = "Mars/Base".into();
        Ok::<_, ()>(())
    };
    db.change_scheduled_task(&id, gone).await.unwrap().unwrap().unwrap();
    let task = db.scheduled_task(&id).await.unwrap().unwrap();
    let start = due_start(&task, 3, START + HOUR);
    assert_eq!(start.problem.as_deref(), Some("Unknown timezone: Mars/Base"));
    assert_eq!(start.next, Some(START + HOUR + UNREADABLE_RETRY));
    drop(launcher);
}
