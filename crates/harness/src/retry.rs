//! A model that is asked again when asking again may help.

use futures_util::{StreamExt, stream};
use pudu_base::{Delta, Finish, Message, Model, ModelError, ModelStream, Request, RetryReason};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// The first wait; each next is twice as long.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(500);
/// A person waits no longer than this for one try; if the provider asks for more, that is told at once.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);
/// A request waits no longer, all in all, for a provider that rests or asks for time.
const MAX_TOTAL_WAIT: Duration = Duration::from_secs(10 * 60);

/// When a provider that keeps failing is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestRules {
    /// After so many requests in a row that failed for good.
    pub after: u32,
    /// For so long.
    pub time: Duration,
}

impl Default for RestRules {
    fn default() -> Self {
        Self { after: 5, time: Duration::from_secs(30) }
    }
}

/// Wraps a model: waits and asks again on failures that may pass, honours the provider's own waiting
/// time, and after many failures rests the provider: one request then tries, and the others wait for what
/// comes of it. The count lives as long as the model, so it spans runs.
pub struct Retry {
    model: Arc<dyn Model>,
    tries: u32,
    breaker: Arc<Breaker>,
}

impl Retry {
    /// Wraps a model that is asked again up to `retries` times.
    #[must_use]
    pub fn new(model: Arc<dyn Model>, retries: u32) -> Self {
        Self { model, tries: retries.saturating_add(1), breaker: Arc::default() }
    }

    /// Sets when the provider is left alone.
    #[must_use]
    pub fn with_rest(self, rules: RestRules) -> Self {
        Self { breaker: Arc::new(Breaker { rules, ..Breaker::default() }), ..self }
    }
}

impl Model for Retry {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn context_window(&self) -> u64 {
        self.model.context_window()
    }

    fn supports_vision(&self) -> bool {
        self.model.supports_vision()
    }

    fn stream(&self, request: Request) -> ModelStream {
        let asking = Asking {
            model: self.model.clone(),
            tries: self.tries,
            breaker: self.breaker.clone(),
            request,
            attempt: 0,
            failures: 0,
            began: Instant::now(),
            state: RetryState::Ask(Duration::ZERO),
            spoke: false,
        };
        stream::unfold(asking, |mut asking| async move { Some((asking.next().await?, asking)) }).boxed()
    }
}

/// One request and its tries.
struct Asking {
    model: Arc<dyn Model>,
    tries: u32,
    breaker: Arc<Breaker>,
    request: Request,
    attempt: u32,
    /// Those of the tries that failed without the provider asking for time.
    failures: u32,
    began: Instant,
    state: RetryState,
    /// Whether this try gave words or calls.
    spoke: bool,
}

enum RetryState {
    /// Ask after a wait.
    Ask(Duration),
    /// Ask as soon as the provider does not rest any more; whether that was told.
    Rest(bool),
    /// An answer comes.
    Reading(ModelStream),
    /// Nothing more comes.
    Over,
}

impl Asking {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            match &mut self.state {
                RetryState::Over => return None,
                RetryState::Ask(wait) => {
                    tokio::time::sleep(*wait).await;
                    self.state = RetryState::Rest(false);
                }
                RetryState::Rest(told) => {
                    let told = *told;
                    if let Some(next) = self.rest(told).await {
                        return Some(next);
                    }
                }
                RetryState::Reading(stream) => {
                    let next = stream.next().await;
                    return Some(self.judge(next));
                }
            }
        }
    }

    /// Waits while the provider rests, and asks it then. Tells of it once.
    async fn rest(&mut self, told: bool) -> Option<Result<Delta, ModelError>> {
        let breaker = self.breaker.clone();
        // Made before the look, so that nothing is missed in between.
        let awake = breaker.awake.notified();
        let Some(left) = breaker.admit() else {
            self.attempt += 1;
            self.spoke = false;
            self.state = RetryState::Reading(self.model.stream(self.request.clone()));
            return None;
        };
        if self.began.elapsed() >= MAX_TOTAL_WAIT {
            self.state = RetryState::Over;
            return Some(Err(ModelError::Unreachable("it has failed again and again for a while".into())));
        }
        if told {
            tokio::select! {
                () = tokio::time::sleep(left) => {}
                () = awake => {}
            }
            return None;
        }
        self.state = RetryState::Rest(true);
        let reason = RetryReason::Resting;
        Some(Ok(Delta::Again { attempt: self.attempt.max(1), wait: left, reason }))
    }

    fn judge(&mut self, next: Option<Result<Delta, ModelError>>) -> Result<Delta, ModelError> {
        match next {
            // What a filter or a limit ended before a word came ends there the next time, too.
            // Behind results the same request would end so again: that is for `TerminalResponse`.
            Some(Ok(Delta::Finish(Finish::Complete))) if !self.spoke && asks_first(&self.request) => {
                self.again(ModelError::Garbled("an empty answer".into()))
            }
            Some(Ok(delta)) => {
                self.spoke |= matches!(delta, Delta::Text(_) | Delta::Call(_));
                if matches!(delta, Delta::Finish(_)) {
                    self.breaker.worked();
                    self.state = RetryState::Over;
                }
                Ok(delta)
            }
            Some(Err(error)) => self.again(error),
            None => self.again(ModelError::Unreachable("the answer was cut".into())),
        }
    }

    /// Decides whether another try is made, and tells the reader.
    fn again(&mut self, error: ModelError) -> Result<Delta, ModelError> {
        let asked = match &error {
            ModelError::Busy { retry_after, .. } => *retry_after,
            _ => None,
        };
        // Who asks for time works; that is no reason to fail, but some day the person wants to know.
        let is_over = match asked {
            Some(asked) => asked > MAX_RETRY_DELAY || self.began.elapsed() + asked > MAX_TOTAL_WAIT,
            None => {
                self.failures += 1;
                self.failures >= self.tries
            }
        };
        if !error.retriable() || is_over {
            self.state = RetryState::Over;
            self.breaker.failed(&error);
            return Err(error);
        }
        let wait = wait(asked, self.attempt, self.tries);
        self.state = RetryState::Ask(wait);
        Ok(Delta::Again { attempt: self.attempt, wait, reason: RetryReason::from(&error) })
    }
}

/// Returns how long to wait: as long as the provider asks, and longer each time where that does not help.
fn wait(asked: Option<Duration>, attempt: u32, tries: u32) -> Duration {
    let own = |steps: u32| FIRST_RETRY_DELAY.saturating_mul(2u32.saturating_pow(steps)).min(MAX_RETRY_DELAY);
    match asked {
        Some(asked) if attempt < tries => asked,
        Some(asked) => asked.max(own(attempt - tries)),
        None => own(attempt.saturating_sub(1)),
    }
}

/// Rests a provider that keeps failing.
#[derive(Debug, Default)]
struct Breaker {
    rules: RestRules,
    circuit: Mutex<Circuit>,
    /// Rings when it works again.
    awake: Notify,
}

#[derive(Debug, Default)]
struct Circuit {
    failures: u32,
    rests_until: Option<Instant>,
}

impl Breaker {
    /// Lets a request through, or says how long the provider rests still. One request after the rest is the probe.
    fn admit(&self) -> Option<Duration> {
        let mut circuit = self.circuit.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, now) = (circuit.rests_until?, Instant::now());
        if now < until {
            return Some(until - now);
        }
        circuit.rests_until = Some(now + self.rules.time);
        None
    }

    fn worked(&self) {
        *self.circuit.lock().unwrap_or_else(PoisonError::into_inner) = Circuit::default();
        self.awake.notify_waiters();
    }

    fn failed(&self, error: &ModelError) {
        // What is wrong with one request or key, or a wish to wait, says nothing about the provider's health.
        if !error.retriable() {
            // It has answered.
            return self.worked();
        }
        if matches!(error, ModelError::Busy { retry_after: Some(_), .. }) {
            return;
        }
        let mut circuit = self.circuit.lock().unwrap_or_else(PoisonError::into_inner);
        circuit.failures += 1;
        if circuit.failures >= self.rules.after {
            circuit.rests_until = Some(Instant::now() + self.rules.time);
        }
    }
}

/// Returns whether a request ends with a person's words.
fn asks_first(request: &Request) -> bool {
    request.messages.last().is_none_or(|message| matches!(**message, Message::Human(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    const TRIES: u32 = 4;

    type DeltaScript = Vec<Result<Delta, ModelError>>;

    /// A model that answers each call with the next of its replies.
    struct RetryScript(Mutex<VecDeque<DeltaScript>>);

    impl Model for RetryScript {
        fn name(&self) -> &'static str {
            "scripted"
        }

        fn stream(&self, _: Request) -> ModelStream {
            let reply = self.0.lock().unwrap().pop_front().expect("no reply left");
            stream::iter(reply).boxed()
        }
    }

    fn model(replies: Vec<DeltaScript>) -> Retry {
        Retry::new(Arc::new(RetryScript(Mutex::new(replies.into()))), TRIES - 1)
    }

    fn text(text: &str) -> Result<Delta, ModelError> {
        Ok(Delta::Text(text.into()))
    }

    fn finish() -> Result<Delta, ModelError> {
        Ok(Delta::Finish(Finish::Complete))
    }

    fn busy(after: Option<u64>) -> ModelError {
        ModelError::Busy { retry_after: after.map(Duration::from_secs), detail: "slow".into() }
    }

    fn again(attempt: u32, wait: u64, reason: RetryReason) -> Result<Delta, ModelError> {
        Ok(Delta::Again { attempt, wait: Duration::from_millis(wait), reason })
    }

    async fn ask(model: &Retry) -> DeltaScript {
        model.stream(Request::default()).collect().await
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_pass_is_asked_again_and_the_providers_wait_is_honoured() {
        let model = model(vec![
            vec![Err(busy(Some(7)))],
            vec![text("Hel")],
            vec![finish()],
            vec![text("Hello"), finish()],
        ]);
        let start = Instant::now();
        let expect = vec![
            again(1, 7_000, RetryReason::Busy),
            text("Hel"),
            again(2, 1_000, RetryReason::Unreachable),
            again(3, 2_000, RetryReason::Garbled),
            text("Hello"),
            finish(),
        ];
        assert_eq!(ask(&model).await, expect);
        assert_eq!(start.elapsed(), Duration::from_secs(10));
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_pass_soon_is_not_asked_again() {
        for error in [ModelError::Auth("no".into()), busy(Some(61))] {
            let model = model(vec![vec![Err(error.clone())]]);
            assert_eq!(ask(&model).await, [Err(error)]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_that_keeps_failing_rests_and_is_then_probed() {
        let mut replies = vec![vec![Err(busy(None))]; (TRIES * RestRules::default().after) as usize];
        replies.push(vec![text("back"), finish()]);
        replies.push(vec![text("on"), finish()]);
        let model = model(replies);
        for _ in 0..RestRules::default().after {
            assert_eq!(ask(&model).await.pop(), Some(Err(busy(None))));
        }
        let start = Instant::now();
        let waits = || again(1, 30_000, RetryReason::Resting);
        let (one, two) = tokio::join!(ask(&model), ask(&model));
        let first = [waits(), text("back"), finish()];
        let (first, second) = if one == first { (one, two) } else { (two, one) };
        assert_eq!(first, [waits(), text("back"), finish()]);
        assert_eq!(second, [waits(), text("on"), finish()], "it need not rest once more: the first tried");
        assert_eq!(start.elapsed(), RestRules::default().time);
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_that_asks_for_time_is_waited_for_but_not_for_ever() {
        let busy_for = |seconds, count| vec![vec![Err(busy(Some(seconds)))]; count];
        let mut replies = busy_for(2, 9);
        replies.push(vec![text("at last"), finish()]);
        assert_eq!(ask(&model(replies)).await.pop(), Some(finish()));
        let stubborn = model(busy_for(60, 100));
        let start = Instant::now();
        assert_eq!(ask(&stubborn).await.pop(), Some(Err(busy(Some(60)))));
        assert!(
            (MAX_TOTAL_WAIT - MAX_RETRY_DELAY..=MAX_TOTAL_WAIT).contains(&start.elapsed()),
            "{:?}",
            start.elapsed()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_filter_or_a_limit_ended_is_not_asked_again() {
        for why in [Finish::Filtered, Finish::Length] {
            let model = model(vec![vec![Ok(Delta::Finish(why))]]);
            assert_eq!(ask(&model).await, [Ok(Delta::Finish(why))]);
        }
    }
}
