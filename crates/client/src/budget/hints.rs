//! The model is told once a run when most of a budget is spent.

use super::{BudgetState, Meter};
use pudu_base::{BoxFuture, BudgetScope, Message, Request, RunFailure};
use pudu_harness::{Middleware, RunState};

/// How the hint begins, by which a run that a crash cut knows that it was given.
const HINT: &str = "Most of the budget";

/// Tells a run's model that little is left to spend.
pub(crate) struct BudgetHints {
    meter: Meter,
    told: bool,
}

impl BudgetHints {
    /// Makes that of a run.
    pub(crate) fn new(meter: Meter) -> Self {
        Self { meter, told: false }
    }
}

impl Middleware for BudgetHints {
    fn name(&self) -> &'static str {
        "budgets"
    }

    /// A run that a crash cut goes on where it was.
    fn before_run<'a>(&'a mut self, run_state: &'a mut RunState) -> BoxFuture<'a, Result<(), RunFailure>> {
        let is_hint =
            |message: &Message| matches!(message, Message::Reminder(hint) if hint.text.starts_with(HINT));
        self.told = run_state.since_asked().any(|message| is_hint(message));
        Box::pin(std::future::ready(Ok(())))
    }

    fn before_model<'a>(
        &'a mut self,
        run_state: &'a mut RunState,
        request: &'a mut Request,
    ) -> BoxFuture<'a, Result<(), RunFailure>> {
        Box::pin(async move {
            if self.told {
                return Ok(());
            }
            if let Some((state, percent)) = self.meter.nearing().await {
                self.told = true;
                run_state.remind(request, hint(&state, percent));
            }
            Ok(())
        })
    }
}

fn hint(state: &BudgetState, percent: i64) -> String {
    let whose = match state.rule.scope {
        BudgetScope::Run => "of this run",
        BudgetScope::Person => "of the person whom you answer",
        BudgetScope::Room => "of this room",
        BudgetScope::Account | BudgetScope::Everybody => "that you share",
    };
    format!(
        "{HINT} {whose} is spent: {percent} %. When it is used up you are stopped where you are, so come to an end: do what \
         matters most, in few steps, and answer with what you have."
    )
}
