//! Budgets: limits on the spending of runs, per subject, and the remaining amounts.
//!
//! Each model call of a run goes through a [`MeteredModel`], whichever part makes it. If there are budgets, the maximum
//! cost is reserved before the call. Every call is settled afterwards, with or without budgets. The store keeps the
//! costs and the sums.

mod hints;
mod meter;
mod metered;

pub(crate) use hints::BudgetHints;
pub use meter::Meter;
pub(crate) use meter::too_small;
pub(crate) use metered::metered;

use crate::{
    Agent, ModelPrice,
    models::{KnownModel, named_model},
};
use jiff::{Timestamp, ToSpan, civil::Date, tz::TimeZone};
use pudu_base::{BudgetPeriod, BudgetScope, Model, RunId, ShortBudget, UsedBudget, UserId};
use pudu_store::{BudgetLimit, BudgetStanding, BudgetUnit, Db, Spender, SpendingShare, StoreError, now};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Length of a day, in milliseconds.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Maximum number of users, group chats or bots whose budgets are listed.
const MAX_LISTED: usize = 1_000;

/// Rules of budgets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetRules {
    /// The limits.
    pub limits: Vec<BudgetRule>,
    /// Spent share of a budget, in thousandths, at which people and the model are warned.
    pub warn: u32,
    /// The model that answers when most of a budget is spent, if any.
    pub cheaper: Option<CheaperModel>,
}

/// A limit for each run, user, group chat or bot, or for all spending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetRule {
    /// The subjects whose spending it limits.
    pub scope: BudgetScope,
    /// How often it resets; `None` for the budget of a run.
    pub period: Option<BudgetPeriod>,
    /// The counted unit.
    pub unit: BudgetUnit,
    /// The limit, in tokens or in millionths of the currency.
    pub limit: i64,
}

/// A model that replaces others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheaperModel {
    /// Its name.
    pub name: String,
    /// The spent share of a budget at which it takes over, in thousandths.
    pub from: u32,
}

/// The rules, the cheaper model, and the prices of all models.
#[derive(Default)]
pub struct BudgetSetup {
    pub(crate) rules: BudgetRules,
    pub(crate) cheaper: Option<Arc<dyn Model>>,
    pub(crate) prices: BTreeMap<String, ModelPrice>,
}

impl BudgetSetup {
    /// Creates the setup for these models.
    #[must_use]
    pub fn new(rules: BudgetRules, models: &[KnownModel]) -> Self {
        let cheaper = named_model(models, rules.cheaper.as_ref().map(|cheaper| cheaper.name.as_str()));
        let priced = models.iter().filter_map(|(info, _)| Some((info.name.clone(), info.price.clone()?)));
        Self { cheaper, prices: priced.collect(), rules }
    }

    /// Returns the price of a model, if it has one.
    fn price(&self, model: &str) -> Option<&ModelPrice> {
        self.prices.get(model)
    }
}

/// A budget and its use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetState {
    /// The limit.
    pub rule: BudgetRule,
    /// The subject: a user, a group chat or a bot; empty for a budget for all spending.
    pub subject: String,
    /// Amount spent so far.
    pub spent: i64,
    /// Time of its reset, in milliseconds since 1970; `None` for a run.
    pub opens: Option<i64>,
}

/// A notice of a budget that is nearly used up, sent once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetNotice {
    /// The budget.
    pub state: BudgetState,
    /// The model that answers from now on, if that changes.
    pub cheaper: Option<String>,
    /// Whether the model changes because the remaining amount is too small for the requested one.
    pub too_dear: bool,
}

impl BudgetState {
    /// Returns whether the budget is used up.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.spent >= self.rule.limit
    }
}

impl BudgetRule {
    /// Returns the first day of its current period and the first day after the period, in days since 1970.
    fn window(&self, at: i64) -> (i64, i64) {
        let today = at.div_euclid(DAY_MS);
        match self.period {
            None => (0, i64::MAX),
            Some(BudgetPeriod::Day) => (today, today + 1),
            Some(BudgetPeriod::Month) => month(at).unwrap_or((today, today + 1)),
        }
    }

    /// Returns the limit of one subject.
    fn limit(&self, subject: &str, at: i64) -> BudgetLimit {
        let (since, until) = self.window(at);
        let (scope, unit, limit) = (self.scope, self.unit.clone(), self.limit);
        BudgetLimit { scope, subject: subject.to_owned(), since, until, unit, limit }
    }

    fn opens(&self, at: i64) -> Option<i64> {
        self.period.map(|_| self.window(at).1.saturating_mul(DAY_MS))
    }

    fn used_up(&self, at: i64) -> UsedBudget {
        UsedBudget { scope: self.scope, period: self.period, opens: self.opens(at), busy: false, short: None }
    }

    /// Returns the refusal of a call, given the spent amount and the amount that the call needs.
    fn refused(&self, spent: i64, needs: Option<i64>, at: i64) -> UsedBudget {
        let left = self.limit.saturating_sub(spent).max(0);
        let currency = match &self.unit {
            BudgetUnit::Tokens => None,
            BudgetUnit::Money(currency) => Some(currency.clone()),
        };
        let short = needs.map(|needs| ShortBudget { left, limit: self.limit, needs, currency });
        UsedBudget { short: short.filter(|short| left > 0 || short.is_too_small()), ..self.used_up(at) }
    }

    fn state(&self, subject: &str, standing: BudgetStanding, at: i64) -> BudgetState {
        let opens = self.opens(at);
        BudgetState { rule: self.clone(), subject: subject.to_owned(), spent: standing.spent, opens }
    }
}

/// Returns the first day of the month that a time is in, and the first day of the next month.
fn month(at: i64) -> Option<(i64, i64)> {
    let date = Timestamp::from_millisecond(at).ok()?.to_zoned(TimeZone::UTC).date();
    let first = date.first_of_month();
    let next = first.checked_add(1.month()).ok()?;
    let day = |date: Date| {
        let begins = date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond();
        Some(begins.div_euclid(DAY_MS))
    };
    Some((day(first)?, day(next)?))
}

/// Returns the subject that a budget of this scope limits, if there is one.
fn subject(scope: BudgetScope, run: Option<&RunId>, spender: &Spender) -> Option<String> {
    match scope {
        // Without a run, nothing is spent yet.
        BudgetScope::Run => Some(run.map(ToString::to_string).unwrap_or_default()),
        BudgetScope::Person => Some(spender.user.to_string()),
        BudgetScope::Room => spender.room.as_ref().map(UserId::to_string),
        BudgetScope::Account => Some(spender.account.clone()),
        BudgetScope::Everybody => Some(String::new()),
    }
}

impl BudgetRules {
    /// Returns the rules that apply to a spender, each with its subject.
    fn rules_for<'r, 'a>(
        &'r self,
        run: Option<&'a RunId>,
        spender: &'a Spender,
    ) -> impl Iterator<Item = (&'r BudgetRule, String)> {
        self.limits.iter().filter_map(move |rule| Some((rule, subject(rule.scope, run, spender)?)))
    }

    /// Returns the state of the budgets of all spenders, in the order of the rules.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn states(
        &self,
        db: &Db,
        shares: &[SpendingShare],
        at: i64,
    ) -> Result<Vec<BudgetState>, StoreError> {
        let mut all = Vec::new();
        for rule in &self.limits {
            let of = |share: &SpendingShare| match rule.scope {
                BudgetScope::Run => None,
                BudgetScope::Person => Some(share.user.clone()),
                BudgetScope::Room => Some(share.room.clone()).filter(|room| !room.is_empty()),
                BudgetScope::Account => Some(share.account.clone()),
                BudgetScope::Everybody => Some(String::new()),
            };
            let subjects: BTreeSet<String> = shares.iter().filter_map(of).collect();
            all.extend(subjects.into_iter().take(MAX_LISTED).map(|subject| (rule, subject)));
        }
        states(db, all, at).await
    }
}

async fn states(db: &Db, rules: Vec<(&BudgetRule, String)>, at: i64) -> Result<Vec<BudgetState>, StoreError> {
    if rules.is_empty() {
        return Ok(Vec::new());
    }
    let limits = rules.iter().map(|(rule, subject)| rule.limit(subject, at)).collect();
    let standings = db.budget_standings(limits).await?;
    let all = rules.into_iter().zip(standings);
    Ok(all.map(|((rule, subject), standing)| rule.state(&subject, standing, at)).collect())
}

impl Agent {
    /// Returns the state of a spender's budgets.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn budgets(&self, spender: &Spender) -> Result<Vec<BudgetState>, StoreError> {
        let setup = self.setup();
        states(&self.0.db, setup.budgets.rules.rules_for(None, spender).collect(), now()).await
    }

    /// Settles the calls that a previous process left open. No other process may use the store.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn settle_left(&self) -> Result<u64, StoreError> {
        self.0.db.settle_left().await
    }
}

#[cfg(test)]
mod tests;
