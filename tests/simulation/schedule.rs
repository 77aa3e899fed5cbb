//! Scheduled tasks of a simulation: each due time has exactly one outcome.

use crate::{
    story::{Story, Talk, names},
    world::{self, with},
};
use pudu_base::UserId;
use pudu_store::{Db, DbLocation, ScheduleKind, ScheduledChat, ScheduledTask, ScheduledTaskStatus};
use rusqlite::Connection;
use serde_json::json;
use std::path::Path;

/// Time within which tasks are due, in milliseconds.
const DAY: i64 = 40_000;
/// Beginning of the answer to a task in a chat.
const HEADING: &str = "⏰ ";

/// Stores some tasks before the first life of the daemon, in threads and in chats.
pub async fn plan(home: &Path, story: &mut Story) {
    std::fs::create_dir_all(home.join(".pudu/data")).unwrap();
    let db = Db::open(&DbLocation::Sqlite(home.join(".pudu/data/pudu.db"))).await.unwrap();
    let rate = with(|world| std::mem::take(&mut world.faults.rate));
    let mut random = with(|world| world.random.fork());
    for n in 0..random.usize(0..3) {
        let due = world::now() + random.i64(1..DAY);
        assert!(db.add_scheduled_task(task(format!("thread {n}"), due, None), 99).await.unwrap());
    }
    for talk in &mut story.talks {
        for _ in 0..random.usize(0..3) {
            let due = world::now() + random.i64(1..DAY);
            let title = format!("task {}", talk.scheduled);
            let added = db.add_scheduled_task(task(title, due, Some(talk)), 99).await;
            assert!(added.unwrap());
            talk.scheduled += 1;
        }
    }
    db.close().await;
    with(|world| world.faults.rate = rate);
}

fn task(title: String, due: i64, talk: Option<&Talk>) -> ScheduledTask {
    let chat = talk.map(|talk| {
        let (chat, person) = (talk.chat.to_string(), talk.person.to_string());
        let address = json!({"account": "telegram", "chat": chat, "topic": null});
        let sender = json!({"id": person, "name": "Ada"});
        let target = json!({"address": address, "private": true, "sender": sender});
        ScheduledChat { account: "telegram".into(), chat, person, target: target.to_string() }
    });
    ScheduledTask {
        id: format!("task-{}-{title}", chat.as_ref().map_or("", |chat| &chat.chat)),
        user: UserId::local(),
        thread: None,
        prompt: format!("Do the {title}"),
        title,
        kind: ScheduleKind::Once,
        spec: r#"{"run_at":"2026-11-18T00:00:00Z"}"#.into(),
        zone: "UTC".into(),
        status: ScheduledTaskStatus::Enabled,
        agent: None,
        model: None,
        budget: None,
        chat,
        next_run: Some(due),
        last_run: None,
        last_run_id: None,
        last_thread: None,
        last_error: None,
        run_count: 0,
        failures: 0,
        created: 0,
        updated: 0,
    }
}

/// Takes the headings of scheduled tasks out of a chat, and checks that there is one of each. A task that waited when its
/// person stopped everything has none.
pub fn take_answers(talk: &Talk, answers: &mut Vec<&str>, has_stops: bool) -> Result<(), String> {
    for n in 0..talk.scheduled {
        let heading = format!("{HEADING}task {n}");
        let is_answer = |text: &str| text.lines().next() == Some(heading.as_str());
        match answers.iter().filter(|text| is_answer(text)).count() {
            1 => {}
            0 if has_stops => {}
            count => return Err(format!("task {n} has {count} answers")),
        }
        for text in answers.iter_mut().filter(|text| is_answer(text)) {
            // Messages that steered the run are answered below the heading.
            *text = text.split_once('\n').map_or("", |(_, rest)| rest).trim();
        }
    }
    answers.retain(|text| !(text.is_empty() || text.starts_with("re ") && names(text).is_empty()));
    Ok(())
}

/// Checks that no scheduled task works.
pub fn check_idle(home: &Path) -> Result<(), String> {
    let db = Connection::open(home.join(".pudu/data/pudu.db")).unwrap();
    let sql = "SELECT COUNT(*) FROM scheduled_task_runs WHERE status IN ('queued', 'running')";
    match db.query_row(sql, [], |row| row.get::<_, i64>(0)) {
        Ok(0) => Ok(()),
        Ok(count) => Err(format!("{count} scheduled runs are active")),
        Err(error) => Err(error.to_string()),
    }
}

/// Checks that each due time is recorded once, and that its work ended.
pub fn check_database(db: &Connection, story: &Story) -> Result<(), String> {
    let count = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let tasks = count("SELECT COUNT(*) FROM scheduled_tasks");
    let in_chats: i64 = story.talks.iter().map(|talk| i64::try_from(talk.scheduled).unwrap()).sum();
    for (what, expected, sql) in [
        ("due times", tasks, "SELECT COUNT(*) FROM scheduled_task_runs"),
        ("tasks with a due time", tasks, "SELECT COUNT(DISTINCT task) FROM scheduled_task_runs"),
        ("active runs", 0, "SELECT COUNT(*) FROM scheduled_task_runs WHERE status IN ('queued', 'running')"),
        ("enabled tasks", 0, "SELECT COUNT(*) FROM scheduled_tasks WHERE status IN ('enabled', 'running')"),
        ("runs on threads", tasks - in_chats, "SELECT COUNT(*) FROM runs WHERE origin = 'schedule'"),
    ] {
        let found = count(sql);
        if found != expected {
            return Err(format!("{found} {what} instead of {expected}"));
        }
    }
    Ok(())
}
