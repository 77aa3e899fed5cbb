//! A summary requested by a user: summarises the thread's beginning now and does nothing else.

use crate::{Middleware, RunAgent, RunState, context::ContextFit, run::messages};
use pudu_base::{FailureCause, Finish, Outcome, Request, RunEvent, RunFailure};
use tokio_util::sync::CancellationToken;

/// Outcome of a summary that a user requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactOutcome {
    /// The summary replaces the beginning.
    Done {
        /// Estimated tokens of a request before the summary.
        before: u64,
        /// Estimated tokens of a request after it.
        after: u64,
    },
    /// There is too little to leave out.
    NotEnough,
    /// The model produced no usable summary.
    Failed,
    /// Summaries are disabled in the configuration.
    Disabled,
}

/// Summarises a thread, with a request that begins like its agent's next one. The run's last event reports the outcome.
pub async fn compact(
    agent: &RunAgent,
    chain: &mut [Box<dyn Middleware>],
    run_state: &mut RunState,
    cancel: &CancellationToken,
) -> (Outcome, Option<CompactOutcome>) {
    let work = tokio::time::timeout(agent.bounds.time, compact_thread(agent, chain, run_state));
    let ended = cancel.run_until_cancelled(work).await;
    let (outcome, value) = match ended {
        None => (Outcome::Stopped, None),
        Some(Err(_)) => (Outcome::Timeout, None),
        Some(Ok(Err(failure))) => (Outcome::Error(failure), None),
        Some(Ok(Ok(value))) => (Outcome::Success, Some(value)),
    };
    run_state.publish(RunEvent::Ended { outcome: outcome.clone(), finish: Finish::default() });
    (outcome, value)
}

async fn compact_thread(
    agent: &RunAgent,
    chain: &mut [Box<dyn Middleware>],
    run_state: &mut RunState,
) -> Result<CompactOutcome, RunFailure> {
    if !agent.context.rules.summaries {
        return Ok(CompactOutcome::Disabled);
    }
    let mut request = Request {
        system: agent.system.to_string(),
        messages: messages(agent, run_state),
        tools: agent.tools.specs().clone(),
        ..Request::default()
    };
    for middleware in chain.iter_mut().filter(|middleware| middleware.name() != ContextFit::NAME) {
        middleware.before_model(run_state, &mut request).await?;
    }
    let made = ContextFit::new(agent).summarize_now(run_state, &mut request).await;
    run_state.commit(&agent.log).await.map_err(|error| {
        tracing::error!(%error, "failed to write summary to thread");
        RunFailure::from(FailureCause::Unstored)
    })?;
    let newest = run_state.state().context.compaction.as_deref();
    Ok(match (made, newest) {
        (Some(true), Some(made)) => CompactOutcome::Done { before: made.before, after: made.after },
        (None, _) => CompactOutcome::NotEnough,
        (Some(_), _) => CompactOutcome::Failed,
    })
}
