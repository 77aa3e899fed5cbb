//! A call of a model, and its cost.

use pudu_base::{ModelCaller, RunId, ThreadId, Usage, UserId};

/// Money in millionths of a currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The currency's code, such as `USD`.
    pub currency: String,
    /// The amount, in millionths of the currency.
    pub micros: i64,
}

/// The person and user that a run spent for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spender {
    /// The account by which the person came; empty on the page and in the terminal.
    pub account: String,
    /// The platform's id of the person; empty if unknown.
    pub person: String,
    /// The user.
    pub user: UserId,
    /// The room in which they asked, if it was one.
    pub room: Option<UserId>,
}

/// A call of a model, and its beneficiary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCall {
    /// Its id: spending is counted only once under one.
    pub id: String,
    /// The run for which it is made.
    pub run: RunId,
    /// The thread of that.
    pub thread: ThreadId,
    /// The person and user that the run works for.
    pub spender: Spender,
    /// The caller.
    pub caller: ModelCaller,
    /// When it began, in milliseconds since 1970: it counts for that day.
    pub at: i64,
}

/// Spending of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSpending {
    /// The model that answered.
    pub model: String,
    /// Tokens, as reported by the provider, or as estimated.
    pub usage: Usage,
    /// Whether the provider reported them.
    pub reported: bool,
    /// Its cost; none where the model has no price.
    pub cost: Option<Cost>,
}

/// Maximum amount of one call that is counted, in tokens or in millionths of a currency. A provider may report any
/// number, and no sum of these amounts overflows.
const MAX_AMOUNT: i64 = 1_000_000_000_000;

/// Returns a number of tokens as a column takes it.
pub(super) fn tokens(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(MAX_AMOUNT).min(MAX_AMOUNT)
}

impl Cost {
    /// Returns the amount as a column takes it.
    pub(super) fn column(&self) -> i64 {
        self.micros.clamp(-MAX_AMOUNT, MAX_AMOUNT)
    }
}

/// Returns the SQL of a column's sum. Rows of older versions hold numbers of any size.
pub(crate) fn total(column: &str) -> String {
    format!(
        "CAST(COALESCE(SUM(CASE WHEN {column} > {MAX_AMOUNT} THEN {MAX_AMOUNT} ELSE {column} END), 0) AS BIGINT)"
    )
}
