//! Live events of a run.

use crate::{CallId, Decision, Finish, MessageId, Outcome, RetryReason, Seq, TaskStage, Todo, Update, Usage};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

/// An event of a run. Readers get these from a replay ring; information that must not be lost is in the thread log
/// as well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RunEvent {
    /// A model call begins.
    Thinking,
    /// More text of the assistant's answer.
    Text {
        /// The message that grows.
        message: MessageId,
        /// The new part of the text.
        delta: String,
    },
    /// More of the model's reasoning, which chats never show.
    Reasoning {
        /// The message that the reasoning belongs to.
        message: MessageId,
        /// The new part.
        delta: String,
    },
    /// Changes were written to the thread's log. Never sent to clients in this form: it contains internal parts.
    #[serde(skip)]
    Committed {
        /// The position in the thread's log after them.
        seq: Seq,
        /// The changes.
        updates: Arc<[Update]>,
    },
    /// Discards the text of this message so far, because the call is repeated.
    Retract {
        /// The message that starts over.
        message: MessageId,
    },
    /// The model failed and will be asked again.
    Retry {
        /// Number of the failed attempt, from 1.
        attempt: u32,
        /// Time until the next attempt.
        wait: Duration,
        /// Why.
        reason: RetryReason,
    },
    /// A tool starts.
    ToolStarted {
        /// The call.
        call: CallId,
        /// The tool's name.
        tool: String,
        /// Purpose of the call, as the model describes it to people; one sanitised line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// A running tool reports its progress, in its own unit.
    ToolProgress {
        /// The call.
        call: CallId,
        /// The part that is done.
        done: f64,
        /// The whole, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
    },
    /// A tool ended.
    ToolEnded {
        /// The call.
        call: CallId,
        /// The tool's name.
        tool: String,
        /// Whether it failed.
        error: bool,
    },
    /// The agent wrote its to-do list.
    Todos {
        /// The complete list.
        todos: Vec<Todo>,
    },
    /// Files are presented to people.
    Artifacts {
        /// Their sandbox paths.
        paths: Vec<String>,
    },
    /// A call waits for a person's approval.
    #[serde(rename = "asked")]
    ApprovalRequested {
        /// The call.
        call: CallId,
        /// Id of the question for the decision.
        key: String,
        /// One-line description of the action, for people.
        #[serde(rename = "wish")]
        request: String,
        /// The complete action, if the line is shortened.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole: Option<Arc<str>>,
        /// Deadline of the decision, in milliseconds since 1970.
        #[serde(default)]
        deadline: i64,
    },
    /// A person decided, or the deadline passed.
    #[serde(rename = "decided")]
    ApprovalDecided {
        /// The call.
        call: CallId,
        /// The decision.
        decision: Decision,
    },
    /// A sub-agent reached a new stage.
    #[serde(rename = "task")]
    SubagentProgress {
        /// The call that it works for.
        call: CallId,
        /// The stage.
        stage: TaskStage,
    },
    /// The cost of one model call.
    #[serde(rename = "spent")]
    Usage {
        /// The tokens.
        usage: Usage,
    },
    /// The conversation so far is being summarised.
    Summarizing,
    /// A summary now replaces the conversation's beginning in requests to models.
    Summarized {
        /// Estimated tokens of a request before the summary.
        before: u64,
        /// Estimated tokens of a request after it.
        after: u64,
    },
    /// The run ended. Always the last event.
    Ended {
        /// How it ended.
        outcome: Outcome,
        /// Why the model's last reply ended. The reply may be cut although the run succeeded.
        #[serde(default, skip_serializing_if = "Finish::is_complete")]
        finish: Finish,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_an_older_version_is_read() {
        let old = r#"{"type":"tool_started","call":"c","tool":"bash"}"#;
        let started =
            |description| RunEvent::ToolStarted { call: "c".into(), tool: "bash".into(), description };
        assert_eq!(serde_json::from_str::<RunEvent>(old).unwrap(), started(None));
        assert_eq!(serde_json::to_string(&started(None)).unwrap(), old);
        let ended = |finish| RunEvent::Ended { outcome: Outcome::Success, finish };
        let old = r#"{"type":"ended","outcome":{"status":"success"}}"#;
        assert_eq!(serde_json::from_str::<RunEvent>(old).unwrap(), ended(Finish::Complete));
        assert_eq!(serde_json::to_string(&ended(Finish::Complete)).unwrap(), old);
        assert!(serde_json::to_string(&ended(Finish::Length)).unwrap().contains(r#""finish":"length""#));
        let new = started(Some("Counting".to_owned()));
        let text = serde_json::to_string(&new).unwrap();
        assert_eq!(serde_json::from_str::<RunEvent>(&text).unwrap(), new);
    }
}
