//! Spending of a thread's runs.

use super::owned::ReadableThread;
use crate::{ApiError, GatewayState, Json, admin::usage};
use pudu_base::ThreadId;
use pudu_langgraph::run;
use pudu_store::{RunTokens, SpendingFilter};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Spending of a thread's runs, in tokens. DeerFlow reports no costs.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ThreadSpending {
    thread_id: ThreadId,
    total_tokens: i64,
    total_input_tokens: i64,
    total_output_tokens: i64,
    /// Number of runs, without suggestions and learning.
    total_runs: usize,
    by_model: BTreeMap<String, ModelSpending>,
    by_caller: CallerSpending,
    /// Always null.
    context_usage: Option<Value>,
    /// Total cost in each currency.
    costs: BTreeMap<String, f64>,
}

/// Tokens of one model, and the number of runs that used it.
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

/// Returns the spending of a thread's runs.
pub(crate) async fn tokens(
    gateway: GatewayState,
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
