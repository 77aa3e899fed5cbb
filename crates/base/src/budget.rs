//! Budgets: whose spending is bounded, for how long, and which one is used up.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The one whose spending a budget bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    /// One run.
    Run,
    /// The user that runs work for.
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

/// Period of a budget. It begins again at 00:00 UTC.
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

/// A budget that refused a call: it is used up, or the remaining part does not suffice, or calls under way may use it
/// up. Its words are the English ones of the API and the logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedBudget {
    /// Whose it is.
    pub scope: BudgetScope,
    /// How long it lasts; that of a run ends with the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<BudgetPeriod>,
    /// When it begins again, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens: Option<i64>,
    /// Whether something is left that calls under way may spend: asking in some minutes helps.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub busy: bool,
    /// The figures, where it is not used up and yet does not suffice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<ShortBudget>,
}

/// The figures of a budget that does not suffice for a call: tokens, or millionths of its currency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShortBudget {
    /// The remaining amount.
    pub left: i64,
    /// The whole amount.
    pub limit: i64,
    /// Needed for the prompt and the shortest reply that is worth a call.
    pub needs: i64,
    /// The currency's code; none where tokens are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
}

impl ShortBudget {
    /// Returns whether the call would not fit if nothing were spent: to wait does not help.
    #[must_use]
    pub fn is_too_small(&self) -> bool {
        self.needs > self.limit
    }

    fn amount(&self, amount: i64) -> String {
        match &self.currency {
            None => format!("{amount} tokens"),
            Some(currency) => money(currency, amount),
        }
    }
}

/// Returns an amount of money, in millionths, as far as its digits matter.
#[must_use]
pub fn money(currency: &str, micros: i64) -> String {
    match micros {
        0 => format!("{currency} 0.00"),
        1..10_000 => format!("{currency} 0.{micros:06}"),
        10_000..1_000_000 => format!("{currency} 0.{:04}", micros / 100),
        _ => {
            let hundredths = (micros + 5_000).div_euclid(10_000);
            format!("{currency} {}.{:02}", hundredths / 100, hundredths % 100)
        }
    }
}

impl UsedBudget {
    /// Returns that of a run.
    #[must_use]
    pub fn of_run() -> Self {
        Self { scope: BudgetScope::Run, period: None, opens: None, busy: false, short: None }
    }
}

impl fmt::Display for UsedBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match self.scope {
            BudgetScope::Run => "The budget of this run",
            BudgetScope::Person => "Your budget",
            BudgetScope::Room => "The budget of this room",
            BudgetScope::Account => "The budget of this bot account",
            BudgetScope::Everybody => "The budget of everybody together",
        };
        if self.busy {
            let left = "is not used up, but calls under way may spend the rest";
            return write!(f, "{whose} {left}. Please try again in some minutes.");
        }
        let (period, opens) = match (self.scope, self.period) {
            (BudgetScope::Run, _) => ("", ""),
            (_, Some(BudgetPeriod::Month)) => {
                (" for this month", " It opens again on the first, at 00:00 UTC.")
            }
            (_, Some(BudgetPeriod::Day) | None) => (" for today", " It opens again at 00:00 UTC."),
        };
        match &self.short {
            None => write!(f, "{whose}{period} is used up.{opens}"),
            Some(short) if short.is_too_small() => {
                let (limit, needs) = (short.amount(short.limit), short.amount(short.needs));
                let help = "To wait does not help: /new starts a shorter conversation, and your admin can \
                            raise the limit";
                let key = self.scope.as_str();
                write!(
                    f,
                    "{whose}{period} is {limit} in all, and this answer needs about {needs}. {help} (`budgets.{key}`)."
                )
            }
            Some(short) => {
                let (left, limit) = (short.amount(short.left), short.amount(short.limit));
                write!(f, "{whose}{period} has {left} of {limit} left, too little for another answer.{opens}")
            }
        }
    }
}
