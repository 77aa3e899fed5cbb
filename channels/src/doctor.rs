//! Checks of `pudu doctor` that all platforms share. Each platform provides the facts.

use crate::{
    Check,
    transport::{CallError, ErrorCase},
};
use std::time::{Duration, SystemTime};

/// Maximum accepted difference between this machine's clock and the platform's. Platforms accept a signed request for
/// five minutes, and some accept a button press for only three seconds.
const SKEW: Duration = Duration::from_secs(30);

/// A platform's texts for the operator.
pub(crate) struct DoctorFacts {
    /// Name of the check of the credentials.
    pub(crate) credentials: &'static str,
    /// How to get valid credentials.
    pub(crate) credentials_help: &'static str,
    /// Setting that contains the platform's URL.
    pub(crate) url_key: &'static str,
    /// Effect of a wrong clock.
    pub(crate) clock: &'static str,
    /// How to add a scope or permission, with `{}` for its name.
    pub(crate) grant_help: &'static str,
}

/// A scope of an app.
pub(crate) struct AppScope {
    /// Name of the scope on the platform.
    pub(crate) name: &'static str,
    /// Effect of its absence.
    pub(crate) without: &'static str,
    /// Whether the bot cannot work without it.
    pub(crate) needed: bool,
}

/// Returns a scope that the bot cannot work without.
pub(crate) const fn needed(name: &'static str, without: &'static str) -> AppScope {
    AppScope { name, without, needed: true }
}

/// Returns a scope that the bot can do without.
pub(crate) const fn useful(name: &'static str, without: &'static str) -> AppScope {
    AppScope { name, without, needed: false }
}

impl DoctorFacts {
    /// Reports that the first call failed: the credentials are wrong, or the platform does not answer.
    pub(crate) fn first_call_failed<C: ErrorCase>(&self, error: &CallError<C>) -> Check {
        match error {
            CallError::Auth(why) => Check::bad(self.credentials, why, self.credentials_help),
            other => {
                let help =
                    format!("check that this machine can reach `{}` (proxy, firewall, DNS)", self.url_key);
                Check::bad("connection", other.to_string(), help)
            }
        }
    }

    /// Compares the platform's clock with this machine's.
    pub(crate) fn clock(&self, platform: SystemTime) -> Check {
        compare_clocks(platform, SystemTime::now(), self.clock)
    }

    /// Returns how to add a scope or permission.
    pub(crate) fn help_for(&self, grant: &str) -> String {
        self.grant_help.replace("{}", grant)
    }

    /// Reports a scope that the app lacks.
    pub(crate) fn missing(&self, scope: &AppScope) -> Check {
        let (what, help) = (format!("scope {}", scope.name), self.help_for(scope.name));
        if scope.needed {
            Check::bad(what, scope.without, help)
        } else {
            Check::poor(what, scope.without, help)
        }
    }
}

fn compare_clocks(platform: SystemTime, here: SystemTime, effect: &str) -> Check {
    let apart = platform.duration_since(here).unwrap_or_else(|early| early.duration());
    let seconds = apart.as_secs();
    if apart <= SKEW {
        return Check::good("clock", format!("{seconds} s off the platform's clock"));
    }
    let finding = format!("it is {seconds} s off the platform's clock: {effect}");
    Check::poor("clock", finding, "synchronize this machine's clock, for example with NTP")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::transport::NoCase;
    use std::collections::BTreeSet;

    const FACTS: DoctorFacts = DoctorFacts {
        credentials: "token",
        credentials_help: "copy it",
        url_key: "api_url",
        clock: "too late",
        grant_help: "add {} there",
    };

    /// Checks a platform's facts: no text is empty, and no scope is listed twice.
    pub(crate) fn check_facts(facts: &DoctorFacts, scopes: &[AppScope]) {
        assert!(
            !facts.credentials.is_empty() && !facts.credentials_help.is_empty() && !facts.url_key.is_empty()
        );
        let names: BTreeSet<&str> = scopes.iter().map(|scope| scope.name).collect();
        assert_eq!(names.len(), scopes.len(), "a scope is listed twice");
        for scope in scopes {
            assert!(
                !scope.without.is_empty() && facts.help_for(scope.name).contains(scope.name),
                "{}",
                scope.name
            );
        }
    }

    #[test]
    fn clock_that_is_off_is_reported_in_both_directions() {
        let here = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let poor = Check::poor(
            "clock",
            "it is 31 s off the platform's clock: too late",
            "synchronize this machine's clock, for example with NTP",
        );
        for (off, expected) in [(30, Check::good("clock", "30 s off the platform's clock")), (31, poor)] {
            let off = Duration::from_secs(off);
            assert_eq!(compare_clocks(here + off, here, "too late"), expected);
            assert_eq!(compare_clocks(here - off, here, "too late"), expected);
        }
    }

    #[test]
    fn failures_and_missing_scopes_come_with_help() {
        let failed = |error: CallError<NoCase>| FACTS.first_call_failed(&error);
        assert_eq!(failed(CallError::Auth("no".into())), Check::bad("token", "no", "copy it"));
        let help = "check that this machine can reach `api_url` (proxy, firewall, DNS)";
        assert_eq!(failed(CallError::Unknown("cut".into())), Check::bad("connection", "cut", help));
        assert_eq!(FACTS.missing(&needed("a", "no")), Check::bad("scope a", "no", "add a there"));
        assert_eq!(FACTS.missing(&useful("a", "no")), Check::poor("scope a", "no", "add a there"));
    }
}
