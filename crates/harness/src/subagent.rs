//! Sub-agents: the tool `task` delegates work to an agent with a context of its own.
//!
//! A sub-agent is the same [`run`](crate::run) with another chain, other tools and a temporary thread; only its steps
//! are kept, in its parent's log (`steps.rs`). It works in its parent's sandbox, and dropping the call cancels it.
//! Deliberately absent: a pool or a second executor. The number of tasks in one reply is limited, so a task's time
//! counts from its start. `task_end.rs` alone judges how a task ended.

mod steps;

pub use steps::StepLog;

use crate::{
    Replay, RunAgent, RunBounds, RunState, SEARCH, SkillPolicy, Steering, TASK, WallClock, replay::below,
    searching, skills_prompt, subagent_chain, task_end::TaskEnding,
};
use pudu_base::{
    ApprovalRequest, Approver, BoxFuture, CallId, Decision, GuardedCall, Guardrail, GuardrailVerdict, Human,
    Message, Model, ModelCaller, Outcome, RunEvent, RunId, Sampling, Skill, TaskStage, Tell, Thinking,
    ThreadState, Tool, ToolCx, ToolError, ToolOutput, ToolSpec, Update, Usage, foreign,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// Default timeout of a task, as in DeerFlow.
const TIME: Duration = Duration::from_secs(1800);
/// Name of the tool that runs commands, and of the kind of sub-agent that does nothing else.
const BASH: &str = "bash";
/// Maximum length of a task's short description, in characters.
const MAX_ABOUT_CHARS: usize = 200;
/// Name of the tool that a model without vision cannot use.
const VIEW_IMAGE: &str = "view_image";
/// Tools that no sub-agent has: it does not talk to users, starts no sub-agents, and does not change its parent's
/// to-do list.
const NEVER: [&str; 4] = [TASK, "ask_clarification", "present_files", "write_todos"];

/// A kind of sub-agent.
#[derive(Clone)]
pub struct SubagentKind {
    /// Name of the kind.
    pub name: String,
    /// Its purpose, for the model that chooses.
    pub about: String,
    /// Its system prompt.
    pub system: Arc<str>,
    /// The tools that it has; `None` for all of its parent's.
    pub tools: Option<Vec<String>>,
    /// Tools that it does not have.
    pub without: Vec<String>,
    /// The parent's skills that it sees; `None` for all.
    pub skills: Option<Vec<String>>,
    /// Its model; `None` for its parent's.
    pub model: Option<Arc<dyn Model>>,
    /// Limits of one task.
    pub bounds: RunBounds,
}

/// Returns the built-in kinds.
#[must_use]
pub fn builtin() -> Vec<SubagentKind> {
    let kind = |name: &str, about: &str, system: &str, tools: Option<&[&str]>, steps| SubagentKind {
        name: name.to_owned(),
        about: about.to_owned(),
        system: system.into(),
        tools: tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect()),
        without: Vec::new(),
        skills: None,
        model: None,
        bounds: RunBounds { steps, time: TIME, ..RunBounds::default() },
    };
    let hands = ["bash", "ls", "read_file", "write_file", "str_replace"];
    vec![
        kind(
            "general-purpose",
            "work with many steps that needs thought: research, analysis, writing, code",
            include_str!("subagent/general.md"),
            None,
            150,
        ),
        kind(
            BASH,
            "a series of shell commands whose output would only distract here: builds, tests, conversions",
            include_str!("subagent/bash.md"),
            Some(&hands),
            60,
        ),
    ]
}

/// The tool's specification without the kinds: its schema is generated once.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec::from_args::<Args>(TASK, "", false));

/// All kinds of sub-agents, and their description for models.
#[derive(Clone)]
pub struct Kinds {
    kinds: Arc<[SubagentKind]>,
    spec: Arc<ToolSpec>,
}

impl Kinds {
    /// Combines kinds, with a limit on the sub-agents per reply; `None` if there are none.
    #[must_use]
    pub fn new(kinds: Vec<SubagentKind>, at_once: u32) -> Option<Self> {
        if kinds.is_empty() {
            return None;
        }
        let list: String = kinds.iter().map(|kind| format!("\n- {}: {}", kind.name, kind.about)).collect();
        let about = format!(
            "Delegates a piece of work to a sub-agent with its own context, and returns its report. Use it for \
             work that takes many steps or a lot of reading; call it up to {at_once} times in one reply for pieces that \
             are independent. A sub-agent can see your files, but not this conversation. Kinds:{list}"
        );
        let spec = Arc::new(ToolSpec { description: about, ..SPEC.clone() });
        Some(Self { kinds: kinds.into(), spec })
    }

    /// Returns the same kinds with other models in place of their own.
    #[must_use]
    pub fn with_models(&self, replace: impl Fn(Arc<dyn Model>) -> Arc<dyn Model>) -> Self {
        let kinds = self.kinds.iter().cloned();
        let kinds = kinds.map(|kind| SubagentKind { model: kind.model.map(&replace), ..kind }).collect();
        Self { kinds, spec: self.spec.clone() }
    }

    /// Creates the tool `task` for an agent with skills; `None` if there is no kind that it can use.
    ///
    /// An agent without a shell is not offered the kind that only runs commands.
    #[must_use]
    pub fn task(&self, parent: &RunAgent, skills: Arc<[Skill]>) -> Option<Arc<dyn Tool>> {
        let shell = parent.tools.get(BASH).is_some();
        let available = self.kinds.iter().filter(|kind| shell || kind.name != BASH).cloned().collect();
        let all = Self::new(available, parent.bounds.at_once)?;
        Some(Arc::new(SubagentTask { all, parent: parent.clone(), skills }))
    }
}

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The task, in three to five words, for people.
    description: String,
    /// The whole task: everything that the sub-agent has to know and to report.
    prompt: String,
    /// The kind of sub-agent.
    subagent_type: String,
}

struct SubagentTask {
    all: Kinds,
    parent: RunAgent,
    skills: Arc<[Skill]>,
}

impl Tool for SubagentTask {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.all.spec
    }

    fn call<'a>(&'a self, args: Value, cx: &'a ToolCx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args: Args = serde_json::from_value(args)
                .map_err(|error| ToolError(format!("the arguments do not fit {TASK}: {error}")))?;
            let Some(kind) = self.all.kinds.iter().find(|kind| kind.name == args.subagent_type) else {
                let names: Vec<&str> = self.all.kinds.iter().map(|kind| kind.name.as_str()).collect();
                let text =
                    format!("there is no sub-agent {}; there are: {}", args.subagent_type, names.join(", "));
                return Err(ToolError(text));
            };
            let log = StepLog::new(cx.call.clone(), cx.events.clone());
            let skills = SkillPolicy::new(self.skills.clone(), None);
            Ok(run_subagent(self.agent(kind, log.clone(), cx), kind, skills, &log, args, cx).await)
        })
    }
}

impl SubagentTask {
    /// Assembles a sub-agent.
    fn agent(&self, kind: &SubagentKind, log: Arc<StepLog>, cx: &ToolCx) -> RunAgent {
        let parent = &self.parent;
        let model = kind.model.clone().unwrap_or_else(|| parent.model.clone());
        let sees = model.supports_vision();
        let above = ParentApprover {
            approver: parent.approver.clone(),
            tell: cx.events.clone(),
            task: cx.call.clone(),
        };
        let has = |name: &str| {
            let is_allowed = kind.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| tool == name));
            let allowed = cx.allowed_tools.as_ref().is_none_or(|only| only.iter().any(|tool| tool == name));
            let blind = name == VIEW_IMAGE && !sees;
            is_allowed
                && allowed
                && !blind
                && !NEVER.contains(&name)
                && !kind.without.iter().any(|tool| tool == name)
        };
        // A sub-agent with explicitly named tools sees each schema.
        let searches = kind.tools.is_none() && has(SEARCH);
        searching(RunAgent {
            model,
            thinking: Thinking::Off,
            sampling: Sampling::default(),
            tools: parent.tools.only(has),
            sandbox: parent.sandbox.clone(),
            workspace: parent.workspace.clone(),
            log,
            approver: Arc::new(above),
            policy: parent.policy.clone(),
            guardrail: parent.guardrail.clone().map(|guard| Arc::new(SubagentGuardrail(guard)) as _),
            deferred: if searches { parent.deferred.clone() } else { Arc::default() },
            results: parent.results.clone(),
            context: parent.context.clone(),
            memory: parent.memory.clone(),
            system: self.system(kind),
            bounds: kind.bounds,
            loops: parent.loops.clone(),
            progress: parent.progress.clone(),
            remembers: parent.remembers.clone(),
            clock: parent.clock.clone(),
            caller: ModelCaller::Subagent,
            secrets: parent.secrets.clone(),
        })
    }

    /// Returns a kind's system prompt, with its skills.
    fn system(&self, kind: &SubagentKind) -> Arc<str> {
        let is_visible =
            |skill: &&Skill| kind.skills.as_ref().is_none_or(|names| names.contains(&skill.name));
        let visible: Vec<Skill> = self.skills.iter().filter(is_visible).cloned().collect();
        match skills_prompt(&visible) {
            Some(skills) => format!("{}\n\n{skills}", kind.system).into(),
            None => kind.system.clone(),
        }
    }
}

/// Runs a sub-agent and reports its progress to its parent's readers.
async fn run_subagent(
    agent: RunAgent,
    kind: &SubagentKind,
    skills: SkillPolicy,
    log: &StepLog,
    args: Args,
    cx: &ToolCx,
) -> ToolOutput {
    let model = agent.model.name().to_owned();
    let stage = |stage| (cx.events)(RunEvent::SubagentProgress { call: cx.call.clone(), stage });
    let about = foreign::line(&args.description, MAX_ABOUT_CHARS);
    stage(TaskStage::Started { about, agent: kind.name.clone(), model: model.clone() });
    let replay = Arc::new(Replay::default());
    let mut open = OpenTask { log, cx, replay: replay.clone(), model: &model, is_over: false };
    let at = agent.clock.as_ref().map(WallClock::now);
    let mut run_state = run_state(cx, args.prompt, at, replay.clone());
    let mut chain = subagent_chain(&agent, skills);
    let (steering, cancel) = (Steering::default(), CancellationToken::new());
    let outcome = {
        let run = crate::run(&agent, &mut chain, &mut run_state, &steering, &cancel);
        let mut run = std::pin::pin!(run);
        let mut ticks = replay.ticks();
        let mut published = Vec::new();
        loop {
            tokio::select! {
                biased;
                outcome = &mut run => break outcome,
                Ok(()) = ticks.changed() => {}
            }
            let progress = replay.progress();
            let doing = progress.activity.tools();
            if doing != published {
                published.clone_from(&doing);
                stage(TaskStage::Running { doing, usage: progress.usage });
            }
        }
    };
    let RunBounds { steps, time, .. } = kind.bounds;
    let report = report(run_state.state());
    let ending = TaskEnding::from_outcome(&outcome, run_state.stop_reason, report, steps, time);
    let (text, usage) = (ending.text(), run_state.spending.usage());
    let task = Some(ending.report(model.clone(), usage));
    open.end(ending, usage);
    let (spending, decisions) = (run_state.spending.of_subagent(), replay.progress().decided);
    ToolOutput { text, spending, decisions, task, ..ToolOutput::default() }
}

/// A task whose start was published to readers. If it is dropped before it ends, it is reported as cancelled; the
/// parent's run knows the reason.
struct OpenTask<'a> {
    log: &'a StepLog,
    cx: &'a ToolCx,
    replay: Arc<Replay>,
    model: &'a str,
    is_over: bool,
}

impl OpenTask<'_> {
    fn end(&mut self, ending: TaskEnding, usage: Usage) {
        self.is_over = true;
        let end = ending.kept(self.model.to_owned(), usage, self.log.omitted());
        let (call, stage) = (self.cx.call.clone(), TaskStage::Ended(end));
        (self.cx.events)(RunEvent::SubagentProgress { call, stage });
    }
}

impl Drop for OpenTask<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.end(TaskEnding::cut(Some(&Outcome::Stopped)), self.replay.progress().usage);
        }
    }
}

/// Creates a thread that contains only the task.
fn run_state(cx: &ToolCx, prompt: String, at: Option<String>, replay: Arc<Replay>) -> RunState {
    let human = Human { at, ..Human::new("task", prompt) };
    let state = ThreadState::fold([Update::Message(Arc::new(Message::Human(human)))]);
    // The parent's run and call identify actions in the sandbox and approvals.
    let run = RunId::from(format!("{}.{}", cx.run, cx.call));
    RunState::new(cx.thread.clone(), run, 0, state, replay)
}

/// Returns the newest non-empty text of the assistant.
fn report(state: &ThreadState) -> String {
    let mut replies =
        state.messages.values().rev().filter(|message| matches!(***message, Message::Assistant(_)));
    let words =
        |message: &Arc<Message>| Some(message.text().trim().to_owned()).filter(|words| !words.is_empty());
    replies.find_map(words).unwrap_or_default()
}

/// The parent's guardrails, with every call marked as a sub-agent's.
struct SubagentGuardrail(Arc<dyn Guardrail>);

impl Guardrail for SubagentGuardrail {
    fn evaluate<'a>(&'a self, call: &'a GuardedCall) -> BoxFuture<'a, GuardrailVerdict> {
        Box::pin(async move {
            let call = GuardedCall { is_subagent: true, ..call.clone() };
            self.0.evaluate(&call).await
        })
    }
}

/// Passes a sub-agent's approvals on to its parent's reply. Each sub-agent numbers its own calls, so the calls are
/// prefixed with the parent call.
struct ParentApprover {
    approver: Arc<dyn Approver>,
    tell: Tell,
    task: CallId,
}

/// Returns the run that readers follow and the call's id in its events, for a call that may be a sub-agent's.
#[must_use]
pub fn told_call(run: &RunId, call: &CallId) -> (RunId, CallId) {
    match run.as_str().split_once('.') {
        Some((parent, task)) => (parent.into(), ParentApprover::named(&task.into(), call)),
        None => (run.clone(), call.clone()),
    }
}

impl ParentApprover {
    fn named(task: &CallId, call: &CallId) -> CallId {
        format!("{}{call}", below(task)).into()
    }
}

impl Approver for ParentApprover {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest, _: &'a Tell) -> BoxFuture<'a, Decision> {
        Box::pin(async move {
            let (task, above) = (self.task.clone(), self.tell.clone());
            let tell: Tell = Arc::new(move |event| {
                above(match event {
                    RunEvent::ApprovalRequested { call, key, request, whole, deadline } => {
                        let call = Self::named(&task, &call);
                        RunEvent::ApprovalRequested { call, key, request, whole, deadline }
                    }
                    other => other,
                });
            });
            let decision = self.approver.decide(request, &tell).await;
            let call = Self::named(&self.task, &request.call);
            (self.tell)(RunEvent::ApprovalDecided { call, decision: decision.clone() });
            decision
        })
    }

    fn not_asked(&self) -> &'static str {
        self.approver.not_asked()
    }

    fn refused<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ()> {
        self.approver.refused(request)
    }
}

#[cfg(test)]
mod tests;
