use super::*;
use serde_json::json;

/// Friday 27 November 2026, 09:00 UTC.
const NOW: i64 = 1_795_770_000_000;
const MINUTE: i64 = 60_000;
const LIMITS: ScheduleLimits = ScheduleLimits { min_once_delay: 60, now: NOW };

fn draft(kind: ScheduleKind, spec: Value) -> TaskDraft {
    TaskDraft {
        user: UserId::local(),
        title: " News ".into(),
        prompt: "Read the news\0".into(),
        kind,
        spec,
        zone: "UTC".into(),
        thread: None,
        agent: Some(" ".into()),
        model: Some("small".into()),
        budget: Some(1000),
        chat: None,
    }
}

fn hourly() -> ScheduledTask {
    draft(ScheduleKind::Cron, json!({"cron": "0 * * * *", "extra": 1})).into_task(LIMITS).unwrap()
}

fn once(text: &str) -> Result<ScheduledTask, ScheduleError> {
    draft(ScheduleKind::Once, json!({ "run_at": text })).into_task(LIMITS)
}

#[test]
fn a_new_task_has_clean_texts_and_its_first_time() {
    let task = hourly();
    assert_eq!((task.title.as_str(), task.prompt.as_str()), ("News", "Read the news\u{fffd}"));
    assert_eq!((task.agent, task.model.as_deref()), (None, Some("small")));
    assert_eq!(task.spec, r#"{"cron":"0 * * * *"}"#);
    assert_eq!(task.next_run, Some(NOW + 60 * MINUTE));
    assert!(task.id.starts_with("task-") && task.id.len() == 37, "{}", task.id);
    assert_eq!(once("2026-11-27T09:01:00Z").unwrap().next_run, Some(NOW + MINUTE));
}

#[test]
fn unusable_drafts_are_refused() {
    assert_eq!(once("2026-11-27T08:59:00Z"), Err(ScheduleError::Past));
    assert_eq!(once("2026-11-27T09:00:59Z"), Err(ScheduleError::TooSoon(60)));
    let cron = || draft(ScheduleKind::Cron, json!({"cron": "0 9 * * *"}));
    for (draft, expected) in [
        (TaskDraft { title: " \n".into(), ..cron() }, ScheduleError::Empty("title")),
        (TaskDraft { title: "x".repeat(256), ..cron() }, ScheduleError::TooLong("title", 255)),
        (TaskDraft { prompt: String::new(), ..cron() }, ScheduleError::Empty("prompt")),
        (TaskDraft { prompt: "x".repeat(50_001), ..cron() }, ScheduleError::TooLong("prompt", 50_000)),
        (TaskDraft { budget: Some(0), ..cron() }, ScheduleError::Budget(MAX_BUDGET)),
        (TaskDraft { budget: Some(-5), ..cron() }, ScheduleError::Budget(MAX_BUDGET)),
        (TaskDraft { model: Some("x".repeat(201)), ..cron() }, ScheduleError::TooLong("model", 200)),
    ] {
        assert_eq!(draft.into_task(LIMITS), Err(expected));
    }
}

#[test]
fn times_missed_during_a_pause_are_skipped() {
    let mut task = hourly();
    pause(&mut task, NOW).unwrap();
    pause(&mut task, NOW).unwrap();
    task.failures = 3;
    // Resumed five and a half hours later, it waits for the next full hour.
    resume(&mut task, NOW + 330 * MINUTE).unwrap();
    assert_eq!((task.status, task.next_run), (ScheduledTaskStatus::Enabled, Some(NOW + 360 * MINUTE)));
    assert_eq!(task.failures, 0);
    let mut task = once("2026-11-27T10:00:00Z").unwrap();
    pause(&mut task, NOW).unwrap();
    assert_eq!(resume(&mut task, NOW + 90 * MINUTE), Err(ScheduleError::Past));
    assert_eq!(task.status, ScheduledTaskStatus::Paused);
    for (status, expected) in [
        (ScheduledTaskStatus::Running, ScheduleError::Running),
        (ScheduledTaskStatus::Completed, ScheduleError::Ended),
        (ScheduledTaskStatus::Failed, ScheduleError::Ended),
        (ScheduledTaskStatus::Cancelled, ScheduleError::Ended),
    ] {
        let mut task = ScheduledTask { status, ..hourly() };
        assert_eq!((pause(&mut task, NOW), resume(&mut task, NOW)), (Err(expected.clone()), Err(expected)));
    }
}

#[test]
fn an_edit_changes_only_the_given_fields() {
    let mut task = hourly();
    let edit = TaskEdit { title: Some("Weather".into()), budget: Some(0), ..TaskEdit::default() };
    edit.apply(&mut task, ScheduleLimits { now: NOW + 1, ..LIMITS }).unwrap();
    let expected = ScheduledTask { title: "Weather".into(), budget: None, updated: NOW + 1, ..task.clone() };
    assert_eq!(task, expected);
    // New times keep a pause, and enable a task that has ended.
    let daily = TaskEdit { spec: Some(json!({"cron": "30 9 * * *"})), ..TaskEdit::default() };
    for (before, after) in [
        (ScheduledTaskStatus::Paused, ScheduledTaskStatus::Paused),
        (ScheduledTaskStatus::Failed, ScheduledTaskStatus::Enabled),
    ] {
        let mut task = ScheduledTask { status: before, ..hourly() };
        daily.apply(&mut task, LIMITS).unwrap();
        assert_eq!((task.status, task.next_run), (after, Some(NOW + 30 * MINUTE)));
    }
    let zone = TaskEdit { zone: Some("Asia/Kathmandu".into()), ..TaskEdit::default() };
    zone.apply(&mut task, LIMITS).unwrap();
    assert_eq!(task.next_run, Some(NOW + 15 * MINUTE));
    let mut busy = ScheduledTask { status: ScheduledTaskStatus::Running, ..hourly() };
    assert_eq!(zone.apply(&mut busy, LIMITS), Err(ScheduleError::Running));
    let wrong = TaskEdit { spec: Some(json!({"cron": "x"})), ..TaskEdit::default() };
    assert!(wrong.apply(&mut task, LIMITS).is_err());
}
