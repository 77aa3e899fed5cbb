//! Threads as they were: a run that begins at a checkpoint, and one of which nothing is to stay.

use crate::{Client, RunTask};
use pudu_base::{Seq, Update};
use pudu_harness::RunState;
use pudu_store::StoreError;
use std::sync::Arc;

/// Brings a run's thread to how it was behind a position of its log, unless the run did so before a restart.
pub(crate) async fn go_back(
    client: &Client,
    task: &RunTask,
    turn: &mut RunState,
    position: Seq,
) -> Result<(), StoreError> {
    if client.0.db.span_of_run(&task.thread, &task.run).await?.is_none() {
        let (_, state) = client.0.db.state_at(&task.thread, position).await?;
        turn.apply(Update::Restore(Arc::new(state)));
    }
    Ok(())
}

/// Brings a run's thread to how it was before the run.
pub(crate) async fn roll_back(client: &Client, task: &RunTask, turn: &mut RunState) {
    let before = async {
        let Some((first, _)) = client.0.db.span_of_run(&task.thread, &task.run).await? else {
            return Ok(None);
        };
        client.0.db.state_at(&task.thread, first - 1).await.map(Some)
    };
    let restored = match before.await {
        Ok(None) => return,
        Ok(Some((_, state))) => {
            turn.apply(Update::Restore(Arc::new(state)));
            turn.commit(&client.0.threads.log()).await.map_err(|error| error.to_string())
        }
        Err::<_, StoreError>(error) => Err(error.to_string()),
    };
    if let Err(error) = restored {
        tracing::error!(thread = %task.thread, run = %task.run, error, "failed to roll back run");
    }
}
