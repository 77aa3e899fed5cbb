//! How a sub-agent's task ended, and the text that its parent's model reads: the results of the tool [`TASK`]. The
//! beginnings of these texts are a contract with DeerFlow's clients, which parse the status from them.

use pudu_base::{Outcome, StopReason, TaskEnd, TaskReport, TaskStatus, Usage, cut_task_text};
use std::time::Duration;

/// Name of the tool that starts a sub-agent.
pub const TASK: &str = "task";
/// Name of the tool that gives a task to another agent by the Agent Client Protocol.
pub const ACP_TASK: &str = "invoke_acp_agent";
/// Text of a task whose run a user stopped.
pub(crate) const CANCELLED: &str = "Task cancelled by user.";
/// Error of a task during which the process exited.
pub(crate) const LOST: &str =
    "a restart interrupted it. Some of its work may be done: check before you delegate it again";
/// Error of a task that ended without a report.
const SILENT: &str = "it ended without a report";

/// Returns whether the calls of a tool are tasks with steps in the log of the thread.
pub(crate) fn has_steps(tool: &str) -> bool {
    tool == TASK || tool == ACP_TASK
}

/// End of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskEnding {
    status: TaskStatus,
    stop_reason: Option<StopReason>,
    /// The report, or the error.
    words: String,
}

impl TaskEnding {
    /// Judges how a run ended: `stop_reason` is the limit that made a middleware stop it, and `report` is its last
    /// text.
    pub(crate) fn from_outcome(
        outcome: &Outcome,
        stop_reason: Option<StopReason>,
        report: String,
        steps: u32,
        time: Duration,
    ) -> Self {
        let capped = match outcome {
            Outcome::Limit => stop_reason.or(Some(StopReason::TurnCapped)),
            Outcome::Error(_) if outcome.used_budget().is_some() => Some(StopReason::TokenCapped),
            _ => stop_reason,
        };
        let end = |status, words| Self { status, stop_reason: capped, words };
        match (outcome, capped) {
            (Outcome::Stopped, _) => end(TaskStatus::Cancelled, String::new()),
            (Outcome::Timeout, _) => {
                let error = format!("no end after {} s", time.as_secs_f64());
                end(TaskStatus::TimedOut, with_report(error, &report))
            }
            // Findings before a limit are still useful.
            (Outcome::Success, _) | (_, Some(_)) if !report.is_empty() => end(TaskStatus::Completed, report),
            (_, Some(StopReason::TurnCapped)) => {
                end(TaskStatus::Failed, format!("Reached max_turns={steps}"))
            }
            (_, Some(StopReason::TokenCapped)) => {
                end(TaskStatus::Failed, "it used up its token budget".to_owned())
            }
            (Outcome::Error(failure), _) => {
                end(TaskStatus::Failed, with_report(failure.hint.clone(), &report))
            }
            (Outcome::Success | Outcome::Limit, _) => end(TaskStatus::Failed, SILENT.to_owned()),
        }
    }

    /// Returns the end of a task that its parent's run did not wait for, based on the parent's outcome. Without an
    /// outcome, the task failed.
    pub(crate) fn cut(parent: Option<&Outcome>) -> Self {
        let (status, words) = match parent {
            Some(Outcome::Stopped) => (TaskStatus::Cancelled, ""),
            Some(Outcome::Timeout) => (TaskStatus::TimedOut, "the run that started it took too long"),
            _ => (TaskStatus::Failed, "the run that started it ended early"),
        };
        Self { status, stop_reason: None, words: words.to_owned() }
    }

    /// Returns the text for the parent's model.
    pub(crate) fn text(&self) -> String {
        let capped = match self.stop_reason {
            None => "",
            Some(StopReason::TokenCapped) => " (capped: token budget)",
            Some(StopReason::TurnCapped) => " (capped: turn budget)",
            Some(StopReason::LoopCapped) => " (capped: repeated tool-call loop)",
        };
        match self.status {
            TaskStatus::Completed => format!("Task Succeeded{capped}. Result: {}", self.words),
            TaskStatus::Failed => failed(&self.words),
            TaskStatus::Cancelled => CANCELLED.to_owned(),
            TaskStatus::TimedOut => format!("Task timed out. Error: {}", self.words),
        }
    }

    /// Returns the end for the tool message of the call.
    pub(crate) fn report(&self, model: String, usage: Usage) -> Box<TaskReport> {
        let report = TaskReport::new(self.status, &self.words);
        Box::new(TaskReport { stop_reason: self.stop_reason, model, usage, ..report })
    }

    /// Returns the end for the log.
    pub(crate) fn kept(self, model: String, usage: Usage, omitted: u32) -> TaskEnd {
        let (text, truncated) = cut_task_text(&self.words);
        let Self { status, stop_reason, .. } = self;
        TaskEnd { status, stop_reason, model, usage, text, truncated, omitted }
    }
}

/// Returns the text for a task that failed.
pub(crate) fn failed(error: &str) -> String {
    format!("Task failed. Error: {error}")
}

/// Appends the text written before a failure.
fn with_report(error: String, report: &str) -> String {
    match report {
        "" => error,
        report => format!("{error}\nSo far: {report}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::FailureCause;

    #[test]
    fn each_end_has_its_status_its_reason_and_its_text() {
        use StopReason::{LoopCapped, TokenCapped, TurnCapped};
        use TaskStatus::{Cancelled, Completed, Failed, TimedOut};
        let check = |outcome: Outcome,
                     stop: Option<StopReason>,
                     report: &str,
                     expect: (TaskStatus, Option<StopReason>, &str)| {
            let ended =
                TaskEnding::from_outcome(&outcome, stop, report.to_owned(), 7, Duration::from_secs(90));
            let (status, reason) = (ended.status, ended.stop_reason);
            assert_eq!((status, reason, ended.text().as_str()), expect, "{outcome:?} {stop:?} {report}");
        };
        let ok = || Outcome::Success;
        check(ok(), None, "Three.", (Completed, None, "Task Succeeded. Result: Three."));
        let token = "Task Succeeded (capped: token budget). Result: Three.";
        check(ok(), Some(TokenCapped), "Three.", (Completed, Some(TokenCapped), token));
        check(Outcome::Limit, Some(TokenCapped), "Three.", (Completed, Some(TokenCapped), token));
        let broken = || Outcome::from(FailureCause::Silent);
        check(broken(), Some(TokenCapped), "Three.", (Completed, Some(TokenCapped), token));
        let turns = "Task Succeeded (capped: turn budget). Result: Three.";
        check(Outcome::Limit, None, "Three.", (Completed, Some(TurnCapped), turns));
        let loops = "Task Succeeded (capped: repeated tool-call loop). Result: Three.";
        check(ok(), Some(LoopCapped), "Three.", (Completed, Some(LoopCapped), loops));
        check(
            Outcome::Limit,
            None,
            "",
            (Failed, Some(TurnCapped), "Task failed. Error: Reached max_turns=7"),
        );
        let spent = "Task failed. Error: it used up its token budget";
        check(Outcome::Limit, Some(TokenCapped), "", (Failed, Some(TokenCapped), spent));
        check(ok(), None, "", (Failed, None, "Task failed. Error: it ended without a report"));
        check(Outcome::Timeout, None, "", (TimedOut, None, "Task timed out. Error: no end after 90 s"));
        let partly = "Task timed out. Error: no end after 90 s\nSo far: Two.";
        check(Outcome::Timeout, None, "Two.", (TimedOut, None, partly));
        check(Outcome::Stopped, None, "Two.", (Cancelled, None, "Task cancelled by user."));
        let ended = TaskEnding::from_outcome(&broken(), None, String::new(), 7, Duration::ZERO);
        assert!(ended.text().starts_with("Task failed. Error: "), "{}", ended.text());
    }

    #[test]
    fn an_abandoned_task_ends_like_its_parents_run() {
        let failed = "Task failed. Error: the run that started it ended early";
        for (parent, expect) in [
            (Some(Outcome::Stopped), CANCELLED),
            (Some(Outcome::Timeout), "Task timed out. Error: the run that started it took too long"),
            (Some(FailureCause::Silent.into()), failed),
            (None, failed),
        ] {
            assert_eq!(TaskEnding::cut(parent.as_ref()).text(), expect, "{parent:?}");
        }
    }

    #[test]
    fn a_long_report_is_stored_in_part_and_returned_in_full() {
        let long = "x".repeat(10_000);
        let ended = TaskEnding::from_outcome(&Outcome::Success, None, long, 7, Duration::ZERO);
        assert!(ended.text().len() > 10_000);
        let stored = ended.kept("gpt".into(), Usage::default(), 2);
        assert_eq!((stored.text.len(), stored.truncated, stored.omitted), (8_192, true, 2));
    }
}
