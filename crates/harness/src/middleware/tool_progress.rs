//! Detects tools that no longer make progress. DeerFlow's rules: nearly identical results are pointed out to the model,
//! and a tool whose failure the model cannot fix is no longer called in this run.
//!
//! Deliberately absent: repeated calls, which `loop_detection.rs` handles.

use super::{Gate, Middleware};
use crate::RunState;
use pudu_base::{BoxFuture, Request, RunFailure, ToolCall, ToolError, ToolOutput};
use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    sync::Arc,
};

/// Maximum length of the judged part of a result, in characters.
const MAX_JUDGED_CHARS: usize = 8_192;
/// Minimum length of a judged word, in characters.
const MIN_WORD_CHARS: usize = 3;
/// Number of earlier results of a tool that a result is compared with.
const COMPARED_RESULTS: usize = 3;
/// Maximum number of waiting hints.
const MAX_HINTS: usize = 3;

/// When a tool counts as stuck. The defaults are DeerFlow's.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolProgressRules {
    /// Number of consecutive, nearly identical results at which the model is warned.
    pub stagnation: u32,
    /// Number of further such results at which the tool is closed, if the model cannot fix the failure.
    pub escalation: u32,
    /// Whether the model gets hints.
    pub hints: bool,
    /// Minimum share of common words in nearly identical results.
    pub similarity: f64,
    /// Minimum number of different words in a compared result.
    pub min_words: usize,
    /// Tools that are not judged.
    pub exempt: BTreeSet<String>,
}

impl Default for ToolProgressRules {
    fn default() -> Self {
        let exempt = ["ask_clarification", "write_todos", "present_files", "task"];
        Self {
            stagnation: 3,
            escalation: 2,
            hints: true,
            similarity: 0.8,
            min_words: 10,
            exempt: exempt.map(str::to_owned).into(),
        }
    }
}

/// Watches the results of tools.
pub struct ToolProgress {
    rules: Arc<ToolProgressRules>,
    tools: HashMap<String, ToolRecord>,
    hints: Vec<String>,
}

/// The newest results of one tool.
#[derive(Default)]
struct ToolRecord {
    results: VecDeque<HashSet<String>>,
    /// Number of consecutive results that were nearly identical to an earlier one.
    similar: u32,
    /// Whether the tool is no longer called.
    closed: bool,
}

/// Whether the model can recover from a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolRemedy {
    /// The model can continue or fix its call.
    Possible,
    /// Another call of the tool will not help.
    Unlikely,
    /// No call of the tool can help.
    None,
}

impl ToolProgress {
    /// Creates a judge with these rules.
    #[must_use]
    pub fn new(rules: Arc<ToolProgressRules>) -> Self {
        Self { rules, tools: HashMap::new(), hints: Vec::new() }
    }

    fn judge(&mut self, tool: &str, text: &str, recovery: ToolRemedy) {
        let (words, rules) = (distinct_words(text), self.rules.clone());
        let record = self.tools.entry(tool.to_owned()).or_default();
        let alike = |other: &HashSet<String>| {
            words.len().min(other.len()) >= rules.min_words && similarity(&words, other) >= rules.similarity
        };
        record.similar = if record.results.iter().any(alike) { record.similar + 1 } else { 0 };
        record.results.push_back(words);
        if record.results.len() > COMPARED_RESULTS {
            record.results.pop_front();
        }
        let stuck = record.similar >= rules.stagnation + rules.escalation;
        record.closed |= recovery == ToolRemedy::None || stuck && recovery == ToolRemedy::Unlikely;
        if record.similar == rules.stagnation && rules.hints && self.hints.len() < MAX_HINTS {
            self.hints.push(format!(
                "The last results of {tool} are nearly identical. Further calls are unlikely to return anything new: change the call, \
                 use another tool, or answer with the results so far and say what is missing."
            ));
        }
    }
}

impl Middleware for ToolProgress {
    fn name(&self) -> &'static str {
        "tool_progress"
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

    fn before_tool(&mut self, _: &RunState, call: &ToolCall) -> Gate {
        match self.tools.get(&call.name).is_some_and(|record| record.closed) {
            true => Gate::Deny(format!(
                "Error: {} failed before in a way that another call cannot fix, so it is not called again in this \
                 run. Continue without it, or say what is missing.",
                call.name
            )),
            false => Gate::Allow,
        }
    }

    fn after_tool(&mut self, _: &RunState, call: &ToolCall, result: &mut Result<ToolOutput, ToolError>) {
        if self.rules.exempt.contains(&call.name) {
            return;
        }
        match result {
            Ok(output) => self.judge(&call.name, &output.text, ToolRemedy::Possible),
            Err(ToolError(text)) => self.judge(&call.name, text, recovery(text)),
        }
    }
}

/// Returns whether the model can fix a failure: the first kind that matches, as DeerFlow classifies them.
fn recovery(error: &str) -> ToolRemedy {
    const KINDS: [(&[&str], ToolRemedy); 6] = [
        (&["401", "403", "unauthorized", "authentication", "invalid api key"], ToolRemedy::None),
        (
            &["rate limit", "timeout", "timed out", "connection", "network", "unavailable"],
            ToolRemedy::Unlikely,
        ),
        (
            &["not configured", "not installed", "missing required", "disabled", "no api key"],
            ToolRemedy::None,
        ),
        (&["permission", "access denied", "path traversal", "forbidden"], ToolRemedy::Possible),
        (
            &["no results", "no content", "no images", "not found", "no such file", "does not exist", "404"],
            ToolRemedy::Possible,
        ),
        (&["internal error", "internal server error", "unexpected error", "500"], ToolRemedy::None),
    ];
    let error = error.to_lowercase();
    let numbers: HashSet<&str> = error.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let is_match = |word: &&str| match word.parse::<u16>() {
        Ok(_) => numbers.contains(word),
        Err(_) => error.contains(*word),
    };
    let kind = KINDS.iter().find(|(words, _)| words.iter().any(is_match));
    kind.map_or(ToolRemedy::Possible, |(_, recovery)| *recovery)
}

/// Returns the different words of a result.
fn distinct_words(text: &str) -> HashSet<String> {
    let end = text.char_indices().nth(MAX_JUDGED_CHARS).map_or(text.len(), |(at, _)| at);
    let words = text.get(..end).unwrap_or_default().split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| word.chars().count() >= MIN_WORD_CHARS).map(str::to_lowercase).collect()
}

/// Returns the share of words that two results have in common.
#[allow(clippy::cast_precision_loss, reason = "a result has some thousand words at most")]
fn similarity(one: &HashSet<String>, other: &HashSet<String>) -> f64 {
    let common = one.intersection(other).count();
    let all = one.len() + other.len() - common;
    if all == 0 { 0.0 } else { common as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Replay, fixture::call};
    use pudu_base::ThreadState;
    use serde_json::json;

    fn progress() -> ToolProgress {
        ToolProgress::new(Arc::default())
    }

    /// Feeds results of a tool, and returns the number of hints and whether the tool was closed.
    async fn feed_results(progress: &mut ToolProgress, results: &[Result<&str, &str>]) -> (usize, bool) {
        let state = ThreadState::default();
        let mut run_state = RunState::new("t".into(), "r".into(), 0, state, Arc::new(Replay::default()));
        let call = call("1", "search", json!({}));
        for result in results {
            let mut result =
                result.map(|text| text.to_owned().into()).map_err(|text| ToolError(text.to_owned()));
            progress.after_tool(&run_state, &call, &mut result);
        }
        let mut request = Request::default();
        progress.before_model(&mut run_state, &mut request).await.unwrap();
        (request.messages.len(), progress.before_tool(&run_state, &call) != Gate::Allow)
    }

    const PAGE: &str =
        "the pudu is the smallest deer there is and lives among southern forests eating fallen leaves";

    #[tokio::test]
    async fn nearly_identical_results_are_pointed_out_once() {
        assert_eq!(feed_results(&mut progress(), &[Ok(PAGE); 3]).await, (0, false));
        assert_eq!(
            feed_results(&mut progress(), &[Ok(PAGE); 6]).await,
            (1, false),
            "a succeeding tool is not closed"
        );
        assert_eq!(
            feed_results(&mut progress(), &[Ok("OK"); 9]).await,
            (0, false),
            "short results are not compared"
        );
        let mut exempt = ToolProgressRules::default();
        exempt.exempt.insert("search".to_owned());
        assert_eq!(feed_results(&mut ToolProgress::new(Arc::new(exempt)), &[Ok(PAGE); 6]).await, (0, false));
    }

    #[tokio::test]
    async fn a_tool_that_no_call_can_fix_is_no_longer_called() {
        assert_eq!(feed_results(&mut progress(), &[Err("HTTP 401: who are you?")]).await, (0, true));
        assert_eq!(feed_results(&mut progress(), &[Err("line 4012 is not found")]).await, (0, false));
        let slow = format!("timeout: {PAGE}");
        assert_eq!(feed_results(&mut progress(), &[Err(slow.as_str()); 5]).await, (1, false));
        assert_eq!(feed_results(&mut progress(), &[Err(slow.as_str()); 6]).await, (1, true));
    }
}
