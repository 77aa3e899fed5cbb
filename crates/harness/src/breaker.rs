//! Guards that all calls to model providers share: a circuit breaker per provider address, which stops requests to a
//! provider that keeps failing, and a limit on concurrent calls. They live as long as the process, so a change of the
//! configuration does not reset the failure counts.

use pudu_base::ModelError;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, Semaphore},
    time::Instant,
};

/// Rules for resting a provider that keeps failing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestRules {
    /// Number of consecutive requests that have to fail before the provider rests.
    pub after: u32,
    /// Duration of the rest.
    pub time: Duration,
}

impl Default for RestRules {
    fn default() -> Self {
        Self { after: 5, time: Duration::from_secs(30) }
    }
}

/// Guards of all models of a process.
#[derive(Debug, Default)]
pub struct ModelGuards {
    rules: Arc<Mutex<RestRules>>,
    breakers: Mutex<BTreeMap<String, Arc<Breaker>>>,
    calls: Mutex<CallBound>,
}

/// Limit on concurrent calls.
#[derive(Debug, Default)]
struct CallBound {
    most: u32,
    permits: Option<Arc<Semaphore>>,
}

impl ModelGuards {
    /// Sets the rules, which also apply to providers that are already resting. A `max_calls` of 0 means no limit. When
    /// the limit changes, calls in progress count towards the old one.
    pub fn set(&self, rules: RestRules, max_calls: u32) {
        *locked(&self.rules) = rules;
        let mut calls = locked(&self.calls);
        if calls.most != max_calls {
            let permits = (max_calls > 0).then(|| Arc::new(Semaphore::new(max_calls as usize)));
            *calls = CallBound { most: max_calls, permits };
        }
    }

    /// Returns the breaker of a provider's address. Breakers of addresses that no model uses any longer are dropped.
    pub(crate) fn breaker(&self, address: &str) -> Arc<Breaker> {
        let mut breakers = locked(&self.breakers);
        breakers.retain(|known, breaker| known == address || Arc::strong_count(breaker) > 1);
        let new_breaker = || Arc::new(Breaker { rules: self.rules.clone(), ..Breaker::default() });
        breakers.entry(address.to_owned()).or_insert_with(new_breaker).clone()
    }

    pub(crate) fn calls(&self) -> Option<Arc<Semaphore>> {
        locked(&self.calls).permits.clone()
    }
}

/// Lets a provider that keeps failing rest. After the rest, one request probes it while the others wait for the result.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    rules: Arc<Mutex<RestRules>>,
    circuit: Mutex<Circuit>,
    /// Notified when the provider works again.
    pub(crate) awake: Notify,
}

#[derive(Debug, Default)]
struct Circuit {
    failures: u32,
    rests_until: Option<Instant>,
}

impl Breaker {
    /// Admits a request, or returns the remaining rest time. One request after the rest is the probe.
    pub(crate) fn admit(&self) -> Option<Duration> {
        let time = locked(&self.rules).time;
        let mut circuit = locked(&self.circuit);
        let (until, now) = (circuit.rests_until?, Instant::now());
        if now < until {
            return Some(until - now);
        }
        circuit.rests_until = Some(now + time);
        None
    }

    pub(crate) fn on_success(&self) {
        *locked(&self.circuit) = Circuit::default();
        self.awake.notify_waiters();
    }

    pub(crate) fn on_failure(&self, error: &ModelError) {
        // An error in one request or key, or a rate limit, does not mean that the provider is failing.
        if !error.retriable() {
            // The provider has answered.
            return self.on_success();
        }
        if matches!(error, ModelError::Busy { retry_after: Some(_), .. }) {
            return;
        }
        let rules = *locked(&self.rules);
        let mut circuit = locked(&self.circuit);
        circuit.failures += 1;
        if circuit.failures >= rules.after {
            circuit.rests_until = Some(Instant::now() + rules.time);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_breaker_belongs_to_the_address_and_outlives_the_models() {
        let guards = ModelGuards::default();
        guards.set(RestRules { after: 1, time: Duration::from_secs(9) }, 0);
        let down = || ModelError::Unreachable("down".into());
        let one = guards.breaker("https://a");
        one.on_failure(&down());
        let again = guards.breaker("https://a");
        drop(one);
        assert_eq!(again.admit(), Some(Duration::from_secs(9)), "new models share the failure");
        assert_eq!(guards.breaker("https://b").admit(), None);
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(again.admit(), None, "one request is let through");
        assert_eq!(again.admit(), Some(Duration::from_secs(9)));
        guards.set(RestRules { after: 9, time: Duration::from_secs(1) }, 0);
        again.on_success();
        again.on_failure(&down());
        assert_eq!(again.admit(), None, "new rules apply immediately");
    }

    #[test]
    fn the_limit_on_calls_persists_until_it_changes() {
        let guards = ModelGuards::default();
        assert!(guards.calls().is_none());
        guards.set(RestRules::default(), 2);
        let permits = guards.calls().unwrap();
        guards.set(RestRules::default(), 2);
        assert!(Arc::ptr_eq(&permits, &guards.calls().unwrap()));
        guards.set(RestRules::default(), 0);
        assert!(guards.calls().is_none());
    }
}
