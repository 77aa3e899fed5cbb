use super::*;
use crate::{Bounds, Progress, Replay, Toolbox, lead_chain};
use futures_util::stream;
use pudu_base::{
    BoxFuture, Command, Entry, Exec, Human, Model, ModelError, ModelStream, Sandbox, SandboxError, Seq,
    ThreadId, ThreadLog, ThreadState, Tool, ToolSpec,
};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

/// A model that answers each call with the next of its replies and remembers what it was asked.
#[derive(Default)]
struct Scripted {
    replies: Mutex<VecDeque<Reply>>,
    asked: Mutex<Vec<Vec<String>>>,
}

enum Reply {
    /// These pieces.
    Says(Vec<Result<Delta, ModelError>>),
    /// These words, and then silence for ever.
    Stalls(&'static str),
}

impl Model for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn stream(&self, request: Request) -> ModelStream {
        let line = |message: &Arc<Message>| match &**message {
            Message::Human(human) => format!("human: {}", human.text),
            Message::Assistant(reply) => format!("assistant: {}", reply.text),
            Message::Tool(result) => format!("tool: {}", result.text),
        };
        self.asked.lock().unwrap().push(request.messages.iter().map(line).collect());
        match self.replies.lock().unwrap().pop_front().expect("no reply left") {
            Reply::Says(pieces) => stream::iter(pieces).boxed(),
            Reply::Stalls(words) => {
                stream::iter([Ok(Delta::Text(words.into()))]).chain(stream::pending()).boxed()
            }
        }
    }
}

/// A log in memory that can refuse.
#[derive(Default)]
struct Memory {
    updates: Mutex<Vec<Update>>,
    conflict: Mutex<bool>,
}

impl ThreadLog for Memory {
    fn load<'a>(&'a self, _: &'a ThreadId) -> BoxFuture<'a, Result<(Seq, ThreadState), LogError>> {
        let updates = self.updates.lock().unwrap().clone();
        Box::pin(async move { Ok((updates.len() as Seq, ThreadState::fold(updates))) })
    }

    fn append<'a>(
        &'a self,
        _: &'a ThreadId,
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

/// No tool here touches the sandbox.
struct NoSandbox;

impl Sandbox for NoSandbox {
    fn exec<'a>(&'a self, _: &'a Command) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        unreachable!()
    }
    fn read<'a>(&'a self, _: &'a str, _: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>> {
        unreachable!()
    }
    fn write<'a>(&'a self, _: &'a str, _: &'a [u8], _: bool) -> BoxFuture<'a, Result<(), SandboxError>> {
        unreachable!()
    }
    fn list<'a>(&'a self, _: &'a str, _: usize, _: usize) -> BoxFuture<'a, Result<Vec<Entry>, SandboxError>> {
        unreachable!()
    }
}

/// A tool that does what its arguments say and counts its calls.
struct Probe {
    spec: ToolSpec,
    calls: AtomicU32,
}

impl Probe {
    fn new(name: &str, repeatable: bool) -> Arc<Self> {
        let spec = ToolSpec { name: name.into(), about: name.into(), parameters: json!({}), repeatable };
        Arc::new(Self { spec, calls: AtomicU32::new(0) })
    }
}

impl Tool for Probe {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, args: Value, _: &'a ToolCx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
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
                _ => Ok("worked".to_owned().into()),
            }
        })
    }
}

/// A thread with its agent, to run turns on.
struct Bench {
    agent: Agent,
    model: Arc<Scripted>,
    log: Arc<Memory>,
    writes: Arc<Probe>,
    reads: Arc<Probe>,
    steering: Steering,
    cancel: CancellationToken,
}

impl Bench {
    fn new(replies: Vec<Reply>) -> Self {
        let model = Arc::new(Scripted { replies: Mutex::new(replies.into()), ..Scripted::default() });
        let log = Arc::new(Memory::default());
        let (writes, reads) = (Probe::new("writes", false), Probe::new("reads", true));
        let agent = Agent {
            model: model.clone(),
            tools: Toolbox::new([writes.clone() as Arc<dyn Tool>, reads.clone()]),
            sandbox: Arc::new(NoSandbox),
            log: log.clone(),
            system: "Be brief.".into(),
            bounds: Bounds { steps: 3, time: Duration::from_secs(60) },
        };
        Self {
            agent,
            model,
            log,
            writes,
            reads,
            steering: Steering::default(),
            cancel: CancellationToken::new(),
        }
    }

    /// Writes down what a run before this one had done.
    fn past(self, updates: Vec<Update>) -> Self {
        self.log.updates.lock().unwrap().extend(updates);
        self
    }

    async fn run(&self, says: Option<&str>) -> (Outcome, Progress) {
        let (seq, state) = self.log.load(&"t".into()).await.unwrap();
        let replay = Arc::new(Replay::default());
        let mut turn = Turn::new("t".into(), "r".into(), seq, state, replay.clone());
        if let Some(text) = says {
            turn.apply(human("h", text));
        }
        let outcome =
            run(&self.agent, &mut lead_chain(&*self.agent.model), &mut turn, &self.steering, &self.cancel)
                .await;
        (outcome, replay.progress())
    }

    /// Returns the thread as the log has it.
    fn thread(&self) -> Vec<String> {
        let state = ThreadState::fold(self.log.updates.lock().unwrap().clone());
        state.messages.values().map(|message| message.text().to_owned()).collect()
    }

    fn asked(&self) -> Vec<Vec<String>> {
        self.model.asked.lock().unwrap().clone()
    }
}

fn human(id: &str, text: &str) -> Update {
    Update::Message(Arc::new(Message::Human(Human {
        id: id.into(),
        text: text.into(),
        sender: None,
        files: vec![],
    })))
}

fn assistant(calls: Vec<ToolCall>) -> Update {
    Update::Message(Arc::new(Message::Assistant(Assistant {
        id: "a".into(),
        text: "Let me look.".into(),
        reasoning: None,
        calls,
        finish: Finish::Complete,
        model: None,
        usage: None,
    })))
}

fn call(id: &str, name: &str, args: Value) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), args, garbled: None }
}

fn says(text: &str) -> Reply {
    Reply::Says(vec![Ok(Delta::Text(text.into())), Ok(Delta::Finish(Finish::Complete))])
}

fn calls(calls: Vec<ToolCall>) -> Reply {
    let mut pieces: Vec<_> = calls.into_iter().map(|call| Ok(Delta::Call(call))).collect();
    pieces.push(Ok(Delta::Finish(Finish::Complete)));
    Reply::Says(pieces)
}

#[tokio::test]
async fn a_plain_answer_is_one_model_call() {
    let bench = Bench::new(vec![says("42")]);
    let (outcome, seen) = bench.run(Some("6 x 7?")).await;
    assert_eq!((outcome, seen.text.as_str()), (Outcome::Success, "42"));
    assert_eq!(bench.asked(), [["human: 6 x 7?"]]);
    assert_eq!(bench.thread(), ["6 x 7?", "42"]);
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_reply_run_side_by_side_and_are_read_in_call_order() {
    let both = vec![
        call("1", "reads", json!({"do": "wait", "s": 9})),
        call("2", "reads", json!({"do": "wait", "s": 4})),
    ];
    let bench = Bench::new(vec![calls(both), says("done")]);
    let start = tokio::time::Instant::now();
    let (outcome, _) = bench.run(Some("go")).await;
    assert_eq!((outcome, start.elapsed()), (Outcome::Success, Duration::from_secs(9)));
    assert_eq!(bench.asked()[1], ["human: go", "assistant: ", "tool: waited 9", "tool: waited 4"]);
}

#[tokio::test]
async fn what_goes_wrong_with_a_call_is_told_to_the_model_and_the_work_goes_on() {
    let garbled = ToolCall { garbled: Some("{oops".into()), ..call("1", "writes", json!({})) };
    let check = |bad: ToolCall, expect: &'static str| async move {
        let bench = Bench::new(vec![calls(vec![bad]), says("sorry")]);
        let (outcome, _) = bench.run(Some("go")).await;
        assert_eq!(outcome, Outcome::Success);
        assert_eq!(bench.thread(), ["go", "", expect, "sorry"]);
    };
    check(garbled, "Error: the arguments are no JSON object: {oops").await;
    check(call("1", "flies", json!({})), "Error: there is no tool flies. There are: writes, reads.").await;
    check(call("1", "writes", json!({"do": "fail"})), "Error: out of paper").await;
    check(call("1", "writes", json!({"do": "panic"})), "Error: writes broke down").await;
}

#[tokio::test]
async fn a_stop_keeps_what_was_said_as_partial() {
    let bench = Bench::new(vec![Reply::Stalls("Once upon")]);
    let cancel = bench.cancel.clone();
    let ((outcome, seen), ()) = tokio::join!(bench.run(Some("tell")), async {
        tokio::task::yield_now().await;
        cancel.cancel();
    });
    assert_eq!((outcome.clone(), seen.text.as_str()), (Outcome::Stopped, "Once upon"));
    assert_eq!(seen.outcome, Some(outcome));
    let state = ThreadState::fold(bench.log.updates.lock().unwrap().clone());
    let Some(Message::Assistant(kept)) = state.last().map(AsRef::as_ref) else { panic!("nothing kept") };
    assert_eq!((kept.text.as_str(), kept.finish), ("Once upon", Finish::Partial));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_takes_too_long_ends_and_its_open_call_is_answered() {
    let bench = Bench::new(vec![calls(vec![call("1", "writes", json!({"do": "hang"}))])]);
    let (outcome, _) = bench.run(Some("go")).await;
    assert_eq!(outcome, Outcome::Timeout);
    assert_eq!(bench.thread(), ["go", "", "Not finished: the run took too long."]);
}

#[tokio::test]
async fn model_calls_are_limited() {
    let replies = (0..3).map(|n| calls(vec![call(&n.to_string(), "reads", json!({}))])).collect();
    let (outcome, _) = Bench::new(replies).run(Some("go")).await;
    assert_eq!(outcome, Outcome::Limit);
}

#[tokio::test]
async fn a_failed_model_ends_the_run_with_a_class_and_a_hint() {
    let bench = Bench::new(vec![Reply::Says(vec![Err(ModelError::Auth("HTTP 401".into()))])]);
    let (outcome, _) = bench.run(Some("go")).await;
    let Outcome::Error(failure) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failure.class, FailureClass::Auth);
    assert!(failure.hint.contains("refused the key (HTTP 401)"), "{}", failure.hint);
}

#[tokio::test]
async fn after_a_crash_no_finished_tool_is_repeated() {
    let result = |id: &str| {
        Update::Message(Arc::new(Message::Tool(pudu_base::ToolResult {
            id: format!("r{id}").into(),
            call: id.into(),
            tool: "writes".into(),
            text: "worked before".into(),
            error: false,
        })))
    };
    let all = vec![
        call("1", "writes", json!({})),
        call("2", "writes", json!({})),
        call("3", "reads", json!({})),
        call("4", "writes", json!({})),
    ];
    let past = vec![
        human("h", "go"),
        assistant(all),
        Update::Begin("1".into()),
        Update::Begin("2".into()),
        Update::Begin("3".into()),
        result("1"),
    ];
    let bench = Bench::new(vec![says("done")]).past(past);
    let (outcome, _) = bench.run(None).await;
    assert_eq!(outcome, Outcome::Success);
    // 1 had finished, 2 was cut and may have had its effect, 3 only reads, 4 had not begun.
    assert_eq!(bench.writes.calls.load(Ordering::SeqCst), 1);
    assert_eq!(bench.reads.calls.load(Ordering::SeqCst), 1);
    let asked = &bench.asked()[0];
    assert_eq!(asked[2], "tool: worked before");
    assert!(asked[3].starts_with("tool: Error: a restart interrupted this call."), "{asked:?}");
    assert_eq!(asked[4..], ["tool: worked", "tool: worked"]);
}

#[tokio::test]
async fn after_a_crash_behind_the_answer_the_model_is_not_asked_again() {
    let bench = Bench::new(vec![]).past(vec![human("h", "go"), assistant(vec![])]);
    let late = Human { id: "n".into(), text: "one more thing".into(), sender: None, files: vec![] };
    bench.steering.reserve().unwrap().fill(late.clone());
    let (outcome, _) = bench.run(None).await;
    assert_eq!((outcome, bench.asked().len()), (Outcome::Success, 0));
    assert_eq!(bench.steering.close().await, [late], "it waits for the next run");
}

#[tokio::test]
async fn a_steering_message_enters_before_the_next_model_call() {
    let bench = Bench::new(vec![calls(vec![call("1", "reads", json!({}))]), says("ok")]);
    let nudge = Human { id: "n".into(), text: "in French".into(), sender: None, files: vec![] };
    bench.steering.reserve().unwrap().fill(nudge);
    bench.run(Some("go")).await;
    assert_eq!(bench.asked()[0], ["human: go", "human: in French"]);
    assert!(bench.steering.close().await.is_empty());
}

#[tokio::test]
async fn a_run_whose_thread_moved_on_stops_and_says_so() {
    let bench = Bench::new(vec![says("42")]);
    *bench.log.conflict.lock().unwrap() = true;
    let (outcome, seen) = bench.run(Some("go")).await;
    assert!(matches!(&outcome, Outcome::Error(failure) if failure.class == FailureClass::Internal));
    assert_eq!((seen.outcome, bench.asked().len()), (Some(outcome), 0));
}

#[tokio::test]
async fn call_ids_that_a_provider_uses_twice_are_made_unique() {
    let replies = vec![
        calls(vec![call("call-0", "writes", json!({}))]),
        calls(vec![call("call-0", "writes", json!({}))]),
        says("done"),
    ];
    let bench = Bench::new(replies);
    let (outcome, _) = bench.run(Some("go")).await;
    assert_eq!((outcome, bench.writes.calls.load(Ordering::SeqCst)), (Outcome::Success, 2));
}
