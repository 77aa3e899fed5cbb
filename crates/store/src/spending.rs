//! Spending of runs on models, in tokens and money, one row a call.
//!
//! A call is settled once: a row with its id is not written again, and budgets are counted only with the first write.
//! The caller does not wait for that. It is committed with the next write, at the latest the end of the run, and so
//! before that end is reported.

mod call;
mod limits;
mod reserve;
mod row;

pub(crate) use call::total;
pub use call::{CallSpending, Cost, ModelCall, Spender};
pub use limits::{BudgetLimit, BudgetStanding, BudgetUnit};
pub(crate) use limits::{made_before, spent_before};
pub use reserve::{CallOffer, OfferCost, Reservation, ReserveOutcome};

use crate::{
    Db, StoreError, clock, crash,
    statement::{Tx, query},
};
use pudu_base::{RunId, ThreadId, Usage, UserId};

/// Maximum number of returned sums of all spending.
const MAX_SHARES: i64 = 10_000;

/// The end of a call, or of one try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The call.
    pub call: ModelCall,
    /// Its spending, if any.
    pub spent: Option<CallSpending>,
    /// The id of the reservation that ends with it.
    pub reservation: Option<String>,
}

/// Which spending is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpendingFilter {
    /// That of a run.
    Run(RunId),
    /// That of a thread.
    Thread(ThreadId),
    /// That of a user on the day of this time, in milliseconds, and since.
    UserSince(UserId, i64),
}

/// A sum over calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpendingSum {
    /// The caller's word.
    pub caller: String,
    /// The model's name.
    pub model: String,
    /// Tokens, reported or estimated.
    pub usage: Usage,
    /// Number of calls.
    pub calls: i64,
    /// Number of calls whose usage is estimated.
    pub unreported: i64,
    /// The cost; none where the model had no price.
    pub cost: Option<Cost>,
}

/// A sum over calls for one user in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpendingShare {
    /// The user.
    pub user: String,
    /// The account; empty on the page and in the terminal.
    pub account: String,
    /// The room; empty where it was none.
    pub room: String,
    /// The sum of one caller and model.
    pub sum: SpendingSum,
}

impl Db {
    /// Records the spending of a call and ends its reservation. That is committed with the next write, or soon.
    pub fn settle(&self, settlement: Settlement) {
        self.write_soon(&crash::SETTLE, settlement, |settlement, tx| Box::pin(settle(tx, settlement)));
    }

    /// Ends a reservation of a call that was not made, after all writes requested before.
    pub async fn release(&self, reservation: String) -> Result<(), StoreError> {
        self.write(&crash::SETTLE, reservation, |call, tx| Box::pin(reserve::release(tx, call))).await
    }

    /// Returns sums by caller, model and currency, the dearest in tokens first.
    pub async fn spending(&self, filter: &SpendingFilter) -> Result<Vec<SpendingSum>, StoreError> {
        let filter = filter.clone();
        self.read_much(filter, |filter, tx| Box::pin(sums(tx, filter))).await
    }

    /// Returns who spent how much on the day of this time, in milliseconds, and since.
    pub async fn spending_since(&self, since: i64) -> Result<Vec<SpendingShare>, StoreError> {
        self.read_much(clock::day(since), |since, tx| Box::pin(shares(tx, *since))).await
    }
}

type SumColumns = (String, String, String, i64, i64, i64, i64, i64, i64, i64, i64);

/// Returns the columns of [`SumColumns`] and their table.
fn sum_columns() -> String {
    const AMOUNTS: [&str; 8] =
        ["calls", "unreported", "input", "output", "cached", "cache_writes", "reasoning", "cost"];
    let totals = AMOUNTS.map(total).join(", ");
    format!("caller, model, COALESCE(currency, ''), {totals} FROM spending WHERE")
}

async fn sums(tx: &mut Tx<'_>, filter: &SpendingFilter) -> Result<Vec<SpendingSum>, StoreError> {
    const GROUPS: &str = "GROUP BY caller, model, COALESCE(currency, '') ORDER BY 6 DESC, 1, 2";
    let clause = match filter {
        SpendingFilter::Run(_) => "run = $1",
        SpendingFilter::Thread(_) => "thread = $1",
        SpendingFilter::UserSince(..) => "user_id = $1 AND day >= $2",
    };
    // The text is one of ours, not user input.
    let rows = query(format!("SELECT {} {clause} {GROUPS}", sum_columns()));
    let rows = match filter {
        SpendingFilter::Run(run) => rows.bind(run.as_str()),
        SpendingFilter::Thread(thread) => rows.bind(thread.as_str()),
        SpendingFilter::UserSince(user, since) => rows.bind(user.as_str()).bind(clock::day(*since)),
    };
    Ok(rows.fetch_all(tx).await?.into_iter().map(sum).collect())
}

type ShareColumns = (String, String, String, String, String, String, i64, i64, i64, i64, i64, i64, i64, i64);

async fn shares(tx: &mut Tx<'_>, since: i64) -> Result<Vec<SpendingShare>, StoreError> {
    const GROUPS: &str = "day >= $1 GROUP BY user_id, account, room, caller, model, COALESCE(currency, '')
        ORDER BY 9 DESC, 1, 2, 3, 4, 5, 6 LIMIT $2";
    let sql = format!("SELECT user_id, account, room, {} {GROUPS}", sum_columns());
    let rows = query(sql).bind(since).bind(MAX_SHARES);
    let share = |row: ShareColumns| {
        let (user, account, room, caller, model, currency, calls, unreported, ..) = row;
        let columns =
            (caller, model, currency, calls, unreported, row.8, row.9, row.10, row.11, row.12, row.13);
        SpendingShare { user, account, room, sum: sum(columns) }
    };
    Ok(rows.fetch_all(tx).await?.into_iter().map(share).collect())
}

fn sum(columns: SumColumns) -> SpendingSum {
    let (caller, model, currency, calls, unreported, input, output, cached, cache_writes, reasoning, micros) =
        columns;
    let [input, output, cached, cache_writes, reasoning] =
        [input, output, cached, cache_writes, reasoning].map(|tokens| u64::try_from(tokens).unwrap_or(0));
    let usage = Usage { input, output, cached, cache_writes, reasoning };
    let cost = (!currency.is_empty()).then_some(Cost { currency, micros });
    SpendingSum { caller, model, usage, calls, unreported, cost }
}

/// Ends the reservation of a call, and stores its spending.
async fn settle(tx: &mut Tx<'_>, settlement: &Settlement) -> Result<(), StoreError> {
    if let Some(reservation) = &settlement.reservation {
        reserve::release(tx, reservation).await?;
    }
    match &settlement.spent {
        Some(spent) => {
            let user = settlement.call.spender.user.as_str();
            row::spend(tx, &settlement.call, user, spent).await
        }
        None => Ok(()),
    }
}
