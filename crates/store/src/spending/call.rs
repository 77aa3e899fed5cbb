//! A call of a model, and what it cost.

use pudu_base::{ModelCaller, RunId, ThreadId, Usage, UserId};

/// Money in millionths of a currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The currency's code, such as `USD`.
    pub currency: String,
    /// Millionths of it.
    pub micros: i64,
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
    /// The room in which they asked, if it was one.
    pub room: Option<UserId>,
}

/// A call of a model, and for whom it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCall {
    /// Its id: nothing is counted twice under one.
    pub id: String,
    /// The run for which it is made.
    pub run: RunId,
    /// The thread of that.
    pub thread: ThreadId,
    /// For whom that works.
    pub spender: Spender,
    /// The caller.
    pub caller: ModelCaller,
    /// When it began, in milliseconds since 1970: it counts for that day.
    pub at: i64,
}

/// What a call cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSpending {
    /// The model that answered.
    pub model: String,
    /// Tokens, as the provider told them, or as they were estimated.
    pub usage: Usage,
    /// Whether the provider told them.
    pub reported: bool,
    /// Its cost; none where the model has no price.
    pub cost: Option<Cost>,
}

/// Returns a number of tokens as a column takes it.
pub(super) fn tokens(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
