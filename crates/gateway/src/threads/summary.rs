//! Summaries of the older messages of a thread, which models see in their place.

use super::owned::OwnThread;
use crate::{
    ApiError, Caller, GatewayState, Json,
    runs::{body::custom_agent, request},
};
use pudu_client::{
    ClientRun, Multitask, RunEnd, RunTask,
    base::{RunId, ThreadId, ThreadState},
    harness::CompactOutcome,
    wire::{checkpoint, thread::API_ACCOUNT},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a thread is summarised.
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
                Err(ApiError::invalid("force: a thread is summarised whenever that is asked for"))
            }
            Self { keep: Some(_), .. } => {
                Err(ApiError::invalid("keep is not supported: what stays is set in the configuration"))
            }
            _ => Ok(()),
        }
    }
}

/// Result of a summary.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ThreadSummary {
    thread_id: ThreadId,
    compacted: bool,
    /// Why nothing was summarised.
    reason: Option<&'static str>,
    removed_message_count: usize,
    preserved_message_count: usize,
    summary_updated: bool,
    checkpoint_id: String,
    /// Tokens of the messages that models see from now on.
    total_tokens: Option<u64>,
}

/// Summarises a thread so far.
pub(crate) async fn compact(
    gateway: GatewayState,
    caller: Caller,
    OwnThread(thread): OwnThread,
    Json(asked): Json<CompactBody>,
) -> Result<Json<ThreadSummary>, ApiError> {
    asked.check()?;
    let client = gateway.client();
    let agent = asked.agent_name.as_deref().and_then(custom_agent);
    if let Some(name) = agent.as_deref() {
        request::known_agent(client, name, &caller.user).await?;
    }
    let is_known = |name: &String| client.models().iter().any(|model| model.name == *name);
    if let Some(unknown) = asked.model_name.as_ref().filter(|name| !is_known(name)) {
        return Err(ApiError::bad_request(format!("there is no model `{unknown}`")));
    }
    let before = client.state(&thread.id).await?;
    let task = RunTask {
        model: asked.model_name,
        agent,
        user: caller.user.clone(),
        ..RunTask::new(thread.id.clone(), RunId::fresh())
    };
    let end = summarize(&gateway, task).await?;
    let (seq, after) = client.state_now(&thread.id).await?;
    let (reason, total_tokens) = match end.compaction {
        Some(CompactOutcome::Done { after, .. }) => (None, Some(after)),
        Some(CompactOutcome::NotEnough) => (Some("not_enough_messages"), None),
        Some(CompactOutcome::Disabled) => {
            return Err(ApiError::conflict("summaries are switched off in the configuration"));
        }
        Some(CompactOutcome::Failed) | None => {
            return Err(ApiError::bad_gateway("the model made no summary that can be used"));
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

/// Summarises a thread on which no run works, by a run with the settings of `task`.
pub(crate) async fn summarize(gateway: &GatewayState, task: RunTask) -> Result<RunEnd, ApiError> {
    let submitted = gateway.client().submit(ClientRun {
        task: RunTask { compact: true, finds_own_agents: true, ..task },
        account: API_ACCOUNT.to_owned(),
        assistant: String::new(),
        // A summary that a crash cuts is not made: the caller has no answer and asks again.
        request: String::new(),
        metadata: String::new(),
        multitask: Multitask::Reject,
        deletes_thread: false,
    });
    let end = submitted.await?.ended().await;
    end.ok_or_else(|| ApiError::unavailable("the daemon stops; try again"))
}

/// Returns how many messages models see a summary in place of.
fn removed(state: &ThreadState) -> usize {
    let made = state.context.compaction.as_ref();
    made.and_then(|made| state.messages.get_index_of(&made.through)).map_or(0, |at| at + 1)
}
