//! Spending of runs on models, in tokens and money.

use crate::{
    Db, StoreError, clock,
    statement::{WriteTx, query},
};
use pudu_base::{RunId, Spending, ThreadId, Usage, UserId};
use sqlx::{AnyConnection, AssertSqlSafe};

/// Money in millionths of a currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The currency's code, such as `USD`.
    pub currency: String,
    /// Millionths of it.
    pub micros: i64,
}

/// One part of what a run spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PricedSpending {
    /// Caller, model and tokens.
    pub spending: Spending,
    /// Its cost; none where the model has no price.
    pub cost: Option<Cost>,
}

/// For whom a run spent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spender {
    /// The account by which the person came; empty on the page and in the terminal.
    pub account: String,
    /// The platform's id of the person; empty where nobody is known.
    pub person: String,
    /// The user.
    pub user: UserId,
}

/// Which spending is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpendingFilter {
    /// That of a thread.
    Thread(ThreadId),
    /// That of a user on the day of this time, in milliseconds, and since.
    UserSince(UserId, i64),
}

/// A sum over runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpendingSum {
    /// The caller's word.
    pub caller: String,
    /// The model's name.
    pub model: String,
    /// Tokens.
    pub usage: Usage,
    /// Number of calls.
    pub calls: i64,
    /// Number of calls whose usage nobody knows.
    pub unreported: i64,
    /// The cost; none where the model had no price.
    pub cost: Option<Cost>,
}

impl Db {
    /// Returns sums by caller, model and currency, the dearest in tokens first.
    pub async fn spending(&self, filter: &SpendingFilter) -> Result<Vec<SpendingSum>, StoreError> {
        let filter = filter.clone();
        self.read(filter, |filter, tx| Box::pin(sums(tx, filter))).await
    }
}

type SumColumns = (String, String, String, i64, i64, i64, i64, i64, i64, i64, i64);

async fn sums(tx: &mut AnyConnection, filter: &SpendingFilter) -> Result<Vec<SpendingSum>, StoreError> {
    const SUMS: &str = "SELECT caller, model, COALESCE(currency, ''), CAST(SUM(calls) AS BIGINT),
        CAST(SUM(unreported) AS BIGINT), CAST(SUM(input) AS BIGINT), CAST(SUM(output) AS BIGINT),
        CAST(SUM(cached) AS BIGINT), CAST(SUM(cache_writes) AS BIGINT), CAST(SUM(reasoning) AS BIGINT),
        CAST(COALESCE(SUM(cost), 0) AS BIGINT) FROM spending WHERE ";
    const GROUPS: &str = " GROUP BY caller, model, COALESCE(currency, '') ORDER BY 6 DESC, 1, 2";
    let clause = match filter {
        SpendingFilter::Thread(_) => "thread = $1",
        SpendingFilter::UserSince(..) => "user_id = $1 AND day >= $2",
    };
    // The text is one of ours, not anybody's input.
    let rows = sqlx::query_as::<_, SumColumns>(AssertSqlSafe(format!("{SUMS}{clause}{GROUPS}")));
    let rows = match filter {
        SpendingFilter::Thread(thread) => rows.bind(thread.as_str()),
        SpendingFilter::UserSince(user, since) => rows.bind(user.as_str()).bind(clock::day(*since)),
    };
    Ok(rows.fetch_all(tx).await?.into_iter().map(sum).collect())
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

/// Stores what a run spent. Said again of a run, it changes nothing.
pub(crate) async fn store(
    tx: &mut WriteTx<'_>,
    run: &RunId,
    spender: &Spender,
    parts: &[PricedSpending],
    now: i64,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO spending (run, thread, account, person, day, caller, model, calls, unreported, input,
        output, cached, cache_writes, reasoning, cost, currency, user_id)
        SELECT id, thread, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, NULLIF($14, -1), NULLIF($15, ''), $16
        FROM runs WHERE id = $1 ON CONFLICT (run, caller, model) DO NOTHING";
    let day = clock::day(now);
    for PricedSpending { spending, cost } in parts {
        let Usage { input, output, cached, cache_writes, reasoning } = spending.usage;
        let insert = query(SQL).bind(run.as_str()).bind(&spender.account).bind(&spender.person).bind(day);
        let insert = insert.bind(spending.caller.as_str()).bind(&spending.model);
        let numbers = [spending.calls, spending.unreported, input, output, cached, cache_writes, reasoning];
        let insert = numbers
            .into_iter()
            .fold(insert, |insert, number| insert.bind(i64::try_from(number).unwrap_or(i64::MAX)));
        let micros = cost.as_ref().map_or(-1, |cost| cost.micros);
        let currency = cost.as_ref().map_or("", |cost| cost.currency.as_str());
        insert.bind(micros).bind(currency).bind(spender.user.as_str()).execute(tx).await?;
    }
    Ok(())
}
