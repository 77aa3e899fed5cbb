//! The agent's types and ports: messages, thread state, updates, events, ids, and the traits that models, tools,
//! sandboxes and logs implement.
//!
//! Deliberately absent: IO. Nothing here opens a file, a socket or a database, knows a chat platform, or reads the
//! environment. These types define stored and sent data, so a change here changes the formats; snapshot tests show it.

mod approval;
mod budget;
mod call_host;
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
mod prompt;
mod question;
mod results;
mod sandbox;
mod secret;
mod shared;
mod skill;
mod state;
mod task;
mod tool;
pub mod tool_frame;
mod tool_server;
mod usage;
mod user;

pub use approval::{ApprovalRequest, Approver, MAX_WHOLE_BYTES};
pub use budget::{BudgetPeriod, BudgetScope, ShortBudget, UsedBudget, money};
pub use call_host::{CallHost, EffectRequest, NoCallHost, SamplePrompt, SampledText};
pub use context::{Compaction, ContextState, Delegation, DelegationStatus};
pub use cut::{Cut, ends};
pub use digest::digest;
pub use event::RunEvent;
pub use failure::{FailureCause, FailureClass, RetryReason, RunFailure};
pub use fill::fill;
pub use goal::{Goal, GoalRest, GoalStanding, GoalVerdict, MAX_STALLED};
pub use guardrail::{GuardedCall, Guardrail, GuardrailVerdict};
pub use id::{CallId, MessageId, RunId, ThreadId};
pub use image::image_kind;
pub use log::{LogError, Seq, ThreadLog};
pub use message::{
    Assistant, Decision, Finish, Human, Image, MemoryNote, Message, ProviderParts, Reminder, ToolCall,
    ToolResult,
};
pub use model::{Delta, Model, ModelError, ModelImage, ModelStream, Request, Sampling, Thinking};
pub use outcome::Outcome;
pub use pointed::Pointed;
pub use prompt::{NamedPrompt, PromptSpec, named_prompt};
pub use question::{
    FieldKind, FieldProblem, FormField, MAX_OPTIONS, MAX_QUESTION_CHARS, Question, QuestionKind,
    check_fields, check_form, clean_options, form_answer, read_form_answer,
};
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
pub use tool_server::{ToolServerReport, ToolServerState, ToolServers};
pub use usage::{ModelCaller, Spending, SpendingTally, Usage};
pub use user::{EmptyUserId, UserId};

/// A boxed future, spelled out so that the cost of a dynamic port is visible.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
