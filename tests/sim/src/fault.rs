//! What goes wrong, and when: rules that pick calls, and stops at which a test takes over.

use crate::{
    calls::Call,
    gate::{Hold, Stop},
};
use std::time::Duration;

/// A failure of the platform or of the way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// 429 with so many seconds to wait; no effect.
    TooMany(u64),
    /// An error answer in the platform's form; no effect.
    Refused(u16, String),
    /// 500 in the platform's form; no effect.
    Internal,
    /// 502 with a page of HTML, as a proxy answers; no effect.
    BadGateway,
    /// The connection closes without an answer; no effect.
    CutBefore,
    /// The connection closes without an answer, though what was asked is done.
    CutAfter,
    /// No answer comes, and the connection stays open until the client gives up; no effect.
    Silent,
    /// The call is done, after a pause.
    Delay(Duration),
    /// The call is done, but its answer is no JSON.
    Garbage,
}

/// On which side of a call's effect a stop stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The call has come, and nothing has happened yet. Cut here, it never does.
    Before,
    /// What was asked is done and everyone in the chat sees it; the answer is withheld.
    After,
}

/// Which of the matching calls a rule picks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pick {
    /// The nth from now on, counted from 1, and then the rule is spent.
    Nth(u64),
    /// Each with this chance.
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

/// What happens to one call.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) fault: Option<Fault>,
    pub(crate) before: Vec<Stop<Call>>,
    pub(crate) after: Vec<Stop<Call>>,
}

/// The rules in force.
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

    /// Asks every rule about a call. The first fault wins; all stops stand.
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

/// What the record names besides calls of an API: what is said over a connection that is open already.
const ON_SOCKETS: [&str; 4] = ["ack", "identify", "resume", "ws.connect"];

/// The calls that a rule concerns.
enum Which {
    Any,
    /// The calls of the API: what a platform's outage fails, while connections for events stay.
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
