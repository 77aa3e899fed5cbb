//! The agent's loop: one [`run`] takes a thread from a question to an answer.
//!
//! Deliberately absent: any platform, HTTP, SQL or provider. The loop knows only the ports of `pudu-base`, so each
//! of its tests runs in milliseconds.

mod agent;
mod breaker;
mod coerce;
mod compact;
mod context;
mod deferred;
mod drawn;
mod fallback;
#[cfg(test)]
mod fixture;
mod goal;
mod lending;
mod memory;
pub mod middleware;
mod prompt;
mod replay;
mod results;
mod retry;
mod run;
mod run_state;
mod scale;
mod side_call;
mod skills;
mod steering;
pub mod subagent;
mod task_end;
mod task_log;
mod tool_names;
mod toolbox;

pub use agent::{NoApprover, RunAgent, RunBounds, WallClock};
pub use breaker::{ModelGuards, RestRules};
pub use compact::{CompactOutcome, compact};
pub use context::{
    ContextRules, ContextSetup, ContextSize, estimated_reply_tokens, estimated_tokens, message_bytes,
    value_bytes,
};
pub use deferred::{SEARCH, ToolCatalog, searching};
pub use fallback::Fallback;
pub use memory::Memory;
pub use middleware::{
    AnswerCheck, ApprovalPolicy, CallFrequency, Dangerous, Gate, LoopRules, Middleware, SkillPolicy,
    TokenBudget, TokenLimit, ToolProgressRules, lead_chain, subagent_chain,
};
pub use prompt::{PromptFacts, PromptMount, PromptSection, join_sections, prompt_sections};
pub use replay::{
    Activity, Gap, PendingCall, Progress, Replay, ReplayItem, ReplayReader, RunningTool, Working,
};
pub use results::{ResultRules, Results};
pub use retry::{Retry, RetryRules};
pub use run::run;
pub use run_state::RunState;
pub use side_call::side_call;
pub use skills::{DESCRIBE_SKILL, SKILL_MANAGE, describe_skill, skills_index, skills_prompt};
pub use steering::{MailboxSlot, Steering};
pub use task_end::{ACP_TASK, TASK};
pub use toolbox::Toolbox;
