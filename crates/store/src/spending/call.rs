//! A model call and its cost.

use pudu_base::{ModelCaller, RunId, ThreadId, Usage, UserId};

/// Money in millionths of a currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The currency's code, such as `USD`.
    pub currency: String,
    /// The amount, in millionths of the currency.
    pub micros: i64,
}

/// The person and user on whose behalf a run spends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spender {
    /// The person's bot, or `api` for runs of API clients, or `local`; empty if unknown.
    pub account: String,
    /// The platform's id of the person; empty if unknown.
    pub person: String,
    /// The user.
    pub user: UserId,
    /// The room of the request, if any.
    pub room: Option<UserId>,
}

/// A model call, and on whose behalf it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCall {
    /// Its id, under which spending is counted only once.
    pub id: String,
    /// The run that makes it.
    pub run: RunId,
    /// The thread of the run.
    pub thread: ThreadId,
    /// The person and user on whose behalf the run works.
    pub spender: Spender,
    /// The caller.
    pub caller: ModelCaller,
    /// Time when it began, in milliseconds since 1970. It counts towards that day.
    pub at: i64,
}

/// Spending of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSpending {
    /// The model that answered.
    pub model: String,
    /// Tokens, reported by the provider or estimated.
    pub usage: Usage,
    /// Whether the provider reported them.
    pub reported: bool,
    /// Its cost; `None` if the model has no price.
    pub cost: Option<Cost>,
}

/// Maximum amount that is counted for one call, in tokens or in millionths of a currency. Without it, sums could
/// overflow, because a provider may report any number.
const MAX_AMOUNT: i64 = 1_000_000_000_000;

/// Returns a number of tokens, limited for storage in a column.
pub(super) fn tokens(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(MAX_AMOUNT).min(MAX_AMOUNT)
}

impl Cost {
    /// Returns the amount, limited for storage in a column.
    pub(super) fn column(&self) -> i64 {
        self.micros.clamp(-MAX_AMOUNT, MAX_AMOUNT)
    }
}

/// Returns the SQL for the sum of a column. Rows of older versions can contain numbers of any size.
pub(crate) fn total(column: &str) -> String {
    format!(
        "CAST(COALESCE(SUM(CASE WHEN {column} > {MAX_AMOUNT} THEN {MAX_AMOUNT} ELSE {column} END), 0) AS BIGINT)"
    )
}
