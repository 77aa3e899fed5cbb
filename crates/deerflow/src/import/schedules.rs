//! Imports scheduled tasks. The threads of their past runs are imported as threads, the run history is not.

use super::{
    Import,
    rows::{UNREADABLE, outcome},
    user_of,
};
use crate::{error::ImportError, report::ItemKind, row::SourceRow};
use pudu_schedules::Schedule;
use pudu_store::{ImportRecord, ScheduleKind, ScheduledTask, ScheduledTaskStatus};

impl Import<'_> {
    pub(super) async fn schedules(&mut self) -> Result<(), ImportError> {
        let sql = "SELECT CAST(id AS TEXT) AS id, CAST(user_id AS TEXT) AS user_id, CAST(thread_id AS TEXT) AS thread_id,
            CAST(context_mode AS TEXT) AS context_mode, CAST(title AS TEXT) AS title, CAST(prompt AS TEXT) AS prompt,
            CAST(schedule_type AS TEXT) AS kind, CAST(schedule_spec AS TEXT) AS spec, CAST(timezone AS TEXT) AS zone,
            CAST(status AS TEXT) AS status, CAST(run_count AS BIGINT) AS run_count, CAST(created_at AS TEXT) AS created_at
            FROM scheduled_tasks ORDER BY id";
        let rows = self.rows("scheduled_tasks", sql).await?;
        let mut tasks = Vec::new();
        for row in &rows {
            let Some(task) = self.task(row)? else {
                self.report.left(ItemKind::Schedule, "a row of scheduled_tasks", UNREADABLE);
                continue;
            };
            if self.is_forgotten(&task.user) {
                continue;
            }
            match Schedule::of_task(&task) {
                Ok(schedule) => {
                    let next_run = schedule.next_after(self.now);
                    tasks.push(ScheduledTask { next_run, status: status(row, next_run), ..task });
                }
                Err(error) => self.report.left(ItemKind::Schedule, task.title, error.to_string()),
            }
        }
        let records = tasks.iter().map(|task| ImportRecord::Schedule(Box::new(task.clone()))).collect();
        let new = self.target.db.import_records(records).await?;
        for (task, new) in tasks.iter().zip(new) {
            self.report.add(ItemKind::Schedule, outcome(new), &task.title, Some(task.user.as_str()), None);
        }
        Ok(())
    }

    fn task(&self, row: &SourceRow) -> Result<Option<ScheduledTask>, ImportError> {
        let kind = row.text("kind").and_then(|kind| ScheduleKind::parse(&kind));
        let (Some(id), Some(kind)) = (row.text("id"), kind) else { return Ok(None) };
        let (Some(title), Some(prompt)) = (row.text("title"), row.text("prompt")) else { return Ok(None) };
        let reuses = row.text("context_mode").as_deref() == Some("reuse_thread");
        let created = self.time(row, "created_at");
        Ok(Some(ScheduledTask {
            id,
            user: user_of(row.text("user_id").as_deref()),
            thread: row.text("thread_id").filter(|_| reuses).map(Into::into),
            title,
            prompt,
            kind,
            spec: row.text("spec").unwrap_or_default(),
            zone: row.text("zone").unwrap_or_else(|| "UTC".to_owned()),
            status: ScheduledTaskStatus::Enabled,
            agent: None,
            model: None,
            budget: None,
            chat: None,
            next_run: None,
            last_run: None,
            last_run_id: None,
            last_thread: None,
            last_error: None,
            run_count: row.number("run_count")?,
            failures: 0,
            created,
            updated: created,
        }))
    }
}

/// Returns the state of a task. A task that was to run while nothing ran it, or worked when DeerFlow was stopped, has ended.
fn status(row: &SourceRow, next_run: Option<i64>) -> ScheduledTaskStatus {
    let status = row.text("status").and_then(|status| ScheduledTaskStatus::parse(&status));
    match (status.unwrap_or(ScheduledTaskStatus::Paused), next_run) {
        (ScheduledTaskStatus::Enabled | ScheduledTaskStatus::Running, Some(_)) => {
            ScheduledTaskStatus::Enabled
        }
        (ScheduledTaskStatus::Enabled | ScheduledTaskStatus::Running, None) => ScheduledTaskStatus::Cancelled,
        (status, _) => status,
    }
}
