//! Summaries of a thread's older messages, which models get in place of the messages.

use super::owned::OwnThread;
use crate::{
    ApiError, Caller, GatewayState, Json,
    runs::{body::custom_agent, request},
};
use pudu_agent::RunTask;
use pudu_base::{RunId, ThreadId, ThreadState};
use pudu_harness::CompactOutcome;
use pudu_langgraph::checkpoint;
use pudu_runs::{ClientRun, RunEnd};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Options of a summary.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CompactBody {
    model_name: Option<String>,
    agent_name: Option<String>,
    force: Option<bool>,
    keep: Option<Value>,
}

impl CompactBody {
    /// Refuses options that would have no effect.
    fn check(&self) -> Result<(), ApiError> {
        match self {
            Self { force: Some(false), .. } => {
                Err(ApiError::invalid("force: every request summarises the thread"))
            }
            Self { keep: Some(_), .. } => Err(ApiError::invalid(
                "keep is not supported: the configuration sets which messages are kept",
            )),
            _ => Ok(()),
        }
    }
}

/// Result of a summary.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ThreadSummary {
    thread_id: ThreadId,
    compacted: bool,
    /// Reason why nothing was summarised.
    reason: Option<&'static str>,
    removed_message_count: usize,
    preserved_message_count: usize,
    summary_updated: bool,
    checkpoint_id: String,
    /// Tokens of the messages that models now get.
    total_tokens: Option<u64>,
}

/// Summarises a thread.
pub(crate) async fn compact(
    gateway: GatewayState,
    caller: Caller,
    OwnThread(thread): OwnThread,
    Json(asked): Json<CompactBody>,
) -> Result<Json<ThreadSummary>, ApiError> {
    asked.check()?;
    let agent = asked.agent_name.as_deref().and_then(custom_agent);
    if let Some(name) = agent.as_deref() {
        request::known_agent(gateway.agent(), name, &caller.user).await?;
    }
    let is_known = |name: &String| gateway.agent().models().iter().any(|model| model.name == *name);
    if let Some(unknown) = asked.model_name.as_ref().filter(|name| !is_known(name)) {
        return Err(ApiError::bad_request(format!("unknown model `{unknown}`")));
    }
    let before = gateway.agent().state(&thread.id).await?;
    let task = RunTask {
        model: asked.model_name,
        agent,
        user: caller.user.clone(),
        ..RunTask::new(thread.id.clone(), RunId::fresh())
    };
    let end = summarize(&gateway, task).await?;
    let (seq, after) = gateway.agent().state_now(&thread.id).await?;
    let (reason, total_tokens) = match end.compaction {
        Some(CompactOutcome::Done { after, .. }) => (None, Some(after)),
        Some(CompactOutcome::NotEnough) => (Some("not_enough_messages"), None),
        Some(CompactOutcome::Disabled) => {
            return Err(ApiError::conflict("summaries are disabled in the configuration"));
        }
        Some(CompactOutcome::Failed) | None => {
            return Err(ApiError::bad_gateway("the model returned no usable summary"));
        }
    };
    let removed = removed(&after);
    Ok(Json(ThreadSummary {
        thread_id: thread.id,
        compacted: reason.is_none(),
        reason,
        removed_message_count: if reason.is_none() { removed } else { 0 },
        preserved_message_count: after.messages.len() - removed.min(after.messages.len()),
        summary_updated: before.context != after.context,
        checkpoint_id: checkpoint::id(seq),
        total_tokens,
    }))
}

/// Summarises an idle thread in a run with the settings of `task`.
pub(crate) async fn summarize(gateway: &GatewayState, task: RunTask) -> Result<RunEnd, ApiError> {
    let run = ClientRun::new(RunTask { compact: true, finds_own_agents: true, ..task });
    let end = gateway.runs().submit(run).await?.ended().await;
    end.ok_or_else(|| ApiError::unavailable("the daemon is shutting down; try again"))
}

/// Returns the number of messages that a summary replaces for models.
fn removed(state: &ThreadState) -> usize {
    let compaction = state.context.compaction.as_ref();
    compaction.and_then(|compaction| state.messages.get_index_of(&compaction.through)).map_or(0, |at| at + 1)
}
