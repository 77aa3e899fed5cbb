//! Spending of all users and the remainder of their budgets, for the operator.

use crate::{ApiError, GatewayState, Json, Query};
use pudu_agent::{BudgetRules, BudgetState};
use pudu_base::{BudgetPeriod, BudgetScope, Usage};
use pudu_dispatch::bus::STORE_TIMEOUT;
use pudu_kit::clock;
use pudu_people::rights::KnownUser;
use pudu_store::{BudgetUnit, Cost, Db, SpendingShare, StoreError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Default and maximum number of days to list spending for.
pub const DAYS: (u32, u32) = (1, 400);
/// The longest budget period, in days. Budgets of users who spent nothing within it are not listed.
const PERIOD_DAYS: u32 = 31;
/// Milliseconds in a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Micro-units in a unit of currency.
const MICROS: f64 = 1e6;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct UsageQuery {
    days: Option<u32>,
}

/// Lists the spending and the budgets.
pub(crate) async fn list(
    gateway: GatewayState,
    Query(asked): Query<UsageQuery>,
) -> Result<Json<Value>, ApiError> {
    let facts = async {
        let known = gateway.known().await?;
        let (db, budgets) = (&gateway.0.shared.db, &gateway.config().budgets);
        anyhow::Ok(facts(db, budgets, &known, asked.days.unwrap_or(DAYS.0)).await?)
    };
    facts.await.map(Json).map_err(|error| {
        tracing::error!("failed to read usage: {error:#}");
        ApiError::internal("the data cannot be read at the moment; try again")
    })
}

/// Returns the spending of the last days, today included, and the state of each budget. `known` supplies names.
async fn facts(db: &Db, rules: &BudgetRules, known: &[KnownUser], days: u32) -> Result<Value, StoreError> {
    let (db, now) = (db.within(STORE_TIMEOUT), clock::now());
    let since = |days: u32| now - (i64::from(days) - 1) * DAY_MS;
    let days = days.clamp(1, DAYS.1);
    let shares = db.spending_since(since(days)).await?;
    let spenders = db.spending_since(since(PERIOD_DAYS)).await?;
    let mut budgets = rules.states(&db, &spenders, now).await?;
    // Spending of deleted users is kept, but their budgets no longer belong to a person.
    budgets.retain(|state| state.rule.scope != BudgetScope::Person || !state.subject.is_empty());
    let mut people = sums(&shares, |share| Some(share.user.as_str()));
    people.iter_mut().for_each(|row| name_person(row, known));
    let mut budgets: Vec<Value> = budgets.iter().map(budget).collect();
    budgets.iter_mut().filter(|row| row["scope"] == "person").for_each(|row| name_person(row, known));
    Ok(json!({
        "days": days,
        "people": people,
        "rooms": sums(&shares, |share| Some(share.room.as_str()).filter(|room| !room.is_empty())),
        "accounts": sums(&shares, |share| Some(share.account.as_str())),
        "models": sums(&shares, |share| Some(share.sum.model.as_str())),
        "callers": sums(&shares, |share| Some(share.sum.caller.as_str())),
        "budgets": budgets,
    }))
}

/// Adds the user's name to a row, if it is known.
fn name_person(row: &mut Value, known: &[KnownUser]) {
    let user = row["name"].as_str().unwrap_or_default();
    let label = known.iter().find(|one| one.user.as_str() == user).and_then(KnownUser::label);
    row["who"] = json!(label);
}

/// Total spending under one name.
#[derive(Default)]
struct Spent<'s> {
    usage: Usage,
    calls: i64,
    estimated: i64,
    costs: Vec<&'s Cost>,
}

fn sums<'s>(shares: &'s [SpendingShare], name: impl Fn(&'s SpendingShare) -> Option<&'s str>) -> Vec<Value> {
    let mut all: BTreeMap<&str, Spent<'s>> = BTreeMap::new();
    for (name, share) in shares.iter().filter_map(|share| Some((name(share)?, share))) {
        let spent = all.entry(name).or_default();
        spent.usage += share.sum.usage;
        spent.calls += share.sum.calls;
        spent.estimated += share.sum.unreported;
        spent.costs.extend(&share.sum.cost);
    }
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by_key(|(_, spent)| std::cmp::Reverse(spent.usage.total()));
    all.into_iter().map(|(name, spent)| to_json(name, &spent)).collect()
}

/// Returns the total cost in each currency.
pub(crate) fn costs<'c>(all: impl IntoIterator<Item = &'c Cost>) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for cost in all {
        *sums.entry(&cost.currency).or_default() += cost.micros;
    }
    sums.into_iter().map(|(currency, micros)| (currency.to_owned(), whole(micros))).collect()
}

fn to_json(name: &str, spent: &Spent<'_>) -> Value {
    json!({
        "name": name,
        "calls": spent.calls,
        "estimated_calls": spent.estimated,
        "input_tokens": spent.usage.input,
        "output_tokens": spent.usage.output,
        "total_tokens": spent.usage.total(),
        "costs": costs(spent.costs.iter().copied()),
    })
}

fn budget(state: &BudgetState) -> Value {
    let (unit, amount): (&str, fn(i64) -> Value) = match &state.rule.unit {
        BudgetUnit::Tokens => ("tokens", |amount| json!(amount)),
        BudgetUnit::Money(currency) => (currency, |amount| json!(whole(amount))),
    };
    json!({
        "scope": state.rule.scope.as_str(),
        "name": state.subject,
        "period": state.rule.period.map(BudgetPeriod::as_str),
        "unit": unit,
        "limit": amount(state.rule.limit),
        "spent": amount(state.spent),
        "left": amount((state.rule.limit - state.spent).max(0)),
        "used_up": state.is_used_up(),
        "opens": state.opens.map(clock::text),
    })
}

#[allow(clippy::cast_precision_loss, reason = "what is spent is far below 2^53 millionths")]
fn whole(micros: i64) -> f64 {
    micros as f64 / MICROS
}
