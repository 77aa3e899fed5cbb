//! The port to automatic decisions on whether a tool may be called.

use crate::{BoxFuture, CallId, RunId, ThreadId};
use serde_json::Value;

/// A call that is about to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct GuardedCall {
    /// The thread.
    pub thread: ThreadId,
    /// The run; for a sub-agent its own run.
    pub run: RunId,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub args: Value,
    /// Whether a sub-agent makes it.
    pub is_subagent: bool,
}

/// Decides on each call of a run before it is made, and before people are asked. The implementation knows the run's
/// user; the call carries nothing about the user.
pub trait Guardrail: Send + Sync {
    /// Decides on a call. If a provider fails, the operator's rule for failures decides.
    fn evaluate<'a>(&'a self, call: &'a GuardedCall) -> BoxFuture<'a, GuardrailVerdict>;
}

/// Verdict of the guardrails on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardrailVerdict {
    /// The call may be made.
    Allow,
    /// The call is denied.
    Deny {
        /// The reason, as a code for programs.
        code: String,
        /// The reason, in one line for the model.
        reason: String,
    },
}
