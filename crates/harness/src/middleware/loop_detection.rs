//! Ends a run that repeats itself. DeerFlow's rules: replies with the same calls, and too many calls of one tool, are
//! first pointed out to the model and then stop the run; its text until then is kept.
//!
//! Deliberately absent: judging results. A loop is a repeated request, not a repeated result.

use super::Middleware;
use crate::RunState;
use pudu_base::{
    Assistant, BoxFuture, Message, PURPOSE_ARGUMENT, Request, RunEvent, RunFailure, StopReason, ToolCall,
};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

/// Limits at which repeated calls are pointed out to the model, or stop the run. The defaults are DeerFlow's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopRules {
    /// Number of replies with the same calls at which the model is warned.
    pub warn: u32,
    /// Number of such replies at which the run is stopped.
    pub stop: u32,
    /// Number of newest replies that are compared.
    pub window: usize,
    /// Limits on calls of one tool.
    pub tool: CallFrequency,
    /// Limits for individual tools, by name.
    pub tools: BTreeMap<String, CallFrequency>,
}

/// Limits on a tool's calls among the newest calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallFrequency {
    /// Number of calls at which the model is warned.
    pub warn: u32,
    /// Number of calls at which the run is stopped.
    pub stop: u32,
}

impl Default for LoopRules {
    fn default() -> Self {
        let tool = CallFrequency { warn: 30, stop: 50 };
        Self { warn: 3, stop: 5, window: 20, tool, tools: BTreeMap::new() }
    }
}

impl LoopRules {
    fn frequency(&self, tool: &str) -> CallFrequency {
        self.tools.get(tool).copied().unwrap_or(self.tool)
    }

    /// Returns the number of newest calls that are counted: enough for the largest limit.
    fn newest_calls(&self) -> usize {
        let limits = self.tools.values().chain([&self.tool]).map(|frequency| frequency.stop as usize);
        limits.chain([self.window]).max().unwrap_or_default()
    }
}

/// Maximum number of hints given at once.
const MAX_HINTS: usize = 4;
/// Number of lines of a file that count as one position, so that reading further is not a repetition.
const LINES_A_PLACE: u64 = 200;
/// Arguments that distinguish calls of a tool.
const DISTINGUISHING_ARGS: [&str; 7] = ["path", "url", "query", "command", "pattern", "glob", "cmd"];

/// Counts the calls of a run.
pub struct LoopDetection {
    rules: Arc<LoopRules>,
    replies: VecDeque<u64>,
    calls: VecDeque<String>,
    warned_replies: HashSet<u64>,
    warned_tools: HashSet<String>,
    hints: Vec<String>,
}

/// A repetition.
enum Repetition {
    /// Pointed out to the model with this text.
    Warn(String),
    /// Stops the run, for this reason shown to users.
    Stop(String),
}

impl LoopDetection {
    /// Creates a counter with these rules.
    #[must_use]
    pub fn new(rules: Arc<LoopRules>) -> Self {
        Self {
            rules,
            replies: VecDeque::new(),
            calls: VecDeque::new(),
            warned_replies: HashSet::new(),
            warned_tools: HashSet::new(),
            hints: Vec::new(),
        }
    }

    /// Counts a reply's calls and returns the most severe repetition.
    fn count(&mut self, calls: &[ToolCall]) -> Option<Repetition> {
        let by_reply = self.count_reply(calls);
        let by_tool: Vec<_> = calls.iter().filter_map(|call| self.count_tool(&call.name)).collect();
        let mut found: Vec<_> = by_reply.into_iter().chain(by_tool).collect();
        let gravest = found.iter().position(|found| matches!(found, Repetition::Stop(_))).unwrap_or(0);
        (!found.is_empty()).then(|| found.swap_remove(gravest))
    }

    fn count_reply(&mut self, calls: &[ToolCall]) -> Option<Repetition> {
        let reply = fingerprint(calls);
        push(&mut self.replies, reply, self.rules.window);
        let replies = &self.replies;
        // Replies that left the window may be pointed out again.
        self.warned_replies.retain(|warned| replies.contains(warned));
        let times = count_of(replies, &reply);
        let tools = calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>().join(", ");
        if times >= self.rules.stop {
            return Some(Repetition::Stop(format!("I made the same calls {times} times ({tools})")));
        }
        (times >= self.rules.warn && self.warned_replies.insert(reply)).then(|| {
            Repetition::Warn(format!(
                "You have made the same calls {times} times ({tools}). Their results will not change. Use what you \
                 have, try another way, or answer now and say what is missing."
            ))
        })
    }

    fn count_tool(&mut self, tool: &str) -> Option<Repetition> {
        push(&mut self.calls, tool.to_owned(), self.rules.newest_calls());
        let (times, limit) = (count_of(&self.calls, &tool.to_owned()), self.rules.frequency(tool));
        if times >= limit.stop {
            return Some(Repetition::Stop(format!("I called {tool} {times} times")));
        }
        (times >= limit.warn && self.warned_tools.insert(tool.to_owned())).then(|| {
            Repetition::Warn(format!(
                "You have called {tool} {times} times. Finish now: answer with the results so far, or say what is \
                 missing."
            ))
        })
    }

    fn hint(&mut self, text: String) {
        if self.hints.len() < MAX_HINTS {
            self.hints.push(text);
        }
    }
}

impl Middleware for LoopDetection {
    fn name(&self) -> &'static str {
        "loop_detection"
    }

    /// Restores the counts of a run that was interrupted by a crash.
    fn before_run<'a>(&'a mut self, run_state: &'a mut RunState) -> BoxFuture<'a, Result<(), RunFailure>> {
        let messages = run_state.state().messages.values().rev();
        let own = messages.take_while(|message| !matches!(&***message, Message::Human(_)));
        let replies: Vec<_> = own.cloned().collect();
        for message in replies.iter().rev() {
            if let Message::Assistant(reply) = &**message
                && !reply.calls.is_empty()
            {
                self.count(&reply.calls);
            }
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn before_model<'a>(
        &'a mut self,
        run_state: &'a mut RunState,
        request: &'a mut Request,
    ) -> BoxFuture<'a, Result<(), RunFailure>> {
        for text in self.hints.drain(..) {
            run_state.remind(request, text);
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn after_model(&mut self, run_state: &mut RunState, reply: &mut Assistant) {
        if reply.calls.is_empty() {
            return;
        }
        match self.count(&reply.calls) {
            None => {}
            Some(Repetition::Warn(text)) => self.hint(text),
            Some(Repetition::Stop(reason)) => {
                tracing::warn!(thread = %run_state.thread, reason, "stopped a run that repeats itself");
                reply.calls.clear();
                run_state.stop_reason = Some(StopReason::LoopCapped);
                let gap = if reply.text.is_empty() { "" } else { "\n\n" };
                let delta = format!(
                    "{gap}{reason}, so I stopped. Tell me how to continue, or rephrase your request."
                );
                reply.text.push_str(&delta);
                run_state.publish(RunEvent::Text { message: reply.id.clone(), delta });
            }
        }
    }
}

fn push<T>(queue: &mut VecDeque<T>, item: T, longest: usize) {
    queue.push_back(item);
    while queue.len() > longest {
        queue.pop_front();
    }
}

fn count_of<T: PartialEq>(queue: &VecDeque<T>, item: &T) -> u32 {
    u32::try_from(queue.iter().filter(|other| *other == item).count()).unwrap_or(u32::MAX)
}

/// Returns a fingerprint that is the same for replies with the same calls in any order.
fn fingerprint(calls: &[ToolCall]) -> u64 {
    let mut keys: Vec<_> = calls.iter().map(|call| format!("{}:{}", call.name, key(call))).collect();
    keys.sort();
    let mut hasher = DefaultHasher::new();
    keys.hash(&mut hasher);
    hasher.finish()
}

/// Returns the part of a call that distinguishes it from others of its tool.
fn key(call: &ToolCall) -> String {
    let none = Map::new();
    let args = call.args.as_object().unwrap_or(&none);
    match call.name.as_str() {
        "read_file" => {
            let line_block = |key: &str| {
                args.get(key).and_then(Value::as_u64).map(|line| line.saturating_sub(1) / LINES_A_PLACE)
            };
            let start = line_block("start_line").unwrap_or_default();
            let path = args.get("path").and_then(Value::as_str).unwrap_or_default();
            format!("{path}:{start}-{}", line_block("end_line").unwrap_or(start))
        }
        "write_file" | "str_replace" => {
            let distinguishing = args.iter().filter(|(key, _)| *key != PURPOSE_ARGUMENT);
            distinguishing.map(|(key, value)| format!("{key}={value};")).collect()
        }
        _ => {
            let distinguishing: Vec<_> = DISTINGUISHING_ARGS
                .iter()
                .filter_map(|key| args.get(*key).map(|value| format!("{key}={value}")))
                .collect();
            match distinguishing.is_empty() {
                true => format!("{}{}", call.args, call.garbled.as_deref().unwrap_or_default()),
                false => distinguishing.join(";"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Bench, ScriptedReply, assistant, call, calls, human, text_reply};
    use pudu_base::Outcome;
    use serde_json::json;

    /// Replies that all make the same call.
    fn same(times: usize) -> Vec<ScriptedReply> {
        (0..times).map(|n| calls(vec![call(&n.to_string(), "reads", json!({"path": "/a"}))])).collect()
    }

    fn bench(replies: Vec<ScriptedReply>, rules: LoopRules) -> Bench {
        let mut bench = Bench::new(replies);
        bench.agent.bounds.steps = 100;
        bench.agent.loops = Some(Arc::new(rules));
        bench
    }

    #[tokio::test]
    async fn the_same_calls_are_pointed_out_once_and_then_stop_the_run() {
        let bench = bench(same(5), LoopRules::default());
        let (outcome, seen) = bench.run(Some("go")).await;
        let said = "I made the same calls 5 times (reads), so I stopped. Tell me how to continue, or rephrase your request.";
        assert_eq!((outcome, seen.text.as_str()), (Outcome::Success, said));
        assert_eq!(
            bench.reads.calls.load(std::sync::atomic::Ordering::SeqCst),
            4,
            "the fifth call is not made"
        );
        let requests = bench.asked();
        let hinted = |n: usize| {
            requests[n].last().unwrap().starts_with("reminder: You have made the same calls 3 times")
        };
        assert_eq!((0..5).filter(|n| hinted(*n)).collect::<Vec<_>>(), [3], "{requests:?}");
        let hints = bench.thread().iter().filter(|text| text.contains("You have made")).count();
        assert_eq!(hints, 1, "a hint keeps its position");
        assert_eq!(bench.thread().last().unwrap(), said);
    }

    #[tokio::test]
    async fn calls_of_one_tool_are_counted_whatever_their_arguments() {
        let few = CallFrequency { warn: 2, stop: 4 };
        let rules = LoopRules { tools: [("reads".to_owned(), few)].into(), ..LoopRules::default() };
        let other = |n: u32| calls(vec![call(&n.to_string(), "reads", json!({"path": n}))]);
        let bench = bench((0..4).map(other).collect(), rules);
        let (outcome, seen) = bench.run(Some("go")).await;
        assert_eq!(outcome, Outcome::Success);
        assert!(seen.text.starts_with("I called reads 4 times, so I stopped."), "{}", seen.text);
        assert!(bench.asked()[2].last().unwrap().starts_with("reminder: You have called reads 2 times."));
    }

    #[tokio::test]
    async fn progress_and_work_before_the_question_are_not_a_loop() {
        let other = |n: u32| calls(vec![call(&n.to_string(), "reads", json!({"path": n}))]);
        let replies = (0..20).map(other).chain([text_reply("done")]).collect();
        let past = (0..9).flat_map(|_| [assistant(vec![call("p", "reads", json!({"path": "/a"}))])]);
        let bench = bench(replies, LoopRules::default()).past(past.chain([human("q", "before")]).collect());
        assert_eq!(bench.run(Some("go")).await.1.text, "done");
    }

    #[tokio::test]
    async fn a_run_interrupted_by_a_crash_continues_its_counts() {
        let asks =
            |id: &str| Assistant { id: id.into(), ..reply(vec![call(id, "reads", json!({"path": "/a"}))]) };
        let past =
            ["a", "b", "c", "d"].map(|id| pudu_base::Update::Message(Arc::new(Message::Assistant(asks(id)))));
        let bench =
            bench(same(1), LoopRules::default()).past([human("q", "go")].into_iter().chain(past).collect());
        let (_, seen) = bench.run(None).await;
        assert!(seen.text.starts_with("I made the same calls 5 times"), "{}", seen.text);
    }

    fn reply(calls: Vec<ToolCall>) -> Assistant {
        let pudu_base::Update::Message(message) = assistant(calls) else { unreachable!() };
        let Message::Assistant(reply) = &*message else { unreachable!() };
        reply.clone()
    }

    #[test]
    fn calls_are_distinguished_by_certain_arguments() {
        let check = |tool: &str, a: Value, b: Value, same: bool| {
            let of = |args: &Value| fingerprint(&[call("1", tool, args.clone())]);
            assert_eq!(of(&a) == of(&b), same, "{tool} {a} {b}");
        };
        check("read_file", json!({"path": "/a"}), json!({"path": "/a", "start_line": 150}), true);
        check("read_file", json!({"path": "/a"}), json!({"path": "/a", "start_line": 201}), false);
        check(
            "write_file",
            json!({"path": "/a", "content": "x"}),
            json!({"path": "/a", "content": "y"}),
            false,
        );
        let why = |why| json!({"path": "/a", "content": "x", "description": why});
        check("write_file", why("first"), why("again"), true);
        check("web_search", json!({"query": "a", "max": 1}), json!({"query": "a", "max": 2}), true);
        check("mail", json!({"to": "a"}), json!({"to": "b"}), false);
        let two = |a, b| fingerprint(&[call("1", a, json!({})), call("2", b, json!({}))]);
        assert_eq!(two("ls", "grep"), two("grep", "ls"));
    }
}
