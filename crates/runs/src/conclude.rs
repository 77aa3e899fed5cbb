//! Records how runs ended, for display.

use crate::RunEnd;
use pudu_agent::RunTask;
use pudu_base::{RunId, StopReason};
use pudu_harness::RunState;
use pudu_store::{Db, RunEnding, StoreError, now};

/// Maximum length of the question and the answer in lists of runs, in characters.
const MAX_LISTED_CHARS: usize = 200;

/// Returns the record of a run's end.
pub(crate) fn ending(task: &RunTask, end: &RunEnd, turn: &RunState) -> RunEnding {
    let messages = &turn.state().messages;
    let first = task.first.as_ref().or(task.again.as_ref()).or(task.input.first().map(|human| &human.id));
    let at = first.and_then(|id| messages.get_index_of(id));
    let question = at.and_then(|at| messages.get_index(at)).map(|(_, message)| message.text());
    // The texts of a group chat are only in its log, where they can be deleted one by one.
    let listed = |text: &str| if task.room.is_none() { first_chars(text) } else { String::new() };
    RunEnding {
        outcome: end.outcome.clone(),
        stop_reason: turn.stop_reason.map(StopReason::as_str).unwrap_or_default().to_owned(),
        first_words: listed(question.unwrap_or_default()),
        last_words: listed(&end.text),
        messages: at.map_or(0, |at| i64::try_from(messages.len() - at).unwrap_or(i64::MAX)),
    }
}

fn first_chars(text: &str) -> String {
    text.chars().take(MAX_LISTED_CHARS).collect()
}

/// Stores the end of a run. If the database rejects it, it is stored without its texts, so that no run stays open.
pub(crate) async fn store_end(db: &Db, run: &RunId, ending: RunEnding) {
    let bare = RunEnding::from(&ending.outcome);
    let stored = match db.run_ended(run, ending, now()).await {
        Err(StoreError::Rejected(error)) => {
            tracing::error!(%run, error, "failed to store the texts of a run's end");
            db.run_ended(run, bare, now()).await
        }
        stored => stored,
    };
    audit_log(stored);
}

/// Logs a failure to record a run. The record is only for people, so the run does not fail.
pub(crate) fn audit_log(result: Result<(), StoreError>) {
    if let Err(error) = result {
        tracing::warn!(%error, "failed to record run");
    }
}
