//! Budgets and the counters of their spending.
//!
//! A counter is created when a budget is first checked. It begins with the sum of the settled calls, and each later
//! settlement adds to it. So a limit that an operator sets today includes earlier spending, and without any limit
//! nothing is counted.

use super::call::{CallSpending, ModelCall, tokens, total};
use crate::{
    Db, Result, clock, crash,
    engines::{Tx, query},
};
use pudu_base::{BudgetScope, UserId};

/// How long a counter is kept, in days. Longer than any period.
const KEEP_COUNTERS: i64 = 40;

/// Returns the statement that deletes old counters, and the earliest day of creation that is kept.
pub(crate) fn made_before(now: i64) -> (&'static str, i64) {
    const SQL: &str = "DELETE FROM budgets WHERE (scope, subject, unit, since, until) IN
        (SELECT scope, subject, unit, since, until FROM budgets WHERE made < $1 LIMIT $2)";
    (SQL, clock::day(now) - KEEP_COUNTERS)
}

/// Returns the statement that deletes old spending.
pub(crate) fn spent_before() -> &'static str {
    "DELETE FROM spending WHERE (run, call) IN (SELECT run, call FROM spending WHERE day < $1 LIMIT $2)"
}

/// Unit of a budget.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetUnit {
    /// Tokens of prompts and replies.
    Tokens,
    /// Millionths of a currency, given by its code.
    Money(String),
}

impl BudgetUnit {
    /// Returns its name in the tables: the currency, or an empty text for tokens.
    fn as_str(&self) -> &str {
        match self {
            Self::Tokens => "",
            Self::Money(currency) => currency,
        }
    }
}

/// A limit on the spending of a run, user, room or bot, or on all spending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetLimit {
    /// The scope of the limited spending.
    pub scope: BudgetScope,
    /// The id within the scope: a run, user, room or bot, or an empty text.
    pub subject: String,
    /// The first day of the period, in days since 1970 in UTC.
    pub since: i64,
    /// The day after the period.
    pub until: i64,
    /// The unit.
    pub unit: BudgetUnit,
    /// The maximum amount, in the unit.
    pub limit: i64,
}

/// Use of a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetStanding {
    /// Amount spent.
    pub spent: i64,
    /// Amount reserved by calls in progress.
    pub reserved: i64,
    /// Whether people were warned that little remains.
    pub warned: bool,
}

impl Db {
    /// Returns the use of budgets, in their order.
    pub async fn budget_standings(&self, limits: Vec<BudgetLimit>) -> Result<Vec<BudgetStanding>> {
        self.read_much(move |tx| read_standings(tx, &limits)).await
    }

    /// Records that people were warned that little of a budget remains. Returns whether this is the first warning.
    pub async fn budget_warned(&self, limit: BudgetLimit, now: i64) -> Result<bool> {
        self.write(&crash::BUDGET_WARNED, move |tx| {
            // If the limit changes, people are warned again.
            const SQL: &str = "UPDATE budgets SET warned = $6
                WHERE scope = $1 AND subject = $2 AND unit = $3 AND since = $4 AND until = $5 AND warned <> $6";
            spent(tx, &limit, now)?;
            Ok(keyed(SQL, &limit).bind(limit.limit).execute(tx)? > 0)
        })
        .await
    }
}

pub(super) fn read_standings(tx: &mut Tx<'_>, limits: &[BudgetLimit]) -> Result<Vec<BudgetStanding>> {
    let mut standings = Vec::new();
    for limit in limits {
        let counter = counter(tx, limit)?;
        let spent = match counter {
            Some((spent, _)) => spent,
            None => settled(tx, limit)?,
        };
        let warned = counter.is_some_and(|(_, warned)| warned == limit.limit);
        standings.push(BudgetStanding { spent, reserved: reserved(tx, limit)?, warned });
    }
    Ok(standings)
}

/// Returns the spent amount of a budget, creating its counter if necessary.
pub(super) fn spent(tx: &mut Tx<'_>, limit: &BudgetLimit, now: i64) -> Result<i64> {
    const MAKE: &str = "INSERT INTO budgets (scope, subject, unit, since, until, spent, warned, made)
        VALUES ($1, $2, $3, $4, $5, $6, 0, $7)";
    if let Some((spent, _)) = counter(tx, limit)? {
        return Ok(spent);
    }
    let spent = settled(tx, limit)?;
    keyed(MAKE, limit).bind(spent).bind(clock::day(now)).execute(tx)?;
    Ok(spent)
}

/// Returns the amount of a budget that is reserved by calls in progress.
pub(super) fn reserved(tx: &mut Tx<'_>, limit: &BudgetLimit) -> Result<i64> {
    sum(tx, limit, "reservations", &total("tokens"))
}

fn settled(tx: &mut Tx<'_>, limit: &BudgetLimit) -> Result<i64> {
    sum(tx, limit, "spending", &format!("{} + {}", total("input"), total("output")))
}

fn sum(tx: &mut Tx<'_>, limit: &BudgetLimit, table: &str, tokens: &str) -> Result<i64> {
    let condition = match limit.scope {
        BudgetScope::Run => "run = $1",
        BudgetScope::Person => "user_id = $1",
        BudgetScope::Room => "room = $1 AND room <> ''",
        BudgetScope::Account => "account = $1",
        BudgetScope::Everybody => "'' = $1",
    };
    let (amount, of) = match limit.unit {
        BudgetUnit::Tokens => (tokens.to_owned(), ""),
        BudgetUnit::Money(_) => (total("cost"), " AND currency = $4"),
    };
    let sql = format!("SELECT {amount} FROM {table} WHERE {condition} AND day >= $2 AND day < $3{of}");
    let sum = query(sql).bind(&limit.subject).bind(limit.since).bind(limit.until);
    let sum = if of.is_empty() { sum } else { sum.bind(limit.unit.as_str()) };
    sum.fetch_one(tx)
}

fn counter(tx: &mut Tx<'_>, limit: &BudgetLimit) -> Result<Option<(i64, i64)>> {
    const SQL: &str = "SELECT spent, warned FROM budgets
        WHERE scope = $1 AND subject = $2 AND unit = $3 AND since = $4 AND until = $5";
    keyed(SQL, limit).fetch_optional(tx)
}

fn keyed<'q>(sql: &'static str, limit: &'q BudgetLimit) -> crate::engines::Statement<'q> {
    let keyed = query(sql).bind(limit.scope.as_str()).bind(&limit.subject).bind(limit.unit.as_str());
    keyed.bind(limit.since).bind(limit.until)
}

/// Adds a user's call to all budgets that it counts towards.
pub(super) fn count(tx: &mut Tx<'_>, call: &ModelCall, user: &str, spent: &CallSpending) -> Result<()> {
    const SQL: &str =
        "UPDATE budgets SET spent = CASE WHEN spent > 1000000000000000000 THEN spent ELSE spent + $1 END WHERE unit = $2 AND since <= $3 AND until > $3 AND
        ((scope = 'run' AND subject = $4) OR (scope = 'person' AND subject = $5 AND subject <> '') OR
        (scope = 'room' AND subject = $6 AND subject <> '') OR (scope = 'account' AND subject = $7) OR
        scope = 'everybody')";
    let all = (BudgetUnit::Tokens, tokens(spent.usage.total()));
    let cost = spent.cost.as_ref().map(|cost| (BudgetUnit::Money(cost.currency.clone()), cost.column()));
    for (unit, amount) in [Some(all), cost].into_iter().flatten().filter(|(_, amount)| *amount > 0) {
        let update = query(SQL).bind(amount).bind(unit.as_str()).bind(clock::day(call.at));
        let room = call.spender.room.as_ref().map_or("", UserId::as_str);
        let update = update.bind(call.run.as_str()).bind(user).bind(room);
        update.bind(&call.spender.account).execute(tx)?;
    }
    Ok(())
}
