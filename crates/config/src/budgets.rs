//! Limits on the spending of runs: DeerFlow's `token_budget`, for a run or a sub-agent's task, and pudu's own
//! `budgets`.

use super::{model::ModelConfig, quantity::NumberUnit, reader::Section};
use pudu_agent::{BudgetRule, BudgetRules, CheaperModel};
use pudu_base::{BudgetPeriod, BudgetScope};
use pudu_harness::{TokenBudget, TokenLimit};
use pudu_store::BudgetUnit;

/// Maximum limit, in tokens.
const MAX_TOKENS: u64 = 1_000_000_000_000;
/// Maximum budget, in tokens.
const MAX_BUDGET: i64 = 1_000_000_000_000;
/// Maximum limit, in units of a currency.
const MAX_COST: f64 = 1e9;
/// Micro-units per currency unit.
const MICROS: f64 = 1e6;

settings! {
    /// DeerFlow's `token_budget`, as configured; absent keys keep their values in `before`.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(super) struct TokenBudgetConfig(section, before: TokenBudgetConfig) {
        /// Enables the section.
        enabled: bool = flag().or(before.enabled);
        /// Maximum number of tokens of prompts and replies.
        max_tokens: u64 = amount(NumberUnit::Tokens, 1..=MAX_TOKENS).or(before.max_tokens);
        /// Maximum number of tokens of prompts.
        max_input_tokens: Option<u64> = amount(NumberUnit::Tokens, 1..=MAX_TOKENS)
            .eg("150000").optional("no limit").or(before.max_input_tokens);
        /// Maximum number of tokens of replies.
        max_output_tokens: Option<u64> = amount(NumberUnit::Tokens, 1..=MAX_TOKENS)
            .eg("50000").optional("no limit").or(before.max_output_tokens);
        /// Fraction of a limit at which the model is asked to wrap up.
        warn as "warn_threshold": f64 = decimal(0.0..=1.0).or(before.warn);
        /// Fraction of a limit at which the run ends with its text so far.
        stop as "hard_stop_threshold": f64 = decimal(0.0..=1.0).or(before.stop);
    }
}

impl TokenBudgetConfig {
    /// Default of a run.
    const RUN: Self = Self {
        enabled: false,
        max_tokens: 200_000,
        max_input_tokens: None,
        max_output_tokens: None,
        warn: 0.8,
        stop: 1.0,
    };

    /// Returns the default of a sub-agent's task.
    pub(super) fn of_task(summaries: bool) -> Self {
        let max_tokens = if summaries { 1_000_000 } else { 2_000_000 };
        Self { enabled: true, max_tokens, warn: 0.7, ..Self::RUN }
    }

    /// Returns the resulting limits.
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
fn share(limit: u64, share: f64) -> u64 {
    (limit as f64 * share).round() as u64
}

/// Reads the limits of a run.
pub(super) fn of_run(top: &Section<'_>) -> TokenBudget {
    let section = top
        .section("token_budget")
        .about("Maximum tokens of a run, including those of its sub-agents (docs/budgets.md).");
    let read = token_budget(&section, TokenBudgetConfig::RUN);
    let has_keys = section.present().any(|entry| entry.key != "enabled");
    if has_keys && section.entry("enabled").is_none() {
        section.warn_here("this budget applies only with `enabled: true`", "write `enabled`, true or false");
    }
    read.budget()
}

/// Reads a `token_budget`; absent keys keep their values in `before`.
pub(super) fn token_budget(section: &Section<'_>, before: TokenBudgetConfig) -> TokenBudgetConfig {
    let read = TokenBudgetConfig::read(section, before);
    if read.stop < read.warn {
        let what = "a run would be stopped before its model is warned";
        section.refuse("hard_stop_threshold", what, "write at least `warn_threshold`");
    }
    read
}

/// Reads the budgets of runs, users, rooms and bots.
pub(super) fn rules(top: &Section<'_>, models: &[ModelConfig]) -> BudgetRules {
    let section = top.section("budgets").about(
        "Spending limits per run, user, group, bot and in total; each limit is optional (docs/budgets.md).",
    );
    settings! { section =>
        /// Currency of limits in money; all models then need prices in this currency.
        currency = text().or("USD".to_owned());
        /// Share of a budget from which users and the model are warned.
        warn as "warn_threshold" = decimal(0.0..=1.0).or(0.8);
        /// Name of the model that answers once most of a budget is spent.
        cheaper as "cheaper_model" = model(models).eg("main").optional("none");
        /// Share of a budget from which that model answers.
        from as "cheaper_threshold" = decimal(0.0..=1.0).or_described(warn, "`warn_threshold`");
    }
    let mut limits = of_one_run(&section.section("run").about("Limits of each run."), &currency);
    for (key, scope, about) in [
        ("person", BudgetScope::Person, "Limits of each user."),
        ("room", BudgetScope::Room, "Limits of each group."),
        ("account", BudgetScope::Account, "Limits of each bot, with all its users and groups."),
        ("everybody", BudgetScope::Everybody, "Limits of everyone combined."),
    ] {
        limits.extend(periods(&section.section(key).about(about), scope, &currency));
    }
    if limits.iter().any(|rule| rule.unit != BudgetUnit::Tokens) {
        check_prices(&section, &currency, models);
    }
    let cheaper = cheaper.map(|name| CheaperModel { name, from: thousandths(from) });
    BudgetRules { limits, warn: thousandths(warn), cheaper }
}

fn of_one_run(section: &Section<'_>, currency: &str) -> Vec<BudgetRule> {
    settings! { section =>
        /// Maximum number of tokens of a run.
        tokens = amount(NumberUnit::Tokens, 0..=MAX_BUDGET).eg("500000").optional("no limit");
        /// Maximum cost of a run.
        cost = decimal(0.0..=MAX_COST).eg("2").optional("no limit").map(micros);
    }
    let money = BudgetUnit::Money(currency.to_owned());
    let rule = |(unit, limit): (_, Option<i64>)| {
        Some(BudgetRule { scope: BudgetScope::Run, period: None, unit, limit: limit? })
    };
    [(BudgetUnit::Tokens, tokens), (money, cost)].into_iter().filter_map(rule).collect()
}

fn periods(section: &Section<'_>, scope: BudgetScope, currency: &str) -> Vec<BudgetRule> {
    settings! { section =>
        /// Maximum number of tokens per day, in UTC.
        tokens_per_day = amount(NumberUnit::Tokens, 0..=MAX_BUDGET).eg("1000000").optional("no limit");
        /// Maximum number of tokens per calendar month, in UTC.
        tokens_per_month = amount(NumberUnit::Tokens, 0..=MAX_BUDGET).eg("10000000").optional("no limit");
        /// Maximum cost per day, in UTC.
        cost_per_day = decimal(0.0..=MAX_COST).eg("5").optional("no limit").map(micros);
        /// Maximum cost per calendar month, in UTC.
        cost_per_month = decimal(0.0..=MAX_COST).eg("50").optional("no limit").map(micros);
    }
    let money = || BudgetUnit::Money(currency.to_owned());
    let all = [
        (BudgetPeriod::Day, BudgetUnit::Tokens, tokens_per_day),
        (BudgetPeriod::Month, BudgetUnit::Tokens, tokens_per_month),
        (BudgetPeriod::Day, money(), cost_per_day),
        (BudgetPeriod::Month, money(), cost_per_month),
    ];
    let rule = |(period, unit, limit): (_, _, Option<i64>)| {
        Some(BudgetRule { scope, period: Some(period), unit, limit: limit? })
    };
    all.into_iter().filter_map(rule).collect()
}

#[allow(clippy::cast_possible_truncation, reason = "the largest cost is far below 2^53 millionths")]
fn micros(cost: f64) -> i64 {
    (cost * MICROS).round() as i64
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "shares are between 0 and 1")]
fn thousandths(share: f64) -> u32 {
    (share * 1000.0).round() as u32
}

/// Refuses budgets in money unless every model has a price in their currency.
fn check_prices(section: &Section<'_>, currency: &str, models: &[ModelConfig]) {
    if models.is_empty() {
        let what = "a budget in money needs models with prices, but no model has one";
        section.refuse_here(what, "write `models` with their `pricing`, or set the budget in tokens");
    }
    for model in models {
        let what = match &model.price {
            None => {
                format!("the model \"{}\" has no price, so its calls would not count", model.settings.name)
            }
            Some(price) if price.currency != currency => format!(
                "the price of the model \"{}\" is in {}, but the budgets are in {currency}",
                model.settings.name, price.currency
            ),
            Some(_) => continue,
        };
        let help = format!("write its `pricing` in {currency}, or set the budgets in tokens");
        section.refuse_here(what, help);
    }
}
