//! Facts about a thread beside its messages: what it spent, its goal, its summary, the changes of its files.

use super::{
    GatewayState,
    caller::Caller,
    client_runs::own_run,
    refusal::{ACCOUNT, Refusal, answer, body, changed, refused, scrubbed, unavailable},
    threads::own,
};
use crate::gateway::json::Json;
use crate::{bus::STORE_TIMEOUT, clock};
use axum::{
    extract::{Path, Query, State, rejection::JsonRejection},
    http::StatusCode,
    response::Response,
};
use pudu_client::{
    ClientRun, Multitask, RunTask,
    base::{Goal, GoalStanding, RunId, ThreadState, Update},
    harness::{CompactOutcome, RunState},
    store::{ClientThread, RunTokens},
    wire::{checkpoint, run},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum length of a goal, in characters.
const MAX_GOAL_CHARS: usize = 4000;
/// How often a run may go on by itself at most.
const MAX_CONTINUATIONS: u32 = 8;

/// Answers what the runs of a thread spent.
pub(super) async fn tokens(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Response {
    let told = async {
        let thread = own(&gateway, &caller, &id).await?;
        let db = gateway.0.shared.db.within(STORE_TIMEOUT);
        let spent = db.run_tokens(&thread.id, None).await.map_err(|error| unavailable(&error))?;
        Ok(Json(token_usage(&thread, &spent)))
    };
    answer(told.await)
}

fn token_usage(thread: &ClientThread, spent: &[RunTokens]) -> Value {
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
    let runs: BTreeSet<&str> = spent.iter().map(|one| one.run.as_str()).collect();
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
    })
}

/// A goal to set.
#[derive(Deserialize, JsonSchema)]
pub(super) struct GoalBody {
    objective: String,
    max_continuations: Option<u32>,
}

fn goal(state: &ThreadState) -> Value {
    let told = |goal: &Goal| {
        let judged = goal.verdict.as_ref().map(|verdict| {
            json!({ "satisfied": verdict.standing == GoalStanding::Reached, "reason": verdict.reason })
        });
        json!({
            "objective": goal.objective,
            "status": "active",
            "created_at": clock::iso(goal.since),
            "updated_at": clock::iso(goal.since),
            "continuation_count": goal.continuations,
            "max_continuations": goal.max_continuations,
            "no_progress_count": goal.stalled,
            "last_evaluation": judged,
        })
    };
    json!({ "goal": state.goal.as_ref().map(told) })
}

async fn told_goal(gateway: &GatewayState, thread: &ClientThread) -> Result<Response, Refusal> {
    let state = gateway.0.shared.client.state(&thread.id).await.map_err(|error| unavailable(&error))?;
    Ok(scrubbed(&goal(&state)))
}

/// Shows the goal of a thread.
pub(super) async fn show_goal(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Response {
    answer(async { told_goal(&gateway, &own(&gateway, &caller, &id).await?).await }.await)
}

/// Sets the goal of a thread.
pub(super) async fn set_goal(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    posted: Result<Json<GoalBody>, JsonRejection>,
) -> Response {
    let set = async {
        let (thread, GoalBody { objective, max_continuations }) =
            (own(&gateway, &caller, &id).await?, body(posted)?);
        let objective = objective.split_whitespace().collect::<Vec<_>>().join(" ");
        if !(1..=MAX_GOAL_CHARS).contains(&objective.chars().count()) {
            return refused(StatusCode::UNPROCESSABLE_ENTITY, "objective has 1 to 4000 characters");
        }
        if max_continuations.is_some_and(|most| most > MAX_CONTINUATIONS) {
            return refused(StatusCode::UNPROCESSABLE_ENTITY, "max_continuations is 0 to 8");
        }
        let mut goal = Goal::new(objective, clock::now());
        goal.max_continuations = max_continuations.unwrap_or(goal.max_continuations);
        let change = |run: &mut RunState| run.apply(Update::Goal(Some(goal)));
        changed(gateway.0.shared.client.change_thread(&thread.id, change).await)?;
        told_goal(&gateway, &thread).await
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
#[serde(default)]
pub(super) struct CompactBody {
    model_name: Option<String>,
}

/// Summarises a thread so far.
pub(super) async fn compact(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    posted: Result<Json<CompactBody>, JsonRejection>,
) -> Response {
    let compacted = async {
        let (thread, asked) = (own(&gateway, &caller, &id).await?, body(posted)?);
        let client = &gateway.0.shared.client;
        let before = client.state(&thread.id).await.map_err(|error| unavailable(&error))?;
        let run = RunId::fresh();
        let task = RunTask {
            compact: true,
            model: asked.model_name,
            user: caller.user.clone(),
            ..RunTask::new(thread.id.clone(), run)
        };
        let submitted = client.submit(ClientRun {
            task,
            account: ACCOUNT.to_owned(),
            assistant: String::new(),
            // A summary that a death cuts is not made: whoever asked has no answer and asks again.
            request: String::new(),
            metadata: String::new(),
            multitask: Multitask::Reject,
        });
        let Some(end) = changed(submitted.await)?.ended().await else {
            return refused(StatusCode::SERVICE_UNAVAILABLE, "the daemon stops; try again");
        };
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

/// Returns how many messages models see a summary in place of.
fn removed(state: &ThreadState) -> usize {
    let made = state.context.compaction.as_ref();
    made.and_then(|made| state.messages.get_index_of(&made.through)).map_or(0, |at| at + 1)
}

/// How much is told of changes.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
pub(super) struct ChangesQuery {
    #[serde(rename = "include_files")]
    _files: Option<String>,
    #[serde(rename = "include_diff")]
    _diff: Option<String>,
}

/// Answers that the changes of files by a run are not recorded.
pub(super) async fn workspace_changes(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(ids): Path<(String, String)>,
    Query(_): Query<ChangesQuery>,
) -> Response {
    let told = async {
        own_run(&gateway, &caller, &ids).await?;
        let summary = json!({
            "created": 0, "modified": 0, "deleted": 0, "symlink_created": 0, "additions": 0, "deletions": 0,
            "truncated": false,
        });
        Ok(Json(json!({ "available": false, "version": 1, "summary": summary, "files": [], "limits": {} })))
    };
    answer(told.await)
}
