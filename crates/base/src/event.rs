//! Events of a run while it works.

use crate::{CallId, Decision, Finish, MessageId, Outcome, RetryReason, Seq, TaskStage, Todo, Update, Usage};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

/// An event of a run. Readers get these from a replay ring; information that must not be lost is
/// in the thread log as well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RunEvent {
    /// The model is being asked.
    Thinking,
    /// More of the assistant's own words.
    Text {
        /// The message that grows.
        message: MessageId,
        /// The new part of the text.
        delta: String,
    },
    /// More of the model's thoughts, which chats never show.
    Reasoning {
        /// The message that they lead to.
        message: MessageId,
        /// The new part.
        delta: String,
    },
    /// Changes of the thread are in its log. Never sent in this form: it contains parts that are never shown.
    #[serde(skip)]
    Committed {
        /// The position of the thread's log behind them.
        seq: Seq,
        /// The changes.
        updates: Arc<[Update]>,
    },
    /// The words so far of this message do not count: the call is made again.
    Retract {
        /// The message that starts over.
        message: MessageId,
    },
    /// The model failed and will be asked again.
    Retry {
        /// Which try failed, from 1.
        attempt: u32,
        /// How long until the next.
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
        /// Why the model calls it, in its words for people; one clean line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
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
        /// The list, whole.
        todos: Vec<Todo>,
    },
    /// Files were made for people: sandbox paths.
    Artifacts {
        /// The paths.
        paths: Vec<String>,
    },
    /// A call waits for a person's approval.
    #[serde(rename = "asked")]
    ApprovalRequested {
        /// The call.
        call: CallId,
        /// Id of the question for the decision.
        key: String,
        /// The action that waits for approval, in a line for people.
        #[serde(rename = "wish")]
        request: String,
        /// The whole action, where the line leaves something out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole: Option<Arc<str>>,
        /// Deadline of the decision, in milliseconds since 1970.
        #[serde(default)]
        deadline: i64,
    },
    /// A person decided, or time ran out.
    #[serde(rename = "decided")]
    ApprovalDecided {
        /// The call.
        call: CallId,
        /// The decision.
        decision: Decision,
    },
    /// A sub-agent came so far.
    #[serde(rename = "task")]
    SubagentProgress {
        /// The call that it works for.
        call: CallId,
        /// How far.
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
    /// Models see a summary in place of the conversation's beginning from now on.
    Summarized {
        /// Tokens of a request before, as they were estimated.
        before: u64,
        /// Tokens of a request after it.
        after: u64,
    },
    /// The run is over. Always the last event.
    Ended {
        /// How.
        outcome: Outcome,
        /// Why the model's last words end where they do: an answer may be cut, and the run well all the same.
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
