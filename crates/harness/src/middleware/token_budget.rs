//! Token budget of one run: the model is warned when most of the budget is spent, and no longer called when the whole
//! budget is spent. It implements DeerFlow's `token_budget` and that of its sub-agents.
//!
//! Deliberately absent: budgets of users, conversations and days. Those are in the store and are checked before the
//! model is called.

use super::Middleware;
use crate::RunState;
use pudu_base::{BoxFuture, FailureCause, Request, RunFailure, UsedBudget};

/// Beginning of the hint, which identifies an earlier one.
const HINT: &str = "This run has used most of its tokens";

/// Token limits of a run. A run without any limit counts nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBudget {
    /// All tokens.
    pub total: Option<TokenLimit>,
    /// Prompt tokens.
    pub input: Option<TokenLimit>,
    /// Reply tokens.
    pub output: Option<TokenLimit>,
}

/// A limit in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenLimit {
    /// Number of spent tokens at which the model is warned.
    pub warn: u64,
    /// Number of spent tokens at which the model is no longer called.
    pub stop: u64,
}

impl TokenBudget {
    /// Returns whether there is any limit.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        *self != Self::default()
    }
}

/// Keeps a run within its token budget.
pub struct TokenGate {
    budget: TokenBudget,
}

impl TokenGate {
    /// Creates the gate of a run.
    #[must_use]
    pub fn new(budget: TokenBudget) -> Self {
        Self { budget }
    }

    /// Returns each limit with the tokens spent so far.
    fn limits_with_spending(&self, run_state: &RunState) -> impl Iterator<Item = (u64, TokenLimit)> + use<> {
        let spent = run_state.spending.usage();
        let TokenBudget { total, input, output } = self.budget;
        let limits = [(spent.total(), total), (spent.input, input), (spent.output, output)];
        limits.into_iter().filter_map(|(spent, limit)| Some((spent, limit?)))
    }
}

impl Middleware for TokenGate {
    fn name(&self) -> &'static str {
        "token_budget"
    }

    fn before_model<'a>(
        &'a mut self,
        run_state: &'a mut RunState,
        request: &'a mut Request,
    ) -> BoxFuture<'a, Result<(), RunFailure>> {
        if self.limits_with_spending(run_state).any(|(spent, limit)| spent >= limit.stop) {
            let used = FailureCause::Budget(UsedBudget::of_run());
            return Box::pin(std::future::ready(Err(used.into())));
        }
        let near = self.limits_with_spending(run_state).find(|(spent, limit)| *spent >= limit.warn);
        if let Some((spent, limit)) = near.filter(|_| !run_state.was_reminded(HINT)) {
            let text = format!(
                "{HINT}: {spent} of {}. At the limit it is stopped immediately. So finish: do the most important things, and answer \
                 with the results so far.",
                limit.stop
            );
            run_state.remind(request, text);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        RunBounds,
        fixture::{Bench, ScriptedReply, call},
    };
    use pudu_base::{Delta, Finish, Outcome, Usage};
    use serde_json::json;

    fn spends(usage: Usage) -> ScriptedReply {
        let read = Delta::Call(call("c", "reads", json!({})));
        ScriptedReply::Says(vec![
            Ok(Delta::Text("Looking.".into())),
            Ok(read),
            Ok(Delta::Usage(usage)),
            Ok(Delta::Finish(Finish::Complete)),
        ])
    }

    async fn run(budget: TokenBudget, usages: &[Usage]) -> (Outcome, Bench) {
        let mut bench = Bench::new(usages.iter().map(|usage| spends(*usage)).collect());
        bench.agent.bounds = RunBounds { steps: 9, tokens: budget, ..bench.agent.bounds };
        let outcome = bench.run(Some("go")).await.0;
        (outcome, bench)
    }

    fn used_up() -> Outcome {
        FailureCause::Budget(UsedBudget::of_run()).into()
    }

    #[tokio::test]
    async fn a_run_is_warned_once_and_then_stopped_with_its_text_and_results() {
        let budget =
            TokenBudget { total: Some(TokenLimit { warn: 70, stop: 100 }), ..TokenBudget::default() };
        let (outcome, bench) =
            run(budget, &[Usage::plain(60, 9), Usage::plain(10, 1), Usage::plain(20, 1)]).await;
        assert_eq!(outcome, used_up());
        let asked = bench.asked();
        let hints = asked.iter().map(|asked| asked.iter().filter(|line| line.contains(HINT)).count());
        assert_eq!(hints.collect::<Vec<_>>(), [0, 0, 1]);
        assert!(asked[2].iter().any(|line| line.contains("80 of 100")), "{asked:#?}");
        let thread = bench.thread();
        assert_eq!(thread.iter().filter(|text| *text == "Looking.").count(), 3);
        assert_eq!(thread.iter().filter(|text| *text == "worked").count(), 3, "{thread:?}");
    }

    #[tokio::test]
    async fn prompts_and_replies_have_separate_limits() {
        let limit = Some(TokenLimit { warn: 50, stop: 50 });
        let input = TokenBudget { input: limit, ..TokenBudget::default() };
        let output = TokenBudget { output: limit, ..TokenBudget::default() };
        for (budget, usage) in [(input, Usage::plain(50, 0)), (output, Usage::plain(0, 50))] {
            let (outcome, bench) = run(budget, &[usage]).await;
            assert_eq!((outcome, bench.asked().len()), (used_up(), 1), "{budget:?}");
        }
    }
}
