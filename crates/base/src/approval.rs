//! The port to the people who approve an agent's actions.

use crate::{BoxFuture, CallId, Decision, RunId, Tell, ThreadId};
use serde_json::Value;
use std::sync::Arc;

/// An action that needs a person's approval first.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalRequest {
    /// The thread.
    pub thread: ThreadId,
    /// The run; the same one asks again after a restart.
    pub run: RunId,
    /// The call that waits.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// Its arguments: approved are exactly these.
    pub args: Value,
    /// The requested action, in a line for people.
    pub line: String,
    /// The whole action, where the line leaves something out.
    pub whole: Option<Arc<str>>,
}

/// Knows the people who approve.
pub trait Approver: Send + Sync {
    /// Waits for a decision, or for the end of the time, which is a denial. Emits
    /// [`crate::RunEvent::ApprovalRequested`] as soon as the question is durable. Asked again for the same
    /// call, it continues to wait, or returns the decision.
    fn decide<'a>(&'a self, request: &'a ApprovalRequest, tell: &'a Tell) -> BoxFuture<'a, Decision>;

    /// Returns the result for the model of a call for which no person could be asked.
    fn not_asked(&self) -> &'static str {
        "Error: nobody who may approve this was asked. Say what you would have done; do not try it in another way."
    }

    /// Records a call that was refused without asking a person.
    fn refused<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ()>;
}
