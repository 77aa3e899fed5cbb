//! Facts about a thread beside its messages: its spending, its goal, its summary.

use super::{
    GatewayState,
    caller::Caller,
    errors::ApiError,
    json::Json,
    owned::{OwnThread, ReadableThread},
    run_body::custom_agent,
    run_request,
    scrubbed::Scrubbed,
    usage,
};
use axum::extract::State;
use pudu_client::{
    ClientRun, Multitask, RunEnd, RunTask,
    base::{RunId, ThreadId, ThreadState, Update},
    embed::GoalError,
    harness::{CompactOutcome, RunState},
    store::{ClientThread, RunTokens, SpendingFilter},
    wire::{checkpoint, run, thread::API_ACCOUNT},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Spending of a thread's runs, in tokens. DeerFlow reports no costs.
#[derive(Serialize, JsonSchema)]
pub(super) struct ThreadSpending {
    thread_id: ThreadId,
    total_tokens: i64,
    total_input_tokens: i64,
    total_output_tokens: i64,
    /// Number of runs. Suggestions and learning are no runs.
    total_runs: usize,
    by_model: BTreeMap<String, ModelSpending>,
    by_caller: CallerSpending,
    /// Always null.
    context_usage: Option<Value>,
    /// Sum in each currency.
    costs: BTreeMap<String, f64>,
}

/// Tokens of one model, and the number of runs that it had a part in.
#[derive(Serialize, JsonSchema)]
struct ModelSpending {
    tokens: i64,
    runs: usize,
}

/// Tokens by the part of the agent that spent them.
#[derive(Serialize, JsonSchema)]
struct CallerSpending {
    lead_agent: i64,
    subagent: i64,
    middleware: i64,
}

/// Answers with the spending of a thread's runs.
pub(super) async fn tokens(
    State(gateway): State<GatewayState>,
    ReadableThread(thread): ReadableThread,
) -> Result<Json<ThreadSpending>, ApiError> {
    let db = gateway.db();
    let spent = db.run_tokens(&thread.id, None).await?;
    let sums = db.spending(&SpendingFilter::Thread(thread.id.clone())).await?;
    let costs = usage::costs(sums.iter().filter_map(|sum| sum.cost.as_ref()));
    Ok(Json(ThreadSpending::new(thread.id, &spent, costs)))
}

impl ThreadSpending {
    fn new(thread_id: ThreadId, spent: &[RunTokens], costs: BTreeMap<String, f64>) -> Self {
        let group = |one: &RunTokens| run::caller_group(&one.caller);
        let of = |name: &str| {
            spent.iter().filter(|one| group(one) == name).map(|one| one.input + one.output).sum()
        };
        let mut models: BTreeMap<&str, (i64, BTreeSet<&str>)> = BTreeMap::new();
        for one in spent {
            let model = models.entry(one.model.as_str()).or_default();
            model.0 += one.input + one.output;
            model.1.insert(one.run.as_str());
        }
        let models = models.into_iter();
        let led = spent.iter().filter(|one| group(one) == "lead_agent");
        Self {
            thread_id,
            total_tokens: spent.iter().map(|one| one.input + one.output).sum(),
            total_input_tokens: spent.iter().map(|one| one.input).sum(),
            total_output_tokens: spent.iter().map(|one| one.output).sum(),
            total_runs: led.map(|one| one.run.as_str()).collect::<BTreeSet<_>>().len(),
            by_model: models
                .map(|(name, (tokens, runs))| (name.to_owned(), ModelSpending { tokens, runs: runs.len() }))
                .collect(),
            by_caller: CallerSpending {
                lead_agent: of("lead_agent"),
                subagent: of("subagent"),
                middleware: of("middleware"),
            },
            context_usage: None,
            costs,
        }
    }
}

/// A goal to set.
#[derive(Deserialize, JsonSchema)]
pub(super) struct GoalBody {
    objective: String,
    max_continuations: Option<u32>,
}

async fn goal(gateway: &GatewayState, thread: &ClientThread) -> Result<Scrubbed<Value>, ApiError> {
    Ok(Scrubbed(gateway.client().get_goal(&thread.id).await?))
}

/// Shows the goal of a thread.
pub(super) async fn show_goal(
    State(gateway): State<GatewayState>,
    ReadableThread(thread): ReadableThread,
) -> Result<Scrubbed<Value>, ApiError> {
    goal(&gateway, &thread).await
}

/// Sets the goal of a thread.
pub(super) async fn set_goal(
    State(gateway): State<GatewayState>,
    OwnThread(thread): OwnThread,
    Json(GoalBody { objective, max_continuations }): Json<GoalBody>,
) -> Result<Scrubbed<Value>, ApiError> {
    Ok(Scrubbed(gateway.client().set_goal(&thread.id, &objective, max_continuations).await?))
}

impl From<GoalError> for ApiError {
    fn from(error: GoalError) -> Self {
        match error {
            GoalError::Wrong(why) => Self::invalid(why),
            GoalError::Thread(error) => error.into(),
            GoalError::Log(error) => error.into(),
        }
    }
}

/// Clears the goal of a thread.
pub(super) async fn clear_goal(
    State(gateway): State<GatewayState>,
    OwnThread(thread): OwnThread,
) -> Result<Scrubbed<Value>, ApiError> {
    let change = |run: &mut RunState| {
        if run.state().goal.is_some() {
            run.apply(Update::Goal(None));
        }
    };
    gateway.client().change_thread(&thread.id, change).await?;
    goal(&gateway, &thread).await
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
pub(super) struct ThreadSummary {
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
pub(super) async fn compact(
    State(gateway): State<GatewayState>,
    caller: Caller,
    OwnThread(thread): OwnThread,
    Json(asked): Json<CompactBody>,
) -> Result<Json<ThreadSummary>, ApiError> {
    asked.check()?;
    let client = gateway.client();
    let agent = asked.agent_name.as_deref().and_then(custom_agent);
    if let Some(name) = agent.as_deref() {
        run_request::known_agent(client, name, &caller.user).await?;
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
pub(super) async fn summarize(gateway: &GatewayState, task: RunTask) -> Result<RunEnd, ApiError> {
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
