//! A hint to the model that most of a budget is spent.

use super::{BudgetState, Meter};
use pudu_base::{BoxFuture, BudgetScope, Request, RunFailure};
use pudu_harness::{Middleware, RunState};

/// Beginning of the hint, which identifies an earlier one.
const HINT: &str = "Most of the budget";

/// Middleware that warns a run's model when little of a budget remains.
pub(crate) struct BudgetHints {
    meter: Meter,
}

impl BudgetHints {
    /// Creates the middleware of a run.
    pub(crate) fn new(meter: Meter) -> Self {
        Self { meter }
    }
}

impl Middleware for BudgetHints {
    fn name(&self) -> &'static str {
        "budgets"
    }

    fn before_model<'a>(
        &'a mut self,
        run_state: &'a mut RunState,
        request: &'a mut Request,
    ) -> BoxFuture<'a, Result<(), RunFailure>> {
        Box::pin(async move {
            if !run_state.was_reminded(HINT)
                && let Some((state, percent)) = self.meter.nearing().await
            {
                run_state.remind(request, hint(&state, percent));
            }
            Ok(())
        })
    }
}

fn hint(state: &BudgetState, percent: i64) -> String {
    let owner = match state.rule.scope {
        BudgetScope::Run => "of this run",
        BudgetScope::Person => "of the person that you answer",
        BudgetScope::Room => "of this room",
        BudgetScope::Account | BudgetScope::Everybody => "that you share",
    };
    format!(
        "{HINT} {owner} is spent: {percent} %. When it is used up, you are stopped immediately. So finish: do the most important \
         things in a few steps, and answer with the results so far."
    )
}
