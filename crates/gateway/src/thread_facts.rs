//! Facts about a thread beside its messages: its spending, its goal, its summary.

use super::{
    GatewayState,
    caller::Caller,
    owned::{own, readable},
    refusal::{ACCOUNT, Refusal, answer, body, changed, refused, scrubbed, unavailable, wrong},
    run_body::custom_agent,
    run_request, usage,
};
use crate::json::{BodyRejection, Json};
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::Response,
};
use pudu_client::{
    ClientRun, Multitask, RunEnd, RunTask,
    base::{RunId, ThreadState, Update},
    embed::GoalError,
    harness::{CompactOutcome, RunState},
    store::{ClientThread, RunTokens, SpendingFilter},
    wire::{checkpoint, run},
};
use pudu_dispatch::bus::STORE_TIMEOUT;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Answers with the spending of a thread's runs.
pub(super) async fn tokens(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Response {
    let told = async {
        let thread = readable(&gateway, &caller, &id).await?;
        let db = gateway.0.shared.db.within(STORE_TIMEOUT);
        let spent = db.run_tokens(&thread.id, None).await.map_err(|error| unavailable(&error))?;
        let sums = db.spending(&SpendingFilter::Thread(thread.id.clone())).await;
        let sums = sums.map_err(|error| unavailable(&error))?;
        let costs = usage::costs(sums.iter().filter_map(|sum| sum.cost.as_ref()));
        Ok(Json(token_usage(&thread, &spent, &costs)))
    };
    answer(told.await)
}

/// DeerFlow reports no costs.
fn token_usage(thread: &ClientThread, spent: &[RunTokens], costs: &Value) -> Value {
    let total = |of: &dyn Fn(&&RunTokens) -> bool| -> i64 {
        spent.iter().filter(of).map(|one| one.input + one.output).sum()
    };
    let mut models: BTreeMap<&str, (i64, BTreeSet<&str>)> = BTreeMap::new();
    for one in spent {
        let model = models.entry(one.model.as_str()).or_default();
        model.0 += one.input + one.output;
        model.1.insert(one.run.as_str());
    }
    let by_model: Map<String, Value> = models
        .into_iter()
        .map(|(name, (tokens, runs))| (name.to_owned(), json!({ "tokens": tokens, "runs": runs.len() })))
        .collect();
    let of = |group: &'static str| total(&move |one| run::caller_group(&one.caller) == group);
    // Suggestions and learning are no runs.
    let led = spent.iter().filter(|one| run::caller_group(&one.caller) == "lead_agent");
    let runs: BTreeSet<&str> = led.map(|one| one.run.as_str()).collect();
    json!({
        "thread_id": thread.id,
        "total_tokens": total(&|_| true),
        "total_input_tokens": spent.iter().map(|one| one.input).sum::<i64>(),
        "total_output_tokens": spent.iter().map(|one| one.output).sum::<i64>(),
        "total_runs": runs.len(),
        "by_model": by_model,
        "by_caller": {
            "lead_agent": of("lead_agent"), "subagent": of("subagent"), "middleware": of("middleware"),
        },
        "context_usage": null,
        "costs": costs,
    })
}

/// A goal to set.
#[derive(Deserialize, JsonSchema)]
pub(super) struct GoalBody {
    objective: String,
    max_continuations: Option<u32>,
}

async fn told_goal(gateway: &GatewayState, thread: &ClientThread) -> Result<Response, Refusal> {
    let goal = gateway.0.shared.client.get_goal(&thread.id).await;
    Ok(scrubbed(&goal.map_err(|error| unavailable(&error))?))
}

/// Shows the goal of a thread.
pub(super) async fn show_goal(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Response {
    answer(async { told_goal(&gateway, &readable(&gateway, &caller, &id).await?).await }.await)
}

/// Sets the goal of a thread.
pub(super) async fn set_goal(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    posted: Result<Json<GoalBody>, BodyRejection>,
) -> Response {
    let set = async {
        let (thread, GoalBody { objective, max_continuations }) =
            (own(&gateway, &caller, &id).await?, body(posted)?);
        match gateway.0.shared.client.set_goal(&thread.id, &objective, max_continuations).await {
            Ok(goal) => Ok(scrubbed(&goal)),
            Err(GoalError::Wrong(why)) => wrong(why),
            Err(GoalError::Thread(error)) => changed(Err(error)),
            Err(GoalError::Log(error)) => Err(unavailable(&error)),
        }
    };
    answer(set.await)
}

/// Clears the goal of a thread.
pub(super) async fn clear_goal(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Response {
    let cleared = async {
        let thread = own(&gateway, &caller, &id).await?;
        let change = |run: &mut RunState| {
            if run.state().goal.is_some() {
                run.apply(Update::Goal(None));
            }
        };
        changed(gateway.0.shared.client.change_thread(&thread.id, change).await)?;
        told_goal(&gateway, &thread).await
    };
    answer(cleared.await)
}

/// How a thread is summarised.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct CompactBody {
    model_name: Option<String>,
    agent_name: Option<String>,
    force: Option<bool>,
    keep: Option<Value>,
}

impl CompactBody {
    /// Refuses options that would have no effect.
    fn check(&self) -> Result<(), Refusal> {
        let wrong = |why| wrong(why);
        match self {
            Self { force: Some(false), .. } => {
                wrong("force: a thread is summarised whenever that is asked for")
            }
            Self { keep: Some(_), .. } => {
                wrong("keep is not supported: what stays is set in the configuration")
            }
            _ => Ok(()),
        }
    }
}

/// Summarises a thread so far.
pub(super) async fn compact(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    posted: Result<Json<CompactBody>, BodyRejection>,
) -> Response {
    let compacted = async {
        let (thread, asked) = (own(&gateway, &caller, &id).await?, body(posted)?);
        asked.check()?;
        let client = &gateway.0.shared.client;
        let agent = asked.agent_name.as_deref().and_then(custom_agent);
        if let Some(name) = agent.as_deref() {
            run_request::known_agent(client, name, &caller.user).await?;
        }
        if let Some(unknown) =
            asked.model_name.as_ref().filter(|name| !client.models().iter().any(|model| model.name == **name))
        {
            return refused(StatusCode::BAD_REQUEST, &format!("there is no model `{unknown}`"));
        }
        let before = client.state(&thread.id).await.map_err(|error| unavailable(&error))?;
        let run = RunId::fresh();
        let task = RunTask {
            model: asked.model_name,
            agent,
            user: caller.user.clone(),
            ..RunTask::new(thread.id.clone(), run)
        };
        let end = summarize(&gateway, task).await?;
        let (seq, after) = client.state_now(&thread.id).await.map_err(|error| unavailable(&error))?;
        let (reason, total) = match end.compaction {
            Some(CompactOutcome::Done { after, .. }) => (None, Some(after)),
            Some(CompactOutcome::NotEnough) => (Some("not_enough_messages"), None),
            Some(CompactOutcome::Disabled) => {
                return refused(StatusCode::CONFLICT, "summaries are switched off in the configuration");
            }
            Some(CompactOutcome::Failed) | None => {
                return refused(StatusCode::BAD_GATEWAY, "the model made no summary that can be used");
            }
        };
        let removed = removed(&after);
        Ok(Json(json!({
            "thread_id": thread.id,
            "compacted": reason.is_none(),
            "reason": reason,
            "removed_message_count": if reason.is_none() { removed } else { 0 },
            "preserved_message_count": after.messages.len() - removed.min(after.messages.len()),
            "summary_updated": before.context != after.context,
            "checkpoint_id": checkpoint::id(seq),
            "total_tokens": total,
        })))
    };
    answer(compacted.await)
}

/// Summarises a thread on which no run works, by a run with the settings of `task`.
pub(super) async fn summarize(gateway: &GatewayState, task: RunTask) -> Result<RunEnd, Refusal> {
    let submitted = gateway.0.shared.client.submit(ClientRun {
        task: RunTask { compact: true, finds_own_agents: true, ..task },
        account: ACCOUNT.to_owned(),
        assistant: String::new(),
        // A summary that a crash cuts is not made: the caller has no answer and asks again.
        request: String::new(),
        metadata: String::new(),
        multitask: Multitask::Reject,
        deletes_thread: false,
    });
    match changed(submitted.await)?.ended().await {
        Some(end) => Ok(end),
        None => refused(StatusCode::SERVICE_UNAVAILABLE, "the daemon stops; try again"),
    }
}

/// Returns how many messages models see a summary in place of.
fn removed(state: &ThreadState) -> usize {
    let made = state.context.compaction.as_ref();
    made.and_then(|made| state.messages.get_index_of(&made.through)).map_or(0, |at| at + 1)
}
