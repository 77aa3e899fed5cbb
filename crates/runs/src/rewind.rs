//! Restores threads: for runs that begin at a checkpoint, and for runs that are rolled back.

use pudu_agent::{Agent, RunTask};
use pudu_base::{Seq, Update};
use pudu_harness::RunState;
use pudu_store::StoreError;
use std::sync::Arc;

/// Restores a run's thread to its state at a position of its log.
pub(crate) async fn go_back(agent: &Agent, turn: &mut RunState, position: Seq) -> Result<(), StoreError> {
    let (_, state) = agent.db().state_at(&turn.thread, position).await?;
    turn.apply(Update::Restore(Arc::new(state)));
    Ok(())
}

/// Restores a run's thread to its state before the run. Returns whether that succeeded.
pub(crate) async fn roll_back(agent: &Agent, task: &RunTask, turn: &mut RunState) -> bool {
    let restored = async {
        let Some((first, _)) = agent.db().span_of_run(&task.thread, &task.run).await? else {
            return Ok(());
        };
        go_back(agent, turn, first - 1).await?;
        let log = agent.threads().log();
        turn.commit(&log).await.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let titles = agent.db().run_titles(&task.thread, &task.run).await?;
        let [found, left] = [titles.found, titles.left].map(Option::unwrap_or_default);
        match found == left {
            true => Ok(()),
            false => agent.db().replace_title(&task.thread, &left, &found).await,
        }
    };
    let restored: Result<(), StoreError> = restored.await;
    if let Err(error) = &restored {
        tracing::error!(thread = %task.thread, run = %task.run, %error, "failed to roll back run");
    }
    restored.is_ok()
}
