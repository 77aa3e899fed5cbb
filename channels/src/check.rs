//! Results of `pudu doctor` for a bot.

/// One check and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Subject of the check: `token`, `scope chat:write`.
    pub what: String,
    /// The check's result.
    pub found: CheckResult,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckResult {
    /// The check passed. The details contain no secrets.
    Good(String),
    /// The bot works, but some feature does not.
    Poor {
        /// The missing part.
        why: String,
        /// How to fix it.
        help: String,
    },
    /// The bot cannot work.
    Bad {
        /// The cause.
        why: String,
        /// How to fix it.
        help: String,
    },
}

impl Check {
    /// Creates a check that passed.
    #[must_use]
    pub fn good(what: impl Into<String>, how: impl Into<String>) -> Self {
        Self { what: what.into(), found: CheckResult::Good(how.into()) }
    }

    /// Creates the check of a bot that works, except for some feature.
    #[must_use]
    pub fn poor(what: impl Into<String>, why: impl Into<String>, help: impl Into<String>) -> Self {
        Self { what: what.into(), found: CheckResult::Poor { why: why.into(), help: help.into() } }
    }

    /// Creates the check of a bot that cannot work.
    #[must_use]
    pub fn bad(what: impl Into<String>, why: impl Into<String>, help: impl Into<String>) -> Self {
        Self { what: what.into(), found: CheckResult::Bad { why: why.into(), help: help.into() } }
    }
}
