//! The port to the people who approve an agent's actions.

use crate::{BoxFuture, CallId, Decision, RunId, Tell, ThreadId};
use serde_json::Value;
use std::sync::Arc;

/// Maximum size of a call that users are asked to approve, in bytes. Every replay, page and chat that shows the
/// question holds the call (chats without file support as messages), and no user reads more before deciding.
pub const MAX_WHOLE_BYTES: usize = 256 * 1024;

/// An action that needs a person's approval first.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalRequest {
    /// The thread.
    pub thread: ThreadId,
    /// The run. After a restart, the same run asks again.
    pub run: RunId,
    /// The waiting call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// Its arguments. An approval covers exactly these.
    pub args: Value,
    /// One-line description of the requested action, for people.
    pub line: String,
    /// The complete action, if the line is shortened.
    pub whole: Option<Arc<str>>,
}

/// Asks people for approval.
pub trait Approver: Send + Sync {
    /// Waits for a decision. A timeout is a denial. Emits [`crate::RunEvent::ApprovalRequested`] as soon as the
    /// question is durable. If it was called before for the same call, it continues to wait, or returns the decision.
    fn decide<'a>(&'a self, request: &'a ApprovalRequest, tell: &'a Tell) -> BoxFuture<'a, Decision>;

    /// Returns the tool result for a call that no person could be asked about.
    fn not_asked(&self) -> &'static str {
        "Error: no approver was asked about this call. Describe what you would have done; do not try another way."
    }

    /// Records a call that was refused without asking a person.
    fn refused<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ()>;
}
