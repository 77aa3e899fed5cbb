//! The agent's words and ports: messages, thread state, updates, events, ids, and the traits that
//! models, tools, sandboxes and logs implement.
//!
//! Deliberately absent: IO. Nothing here opens a file, a socket or a database, knows a chat platform, or
//! reads the environment. Every other crate may use these types, so a change here is a change of the
//! stored and sent data: snapshots in `tests/` show it.

mod approval;
mod budget;
mod context;
mod cut;
mod digest;
mod event;
mod failure;
mod fill;
pub mod foreign;
mod frame;
mod goal;
mod guardrail;
mod id;
mod image;
mod log;
mod message;
mod model;
mod outcome;
pub mod pointed;
mod results;
mod sandbox;
mod secret;
mod shared;
mod skill;
mod state;
mod task;
mod tool;
pub mod tool_frame;
mod usage;
mod user;

pub use approval::{ApprovalRequest, Approver};
pub use budget::{BudgetPeriod, BudgetScope, ShortBudget, UsedBudget, money};
pub use context::{Compaction, ContextState, Delegation, DelegationStatus};
pub use cut::{Cut, ends};
pub use digest::digest;
pub use event::RunEvent;
pub use failure::{FailureCause, FailureClass, RetryReason, RunFailure};
pub use fill::fill;
pub use goal::{Goal, GoalRest, GoalStanding, GoalVerdict};
pub use guardrail::{GuardedCall, Guardrail, GuardrailVerdict};
pub use id::{CallId, MessageId, RunId, ThreadId};
pub use image::image_kind;
pub use log::{LogError, Seq, ThreadLog};
pub use message::{
    Assistant, Decision, Finish, Human, Image, MemoryNote, Message, ProviderParts, Question, Reminder,
    ToolCall, ToolResult,
};
pub use model::{Delta, Model, ModelError, ModelImage, ModelStream, Request, Sampling, Thinking};
pub use outcome::Outcome;
pub use pointed::Pointed;
pub use results::ResultFiles;
pub use sandbox::{
    DirEntry, Exec, Killed, Network, Sandbox, SandboxError, SandboxProvider, Shell, ShellCommand,
    ShownFolder, ThreadFolder,
};
pub use secret::{NoSecrets, SecretSource, Variable, is_secret_name};
pub use shared::{DocumentText, OutlineEntry, ReadOutcome, SharedFile, UnreadCause};
pub use skill::{RequiredSecret, Skill, SkillInvocation, SkillSecrets};
pub use state::{Marks, Promoted, ThreadState, Todo, TodoStatus, Update};
pub use task::{
    MAX_TASK_TEXT_CHARS, StepCall, StepKind, StopReason, TaskEnd, TaskReport, TaskStage, TaskStatus,
    TaskStep, cut as cut_task_text,
};
pub use tool::{
    MAX_ARTIFACTS, PURPOSE_ARGUMENT, ResultOrigin, Tell, Tool, ToolCx, ToolError, ToolOutput, ToolSpec,
    TypedTool, erase,
};
pub use usage::{ModelCaller, Spending, SpendingTally, Usage};
pub use user::{EmptyUserId, UserId};

/// A boxed future, written by hand so that the cost of a dynamic port is visible.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
