//! Middlewares: the concerns of a run, each in a value that lives exactly as long as the run.

mod approvals;
mod chain;
mod context;
mod dangling;
mod deferred_tools;
mod images;
mod loop_detection;
mod midnight;
mod model_errors;
mod prompts;
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
pub use prompts::ServerPrompts;
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

/// One concern of a run. It holds its own counters: it is created when the run starts and dropped when the run is over.
/// Hooks named `before` run in the chain's order, those named `after` in reverse. All hooks default to doing nothing.
pub trait Middleware: Send {
    /// Returns its name, for logs and for the test of the chain.
    fn name(&self) -> &'static str;

    /// Runs once, before anything else.
    fn before_run<'a>(&'a mut self, _turn: &'a mut RunState) -> BoxFuture<'a, Result<(), RunFailure>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Runs before each model call; may change the request.
    fn before_model<'a>(
        &'a mut self,
        _turn: &'a mut RunState,
        _request: &'a mut Request,
    ) -> BoxFuture<'a, Result<(), RunFailure>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Runs after each complete reply, before it is recorded; may change it.
    fn after_model(&mut self, _turn: &mut RunState, _reply: &mut Assistant) {}

    /// Runs after a complete reply without calls, before it is recorded; may let the model continue. The first in the
    /// chain that does not accept the reply decides.
    fn check_answer(&mut self, _turn: &RunState, _reply: &Assistant) -> AnswerCheck {
        AnswerCheck::Accept
    }

    /// Runs after a model call failed permanently; may describe the failure for users. The first description in the
    /// chain wins.
    fn model_failed(&mut self, _turn: &RunState, _error: &ModelError) -> Option<RunFailure> {
        None
    }

    /// Runs when the model's provider rejected a request as too long; may make the next one shorter. Returns whether a
    /// retry is worthwhile.
    fn too_long(&mut self, _turn: &RunState) -> bool {
        false
    }

    /// Runs before each tool call; may refuse it.
    fn before_tool(&mut self, _turn: &RunState, _call: &ToolCall) -> Gate {
        Gate::Allow
    }

    /// Returns the tools that a sub-agent started now may use; the first answer in the chain counts.
    fn allowed_tools(&self, _turn: &RunState) -> Option<Arc<[String]>> {
        None
    }

    /// Returns the names of the secrets in the environment of commands.
    fn secret_names(&self, _turn: &RunState) -> Vec<String> {
        Vec::new()
    }

    /// Runs after each tool call; may change the result that the model reads.
    fn after_tool(
        &mut self,
        _turn: &RunState,
        _call: &ToolCall,
        _result: &mut Result<ToolOutput, ToolError>,
    ) {
    }

    /// Runs once, after everything else, however the run ended.
    fn after_run<'a>(&'a mut self, _turn: &'a mut RunState) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Whether an answer ends the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerCheck {
    /// The answer ends the run.
    Accept,
    /// The answer stays, and the model is asked again with this instruction.
    AskAgain(String),
    /// The answer is discarded, and the model is asked again with this instruction.
    Replace(String),
    /// The answer does not count, and the run fails.
    Fail(FailureCause),
}

/// Whether a tool may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The call may be made.
    Allow,
    /// The call needs a user's approval. The text describes it to users in one line.
    Ask(String),
    /// A policy blocks the call. The texts are a line for users and the result for the model.
    Block(String, String),
    /// The call is refused, with this text for the model.
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
