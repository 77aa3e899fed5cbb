//! Budgets: whose spending is bounded, for how long, and which one is used up.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The one whose spending a budget bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    /// One run.
    Run,
    /// The user for whom runs work.
    Person,
    /// The room in which they are asked.
    Room,
    /// The account by which they came.
    Account,
    /// All runs together.
    Everybody,
}

impl BudgetScope {
    /// Returns the word for it in tables and in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Person => "person",
            Self::Room => "room",
            Self::Account => "account",
            Self::Everybody => "everybody",
        }
    }
}

/// How long a budget lasts until it begins anew, at 00:00 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetPeriod {
    /// A day.
    Day,
    /// A month of the calendar.
    Month,
}

impl BudgetPeriod {
    /// Returns the word for it in tables and in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }
}

/// A budget that is used up, or that calls under way may use up. Its words are the English ones of the API and the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedBudget {
    /// Whose it is.
    pub scope: BudgetScope,
    /// How long it lasts; that of a run ends with the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<BudgetPeriod>,
    /// When it begins anew, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens: Option<i64>,
    /// Whether something is left that calls under way may spend: asking in some minutes helps.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub busy: bool,
}

impl UsedBudget {
    /// Returns that of a run.
    #[must_use]
    pub fn of_run() -> Self {
        Self { scope: BudgetScope::Run, period: None, opens: None, busy: false }
    }
}

impl fmt::Display for UsedBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match self.scope {
            BudgetScope::Run if !self.busy => return f.write_str("The budget of this run is used up."),
            BudgetScope::Run => "The budget of this run",
            BudgetScope::Person => "Your budget",
            BudgetScope::Room => "The budget of this room",
            BudgetScope::Account => "The budget of this account",
            BudgetScope::Everybody => "The budget of everybody together",
        };
        match self.period {
            _ if self.busy => {
                let left = "is not used up, but calls under way may spend all that is left of it";
                write!(f, "{whose} {left}. Please try again in some minutes.")
            }
            Some(BudgetPeriod::Month) => {
                write!(f, "{whose} for this month is used up. It opens again on the first, at 00:00 UTC.")
            }
            Some(BudgetPeriod::Day) | None => {
                write!(f, "{whose} for today is used up. It opens again at 00:00 UTC.")
            }
        }
    }
}
