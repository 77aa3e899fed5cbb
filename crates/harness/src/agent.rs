//! Setup of a run.

use crate::{
    ApprovalPolicy, ContextSetup, LoopRules, Memory, Results, TokenBudget, ToolCatalog, ToolProgressRules,
    Toolbox,
};
use pudu_base::{
    ApprovalRequest, Approver, BoxFuture, Decision, Guardrail, Model, ModelCaller, Sampling, Sandbox,
    SecretSource, Tell, Thinking, ThreadLog, UserId,
};
use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

/// An agent assembled for a run. It is fixed when the run starts.
#[derive(Clone)]
pub struct RunAgent {
    /// Model that answers.
    pub model: Arc<dyn Model>,
    /// Thinking effort of the model.
    pub thinking: Thinking,
    /// Sampling settings that the model's configuration leaves open.
    pub sampling: Sampling,
    /// Tools that the agent may call.
    pub tools: Toolbox,
    /// Sandbox of its tools.
    pub sandbox: Arc<dyn Sandbox>,
    /// Folder of the thread's files for programs on this host; `None` if the files are elsewhere.
    pub workspace: Option<PathBuf>,
    /// Log of the thread.
    pub log: Arc<dyn ThreadLog>,
    /// Approver of calls that need approval.
    pub approver: Arc<dyn Approver>,
    /// Rules for calls that need approval.
    pub policy: Arc<ApprovalPolicy>,
    /// Guardrails, evaluated before each call and before users are asked for approval; `None` for none.
    pub guardrail: Option<Arc<dyn Guardrail>>,
    /// Tools that the agent has to search for before it can call them.
    pub deferred: Arc<ToolCatalog>,
    /// Handling of long results.
    pub results: Results,
    /// How requests are fitted into the model's window.
    pub context: ContextSetup,
    /// Memory budget of the files that tools read.
    pub memory: Memory,
    /// The system prompt.
    pub system: Arc<str>,
    /// Limits of a run.
    pub bounds: RunBounds,
    /// Rules that end a run that repeats itself; `None` to never end one.
    pub loops: Option<Arc<LoopRules>>,
    /// Rules that warn about a tool without new results and then close it; `None` to do neither.
    pub progress: Option<Arc<ToolProgressRules>>,
    /// The user or conversation whose memory the agent may see.
    pub remembers: UserId,
    /// The clock of the users that the agent answers, if one is known.
    pub clock: Option<WallClock>,
    /// The caller that its model calls are counted for.
    pub caller: ModelCaller,
    /// The secrets of the user that the agent works for.
    pub secrets: Arc<dyn SecretSource>,
}

/// A clock that describes the day, the time and the time zone for a model, the day first.
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn() -> String + Send + Sync>);

impl WallClock {
    /// Creates a clock from a function.
    #[must_use]
    pub fn new(now: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Returns the current time.
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
    /// Compares clocks by identity.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunBounds {
    /// Model calls.
    pub steps: u32,
    /// Total time.
    pub time: Duration,
    /// Total number of sub-agents.
    pub subagents: u32,
    /// Tokens, including those of sub-agents.
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

/// Approver that approves nothing, for runs without a user to ask.
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
