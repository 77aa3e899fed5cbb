//! Spending of runs on models, in tokens and money. There is one row per call.
//!
//! A call is settled once: its row is never written again, and only the first write is added to budgets. The caller
//! does not wait for the write. It is committed with the next write, at the latest with the one that ends the run, and
//! so before the end of the run is reported.

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
    Db, Result, StoreError, clock, crash,
    engines::{FromRow, Row, Tx, query},
};
use pudu_base::{RunId, ThreadId, Usage, UserId};

/// Maximum number of sums returned by [`Db::spending_since`].
const MAX_SHARES: i64 = 10_000;

/// The end of a call or of one try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The call.
    pub call: ModelCall,
    /// Its spending, if any.
    pub spent: Option<CallSpending>,
    /// The id of the reservation to end.
    pub reservation: Option<String>,
}

/// Selects spending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpendingFilter {
    /// The spending of a run.
    Run(RunId),
    /// The spending of a thread.
    Thread(ThreadId),
    /// The spending of a user from the day of this time on, in milliseconds since 1970.
    UserSince(UserId, i64),
}

/// Sum over calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpendingSum {
    /// The caller's name.
    pub caller: String,
    /// The model's name.
    pub model: String,
    /// Tokens, reported or estimated.
    pub usage: Usage,
    /// Number of calls.
    pub calls: i64,
    /// Number of calls whose usage is estimated.
    pub unreported: i64,
    /// The cost; `None` if the model had no price.
    pub cost: Option<Cost>,
}

/// Sum over calls for one user, bot and room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpendingShare {
    /// The user.
    pub user: String,
    /// The bot; empty for the page and the terminal.
    pub account: String,
    /// The room; empty outside rooms.
    pub room: String,
    /// The sum for one caller and model.
    pub sum: SpendingSum,
}

impl Db {
    /// Records the spending of a call and ends its reservation. Committed with the next write or after a short delay.
    pub fn settle(&self, settlement: Settlement) {
        self.write_soon(&crash::SETTLE, move |tx| settle(tx, &settlement));
    }

    /// Ends the reservation of a call that was not made, after all writes requested earlier.
    pub async fn release(&self, reservation: String) -> Result<()> {
        self.write(&crash::SETTLE, move |tx| reserve::release(tx, &reservation)).await
    }

    /// Returns sums by caller, model and currency, the largest in tokens first.
    pub async fn spending(&self, filter: &SpendingFilter) -> Result<Vec<SpendingSum>> {
        const GROUPS: &str = "GROUP BY caller, model, COALESCE(currency, '') ORDER BY 6 DESC, 1, 2";
        let clause = match filter {
            SpendingFilter::Run(_) => "run = $1",
            SpendingFilter::Thread(_) => "thread = $1",
            SpendingFilter::UserSince(..) => "user_id = $1 AND day >= $2",
        };
        // The text is from our code, not from users.
        let rows = query(format!("SELECT {} {clause} {GROUPS}", sum_columns()));
        let rows = match filter {
            SpendingFilter::Run(run) => rows.bind(run.as_str()),
            SpendingFilter::Thread(thread) => rows.bind(thread.as_str()),
            SpendingFilter::UserSince(user, since) => rows.bind(user.as_str()).bind(clock::day(*since)),
        };
        self.all(rows).await
    }

    /// Returns the spending of all users from the day of this time on, in milliseconds since 1970.
    pub async fn spending_since(&self, since: i64) -> Result<Vec<SpendingShare>> {
        const GROUPS: &str =
            "day >= $1 GROUP BY user_id, account, room, caller, model, COALESCE(currency, '')
            ORDER BY 9 DESC, 1, 2, 3, 4, 5, 6 LIMIT $2";
        let sql = format!("SELECT user_id, account, room, {} {GROUPS}", sum_columns());
        self.all(query(sql).bind(clock::day(since)).bind(MAX_SHARES)).await
    }
}

/// Returns the SQL for the columns of a sum and their table.
fn sum_columns() -> String {
    const AMOUNTS: [&str; 8] =
        ["calls", "unreported", "input", "output", "cached", "cache_writes", "reasoning", "cost"];
    let totals = AMOUNTS.map(|amount| format!("{} AS {amount}", total(amount))).join(", ");
    format!("caller, model, COALESCE(currency, '') AS currency, {totals} FROM spending WHERE")
}

impl FromRow for SpendingSum {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let tokens =
            |column: &str| Ok::<_, StoreError>(u64::try_from(row.column::<i64>(column)?).unwrap_or(0));
        let usage = Usage {
            input: tokens("input")?,
            output: tokens("output")?,
            cached: tokens("cached")?,
            cache_writes: tokens("cache_writes")?,
            reasoning: tokens("reasoning")?,
        };
        let (currency, micros): (String, _) = (row.column("currency")?, row.column("cost")?);
        let cost = (!currency.is_empty()).then_some(Cost { currency, micros });
        let (calls, unreported) = (row.column("calls")?, row.column("unreported")?);
        Ok(Self {
            caller: row.column("caller")?,
            model: row.column("model")?,
            usage,
            calls,
            unreported,
            cost,
        })
    }
}

impl FromRow for SpendingShare {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let (user, account, room) = (row.column("user_id")?, row.column("account")?, row.column("room")?);
        Ok(Self { user, account, room, sum: FromRow::from_row(row)? })
    }
}

/// Ends the reservation of a call, and stores its spending.
fn settle(tx: &mut Tx<'_>, settlement: &Settlement) -> Result<()> {
    if let Some(reservation) = &settlement.reservation {
        reserve::release(tx, reservation)?;
    }
    match &settlement.spent {
        Some(spent) => {
            let user = settlement.call.spender.user.as_str();
            row::spend(tx, &settlement.call, user, spent)
        }
        None => Ok(()),
    }
}
