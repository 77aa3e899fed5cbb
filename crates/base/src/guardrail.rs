//! The port to the automatic decision whether a tool may be called.

use crate::{BoxFuture, CallId, RunId, ThreadId};
use serde_json::Value;

/// A call that is about to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct GuardedCall {
    /// The thread.
    pub thread: ThreadId,
    /// The run; of a sub-agent its own.
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

/// Decides on each call of a run before it is made, and before people are asked. The implementation knows the user
/// that the run works for: nothing about the user comes from the call.
pub trait Guardrail: Send + Sync {
    /// Decides on a call. A provider that fails has decided as well, by the operator's rule.
    fn evaluate<'a>(&'a self, call: &'a GuardedCall) -> BoxFuture<'a, GuardrailVerdict>;
}

/// Verdict of the guardrails on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardrailVerdict {
    /// It may be made.
    Allow,
    /// It may not.
    Deny {
        /// Why, as a code for programs.
        code: String,
        /// Why, in a line for the model.
        reason: String,
    },
}
