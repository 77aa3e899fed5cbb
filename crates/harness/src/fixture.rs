//! A thread with its agent and a scripted model, for tests of runs.

use crate::{
    Memory, NoApprover, Progress, Replay, ReplayItem, ResultRules, Results, RunAgent, RunBounds, RunState,
    SkillPolicy, Steering, Toolbox, lead_chain, run,
};
use futures_util::{StreamExt, stream};
use pudu_base::{
    Assistant, BoxFuture, Delta, DirEntry, Exec, Finish, Human, LogError, Message, Model, ModelError,
    ModelStream, Outcome, Question, Request, ResultFiles, RunEvent, RunId, Sandbox, SandboxError, Seq,
    ShellCommand, Skill, ThreadId, ThreadLog, ThreadState, Tool, ToolCall, ToolCx, ToolError, ToolOutput,
    ToolSpec, Update, UserId,
};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// A model that answers each call with its next scripted reply and records its requests.
#[derive(Default)]
pub(crate) struct ScriptedModel {
    pub(crate) replies: Mutex<VecDeque<ScriptedReply>>,
    pub(crate) asked: Mutex<Vec<Vec<String>>>,
    /// The names of the tools in each request.
    pub(crate) tools: Mutex<Vec<String>>,
    pub(crate) systems: Mutex<Vec<String>>,
}

pub(crate) enum ScriptedReply {
    /// Streams these deltas.
    Says(Vec<Result<Delta, ModelError>>),
    /// Streams this text and then stalls forever.
    Stalls(&'static str),
}

impl Model for ScriptedModel {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn stream(&self, request: Request) -> ModelStream {
        let line = |message: &Arc<Message>| match &**message {
            Message::Human(human) => format!("human: {}", human.to_model_text()),
            Message::Assistant(reply) => format!("assistant: {}", reply.text),
            Message::Tool(result) => format!("tool: {}", result.text),
            Message::Reminder(reminder) => format!("reminder: {}", reminder.text),
        };
        self.asked.lock().unwrap().push(request.messages.iter().map(line).collect());
        let tools: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
        self.tools.lock().unwrap().push(tools.join(" "));
        self.systems.lock().unwrap().push(request.system.clone());
        match self.replies.lock().unwrap().pop_front().expect("no reply left") {
            ScriptedReply::Says(pieces) => stream::iter(pieces).boxed(),
            ScriptedReply::Stalls(words) => {
                stream::iter([Ok(Delta::Text(words.into()))]).chain(stream::pending()).boxed()
            }
        }
    }
}

/// A log in memory that can fail.
#[derive(Default)]
pub(crate) struct LogInMemory {
    pub(crate) updates: Mutex<Vec<Update>>,
    pub(crate) conflict: Mutex<bool>,
}

impl ThreadLog for LogInMemory {
    fn load<'a>(&'a self, _: &'a ThreadId) -> BoxFuture<'a, Result<(Seq, ThreadState), LogError>> {
        let updates = self.updates.lock().unwrap().clone();
        Box::pin(async move { Ok((updates.len() as Seq, ThreadState::fold(updates))) })
    }

    fn append<'a>(
        &'a self,
        _: &'a ThreadId,
        _: &'a RunId,
        at: Seq,
        new: &'a [Update],
    ) -> BoxFuture<'a, Result<Seq, LogError>> {
        Box::pin(async move {
            let mut updates = self.updates.lock().unwrap();
            if *self.conflict.lock().unwrap() || updates.len() as Seq != at {
                return Err(LogError::Conflict { at });
            }
            updates.extend(new.iter().cloned());
            Ok(updates.len() as Seq)
        })
    }
}

/// A sandbox without files, which no tool uses.
pub(crate) struct NoSandbox;

impl Sandbox for NoSandbox {
    fn exec<'a>(&'a self, _: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        unreachable!()
    }
    fn read<'a>(&'a self, _: &'a str, _: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>> {
        unreachable!()
    }
    fn write<'a>(&'a self, _: &'a str, _: &'a [u8], _: bool) -> BoxFuture<'a, Result<(), SandboxError>> {
        Box::pin(async { Err(SandboxError::Refused("it cannot be kept".to_owned())) })
    }
    fn list<'a>(
        &'a self,
        _: &'a str,
        _: usize,
        _: usize,
    ) -> BoxFuture<'a, Result<Vec<DirEntry>, SandboxError>> {
        unreachable!()
    }
}

/// Files whose names are their sizes in MiB; counts the bytes read.
#[derive(Default)]
pub(crate) struct SizedFiles(pub(crate) AtomicU64);

impl Sandbox for SizedFiles {
    fn exec<'a>(&'a self, _: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        unreachable!()
    }
    fn read<'a>(&'a self, path: &'a str, limit: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>> {
        let size = path.parse::<u64>().unwrap() << 20;
        Box::pin(async move {
            if size > limit {
                return Err(SandboxError::TooLarge { path: path.to_owned(), size, limit });
            }
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(Vec::new())
        })
    }
    fn write<'a>(&'a self, _: &'a str, _: &'a [u8], _: bool) -> BoxFuture<'a, Result<(), SandboxError>> {
        unreachable!()
    }
    fn list<'a>(
        &'a self,
        _: &'a str,
        _: usize,
        _: usize,
    ) -> BoxFuture<'a, Result<Vec<DirEntry>, SandboxError>> {
        unreachable!()
    }
}

/// Stores no results.
pub(crate) struct NoFiles;

impl ResultFiles for NoFiles {
    fn keep<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<String, SandboxError>> {
        Box::pin(async { Err(SandboxError::Refused("full".into())) })
    }
}

/// A tool that is controlled by its arguments and counts its calls.
pub(crate) struct ProbeTool {
    pub(crate) spec: Arc<ToolSpec>,
    pub(crate) calls: AtomicU32,
}

impl ProbeTool {
    pub(crate) fn new(name: &str, repeatable: bool) -> Arc<Self> {
        let spec = ToolSpec {
            name: name.into(),
            description: name.into(),
            parameters: json!({}),
            idempotent: repeatable,
        };
        let spec = Arc::new(spec);
        Arc::new(Self { spec, calls: AtomicU32::new(0) })
    }
}

impl Tool for ProbeTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, args: Value, cx: &'a ToolCx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            match args["do"].as_str().unwrap_or("work") {
                "fail" => Err(ToolError("out of paper".into())),
                "panic" => panic!("a tool that panics"),
                "hang" => std::future::pending().await,
                "wait" => {
                    tokio::time::sleep(Duration::from_secs(args["s"].as_u64().unwrap())).await;
                    Ok(format!("waited {}", args["s"]).into())
                }
                "present" => {
                    let paths =
                        args["files"].as_array().unwrap().iter().map(|n| format!("/out/{n}")).collect();
                    let updates = vec![Update::Artifacts { run: cx.run.clone(), paths }];
                    Ok(ToolOutput { text: "presented.".into(), updates, ..ToolOutput::default() })
                }
                "ask" => {
                    let question = Some(Question {
                        text: "Which?".into(),
                        options: vec!["a".into(), "b".into()],
                        ..Question::default()
                    });
                    Ok(ToolOutput { question, ..ToolOutput::default() })
                }
                _ => Ok("worked".to_owned().into()),
            }
        })
    }
}

/// A thread with its agent, for tests of runs.
pub(crate) struct Bench {
    pub(crate) agent: RunAgent,
    pub(crate) model: Arc<ScriptedModel>,
    pub(crate) log: Arc<LogInMemory>,
    pub(crate) writes: Arc<ProbeTool>,
    pub(crate) reads: Arc<ProbeTool>,
    pub(crate) steering: Steering,
    pub(crate) cancel: CancellationToken,
    pub(crate) skills: Arc<[Skill]>,
}

impl Bench {
    pub(crate) fn new(replies: Vec<ScriptedReply>) -> Self {
        let model =
            Arc::new(ScriptedModel { replies: Mutex::new(replies.into()), ..ScriptedModel::default() });
        let log = Arc::new(LogInMemory::default());
        let (writes, reads) = (ProbeTool::new("writes", false), ProbeTool::new("reads", true));
        let agent = RunAgent {
            model: model.clone(),
            thinking: pudu_base::Thinking::On,
            sampling: pudu_base::Sampling::default(),
            tools: Toolbox::new([writes.clone() as Arc<dyn Tool>, reads.clone()]),
            sandbox: Arc::new(NoSandbox),
            workspace: None,
            log: log.clone(),
            approver: Arc::new(NoApprover),
            policy: Arc::default(),
            guardrail: None,
            deferred: Arc::default(),
            results: Results { rules: Arc::new(ResultRules::default()), files: Arc::new(NoFiles) },
            context: crate::ContextSetup::default(),
            memory: Memory::default(),
            system: "Be brief.".into(),
            bounds: RunBounds { steps: 3, time: Duration::from_secs(60), ..RunBounds::default() },
            loops: None,
            progress: None,
            remembers: UserId::local(),
            clock: None,
            caller: pudu_base::ModelCaller::Lead,
            secrets: Arc::new(pudu_base::NoSecrets),
        };
        Self {
            agent,
            model,
            log,
            writes,
            reads,
            steering: Steering::default(),
            cancel: CancellationToken::new(),
            skills: Arc::default(),
        }
    }

    /// Records the updates of an earlier run.
    pub(crate) fn past(self, updates: Vec<Update>) -> Self {
        self.log.updates.lock().unwrap().extend(updates);
        self
    }

    pub(crate) async fn run(&self, says: Option<&str>) -> (Outcome, Progress) {
        let (outcome, replay) = self.work(says).await;
        (outcome, replay.progress())
    }

    /// Returns the events of a run.
    pub(crate) async fn events(&self, says: Option<&str>) -> Vec<RunEvent> {
        let mut reader = self.work(says).await.1.read(0);
        let mut events = Vec::new();
        while let Some(ReplayItem::Event(_, event)) = reader.next().await {
            events.push((*event).clone());
        }
        events
    }

    async fn work(&self, says: Option<&str>) -> (Outcome, Arc<Replay>) {
        let (seq, state) = self.log.load(&"t".into()).await.unwrap();
        let replay = Arc::new(Replay::default());
        let mut run_state = RunState::new("t".into(), "r".into(), seq, state, replay.clone());
        if let Some(text) = says {
            run_state.apply(human("h", text));
        }
        let mut chain = lead_chain(&self.agent, SkillPolicy::new(self.skills.clone(), None), Vec::new());
        let outcome = run(&self.agent, &mut chain, &mut run_state, &self.steering, &self.cancel).await;
        self.each_request_begins_like_the_one_before();
        (outcome, replay)
    }

    /// Returns the texts of the thread in the log.
    pub(crate) fn thread(&self) -> Vec<String> {
        let state = ThreadState::fold(self.log.updates.lock().unwrap().clone());
        state.messages.values().map(|message| message.text().to_owned()).collect()
    }

    /// Checks every scripted run and each of its sub-agents, because providers cache the prefix of a request.
    fn each_request_begins_like_the_one_before(&self) {
        let (requests, systems) = (self.asked(), self.model.systems.lock().unwrap());
        let all: Vec<_> = systems.iter().zip(&requests).collect();
        for (at, (system, after)) in all.iter().enumerate() {
            // Sub-agents call the same model, each with its own prompt and conversation.
            let same = |(other, before): &&(&String, &Vec<String>)| {
                other == system && before.first() == after.first()
            };
            let before = all[..at].iter().rev().find(same).filter(|(_, before)| before.len() < after.len());
            let begins = before.is_none_or(|(_, before)| after.starts_with(before));
            assert!(begins, "{after:#?}\ndoes not begin with\n{before:#?}");
        }
    }

    pub(crate) fn asked(&self) -> Vec<Vec<String>> {
        self.model.asked.lock().unwrap().clone()
    }
}

pub(crate) fn human(id: &str, text: &str) -> Update {
    Update::Message(Arc::new(Message::Human(Human::new(id, text))))
}

pub(crate) fn assistant(calls: Vec<ToolCall>) -> Update {
    Update::Message(Arc::new(Message::Assistant(Assistant {
        id: "a".into(),
        text: "Let me look.".into(),
        reasoning: None,
        provider_parts: None,
        calls,
        finish: Finish::Complete,
        model: None,
        usage: None,
        failure: None,
    })))
}

pub(crate) fn call(id: &str, name: &str, args: Value) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), args, garbled: None }
}

pub(crate) fn text_reply(text: &str) -> ScriptedReply {
    ScriptedReply::Says(vec![Ok(Delta::Text(text.into())), Ok(Delta::Finish(Finish::Complete))])
}

pub(crate) fn calls(calls: Vec<ToolCall>) -> ScriptedReply {
    let mut pieces: Vec<_> = calls.into_iter().map(|call| Ok(Delta::Call(call))).collect();
    pieces.push(Ok(Delta::Finish(Finish::Complete)));
    ScriptedReply::Says(pieces)
}
