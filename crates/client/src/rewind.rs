//! Restored threads: for a run that begins at a checkpoint, and for one that is rolled back.

use crate::{Client, RunTask};
use pudu_base::{Seq, Update};
use pudu_harness::RunState;
use pudu_store::StoreError;
use std::sync::Arc;

/// Restores a run's thread to its state at a position of its log.
pub(crate) async fn go_back(client: &Client, turn: &mut RunState, position: Seq) -> Result<(), StoreError> {
    let (_, state) = client.0.db.state_at(&turn.thread, position).await?;
    turn.apply(Update::Restore(Arc::new(state)));
    Ok(())
}

/// Restores a run's thread to its state before the run. Returns whether that succeeded.
pub(crate) async fn roll_back(client: &Client, task: &RunTask, turn: &mut RunState) -> bool {
    let restored = async {
        let Some((first, _)) = client.0.db.span_of_run(&task.thread, &task.run).await? else {
            return Ok(());
        };
        go_back(client, turn, first - 1).await?;
        let log = client.0.threads.log();
        turn.commit(&log).await.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let titles = client.0.db.run_titles(&task.thread, &task.run).await?;
        let [found, left] = [titles.found, titles.left].map(Option::unwrap_or_default);
        match found == left {
            true => Ok(()),
            false => client.0.db.replace_title(&task.thread, &left, &found).await,
        }
    };
    let restored: Result<(), StoreError> = restored.await;
    if let Err(error) = &restored {
        tracing::error!(thread = %task.thread, run = %task.run, %error, "failed to roll back run");
    }
    restored.is_ok()
}
