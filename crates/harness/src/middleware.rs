//! The concerns of a run, each a value that lives exactly as long as the run.

mod approvals;
mod chain;
mod context;
mod dangling;
mod deferred_tools;
mod images;
mod loop_detection;
mod midnight;
mod model_errors;
mod skill_policy;
mod subagent_limit;
mod terminal_response;
mod todos;
mod token_budget;
mod tool_errors;
mod tool_framing;
mod tool_progress;

pub(crate) use approvals::whole;
pub use approvals::{ApprovalGate, ApprovalPolicy, Dangerous};
pub use chain::{lead_chain, subagent_chain};
pub use dangling::Dangling;
pub use deferred_tools::DeferredTools;
pub use images::Images;
pub use loop_detection::{CallFrequency, LoopDetection, LoopRules};
pub use midnight::Midnight;
pub use model_errors::ModelErrors;
pub use skill_policy::{SkillPolicy, asked, named};
pub use subagent_limit::SubagentLimit;
pub use terminal_response::TerminalResponse;
pub use todos::TodoReminders;
pub use token_budget::{TokenBudget, TokenGate, TokenLimit};
pub use tool_errors::ToolErrors;
pub use tool_framing::ToolFraming;
pub use tool_progress::{ToolProgress, ToolProgressRules};

use crate::RunState;
use pudu_base::{
    Assistant, BoxFuture, FailureCause, ModelError, Request, RunFailure, ToolCall, ToolError, ToolOutput,
};
use std::sync::Arc;

/// One concern of a run. It keeps what it counts in itself: it is made when the run starts and gone when
/// the run is over. Hooks named `before` run in the chain's order, those named `after` in reverse. All
/// have a default that does nothing.
pub trait Middleware: Send {
    /// Names it, for logs and for the test that shows the chain.
    fn name(&self) -> &'static str;

    /// Once, before anything else.
    fn before_run<'a>(&'a mut self, _turn: &'a mut RunState) -> BoxFuture<'a, Result<(), RunFailure>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Before each model call: may change what is asked.
    fn before_model<'a>(
        &'a mut self,
        _turn: &'a mut RunState,
        _request: &'a mut Request,
    ) -> BoxFuture<'a, Result<(), RunFailure>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// After each whole reply, before it is written down: may change it.
    fn after_model(&mut self, _turn: &mut RunState, _reply: &mut Assistant) {}

    /// After a whole reply that wants no tools, before it is written down: may have the model go on. The first in the
    /// chain that does not accept it decides.
    fn check_answer(&mut self, _turn: &RunState, _reply: &Assistant) -> AnswerCheck {
        AnswerCheck::Accept
    }

    /// When a model call failed for good: may say it for people. The first in the chain that does wins.
    fn model_failed(&mut self, _turn: &RunState, _error: &ModelError) -> Option<RunFailure> {
        None
    }

    /// When the model's provider refused a request for its length: may make the next one shorter, and tells whether it is
    /// worth asking once more.
    fn too_long(&mut self, _turn: &RunState) -> bool {
        false
    }

    /// Before each tool call: may refuse it.
    fn before_tool(&mut self, _turn: &RunState, _call: &ToolCall) -> Gate {
        Gate::Allow
    }

    /// Returns the tools that a sub-agent started now may use; the first answer in the chain counts.
    fn only(&self, _turn: &RunState) -> Option<Arc<[String]>> {
        None
    }

    /// Returns the names of the secrets that commands find in their environment now.
    fn lends(&self, _turn: &RunState) -> Vec<String> {
        Vec::new()
    }

    /// After each tool call: may change what the model reads.
    fn after_tool(
        &mut self,
        _turn: &RunState,
        _call: &ToolCall,
        _result: &mut Result<ToolOutput, ToolError>,
    ) {
    }

    /// Once, after everything, however the run ended.
    fn after_run<'a>(&'a mut self, _turn: &'a mut RunState) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Whether an answer ends the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerCheck {
    /// It does.
    Accept,
    /// It stays, and the model is told this and asked again.
    AskAgain(String),
    /// It does not count: the model is told this and asked again.
    Replace(String),
    /// It is none, and the run has failed.
    Fail(FailureCause),
}

/// Whether a tool may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// It may.
    Allow,
    /// Only if somebody approves it: this, in a line for people.
    Ask(String),
    /// It may not, as a policy has it: what, in a line for people, and what the model reads.
    Block(String, String),
    /// It may not; the model reads why.
    Deny(String),
}

impl Gate {
    /// Returns the stricter of two verdicts; of two equal ones the first.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Deny(_), _)
            | (Self::Block(..), Self::Block(..) | Self::Ask(_) | Self::Allow)
            | (Self::Ask(_), Self::Ask(_) | Self::Allow) => self,
            _ => other,
        }
    }
}
