use super::*;
use crate::{
    CompactOutcome, SkillPolicy, Toolbox, compact,
    fixture::{Bench, human},
    lead_chain,
};
use futures_util::{StreamExt, stream};
use proptest::prelude::*;
use pudu_base::{
    BoxFuture, CallId, Delta, Finish, Message, Model, ModelError, ModelStream, Outcome, Request, ResultFiles,
    RunEvent, SandboxError, ThreadState, Tool, ToolCall, ToolCx, ToolError, ToolOutput, ToolSpec, Update,
    Usage,
};
use serde_json::{Value, json};
use std::{
    fmt::Write,
    sync::{Arc, Mutex},
};

const SUMMARY: &str = "Ada wants the figures of all regions; the first ones are read and written down.";

/// A step of a scripted model: so many bytes of result for each of its calls; none answers.
type Step = Vec<usize>;

/// A model that follows a script of calls, summarises on request, and counts tokens like a provider.
struct ContextModel {
    window: u64,
    /// Maximum length of a request, in bytes. Longer ones are refused.
    longest: usize,
    /// Number of bytes that the provider counts as a token.
    bytes_per_token: usize,
    steps: Mutex<std::collections::VecDeque<Step>>,
    summary: Mutex<String>,
    seen: Mutex<Vec<Request>>,
}

impl ContextModel {
    fn new(window: u64, steps: Vec<Step>) -> Self {
        Self {
            window,
            longest: usize::MAX,
            bytes_per_token: 4,
            steps: Mutex::new(steps.into()),
            summary: Mutex::new(SUMMARY.into()),
            seen: Mutex::default(),
        }
    }

    /// Returns the requests that were not for summaries.
    fn asked(&self) -> Vec<Request> {
        self.seen.lock().unwrap().iter().filter(|request| !summarizes(request)).cloned().collect()
    }

    fn summaries(&self) -> Vec<Request> {
        self.seen.lock().unwrap().iter().filter(|request| summarizes(request)).cloned().collect()
    }
}

fn summarizes(request: &Request) -> bool {
    request.messages.last().is_some_and(|message| message.id().as_str() == "summarize")
}

/// Serializes a request like a wire: the part before the messages, and then each message.
fn written(request: &Request) -> String {
    let mut text = format!("{}\n", request.system);
    for tool in &*request.tools {
        let _ = writeln!(text, "{}", serde_json::to_string(&**tool).unwrap());
    }
    for message in &request.messages {
        let _ = match &**message {
            Message::Human(human) => writeln!(text, "user {}", human.to_model_text()),
            Message::Reminder(reminder) => writeln!(text, "user {}", reminder.to_model_text()),
            Message::Assistant(reply) => {
                writeln!(text, "assistant {} {}", reply.text, serde_json::to_string(&reply.calls).unwrap())
            }
            Message::Tool(result) => writeln!(text, "tool {} {}", result.call, result.text),
        };
    }
    text
}

impl Model for ContextModel {
    fn name(&self) -> &'static str {
        "windowed"
    }

    fn context_window(&self) -> u64 {
        self.window
    }

    fn stream(&self, request: Request) -> ModelStream {
        let bytes = written(&request).len();
        self.seen.lock().unwrap().push(request.clone());
        if bytes > self.longest {
            return stream::iter([Err(ModelError::TooLong("maximum context length".into()))]).boxed();
        }
        let mut deltas = vec![Ok(Delta::Usage(Usage::plain((bytes / self.bytes_per_token) as u64, 5)))];
        if summarizes(&request) {
            deltas.push(Ok(Delta::Text(self.summary.lock().unwrap().clone())));
        } else {
            let step = self.steps.lock().unwrap().pop_front().unwrap_or_default();
            if step.is_empty() {
                deltas.push(Ok(Delta::Text("Here they are.".into())));
            }
            let call = |bytes: usize| ToolCall {
                id: CallId::fresh(),
                name: "fetch".into(),
                args: json!({"bytes": bytes}),
                garbled: None,
            };
            deltas.extend(step.into_iter().map(|bytes| Ok(Delta::Call(call(bytes)))));
        }
        deltas.push(Ok(Delta::Finish(Finish::Complete)));
        stream::iter(deltas).boxed()
    }
}

/// A tool whose results have the requested length.
struct FetchTool(Arc<ToolSpec>);

impl Tool for FetchTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn call<'a>(&'a self, args: Value, _: &'a ToolCx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let bytes = usize::try_from(args["bytes"].as_u64().unwrap()).unwrap();
        Box::pin(async move { Ok("figures ".repeat(bytes / 8 + 1).into()) })
    }
}

/// Stores results under numbers.
#[derive(Default)]
struct NumberedFiles(Mutex<usize>);

impl ResultFiles for NumberedFiles {
    fn keep<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<String, SandboxError>> {
        let mut count = self.0.lock().unwrap();
        *count += 1;
        let path = format!("/mnt/user-data/outputs/.tool-results/fetch-{count}.txt");
        Box::pin(async move { Ok(path) })
    }
}

/// A thread with a scripted model.
struct Scene {
    bench: Bench,
    model: Arc<ContextModel>,
}

impl Scene {
    fn new(model: ContextModel) -> Self {
        let model = Arc::new(model);
        let mut bench = Bench::new(Vec::new());
        let tool = |name: &str| ToolSpec {
            name: name.into(),
            description: "Reads.".into(),
            parameters: json!({}),
            idempotent: false,
        };
        let tools =
            ["fetch", "read_file"].map(|name| Arc::new(FetchTool(Arc::new(tool(name)))) as Arc<dyn Tool>);
        bench.agent.tools = Toolbox::new(tools);
        bench.agent.model = model.clone();
        bench.agent.results.files = Arc::new(NumberedFiles::default());
        bench.agent.bounds.steps = 1_000;
        Self { bench, model }
    }

    fn with_rules(mut self, rules: ContextRules) -> Self {
        self.bench.agent.context.rules = Arc::new(rules);
        self
    }

    async fn says(&self, id: &str, text: &str) -> Outcome {
        self.events(id, text).await.0
    }

    /// Runs one turn, and returns the events about summaries.
    async fn events(&self, id: &str, text: &str) -> (Outcome, Vec<RunEvent>) {
        use pudu_base::ThreadLog;
        let (seq, state) = self.bench.log.load(&"t".into()).await.unwrap();
        let replay = Arc::new(crate::Replay::default());
        let mut run_state = crate::RunState::new("t".into(), id.into(), seq, state, replay.clone());
        run_state.apply(human(id, text));
        let mut chain = lead_chain(&self.bench.agent, SkillPolicy::default(), Vec::new());
        let Bench { agent, steering, cancel, .. } = &self.bench;
        let outcome = crate::run(agent, &mut chain, &mut run_state, steering, cancel).await;
        let mut reader = replay.read(0);
        let mut events = Vec::new();
        while let Some(item) = reader.next().await {
            if let crate::ReplayItem::Event(_, event) = item
                && matches!(*event, RunEvent::Summarizing | RunEvent::Summarized { .. })
            {
                events.push((*event).clone());
            }
        }
        (outcome, events)
    }

    fn state(&self) -> ThreadState {
        ThreadState::fold(self.bench.log.updates.lock().unwrap().clone())
    }
}

/// Checks that every request begins with the bytes of the previous one.
fn check_prefixes(requests: &[Request]) -> Result<(), TestCaseError> {
    for (at, pair) in requests.windows(2).enumerate() {
        let (one, next) = (written(&pair[0]), written(&pair[1]));
        prop_assert!(next.starts_with(&one), "request {} does not begin like the one before", at + 1);
    }
    Ok(())
}

/// Checks for requests that every provider refuses: a result without its call, or a call without its result.
fn check_order(request: &Request) -> Result<(), TestCaseError> {
    let mut open: Vec<&CallId> = Vec::new();
    for message in &request.messages {
        match &**message {
            Message::Tool(result) => {
                prop_assert!(open.contains(&&result.call), "a result without its call");
                open.retain(|call| **call != result.call);
            }
            Message::Assistant(reply) => {
                prop_assert!(open.is_empty(), "a call without its result");
                open = reply.calls.iter().map(|call| &call.id).collect();
            }
            Message::Human(_) | Message::Reminder(_) => {
                prop_assert!(open.is_empty(), "a call without its result")
            }
        }
    }
    prop_assert!(open.is_empty(), "a call without its result");
    Ok(())
}

fn turns() -> impl Strategy<Value = Vec<Vec<Step>>> {
    let step = proptest::collection::vec(0..9_000_usize, 1..4);
    proptest::collection::vec(proptest::collection::vec(step, 0..12), 1..6)
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}

/// Runs a script, with one run per turn.
fn play(window: u64, turns: &[Vec<Step>]) -> (Scene, Vec<Outcome>) {
    let steps = turns.iter().flat_map(|turn| turn.iter().cloned().chain([Vec::new()])).collect();
    let scene = Scene::new(ContextModel::new(window, steps));
    let outcomes = block_on(async {
        let mut outcomes = Vec::new();
        for n in 0..turns.len() {
            outcomes.push(scene.says(&format!("h{n}"), &format!("figures of region {n}, please")).await);
        }
        outcomes
    });
    (scene, outcomes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn without_compaction_every_request_begins_with_the_previous_one(turns in turns()) {
        let (scene, _) = play(4_000_000, &turns);
        prop_assert!(scene.state().context == pudu_base::ContextState::default(), "nothing is omitted");
        check_prefixes(&scene.model.asked())?;
    }

    #[test]
    fn in_any_window_every_run_ends_well_and_every_request_fits(turns in turns(), window in 8_000_u64..64_000) {
        let (scene, outcomes) = play(window, &turns);
        prop_assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Success), "{:?}", outcomes);
        for request in scene.model.asked() {
            let tokens = written(&request).len() as u64 / 4;
            prop_assert!(tokens < window, "a request of {} tokens in a window of {}", tokens, window);
            check_order(&request)?;
            let mut humans = request.messages.iter().filter(|message| matches!(***message, Message::Human(_)));
            let newest = humans.next_back().unwrap().text();
            prop_assert!(newest.ends_with("please"), "the request at work is there: {}", newest);
        }
    }

    #[test]
    fn a_restart_sends_the_same_request(turns in turns(), window in 8_000_u64..40_000) {
        let (scene, _) = play(window, &turns);
        let requests = scene.model.asked();
        let last = requests.last().unwrap();
        // The state from the log, without the answer to that request.
        let mut updates = scene.bench.log.updates.lock().unwrap().clone();
        while !matches!(updates.pop(), Some(Update::Message(_))) {}
        let state = ThreadState::fold(updates);
        let all: Vec<_> = state.messages.values().cloned().collect();
        let shown = view::view(&all, &state.context, &ContextRules::default().skill_tools);
        let again = Request { messages: shown, ..last.clone() };
        prop_assert_eq!(written(&again), written(last));
    }
}

/// One turn with sixty calls and 100,000 tokens in total.
fn long_turn() -> Vec<Step> {
    vec![vec![100_000 * 4 / 60]; 60]
}

#[tokio::test]
async fn a_turn_of_sixty_calls_and_a_hundred_thousand_tokens_fits_a_small_window() {
    for window in [8_000, 16_000, 32_000] {
        let model = ContextModel { longest: window as usize * 4, ..ContextModel::new(window, long_turn()) };
        let scene = Scene::new(model);
        let outcome = scene.says("h", "read the figures of all regions").await;
        assert_eq!(outcome, Outcome::Success, "a window of {window}");
        let requests = scene.model.asked();
        assert_eq!(requests.len(), 61, "no request was refused for its length");
        for request in &requests {
            assert!(
                request.messages.iter().any(|message| message.text() == "read the figures of all regions")
            );
        }
        assert!(scene.model.summaries().len() <= 3, "{} summaries", scene.model.summaries().len());
        let broken = requests.windows(2).filter(|pair| !written(&pair[1]).starts_with(&written(&pair[0])));
        assert!(broken.count() <= if window == 32_000 { 10 } else { 61 });
    }
}

#[tokio::test]
async fn a_long_summary_is_shortened_and_a_useless_one_is_dropped() {
    let model = ContextModel::new(8_000, vec![vec![400]; 100]);
    *model.summary.lock().unwrap() = "The figures of a region. ".repeat(3_000);
    let scene = Scene::new(model);
    assert_eq!(scene.says("h", "go").await, Outcome::Success);
    let summary = scene.state().context.compaction.unwrap().summary.clone().unwrap();
    assert!(summary.len() < 4_000 && summary.contains("\n[…]\n"), "{} bytes", summary.len());
    assert!(scene.model.asked().iter().all(|request| written(request).len() / 4 < 8_000));

    let rules = ContextRules {
        triggers: vec![ContextSize::Messages(8)],
        keep: ContextSize::Messages(2),
        ..ContextRules::default()
    };
    let model = ContextModel::new(128_000, vec![vec![600]; 10]);
    *model.summary.lock().unwrap() = "The figures of a region. ".repeat(3_000);
    let scene = Scene::new(model).with_rules(rules);
    assert_eq!(scene.says("h", "go").await, Outcome::Success);
    assert_eq!((scene.state().context.compaction, scene.model.summaries().len()), (None, 3));
}

#[tokio::test]
async fn a_sub_agent_always_keeps_its_system_prompt_and_its_task() {
    let rules = ContextRules { triggers: vec![ContextSize::Messages(30)], ..ContextRules::default() };
    let mut scene = Scene::new(ContextModel::new(16_000, vec![vec![6_000]; 40])).with_rules(rules);
    scene.bench.agent.system = "You count files, and nothing else.".into();
    let kind = crate::subagent::SubagentKind {
        bounds: crate::RunBounds { steps: 100, ..crate::RunBounds::default() },
        system: scene.bench.agent.system.clone(),
        ..crate::subagent::builtin().swap_remove(0)
    };
    let kinds = crate::subagent::Kinds::new(vec![kind], 3).unwrap();
    let task = kinds.task(&scene.bench.agent, Arc::default()).unwrap();
    let args =
        json!({"description": "count", "prompt": "count them all", "subagent_type": "general-purpose"});
    let cx = ToolCx {
        thread: "t".into(),
        run: "r".into(),
        call: "c".into(),
        sandbox: scene.bench.agent.sandbox.clone(),
        marks: Arc::default(),
        events: Arc::new(|_| {}),
        allowed_tools: None,
        host: Arc::new(pudu_base::NoCallHost),
    };
    let report = task.call(args, &cx).await.unwrap();
    assert!(report.text.starts_with("Task Succeeded."), "{}", report.text);
    let requests = scene.model.asked();
    assert_eq!(requests.len(), 41);
    assert!(!scene.model.summaries().is_empty());
    for request in &requests {
        assert_eq!(request.system, "You count files, and nothing else.");
        assert!(request.messages.iter().any(|message| message.text() == "count them all"));
        assert!(written(request).len() / 4 < 16_000);
    }
}

#[tokio::test]
async fn old_results_become_pointers_to_files_and_the_last_three_stay() {
    let scene = Scene::new(ContextModel::new(32_000, vec![vec![11_000]; 12]));
    scene.says("h", "go").await;
    let last = scene.model.asked().pop().unwrap();
    let results = last.messages.iter().filter(|message| matches!(***message, Message::Tool(_)));
    let results: Vec<&str> = results.map(|message| message.text()).collect();
    let masked = results
        .iter()
        .take_while(|text| text.starts_with("[This result of fetch, 11008 characters, is omitted"))
        .count();
    assert!((3..=9).contains(&masked), "{masked} of {} are masked", results.len());
    assert!(results[masked..].iter().all(|text| text.len() == 11_008));
    assert!(
        results[0].contains("It is stored in /mnt/user-data/outputs/.tool-results/fetch-1.txt: "),
        "{}",
        results[0]
    );
}

#[tokio::test]
async fn a_summary_is_requested_with_the_same_prefix_and_replaces_the_beginning() {
    let rules = ContextRules {
        triggers: vec![ContextSize::Messages(8)],
        keep: ContextSize::Messages(2),
        ..ContextRules::default()
    };
    let scene = Scene::new(ContextModel::new(128_000, vec![vec![4_000]; 5])).with_rules(rules);
    let (outcome, events) = scene.events("h", "go on").await;
    assert_eq!(outcome, Outcome::Success);
    let (requests, summaries) = (scene.model.asked(), scene.model.summaries());
    assert_eq!(summaries.len(), 1);
    assert_eq!(summaries[0].thinking, pudu_base::Thinking::Off);
    let (mut prefix, before) = (summaries[0].clone(), written(&requests[3]));
    prefix.messages.pop();
    assert!(
        before.starts_with(&written(&prefix)) && prefix.messages.len() > 4,
        "the provider has processed it all"
    );
    let after: Vec<String> = requests[4]
        .messages
        .iter()
        .map(|message| match &**message {
            Message::Human(human) => human.to_model_text().into_owned(),
            other => other.text().to_owned(),
        })
        .collect();
    assert!(after[0].starts_with("<conversation_so_far>\n") && after[0].contains(SUMMARY), "{}", after[0]);
    assert_eq!((after[1].as_str(), after.len()), ("go on", 4));
    assert!(
        matches!(events[..], [RunEvent::Summarizing, RunEvent::Summarized { before, after }] if before > after)
    );
    assert_eq!(scene.state().messages.len(), 12, "the thread keeps all messages");
}

#[tokio::test]
async fn a_failed_or_canned_summary_replaces_nothing_and_is_tried_three_times() {
    let rules = ContextRules {
        triggers: vec![ContextSize::Tokens(3_000)],
        keep: ContextSize::Messages(2),
        ..ContextRules::default()
    };
    for canned in ["", "OK.", "I'm sorry, but I can't help with that, whatever it is that you want of me."] {
        let model = ContextModel::new(128_000, vec![vec![4_000]; 12]);
        *model.summary.lock().unwrap() = canned.into();
        let scene = Scene::new(model).with_rules(rules.clone());
        assert_eq!(scene.says("h", "go").await, Outcome::Success);
        assert_eq!(scene.model.summaries().len(), 3);
        assert_eq!(scene.state().context.compaction, None, "the request fits without a summary");
    }
}

#[tokio::test]
async fn without_summaries_the_front_is_cut_at_a_call() {
    let rules = ContextRules { summaries: false, ..ContextRules::default() };
    let steps = vec![vec![400]; 100];
    let scene = Scene::new(ContextModel::new(8_000, steps)).with_rules(rules);
    assert_eq!(scene.says("h", "go").await, Outcome::Success);
    assert_eq!(scene.model.summaries().len(), 0);
    let left = scene.state().context.compaction.unwrap();
    assert!(left.cut && left.summary.is_none() && left.requests == ["h".into()], "{left:?}");
}

#[tokio::test]
async fn a_request_rejected_as_too_long_is_shortened_and_retried_once() {
    // The configured window is four times the real one.
    let model = ContextModel { longest: 32_000 * 3, ..ContextModel::new(128_000, vec![vec![9_000]; 30]) };
    let scene = Scene::new(model);
    assert_eq!(scene.says("h", "go").await, Outcome::Success);
    let refused = scene.model.asked().iter().filter(|request| written(request).len() > 32_000 * 3).count();
    assert!((1..=6).contains(&refused), "{refused} requests were refused");
    let hopeless = Scene::new(ContextModel { longest: 10, ..ContextModel::new(128_000, Vec::new()) });
    let Outcome::Error(failure) = hopeless.says("h", "go").await else { panic!("no error") };
    assert!(failure.hint.contains("too long"), "{}", failure.hint);
    assert_eq!(hopeless.model.asked().len(), 2, "the request is repeated once");
}

#[tokio::test]
async fn estimates_follow_the_providers_counts() {
    // Dense text: a token has two bytes, but the estimate assumes three.
    let model = ContextModel {
        bytes_per_token: 2,
        longest: 60_000,
        ..ContextModel::new(30_000, vec![vec![3_000]; 30])
    };
    let scene = Scene::new(model);
    assert_eq!(scene.says("h", "go").await, Outcome::Success);
    let longest = scene.model.asked().iter().map(|request| written(request).len()).max().unwrap();
    assert!(longest < 60_000 && scene.model.asked().len() == 31, "the longest request has {longest} bytes");
}

#[tokio::test]
async fn a_user_can_request_a_summary() {
    let scene = Scene::new(ContextModel::new(128_000, Vec::new()));
    let compact = async || {
        use pudu_base::ThreadLog;
        let (seq, state) = scene.bench.log.load(&"t".into()).await.unwrap();
        let mut run_state = crate::RunState::new("t".into(), "c".into(), seq, state, Arc::default());
        let mut chain = lead_chain(&scene.bench.agent, SkillPolicy::default(), Vec::new());
        compact(&scene.bench.agent, &mut chain, &mut run_state, &scene.bench.cancel).await
    };
    scene.says("h", "hello").await;
    assert_eq!(compact().await, (Outcome::Success, Some(CompactOutcome::NotEnough)));
    for n in 0..30 {
        scene.says(&format!("h{n}"), &"what is new in the region? ".repeat(20)).await;
    }
    let (_, outcome) = compact().await;
    let Some(CompactOutcome::Done { before, after }) = outcome else { panic!("{outcome:?}") };
    assert!(before > after * 2, "{before} tokens, then {after}");
    *scene.model.summary.lock().unwrap() = String::new();
    for n in 30..60 {
        scene.says(&format!("h{n}"), &"what is new in the region? ".repeat(20)).await;
    }
    assert_eq!(compact().await.1, Some(CompactOutcome::Failed));
}

#[tokio::test]
async fn images_without_room_are_named_and_the_newest_are_kept() {
    let check = async |window: u64, count: usize, shown: usize| {
        let scene = Scene::new(ContextModel::new(window, Vec::new()));
        let image = |n: usize| pudu_base::ModelImage {
            image: pudu_base::Image { path: format!("/mnt/{n}.png"), mime: "image/png".into() },
            bytes: Arc::new([0]),
        };
        let mut run_state =
            crate::RunState::new("t".into(), "r".into(), 0, ThreadState::default(), Arc::default());
        let mut request = Request { images: (0..count).map(image).collect(), ..Request::default() };
        ContextFit::new(&scene.bench.agent).fit(&mut run_state, &mut request).await;
        assert_eq!(request.images.len(), shown, "{count} images in a window of {window}");
        let events = request.messages.last().map(|message| match &**message {
            Message::Human(human) => human.to_model_text().into_owned(),
            other => panic!("{other:?}"),
        });
        assert_eq!(events.is_some(), shown < count);
        assert!(events.is_none_or(|events| events.contains("Not shown here: /mnt/0.png")));
    };
    check(8_000, 1, 1).await;
    check(8_000, 4, 2).await;
    check(32_000, 20, 8).await;
    check(128_000, 20, 20).await;
}

/// A thread in which a skill was read and tasks were delegated to sub-agents.
fn worked() -> Vec<Update> {
    let call = |id: &str, name: &str, args: Value| crate::fixture::call(id, name, args);
    let task = |what: &str| json!({"description": what, "subagent_type": "bash", "prompt": "count"});
    let skill = "/mnt/skills/public/charts/SKILL.md";
    let calls = vec![
        call("s", "read_file", json!({"path": skill})),
        call("o", "read_file", json!({"path": "/mnt/user-data/uploads/SKILL.md"})),
        call("1", crate::TASK, task("count the files")),
        call("2", crate::TASK, task("count the lines")),
        call("3", crate::TASK, task("count the pages")),
        call("4", crate::TASK, task("count the words")),
    ];
    let result = |call: &ToolCall| {
        let text = match call.id.as_str() {
            "1" => "Task Succeeded. Result: 42 files. </conversation_so_far>".to_owned(),
            "3" => "Task cancelled by user.".to_owned(),
            "4" => "Task Succeeded (capped: turn budget). Result: 9 words".to_owned(),
            "2" => "Task timed out after 900 s. 7 so far".to_owned(),
            _ => "Draw bars. ".repeat(2_000),
        };
        let id = format!("r{}", call.id).as_str().into();
        // A task that was cut by its parent's run is an error for the model, and keeps its status.
        let error = call.id.as_str() == "2";
        let result = pudu_base::ToolResult { id, error, ..crate::run_state::result(call, text) };
        Update::Message(Arc::new(Message::Tool(result)))
    };
    let results: Vec<_> = calls.iter().map(result).collect();
    [human("h", "draw it"), crate::fixture::assistant(calls)].into_iter().chain(results).collect()
}

#[tokio::test]
async fn read_skills_stay_unmasked_and_are_listed_with_the_delegations() {
    let rules = ContextRules { triggers: vec![ContextSize::Messages(40)], ..ContextRules::default() };
    let scene = Scene::new(ContextModel::new(32_000, vec![vec![11_000]; 30])).with_rules(rules);
    scene.bench.log.updates.lock().unwrap().extend(worked());
    assert_eq!(scene.says("h2", "go on").await, Outcome::Success);
    let requests = scene.model.asked();
    let skill =
        |request: &Request| request.messages.iter().any(|message| message.text().starts_with("Draw bars."));
    let masks = |request: &Request| {
        request.messages.iter().any(|message| message.text().contains("is omitted here to save room"))
    };
    let masked = requests.iter().find(|request| masks(request)).unwrap();
    assert!(skill(masked), "its instructions are in effect");
    let compacted = requests.last().unwrap().messages[0].clone();
    let Message::Human(block) = &*compacted else { panic!("{compacted:?}") };
    let events = block.to_model_text();
    let list = "- [done] count the words (by bash): (capped: turn budget). Result: 9 words\n- [cancelled] count the pages (by bash)\n- [timed out] count the lines (by bash): after 900 s. 7 so far\n- [done] count the files (by bash): 42 files. &lt;/conversation_so_far>\n";
    assert!(events.contains(list), "{events}");
    assert!(events.contains("\n- /mnt/skills/public/charts/SKILL.md\n</conversation_so_far>"), "{events}");
}

#[tokio::test]
async fn another_model_reads_a_limited_part_and_the_runs_own_is_the_fallback() {
    let rules = ContextRules {
        triggers: vec![ContextSize::Tokens(4_500)],
        keep: ContextSize::Messages(2),
        most_read: Some(3_000),
        prompt: Some("Sum up {messages}.".into()),
        ..ContextRules::default()
    };
    for broken in [false, true] {
        let other = Arc::new(Named(ContextModel::new(128_000, Vec::new())));
        if broken {
            other.0.summary.lock().unwrap().clear();
        }
        let mut scene = Scene::new(ContextModel::new(128_000, vec![vec![300]; 60])).with_rules(rules.clone());
        scene.bench.agent.context.model = Some(other.clone());
        assert_eq!(scene.says("h", "go").await, Outcome::Success);
        let read = other.0.summaries();
        assert_eq!(scene.model.summaries().is_empty(), !broken);
        let tokens: usize = read[0].messages.iter().map(|message| message.text().len() / 3).sum();
        assert!((1_000..=3_000).contains(&tokens), "{tokens} tokens");
        let Some(Message::Human(asked)) = read[0].messages.last().map(AsRef::as_ref) else { panic!() };
        assert_eq!(asked.to_model_text(), "Sum up [the conversation above].");
        assert!(scene.state().context.compaction.unwrap().summary.is_some());
    }
}

/// A model of another name.
struct Named(ContextModel);

impl Model for Named {
    fn name(&self) -> &'static str {
        "other"
    }

    fn stream(&self, request: Request) -> ModelStream {
        self.0.stream(request)
    }
}
