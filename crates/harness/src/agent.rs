//! Setup of a run.

use crate::{
    ApprovalPolicy, ContextSetup, LoopRules, Memory, Results, TokenBudget, ToolCatalog, ToolProgressRules,
    Toolbox,
};
use pudu_base::{
    ApprovalRequest, Approver, BoxFuture, Decision, Guardrail, Model, ModelCaller, Sampling, Sandbox,
    SecretSource, Tell, Thinking, ThreadLog, UserId,
};
use std::{fmt, sync::Arc, time::Duration};

/// An agent, assembled for a run: chosen when it starts, not changed while it lasts.
#[derive(Clone)]
pub struct Agent {
    /// Model that answers.
    pub model: Arc<dyn Model>,
    /// How hard the model thinks.
    pub thinking: Thinking,
    /// How the model answers, where its configuration does not decide that.
    pub sampling: Sampling,
    /// Tools that it may call.
    pub tools: Toolbox,
    /// Sandbox of its tools.
    pub sandbox: Arc<dyn Sandbox>,
    /// Log of the thread.
    pub log: Arc<dyn ThreadLog>,
    /// Approver of calls that need approval.
    pub approver: Arc<dyn Approver>,
    /// Rules for calls that need approval.
    pub policy: Arc<ApprovalPolicy>,
    /// Guardrails, asked about each call before it is made and before people are asked; none if `None`.
    pub guardrail: Option<Arc<dyn Guardrail>>,
    /// Those of its tools that it has to search for.
    pub deferred: Arc<ToolCatalog>,
    /// Handling of long results.
    pub results: Results,
    /// How its requests are fitted into the model's window.
    pub context: ContextSetup,
    /// Memory budget of the files that its tools read.
    pub memory: Memory,
    /// The system prompt.
    pub system: Arc<str>,
    /// Limits of a run.
    pub bounds: RunBounds,
    /// When a run that repeats itself is ended; never, if nothing is said.
    pub loops: Option<Arc<LoopRules>>,
    /// When a tool that brings nothing new is pointed out and closed; never, if nothing is said.
    pub progress: Option<Arc<ToolProgressRules>>,
    /// The user or the room whose memory it may be told.
    pub remembers: UserId,
    /// The clock of the people whom it answers, if one is known.
    pub clock: Option<WallClock>,
    /// The caller for which its model calls count.
    pub caller: ModelCaller,
    /// The secrets of the person for whom it works.
    pub secrets: Arc<dyn SecretSource>,
}

/// A clock that tells the day, the time and the time zone in words for a model, the day first.
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn() -> String + Send + Sync>);

impl WallClock {
    /// Makes it of a function.
    #[must_use]
    pub fn new(now: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Returns the present.
    #[must_use]
    pub fn now(&self) -> String {
        (self.0)()
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WallClock")
    }
}

impl PartialEq for WallClock {
    /// Clocks are equal if they are the same one.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunBounds {
    /// Model calls.
    pub steps: u32,
    /// Time, all in all.
    pub time: Duration,
    /// Sub-agents, one after the other and side by side.
    pub subagents: u32,
    /// Tokens, with those of its sub-agents.
    pub tokens: TokenBudget,
    /// Sub-agents that one reply may start.
    pub at_once: u32,
}

impl Default for RunBounds {
    fn default() -> Self {
        Self {
            steps: 100,
            time: Duration::from_secs(60 * 60),
            subagents: 6,
            at_once: 3,
            tokens: TokenBudget::default(),
        }
    }
}

/// Approver that approves nothing, for runs without anybody to ask.
pub struct NoApprover;

impl Approver for NoApprover {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest, _: &'a Tell) -> BoxFuture<'a, Decision> {
        let decision =
            Decision { request: request.line.clone(), approved: false, by: None, not_asked: false };
        Box::pin(std::future::ready(decision))
    }

    fn refused<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}
