//! Budgets: their scopes and periods, and the report of an exhausted one.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Scope of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    /// One run.
    Run,
    /// One user.
    Person,
    /// One group chat.
    Room,
    /// One bot.
    Account,
    /// All runs together.
    Everybody,
}

impl BudgetScope {
    /// Returns its name in tables and in the API.
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

/// Period of a budget. Periods begin at 00:00 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetPeriod {
    /// A day.
    Day,
    /// A calendar month.
    Month,
}

impl BudgetPeriod {
    /// Returns its name in tables and in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }
}

/// A budget that refused a call: it is used up, too small for the call, or reserved by answers in progress. `Display`
/// gives the English text of the API and the logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedBudget {
    /// The scope.
    pub scope: BudgetScope,
    /// The period. The budget of a run has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<BudgetPeriod>,
    /// When it resets, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens: Option<i64>,
    /// Whether answers in progress have reserved the remaining amount. A new attempt in a few minutes may succeed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub busy: bool,
    /// The figures, if something is left but not enough for the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<ShortBudget>,
}

/// The figures of a budget that is too small for a call: in tokens, or in millionths of its currency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShortBudget {
    /// The remaining amount.
    pub left: i64,
    /// The whole amount.
    pub limit: i64,
    /// The amount needed for the prompt and the shortest useful reply.
    pub needs: i64,
    /// The currency's code; `None` if the amounts are tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
}

impl ShortBudget {
    /// Returns whether the call exceeds even the unspent budget, so that waiting does not help.
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

/// Formats an amount of money, in millionths. Smaller amounts get more decimals.
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
    /// Returns the exhausted budget of a run.
    #[must_use]
    pub fn of_run() -> Self {
        Self { scope: BudgetScope::Run, period: None, opens: None, busy: false, short: None }
    }
}

/// Returns the period of a limit, as a suffix to the amount.
fn per(scope: BudgetScope, period: Option<BudgetPeriod>) -> &'static str {
    match (scope, period) {
        (BudgetScope::Run, _) => "",
        (_, Some(BudgetPeriod::Month)) => " per month",
        (_, Some(BudgetPeriod::Day) | None) => " per day",
    }
}

impl fmt::Display for UsedBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = match self.scope {
            BudgetScope::Run => "The budget of this run",
            BudgetScope::Person => "Your budget",
            BudgetScope::Room => "The budget of this room",
            BudgetScope::Account => "The budget of this bot",
            BudgetScope::Everybody => "The shared budget of all users",
        };
        if self.busy {
            let left = "is not used up, but other answers in progress may spend the rest";
            return write!(f, "{subject} {left}. Try again in a few minutes.");
        }
        let (period, opens) = match (self.scope, self.period) {
            (BudgetScope::Run, _) => ("", ""),
            (_, Some(BudgetPeriod::Month)) => (" for this month", " It resets on the first, at 00:00 UTC."),
            (_, Some(BudgetPeriod::Day) | None) => (" for today", " It resets at 00:00 UTC."),
        };
        match &self.short {
            None => write!(f, "{subject}{period} is used up.{opens}"),
            Some(short) if short.is_too_small() => {
                let (limit, needs) = (short.amount(short.limit), short.amount(short.needs));
                let help = "Waiting does not help: /new starts a shorter conversation, and your admin can raise \
                            the limit";
                let (key, per) = (self.scope.as_str(), per(self.scope, self.period));
                let subject = if per.is_empty() { "The budget of each run" } else { subject };
                write!(
                    f,
                    "{subject} is {limit}{per}, and this answer needs about {needs}. {help} (`budgets.{key}`)."
                )
            }
            Some(short) => {
                let (left, limit) = (short.amount(short.left), short.amount(short.limit));
                write!(
                    f,
                    "{subject}{period} has {left} of {limit} left, too little for another answer.{opens}"
                )
            }
        }
    }
}
