//! Limits of the spending of runs: DeerFlow's `token_budget`, for a run and for a sub-agent's task, and pudu's own
//! `budgets`.

use super::{model::ModelConfig, model_name, quantity::NumberUnit, reader::Section};
use pudu_client::{
    BudgetRule, BudgetRules, CheaperModel,
    base::{BudgetPeriod, BudgetScope},
    harness::{TokenBudget, TokenLimit},
    store::BudgetUnit,
};

/// Largest limit in tokens.
const MAX_TOKENS: u64 = 1_000_000_000_000;
/// Largest limit in money.
const MAX_COST: f64 = 1e9;
/// Millionths of a whole.
const MICROS: f64 = 1e6;

/// DeerFlow's `token_budget`, as it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TokenBudgetConfig {
    enabled: bool,
    max_tokens: u64,
    max_input_tokens: Option<u64>,
    max_output_tokens: Option<u64>,
    warn: f64,
    stop: f64,
}

impl TokenBudgetConfig {
    /// That of a run where nothing is written.
    const RUN: Self = Self {
        enabled: false,
        max_tokens: 200_000,
        max_input_tokens: None,
        max_output_tokens: None,
        warn: 0.8,
        stop: 1.0,
    };

    /// Returns that of a sub-agent's task where nothing is written.
    pub(super) fn of_task(summaries: bool) -> Self {
        let max_tokens = if summaries { 1_000_000 } else { 2_000_000 };
        Self { enabled: true, max_tokens, warn: 0.7, ..Self::RUN }
    }

    /// Returns the limits that it sets.
    pub(super) fn budget(&self) -> TokenBudget {
        if !self.enabled {
            return TokenBudget::default();
        }
        let limit = |most: u64| TokenLimit { warn: share(most, self.warn), stop: share(most, self.stop) };
        TokenBudget {
            total: Some(limit(self.max_tokens)),
            input: self.max_input_tokens.map(limit),
            output: self.max_output_tokens.map(limit),
        }
    }
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "limits are far below 2^53, and shares between 0 and 1"
)]
fn share(most: u64, share: f64) -> u64 {
    (most as f64 * share).round() as u64
}

/// Reads the limits of a run.
pub(super) fn of_run(top: &Section<'_>) -> TokenBudget {
    let section = top.section("token_budget");
    let read = token_budget(&section, TokenBudgetConfig::RUN);
    let says = section.present().any(|entry| entry.key != "enabled");
    if says && section.entry("enabled").is_none() {
        section.warn_here("this budget is kept only with `enabled: true`", "write `enabled`, true or false");
    }
    read.budget()
}

/// Reads a `token_budget`; absent keys keep their values in `before`.
pub(super) fn token_budget(section: &Section<'_>, before: TokenBudgetConfig) -> TokenBudgetConfig {
    let read = TokenBudgetConfig {
        enabled: section.flag("enabled").or(before.enabled),
        max_tokens: section.amount("max_tokens", NumberUnit::Tokens, 1..=MAX_TOKENS).or(before.max_tokens),
        max_input_tokens: section
            .amount("max_input_tokens", NumberUnit::Tokens, 1..=MAX_TOKENS)
            .optional("no limit")
            .or(before.max_input_tokens),
        max_output_tokens: section
            .amount("max_output_tokens", NumberUnit::Tokens, 1..=MAX_TOKENS)
            .optional("no limit")
            .or(before.max_output_tokens),
        warn: section.decimal("warn_threshold", 0.0..=1.0).or(before.warn),
        stop: section.decimal("hard_stop_threshold", 0.0..=1.0).or(before.stop),
    };
    if read.stop < read.warn {
        let what = "a run would be stopped before its model is told";
        section.refuse("hard_stop_threshold", what, "write at least `warn_threshold`");
    }
    read
}

/// Reads the budgets of runs, people, rooms and accounts.
pub(super) fn rules(top: &Section<'_>, models: &[ModelConfig]) -> BudgetRules {
    let section = top.section("budgets");
    let currency = section.text("currency").or("USD".to_owned());
    let warn = section.decimal("warn_threshold", 0.0..=1.0).or(0.8);
    let cheaper = model_name::named(&section, "cheaper_model", models, "none");
    let from = section.decimal("cheaper_threshold", 0.0..=1.0).or_told(warn, "`warn_threshold`");
    let mut limits = of_one_run(&section.section("run"), &currency);
    for (key, scope) in [
        ("person", BudgetScope::Person),
        ("room", BudgetScope::Room),
        ("account", BudgetScope::Account),
        ("everybody", BudgetScope::Everybody),
    ] {
        limits.extend(periods(&section.section(key), scope, &currency));
    }
    if limits.iter().any(|rule| rule.unit != BudgetUnit::Tokens) {
        check_prices(&section, &currency, models);
    }
    let cheaper = cheaper.map(|name| CheaperModel { name, from: thousandths(from) });
    BudgetRules { limits, warn: thousandths(warn), cheaper }
}

fn of_one_run(section: &Section<'_>, currency: &str) -> Vec<BudgetRule> {
    let rule = |(unit, limit)| BudgetRule { scope: BudgetScope::Run, period: None, unit, limit };
    let tokens = tokens(section, "tokens").map(|limit| (BudgetUnit::Tokens, limit));
    let cost = cost(section, "cost").map(|limit| (BudgetUnit::Money(currency.to_owned()), limit));
    [tokens, cost].into_iter().flatten().map(rule).collect()
}

fn periods(section: &Section<'_>, scope: BudgetScope, currency: &str) -> Vec<BudgetRule> {
    let money = || BudgetUnit::Money(currency.to_owned());
    let all = [
        (BudgetPeriod::Day, BudgetUnit::Tokens, tokens(section, "tokens_per_day")),
        (BudgetPeriod::Month, BudgetUnit::Tokens, tokens(section, "tokens_per_month")),
        (BudgetPeriod::Day, money(), cost(section, "cost_per_day")),
        (BudgetPeriod::Month, money(), cost(section, "cost_per_month")),
    ];
    let rule = |(period, unit, limit): (_, _, Option<i64>)| {
        Some(BudgetRule { scope, period: Some(period), unit, limit: limit? })
    };
    all.into_iter().filter_map(rule).collect()
}

fn tokens(section: &Section<'_>, key: &str) -> Option<i64> {
    section
        .amount(key, NumberUnit::Tokens, 0..=MAX_TOKENS)
        .optional("no limit")
        .and_then(|tokens| i64::try_from(tokens).ok())
}

#[allow(clippy::cast_possible_truncation, reason = "the largest cost is far below 2^53 millionths")]
fn cost(section: &Section<'_>, key: &str) -> Option<i64> {
    section.decimal(key, 0.0..=MAX_COST).optional("no limit").map(|cost| (cost * MICROS).round() as i64)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "shares are between 0 and 1")]
fn thousandths(share: f64) -> u32 {
    (share * 1000.0).round() as u32
}

/// Refuses budgets in money that some model's calls would not count for.
fn check_prices(section: &Section<'_>, currency: &str, models: &[ModelConfig]) {
    if models.is_empty() {
        let what = "a budget in money needs models with prices, and none is written";
        section.refuse_here(what, "write `models` with their `pricing`, or set the budget in tokens");
    }
    for model in models {
        let what = match &model.price {
            None => format!(
                "the model \"{}\" has no price, so its calls would cost nothing here",
                model.settings.name
            ),
            Some(price) if price.currency != currency => format!(
                "the model \"{}\" has its price in {}, and the budgets are in {currency}",
                model.settings.name, price.currency
            ),
            Some(_) => continue,
        };
        let help = format!("write its `pricing` in {currency}, or set the budgets in tokens");
        section.refuse_here(what, help);
    }
}
