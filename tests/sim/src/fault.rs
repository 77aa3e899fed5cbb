//! Planned failures: rules that match calls, and stops at which a test takes over.

use crate::{
    calls::Call,
    gate::{Hold, Stop},
};
use std::time::Duration;

/// A failure of the platform or of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// 429 with this number of seconds to wait; no effect.
    TooMany(u64),
    /// An error response in the platform's format; no effect.
    Refused(u16, String),
    /// 500 in the platform's format; no effect.
    Internal,
    /// 502 with an HTML page, like a proxy; no effect.
    BadGateway,
    /// The connection closes without a response; no effect.
    CutBefore,
    /// The connection closes without a response, after the effect.
    CutAfter,
    /// No response, and the connection stays open until the client gives up; no effect.
    Silent,
    /// The call takes effect after a pause.
    Delay(Duration),
    /// The call takes effect, but its response is not JSON.
    Garbage,
}

/// Position of a stop relative to a call's effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The call has arrived, and has had no effect. If cut here, it never has.
    Before,
    /// The call has taken effect, visible in the chat; the response is withheld.
    After,
}

/// Selection among the matching calls.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pick {
    /// The nth from now on, counted from 1; the rule applies once.
    Nth(u64),
    /// Each with this probability.
    Chance(f64),
}

struct Rule {
    which: Which,
    pick: Pick,
    seen: u64,
    act: Act,
}

enum Act {
    Fail(Fault),
    Stop(When, Option<Stop<Call>>),
}

/// Planned failure and stops of one call.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) fault: Option<Fault>,
    pub(crate) before: Vec<Stop<Call>>,
    pub(crate) after: Vec<Stop<Call>>,
}

/// Active rules.
pub(crate) struct Faults {
    rules: Vec<Rule>,
    random: fastrand::Rng,
}

impl Faults {
    pub(crate) fn new(seed: u64) -> Self {
        Self { rules: Vec::new(), random: fastrand::Rng::with_seed(seed) }
    }

    pub(crate) fn fail_nth(&mut self, method: &str, nth: u64, fault: Fault) {
        self.add(method, Pick::Nth(nth), Act::Fail(fault));
    }

    pub(crate) fn fail_often(&mut self, method: &str, chance: f64, fault: Fault) {
        self.add(method, Pick::Chance(chance), Act::Fail(fault));
    }

    pub(crate) fn stop(&mut self, method: &str, nth: u64, when: When, stop: Stop<Call>) {
        self.add(method, Pick::Nth(nth), Act::Stop(when, Some(stop)));
    }

    pub(crate) fn hold(&mut self, method: &str, nth: u64, when: When) -> Hold<Call> {
        let (stop, hold) = Stop::gate();
        self.stop(method, nth, when, stop);
        hold
    }

    pub(crate) fn clear(&mut self) {
        self.rules.clear();
    }

    fn add(&mut self, method: &str, pick: Pick, act: Act) {
        self.rules.push(Rule { which: Which::named(method), pick, seen: 0, act });
    }

    /// Applies all rules to a call. The first failure wins; all stops apply.
    pub(crate) fn plan(&mut self, method: &str) -> Plan {
        let mut plan = Plan::default();
        let random = &mut self.random;
        for rule in self.rules.iter_mut().filter(|rule| rule.concerns(method)) {
            rule.seen += 1;
            let picked = match rule.pick {
                Pick::Nth(nth) => rule.seen == nth,
                Pick::Chance(chance) => random.f64() < chance,
            };
            if picked {
                rule.act.join(&mut plan);
            }
        }
        self.rules.retain(|rule| !matches!(rule.pick, Pick::Nth(nth) if rule.seen >= nth));
        plan
    }
}

impl Rule {
    fn concerns(&self, method: &str) -> bool {
        match &self.which {
            Which::Any => true,
            Which::Api => !ON_SOCKETS.contains(&method),
            Which::Named(own) => own.eq_ignore_ascii_case(method),
        }
    }
}

/// Names in the record that are not calls of an API: messages on open connections.
const ON_SOCKETS: [&str; 4] = ["ack", "identify", "resume", "ws.connect"];

/// Calls that a rule matches.
enum Which {
    Any,
    /// Calls of the API: they fail in a platform's outage, while event connections stay open.
    Api,
    Named(String),
}

impl Which {
    fn named(method: &str) -> Self {
        match method {
            "*" => Self::Any,
            "api" => Self::Api,
            _ => Self::Named(method.to_owned()),
        }
    }
}

impl Act {
    fn join(&mut self, plan: &mut Plan) {
        match self {
            Self::Fail(fault) => plan.fault = plan.fault.take().or_else(|| Some(fault.clone())),
            Self::Stop(When::Before, stop) => plan.before.extend(stop.take()),
            Self::Stop(When::After, stop) => plan.after.extend(stop.take()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(faults: &mut Faults, method: &str) -> Option<Fault> {
        faults.plan(method).fault
    }

    #[test]
    fn the_nth_call_from_now_fails_and_no_other() {
        let mut faults = Faults::new(1);
        faults.fail_nth("sendMessage", 2, Fault::Internal);
        assert_eq!(planned(&mut faults, "sendMessage"), None);
        assert_eq!(planned(&mut faults, "getMe"), None);
        assert_eq!(planned(&mut faults, "SendMessage"), Some(Fault::Internal));
        assert_eq!(planned(&mut faults, "sendMessage"), None);
    }

    #[test]
    fn a_seed_gives_the_same_failures_again() {
        let failures = |seed| {
            let mut faults = Faults::new(seed);
            faults.fail_often("*", 0.3, Fault::Garbage);
            (0..200).map(|_| planned(&mut faults, "getMe").is_some()).collect::<Vec<_>>()
        };
        assert_eq!(failures(7), failures(7));
        assert_ne!(failures(7), failures(8));
        let count = failures(7).into_iter().filter(|failed| *failed).count();
        assert!((40..=80).contains(&count), "{count} of 200 at 0.3");
    }
}
