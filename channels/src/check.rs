//! Results of `pudu doctor` for an account.

use std::time::{Duration, SystemTime};

/// Maximum accepted difference between a machine's clock and the platform's. Platforms accept a signed post for five
/// minutes, and some a press for three seconds.
const SKEW: Duration = Duration::from_secs(30);

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The subject of the check, in a few words: `token`, `scope chat:write`.
    pub what: String,
    /// The check's result.
    pub found: CheckResult,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckResult {
    /// The check passed; details without secrets.
    Good(String),
    /// It works, but not everything will.
    Poor {
        /// The missing part.
        why: String,
        /// How to mend it.
        help: String,
    },
    /// The account cannot work like this.
    Bad {
        /// The cause.
        why: String,
        /// How to mend it.
        help: String,
    },
}

impl Check {
    /// It is as it should be.
    #[must_use]
    pub fn good(what: impl Into<String>, how: impl Into<String>) -> Self {
        Self { what: what.into(), found: CheckResult::Good(how.into()) }
    }

    /// It works, but not everything will.
    #[must_use]
    pub fn poor(what: impl Into<String>, why: impl Into<String>, help: impl Into<String>) -> Self {
        Self { what: what.into(), found: CheckResult::Poor { why: why.into(), help: help.into() } }
    }

    /// Compares the platform's clock with this machine's. `why` describes the effect of a difference.
    pub(crate) fn clock(there: SystemTime, here: SystemTime, why: &str) -> Self {
        let apart = there.duration_since(here).unwrap_or_else(|early| early.duration());
        let seconds = apart.as_secs();
        if apart <= SKEW {
            return Self::good("clock", format!("{seconds} s from the platform's"));
        }
        let said = format!("it is {seconds} s from the platform's: {why}");
        Self::poor("clock", said, "set this machine's clock (NTP)")
    }

    /// The platform does not answer; `key` is the setting with its address.
    pub(crate) fn unreachable(key: &str, error: impl std::fmt::Display) -> Self {
        let help = format!("see whether this machine reaches `{key}` (proxy, firewall, DNS)");
        Self::bad("connection", error.to_string(), help)
    }

    /// The account cannot work like this.
    #[must_use]
    pub fn bad(what: impl Into<String>, why: impl Into<String>, help: impl Into<String>) -> Self {
        Self { what: what.into(), found: CheckResult::Bad { why: why.into(), help: help.into() } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_off_is_told_whichever_way() {
        let here = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        for (off, expected) in [
            (30, Check::good("clock", "30 s from the platform's")),
            (
                31,
                Check::poor(
                    "clock",
                    "it is 31 s from the platform's: too late",
                    "set this machine's clock (NTP)",
                ),
            ),
        ] {
            let off = Duration::from_secs(off);
            assert_eq!(Check::clock(here + off, here, "too late"), expected);
            assert_eq!(Check::clock(here - off, here, "too late"), expected);
        }
    }
}
