//! How requests fit a model's window, and how much of them a provider's cache has read already: the agent's loop against
//! a provider that counts and bills like a prefix cache, one table out.
//!
//! `cargo bench --bench context` runs all of it. No network, no clock: the figures are the same everywhere, but for the
//! times. It stops with an error where a run fails, a request is longer than the window, or the cache has too little.
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    missing_docs,
    unreachable_pub,
    reason = "a benchmark stops where something is wrong"
)]

use futures_util::{StreamExt, stream};
use pudu_base::{
    BoxFuture, CallId, Delta, DirEntry, Exec, Finish, Human, LogError, Message, Model, ModelError,
    ModelStream, NoSecrets, Outcome, Request, ResultFiles, RunId, Sampling, Sandbox, SandboxError, Seq,
    ShellCommand, Thinking, ThreadId, ThreadLog, ThreadState, Tool, ToolCall, ToolCx, ToolError, ToolOutput,
    ToolSpec, Update, Usage, UserId,
};
use pudu_harness::{
    ContextSetup, Memory, NoApprover, PromptFacts, Replay, ResultRules, Results, RunAgent, RunBounds,
    RunState, SkillPolicy, Steering, Toolbox, join_sections, lead_chain, prompt_sections, run,
};
use serde_json::{Value, json};
use std::{
    fmt::Write,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// Bytes of a token, as English text has them.
const BYTES_PER_TOKEN: usize = 4;
/// A cache knows prompts in blocks of so many tokens, and none that is shorter than eight of them: OpenAI's numbers.
const BLOCK_TOKENS: usize = 128;
const BLOCK_BYTES: usize = BLOCK_TOKENS * BYTES_PER_TOKEN;
/// A token that was read from the cache costs so much of one that was not: Anthropic's and DeepSeek's price list.
const CACHED_PRICE: f64 = 0.1;
/// Share of the cache that a talk of fifty turns has to reach.
const LEAST_HITS: f64 = 0.9;
const SUMMARY: &str = "Ada wants the sales figures of all regions compared by month, with the sources named. The regions \
                       up to here are read; their figures stand in /mnt/user-data/workspace/figures.csv. The others come next.";

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    println!(
        "| what | requests | tokens sent | from the cache | cost of what it would be | masks, summaries, cuts | longest request | time |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    runtime.block_on(async {
        let turn = vec![vec![2_000, 6_000], vec![4_000]];
        let fifty = talk("50 turns with 3 calls each, window 128k", 128_000, vec![turn.clone(); 50]).await;
        assert!(fifty.hits() >= LEAST_HITS, "{:.1} % of 50 turns were in the cache", fifty.hits() * 100.0);
        talk("50 turns with 3 calls each, window 32k", 32_000, vec![turn.clone(); 50]).await;
        let long: Vec<Step> = vec![vec![100_000 * BYTES_PER_TOKEN / 60]; 60];
        for window in [32_000, 16_000, 8_000] {
            let what = format!("1 turn of 60 calls and 100k tokens, window {}k", window / 1_000);
            talk(&what, window, vec![long.clone()]).await;
        }
        talk(
            "1,000 turns with 2 calls each, window 128k",
            128_000,
            vec![vec![vec![1_500], vec![2_500]]; 1_000],
        )
        .await;
    });
}

/// The lengths of the results that a reply asks for.
type Step = Vec<usize>;

/// Lets a model follow a script, a run a turn, and prints what it cost.
async fn talk(what: &str, window: u64, turns: Vec<Vec<Step>>) -> Bill {
    let steps = turns.iter().flat_map(|turn| turn.iter().cloned().chain([Vec::new()])).collect();
    let model = Arc::new(BilledModel { window, steps: Mutex::new(steps), bill: Mutex::default() });
    let log = Arc::new(CountingLog::default());
    let agent = agent(&model, &log);
    let (mut seq, mut state, begin) = (0, ThreadState::default(), Instant::now());
    for n in 0..turns.len() {
        let run_id = RunId::from(format!("r{n}"));
        let mut run_state = RunState::new("t".into(), run_id, seq, state, Arc::new(Replay::default()));
        let human = Human::new(
            format!("h{n}"),
            format!("Compare the sales figures of region {n} with the last one."),
        );
        run_state.apply(Update::Message(Arc::new(Message::Human(human))));
        let mut chain = lead_chain(&agent, SkillPolicy::default(), Vec::new());
        let outcome =
            run(&agent, &mut chain, &mut run_state, &Steering::default(), &CancellationToken::new()).await;
        assert_eq!(outcome, Outcome::Success, "turn {n} of {what}");
        (seq, state) = run_state.into_state().unwrap();
    }
    let (bill, took) = (model.bill.lock().unwrap().clone(), begin.elapsed());
    assert_eq!(bill.refused, 0, "{what}: requests were longer than the window");
    let [masks, summaries, cuts] = *log.made.lock().unwrap();
    println!(
        "| {what} | {} | {} k | {:.1} % | {:.0} % | {masks}, {summaries}, {cuts} | {} k | {took:.1?} |",
        bill.requests,
        bill.sent / 1_000,
        bill.hits() * 100.0,
        bill.cost() * 100.0,
        bill.longest / 1_000,
    );
    bill
}

/// Usage as a provider counted it.
#[derive(Clone, Default)]
struct Bill {
    requests: usize,
    refused: usize,
    sent: usize,
    cached: usize,
    longest: usize,
    /// The last prompts, which the cache knows.
    known: Vec<String>,
}

impl Bill {
    fn hits(&self) -> f64 {
        self.cached as f64 / self.sent as f64
    }

    /// Returns the cost of the prompts, as a share of what they would cost without a cache.
    fn cost(&self) -> f64 {
        1.0 - self.hits() * (1.0 - CACHED_PRICE)
    }

    /// Counts a prompt, and what the cache has of it.
    fn count(&mut self, prompt: String) -> Usage {
        let common = |known: &String| {
            known
                .as_bytes()
                .chunks(BLOCK_BYTES)
                .zip(prompt.as_bytes().chunks(BLOCK_BYTES))
                .take_while(|(one, next)| one == next)
                .count()
        };
        let blocks = self.known.iter().map(common).max().unwrap_or(0);
        let cached = if blocks < 8 { 0 } else { blocks * BLOCK_TOKENS };
        let tokens = prompt.len() / BYTES_PER_TOKEN;
        self.requests += 1;
        self.sent += tokens;
        self.cached += cached;
        self.longest = self.longest.max(tokens);
        self.known.push(prompt);
        if self.known.len() > 2 {
            self.known.remove(0);
        }
        Usage { cached: cached as u64, ..Usage::plain(tokens as u64, 50) }
    }
}

/// A model that follows a script, and whose provider bills like a prefix cache.
struct BilledModel {
    window: u64,
    steps: Mutex<std::collections::VecDeque<Step>>,
    bill: Mutex<Bill>,
}

impl Model for BilledModel {
    fn name(&self) -> &'static str {
        "billed"
    }

    fn context_window(&self) -> u64 {
        self.window
    }

    fn stream(&self, request: Request) -> ModelStream {
        let prompt = written(&request);
        let mut bill = self.bill.lock().unwrap();
        if (prompt.len() / BYTES_PER_TOKEN) as u64 >= self.window {
            bill.refused += 1;
            return stream::iter([Err(ModelError::TooLong("maximum context length".into()))]).boxed();
        }
        let mut deltas = vec![Ok(Delta::Usage(bill.count(prompt)))];
        let summarizes = request.messages.last().is_some_and(|message| message.id().as_str() == "summarize");
        if summarizes {
            deltas.push(Ok(Delta::Text(SUMMARY.into())));
        } else {
            let step = self.steps.lock().unwrap().pop_front().unwrap_or_default();
            if step.is_empty() {
                deltas.push(Ok(Delta::Text(
                    "It is two percent more than in the region before, see the table. ".repeat(4),
                )));
            }
            let call = |bytes| ToolCall {
                id: CallId::fresh(),
                name: "web_fetch".into(),
                args: json!({"url": "https://example.org/figures", "bytes": bytes}),
                garbled: None,
            };
            deltas.extend(step.into_iter().map(|bytes| Ok(Delta::Call(call(bytes)))));
        }
        deltas.push(Ok(Delta::Finish(Finish::Complete)));
        stream::iter(deltas).boxed()
    }
}

/// Writes a prompt as providers read it: tools, system, messages.
fn written(request: &Request) -> String {
    let mut text = String::new();
    for tool in &*request.tools {
        let _ = writeln!(text, "{}", serde_json::to_string(&**tool).unwrap());
    }
    let _ = writeln!(text, "system {}", request.system);
    for message in &request.messages {
        let _ = match &**message {
            Message::Human(human) => writeln!(text, "user {}", human.to_model_text()),
            Message::Assistant(reply) => {
                writeln!(text, "assistant {} {}", reply.text, serde_json::to_string(&reply.calls).unwrap())
            }
            Message::Tool(result) => writeln!(text, "tool {} {}", result.call, result.text),
            Message::Reminder(reminder) => writeln!(text, "user {}", reminder.to_model_text()),
        };
    }
    text
}

/// A log that counts masks, summaries and cuts.
#[derive(Default)]
struct CountingLog {
    made: Mutex<[usize; 3]>,
}

impl ThreadLog for CountingLog {
    fn load<'a>(&'a self, _: &'a ThreadId) -> BoxFuture<'a, Result<(Seq, ThreadState), LogError>> {
        Box::pin(std::future::ready(Ok((0, ThreadState::default()))))
    }

    fn append<'a>(
        &'a self,
        _: &'a ThreadId,
        _: &'a RunId,
        at: Seq,
        updates: &'a [Update],
    ) -> BoxFuture<'a, Result<Seq, LogError>> {
        for update in updates {
            let kind = match update {
                Update::Mask { .. } => 0,
                Update::Compact(made) => 1 + usize::from(made.cut),
                _ => continue,
            };
            self.made.lock().unwrap()[kind] += 1;
        }
        Box::pin(std::future::ready(Ok(at + updates.len() as Seq)))
    }
}

/// A tool whose results are as long as they are asked for.
struct FetchTool(Arc<ToolSpec>);

impl Tool for FetchTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn call<'a>(&'a self, args: Value, _: &'a ToolCx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let bytes = usize::try_from(args["bytes"].as_u64().unwrap()).unwrap();
        Box::pin(async move { Ok("March 1,204 units, April 1,377 units; ".repeat(bytes / 38 + 1).into()) })
    }
}

struct NoSandbox;

impl Sandbox for NoSandbox {
    fn exec<'a>(&'a self, _: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        unreachable!()
    }
    fn read<'a>(&'a self, _: &'a str, _: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>> {
        unreachable!()
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

/// Keeps results under numbers.
#[derive(Default)]
struct NumberedFiles(Mutex<usize>);

impl ResultFiles for NumberedFiles {
    fn keep<'a>(&'a self, tool: &'a str, _: &'a str) -> BoxFuture<'a, Result<String, SandboxError>> {
        let mut kept = self.0.lock().unwrap();
        *kept += 1;
        let path = format!("/mnt/user-data/outputs/.tool-results/{tool}-{kept:012}.txt");
        Box::pin(async move { Ok(path) })
    }
}

/// Returns an agent with the real prompt, and tools that are as long as real ones are.
fn agent(model: &Arc<BilledModel>, log: &Arc<CountingLog>) -> RunAgent {
    let tool = |name: &&str| {
        let spec = ToolSpec {
            name: (*name).to_owned(),
            description: "Does a piece of work with files or pages, and tells what came of it. ".repeat(4),
            parameters: json!({"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}),
            idempotent: false,
        };
        Arc::new(FetchTool(Arc::new(spec))) as Arc<dyn Tool>
    };
    let names =
        ["bash", "ls", "read_file", "write_file", "str_replace", "glob", "grep", "web_search", "web_fetch"];
    let tools = Toolbox::new(names.iter().map(tool));
    let facts = PromptFacts {
        tools: &tools,
        bounds: RunBounds::default(),
        mounts: &[],
        soul: None,
        changes: None,
        profile: None,
        skills: &[],
        switched_off: &[],
    };
    let system = join_sections(&prompt_sections(&facts)).into();
    RunAgent {
        progress: None,
        model: model.clone(),
        thinking: Thinking::On,
        sampling: Sampling::default(),
        tools,
        sandbox: Arc::new(NoSandbox),
        workspace: None,
        log: log.clone(),
        approver: Arc::new(NoApprover),
        policy: Arc::default(),
        guardrail: None,
        deferred: Arc::default(),
        results: Results {
            rules: Arc::new(ResultRules::default()),
            files: Arc::new(NumberedFiles::default()),
        },
        context: ContextSetup::default(),
        memory: Memory::default(),
        system,
        remembers: UserId::local(),
        clock: None,
        caller: pudu_base::ModelCaller::Lead,
        secrets: Arc::new(NoSecrets),
        bounds: RunBounds { steps: 200, time: Duration::from_secs(600), ..RunBounds::default() },
        loops: None,
    }
}
