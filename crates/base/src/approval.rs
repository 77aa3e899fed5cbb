//! The port to the people who approve what an agent wants to do.

use crate::{BoxFuture, CallId, Decision, RunId, Tell, ThreadId};
use serde_json::Value;
use std::sync::Arc;

/// Something that is not done before somebody approves it.
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
    /// All of it, where the line leaves something out.
    pub whole: Option<Arc<str>>,
}

/// Knows the people who approve.
pub trait Approver: Send + Sync {
    /// Waits until somebody decided, or time ran out, which is a no. Tells
    /// [`crate::RunEvent::ApprovalRequested`] as soon as the question is durable. Asked again for the same
    /// call, it goes on waiting, or says what was decided.
    fn decide<'a>(&'a self, request: &'a ApprovalRequest, tell: &'a Tell) -> BoxFuture<'a, Decision>;

    /// Returns what the model is told of a call about which nobody was asked.
    fn not_asked(&self) -> &'static str {
        "Error: nobody who may approve this was asked. Say what you would have done; do not try it in another way."
    }

    /// Hears of what was refused without asking anybody.
    fn refused<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ()>;
}
