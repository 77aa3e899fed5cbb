//! Stages of sub-agents' tasks, read from the logs of their parents' threads.

use super::history::LogEntry;
use crate::{Db, Result, engines::query};
use pudu_base::{CallId, RunId, Seq, TaskStage, ThreadId, Update};

/// A stage of a task, from a thread's log.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRow {
    /// Its position in the log.
    pub seq: Seq,
    /// The run.
    pub run: RunId,
    /// Time of the write, in milliseconds since 1970.
    pub at: i64,
    /// The tool call that started the task.
    pub call: CallId,
    /// The stage.
    pub stage: TaskStage,
}

/// Filter for stages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Only stages of this run.
    pub run: Option<RunId>,
    /// Only stages of this task.
    pub call: Option<CallId>,
    /// Only stages after this position.
    pub after: Seq,
    /// Maximum number of stages to read from the log.
    pub limit: u32,
}

impl Db {
    /// Returns the stages of a thread's tasks, oldest first, and the position to continue after if there may be more.
    pub async fn task_stages(
        &self,
        thread: &ThreadId,
        filter: &TaskFilter,
    ) -> Result<(Vec<TaskRow>, Option<Seq>)> {
        // The JSON of an update begins with its kind.
        let sql = "SELECT seq, run, at, body FROM log
            WHERE thread = $1 AND seq > $2 AND run = COALESCE($3, run) AND body LIKE '{\"op\":\"task\",%'
            ORDER BY seq LIMIT $4";
        let rows = query(sql).bind(thread).bind(filter.after).bind(filter.run.as_ref());
        let rows: Vec<LogEntry> = self.all(rows.bind(i64::from(filter.limit))).await?;
        let full = rows.len() >= filter.limit as usize;
        let next = rows.last().map(|row| row.seq).filter(|_| full);
        let stage = |LogEntry { seq, run, at, update }| match update {
            Update::Task { call, stage } => Some(TaskRow { seq, run, at, call, stage }),
            _ => None,
        };
        let matches = |row: &TaskRow| filter.call.as_ref().is_none_or(|call| row.call == *call);
        Ok((rows.into_iter().filter_map(stage).filter(matches).collect(), next))
    }
}
