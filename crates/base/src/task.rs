//! A sub-agent's work on a task: its stages, its steps, and its end. The [kept](TaskStage::is_kept) stages are stored
//! in the log of the parent's thread.
//!
//! Deliberately absent: the state of a thread. Steps are for people and programs that read the log. No model sees them,
//! and they do not change a thread's state.

use crate::{Usage, digest, ends};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum length of the stored text of a step, in characters.
pub const MAX_TASK_TEXT_CHARS: usize = 8_192;
/// Length of the kept beginning and end of the text of a [`TaskReport`], in characters, as in DeerFlow.
const REPORT_ENDS: (usize, usize) = (1_330, 665);

/// Stage of a sub-agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum TaskStage {
    /// It started.
    Started {
        /// Short description of the task.
        about: String,
        /// The kind of sub-agent.
        agent: String,
        /// The model.
        model: String,
    },
    /// Its activity changed.
    Running {
        /// The purposes, or else names, of the running tools; empty while it thinks.
        doing: Vec<String>,
        /// Its usage so far.
        usage: Usage,
    },
    /// Its model replied, or a call returned a result.
    Step(TaskStep),
    /// It ended.
    Ended(TaskEnd),
}

impl TaskStage {
    /// Returns whether the stage is stored in the thread's log.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        !matches!(self, Self::Running { .. })
    }
}

/// A step of a sub-agent: a reply of its model, or the result of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskStep {
    /// Its number in the task, from 1.
    pub index: u32,
    /// The kind of step.
    #[serde(flatten)]
    pub kind: StepKind,
    /// The text, at most [`MAX_TASK_TEXT_CHARS`].
    pub text: String,
    /// Whether the text was cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// The kind of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StepKind {
    /// A reply of the model.
    Reply {
        /// The calls that it asks for.
        calls: Vec<StepCall>,
    },
    /// The result of a call.
    Result {
        /// The tool.
        tool: String,
        /// Whether it failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        error: bool,
    },
}

/// A call that a sub-agent asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepCall {
    /// The tool.
    pub name: String,
    /// The arguments. If they are too long, the beginning of their JSON as a string.
    pub args: Value,
}

impl StepCall {
    /// Creates it from a call's name and arguments.
    #[must_use]
    pub fn new(name: &str, args: &Value) -> Self {
        let text = args.to_string();
        let args = match cut(&text) {
            (_, false) => args.clone(),
            (begin, true) => Value::String(begin),
        };
        Self { name: name.to_owned(), args }
    }
}

/// End of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnd {
    /// Its status.
    pub status: TaskStatus,
    /// The limit that ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// The model; empty if no longer known.
    pub model: String,
    /// Its usage, as far as it is known.
    pub usage: Usage,
    /// The report, or the error; at most [`MAX_TASK_TEXT_CHARS`].
    pub text: String,
    /// Whether the text was cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Number of steps that were not stored because there were too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u32,
}

/// End of a task in the tool message of its call, for clients that read the thread later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReport {
    /// Its status.
    pub status: TaskStatus,
    /// The limit that ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// The model; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Its usage, as far as it is known.
    #[serde(default)]
    pub usage: Usage,
    /// The report or the error, at most 2,000 characters: a long text is cut in the middle.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// SHA-256 of the whole report in hexadecimal; `None` for a task that did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl TaskReport {
    /// Creates the report of a task that ended with a text.
    #[must_use]
    pub fn new(status: TaskStatus, words: &str) -> Self {
        let is_reported = status == TaskStatus::Completed && !words.trim().is_empty();
        let digest = is_reported.then(|| digest(words));
        Self {
            status,
            stop_reason: None,
            model: String::new(),
            usage: Usage::default(),
            text: brief(words),
            digest,
        }
    }
}

fn brief(words: &str) -> String {
    match ends(words, REPORT_ENDS.0, REPORT_ENDS.1) {
        Some((first, _, last)) => format!("{first}\n...\n{last}"),
        None => words.to_owned(),
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Status of an ended task, with DeerFlow's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// It ended with a report.
    Completed,
    /// It ended without a report.
    Failed,
    /// A person stopped the parent's run.
    Cancelled,
    /// It timed out.
    TimedOut,
}

/// The limit that ended a run before its model was done, with DeerFlow's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The token budget.
    TokenCapped,
    /// The number of model calls.
    TurnCapped,
    /// The maximum number of repetitions.
    LoopCapped,
}

impl StopReason {
    /// Returns DeerFlow's name for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TokenCapped => "token_capped",
            Self::TurnCapped => "turn_capped",
            Self::LoopCapped => "loop_capped",
        }
    }
}

/// Returns a text cut to [`MAX_TASK_TEXT_CHARS`], and whether it was cut.
#[must_use]
pub fn cut(text: &str) -> (String, bool) {
    match text.char_indices().nth(MAX_TASK_TEXT_CHARS) {
        None => (text.to_owned(), false),
        Some((at, _)) => (text.get(..at).unwrap_or_default().to_owned(), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn long_arguments_are_kept_as_the_beginning_of_their_text() {
        let short = json!({"path": "/a"});
        assert_eq!(StepCall::new("ls", &short).args, short);
        let long = StepCall::new("write_file", &json!({"content": "ü".repeat(MAX_TASK_TEXT_CHARS)}));
        let Value::String(text) = long.args else { panic!("{:?}", long.args) };
        assert_eq!(text.chars().count(), MAX_TASK_TEXT_CHARS);
        assert!(text.starts_with("{\"content\":\"üü"), "{text}");
    }

    #[test]
    fn a_report_has_both_ends_and_the_digest_of_a_long_text() {
        let long = format!("{}{}", "a".repeat(3_000), "z".repeat(3_000));
        let report = TaskReport::new(TaskStatus::Completed, &long);
        assert_eq!(report.text.chars().count(), 2_000);
        assert!(report.text.starts_with("aaa") && report.text.ends_with("zzz"), "{}", report.text);
        assert!(report.text.contains("a\n...\nz"), "{}", report.text);
        assert_eq!(report.digest, Some(digest(&long)));
        let check = |status, words: &str, has_digest| {
            let report = TaskReport::new(status, words);
            assert_eq!((report.text.as_str(), report.digest.is_some()), (words, has_digest));
        };
        check(TaskStatus::Completed, "Seven.", true);
        check(TaskStatus::Completed, " \n", false);
        check(TaskStatus::TimedOut, "it took too long", false);
    }

    #[test]
    fn the_format_of_task_records_is_stable() {
        let calls = vec![StepCall::new("ls", &json!({"path": "/mnt"}))];
        let step = |index, kind| {
            TaskStage::Step(TaskStep { index, kind, text: "Let me look.".into(), truncated: index == 2 })
        };
        let ended = TaskEnd {
            status: TaskStatus::TimedOut,
            stop_reason: Some(StopReason::LoopCapped),
            model: "gpt".into(),
            usage: Usage::plain(5, 2),
            text: "it took too long".into(),
            truncated: false,
            omitted: 3,
        };
        let stages = vec![
            TaskStage::Started { about: "count".into(), agent: "bash".into(), model: "gpt".into() },
            step(1, StepKind::Reply { calls }),
            step(2, StepKind::Result { tool: "ls".into(), error: true }),
            TaskStage::Ended(ended),
        ];
        let expected = json!([
            {"stage": "started", "about": "count", "agent": "bash", "model": "gpt"},
            {"stage": "step", "index": 1, "kind": "reply", "text": "Let me look.",
                "calls": [{"name": "ls", "args": {"path": "/mnt"}}]},
            {"stage": "step", "index": 2, "kind": "result", "tool": "ls", "error": true, "text": "Let me look.",
                "truncated": true},
            {"stage": "ended", "status": "timed_out", "stop_reason": "loop_capped", "model": "gpt",
                "usage": {"input": 5, "output": 2}, "text": "it took too long", "omitted": 3},
        ]);
        assert_eq!(serde_json::to_value(&stages).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Vec<TaskStage>>(expected).unwrap(), stages);
        assert!(stages.iter().all(TaskStage::is_kept));
        assert!(!TaskStage::Running { doing: Vec::new(), usage: Usage::default() }.is_kept());
    }
}
