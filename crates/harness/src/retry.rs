//! A model wrapper that retries failed requests if a retry may help.

use crate::breaker::{Breaker, ModelGuards};
use futures_util::{StreamExt, stream};
use pudu_base::{Delta, Model, ModelError, ModelStream, Request, RetryReason};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

/// Texts in errors about a request rate that grows too fast. Such errors require a longer pause than others.
const BURSTS: [&str; 5] =
    ["limit_burst_rate", "rate increased too quickly", "burst rate", "请求速率增长过快", "突发速率"];
/// Maximum number of attempts on such an error.
const BURST_ATTEMPTS: u32 = 2;

/// How often and when a failed request is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryRules {
    /// Maximum number of attempts, including the first.
    pub attempts: u32,
    /// Shortest wait.
    pub base: Duration,
    /// Longest wait, unless the provider asks for more.
    pub cap: Duration,
    /// Shortest wait after a rate limit error.
    pub burst_base: Duration,
    /// Maximum time that a request waits, counted from its first attempt. A wait that would exceed it is not begun.
    pub patience: Duration,
}

impl Default for RetryRules {
    fn default() -> Self {
        Self {
            attempts: 3,
            base: Duration::from_secs(1),
            cap: Duration::from_secs(8),
            burst_base: Duration::from_secs(5),
            patience: Duration::from_secs(60),
        }
    }
}

impl RetryRules {
    /// Returns a random wait that spreads requests that failed together: between the shortest wait and three times the
    /// previous one, up to the longest.
    fn jitter(&self, base: Duration, before: Duration) -> Duration {
        let least = base.min(self.cap.max(base));
        let longest = before.max(base).saturating_mul(3).min(self.cap.max(base)).max(least);
        least + (longest - least).mul_f64(fastrand::f64())
    }
}

/// Wraps a model: waits and retries on transient failures, honours the provider's own waiting time, and rests the
/// provider after many failures.
pub struct Retry {
    model: Arc<dyn Model>,
    rules: RetryRules,
    breaker: Arc<Breaker>,
    calls: Option<Arc<Semaphore>>,
    waits_for_rest: bool,
}

impl Retry {
    /// Wraps a model of the provider at this address.
    #[must_use]
    pub fn new(model: Arc<dyn Model>, rules: RetryRules, guards: &ModelGuards, address: &str) -> Self {
        Self { model, rules, breaker: guards.breaker(address), calls: guards.calls(), waits_for_rest: true }
    }

    /// Makes requests fail immediately while the provider rests, because another model can be called.
    #[must_use]
    pub fn without_waiting_for_rest(self) -> Self {
        Self { waits_for_rest: false, ..self }
    }
}

impl Model for Retry {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn context_window(&self) -> u64 {
        self.model.context_window()
    }

    fn max_output(&self) -> Option<u64> {
        self.model.max_output()
    }

    fn answerers(&self) -> Vec<String> {
        self.model.answerers()
    }

    fn supports_vision(&self) -> bool {
        self.model.supports_vision()
    }

    fn only_echoes(&self) -> bool {
        self.model.only_echoes()
    }

    fn stream(&self, request: Request) -> ModelStream {
        let asking = Asking {
            model: self.model.clone(),
            rules: self.rules,
            breaker: self.breaker.clone(),
            calls: self.calls.clone(),
            waits_for_rest: self.waits_for_rest,
            request,
            attempt: 0,
            wait: Duration::ZERO,
            began: Instant::now(),
            state: RetryState::Ask(Duration::ZERO),
        };
        stream::unfold(asking, |mut asking| async move { Some((asking.next().await?, asking)) }).boxed()
    }
}

/// One request and its attempts.
struct Asking {
    model: Arc<dyn Model>,
    rules: RetryRules,
    breaker: Arc<Breaker>,
    calls: Option<Arc<Semaphore>>,
    waits_for_rest: bool,
    request: Request,
    attempt: u32,
    /// The wait before this attempt.
    wait: Duration,
    began: Instant,
    state: RetryState,
}

enum RetryState {
    /// Call the model after a wait.
    Ask(Duration),
    /// Call the model once the provider stops resting. The flag is whether the rest was reported.
    Rest(bool),
    /// An answer is being read, within the limit on calls.
    Reading { stream: ModelStream, _permit: Option<OwnedSemaphorePermit> },
    /// The stream has ended.
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
                RetryState::Rest(reported) => {
                    let reported = *reported;
                    if let Some(next) = self.wait_while_resting(reported).await {
                        return Some(next);
                    }
                }
                RetryState::Reading { stream, .. } => {
                    let next = stream.next().await;
                    return Some(self.judge(next));
                }
            }
        }
    }

    /// Waits while the provider rests, then calls the model. Reports the rest once.
    async fn wait_while_resting(&mut self, reported: bool) -> Option<Result<Delta, ModelError>> {
        let breaker = self.breaker.clone();
        // Created before the check, so that no notification is missed in between.
        let awake = breaker.awake.notified();
        let Some(left) = breaker.admit() else {
            self.ask().await;
            return None;
        };
        if !self.waits_for_rest {
            self.state = RetryState::Over;
            // Nothing is sent, so this costs nothing.
            return Some(Err(resting(None)));
        }
        if left > self.patience_left() {
            self.state = RetryState::Over;
            return Some(Err(resting(Some(left))));
        }
        if reported {
            tokio::select! {
                biased;
                () = tokio::time::sleep(left) => {}
                () = awake => {}
            }
            return None;
        }
        self.state = RetryState::Rest(true);
        let reason = RetryReason::Resting;
        Some(Ok(Delta::Again { attempt: self.attempt.max(1), wait: left, reason, free: true }))
    }

    async fn ask(&mut self) {
        let permit = match &self.calls {
            // The semaphore is never closed.
            Some(calls) => calls.clone().acquire_owned().await.ok(),
            None => None,
        };
        self.attempt += 1;
        self.state = RetryState::Reading { stream: self.model.stream(self.request.clone()), _permit: permit };
    }

    fn judge(&mut self, next: Option<Result<Delta, ModelError>>) -> Result<Delta, ModelError> {
        match next {
            // An empty answer is complete: `TerminalResponse` asks for text.
            Some(Ok(delta)) => {
                if matches!(delta, Delta::Finish(_)) {
                    self.breaker.on_success();
                    self.state = RetryState::Over;
                }
                Ok(delta)
            }
            Some(Err(error)) => self.again(error),
            None => self.again(ModelError::Cut("the answer was truncated".into())),
        }
    }

    /// Decides whether to retry, and reports a retry to the reader.
    fn again(&mut self, error: ModelError) -> Result<Delta, ModelError> {
        let requested = match &error {
            ModelError::Busy { retry_after, .. } => retry_after.filter(|wait| !wait.is_zero()),
            _ => None,
        };
        let is_burst = matches!(&error, ModelError::Busy { detail, .. } if BURSTS.iter().any(|sign| detail.contains(sign)));
        let attempts = if is_burst { self.rules.attempts.min(BURST_ATTEMPTS) } else { self.rules.attempts };
        let base = if is_burst { self.rules.burst_base } else { self.rules.base };
        let wait = requested.unwrap_or_else(|| self.rules.jitter(base, self.wait));
        // Another model answers in the meantime, unless the provider asks for only a short wait.
        let is_limited = matches!(&error, ModelError::Busy { limited: true, .. });
        let is_passed_over =
            !self.waits_for_rest && requested.map_or(is_limited, |requested| requested > self.rules.cap);
        let is_over = self.attempt >= attempts || wait > self.patience_left() || is_passed_over;
        if !error.retriable() || is_over {
            self.state = RetryState::Over;
            self.breaker.on_failure(&error);
            return Err(error);
        }
        self.wait = wait;
        self.state = RetryState::Ask(wait);
        let (attempt, reason) = (self.attempt, RetryReason::from(&error));
        Ok(Delta::Again { attempt, wait, reason, free: error.is_free() })
    }

    fn patience_left(&self) -> Duration {
        self.rules.patience.saturating_sub(self.began.elapsed())
    }
}

/// Returns the error for a request to a provider that is resting.
fn resting(left: Option<Duration>) -> ModelError {
    let detail = "it failed repeatedly and is paused".to_owned();
    ModelError::Busy { retry_after: left, limited: false, detail }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RestRules;
    use pudu_base::Finish;
    use std::{collections::VecDeque, sync::Mutex};

    const TRIES: u32 = 4;

    type DeltaScript = Vec<Result<Delta, ModelError>>;

    /// A model that answers each call with its next reply.
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
        limited(replies, &ModelGuards::default())
    }

    fn limited(replies: Vec<DeltaScript>, guards: &ModelGuards) -> Retry {
        let rules = RetryRules { attempts: TRIES, ..RetryRules::default() };
        Retry::new(Arc::new(RetryScript(Mutex::new(replies.into()))), rules, guards, "https://a")
    }

    /// Removes the waits from a script, which are random unless the provider sets them.
    fn without_waits(script: DeltaScript) -> (DeltaScript, Vec<Duration>) {
        let mut waits = Vec::new();
        let script = script.into_iter().map(|delta| match delta {
            Ok(Delta::Again { attempt, wait, reason, free }) => {
                waits.push(wait);
                Ok(Delta::Again { attempt, wait: Duration::ZERO, reason, free })
            }
            other => other,
        });
        (script.collect(), waits)
    }

    fn text(text: &str) -> Result<Delta, ModelError> {
        Ok(Delta::Text(text.into()))
    }

    fn finish() -> Result<Delta, ModelError> {
        Ok(Delta::Finish(Finish::Complete))
    }

    fn busy(after: Option<u64>) -> ModelError {
        ModelError::Busy {
            retry_after: after.map(Duration::from_secs),
            limited: false,
            detail: "slow".into(),
        }
    }

    fn again(attempt: u32, wait: u64, reason: RetryReason) -> Result<Delta, ModelError> {
        let free = matches!(reason, RetryReason::Busy | RetryReason::RateLimited | RetryReason::Resting);
        Ok(Delta::Again { attempt, wait: Duration::from_millis(wait), reason, free })
    }

    async fn ask(model: &Retry) -> DeltaScript {
        model.stream(Request::default()).collect().await
    }

    #[tokio::test(start_paused = true)]
    async fn transient_failures_are_retried_and_the_providers_wait_is_honoured() {
        let model = model(vec![
            vec![Err(busy(Some(7)))],
            vec![text("Hel")],
            vec![Err(ModelError::Garbled("x".into()))],
            vec![text("Hello"), finish()],
        ]);
        let start = Instant::now();
        let expect = vec![
            again(1, 0, RetryReason::Busy),
            text("Hel"),
            again(2, 0, RetryReason::Unreachable),
            again(3, 0, RetryReason::Garbled),
            text("Hello"),
            finish(),
        ];
        let (script, waits) = without_waits(ask(&model).await);
        assert_eq!(script, expect);
        let [asked, own, next] = waits[..] else { panic!("{waits:?}") };
        let seconds = Duration::from_secs;
        assert_eq!(asked, seconds(7));
        assert!((seconds(1)..=seconds(8)).contains(&own), "{own:?}");
        assert!(next >= seconds(1) && next <= (own * 3).min(seconds(8)), "{own:?} {next:?}");
        // The clock has millisecond precision.
        assert!(
            start.elapsed().abs_diff(asked + own + next) < Duration::from_millis(10),
            "{:?}",
            start.elapsed()
        );
    }

    #[test]
    fn requests_that_failed_together_are_not_retried_together() {
        let rules = RetryRules::default();
        let waits: Vec<Duration> =
            (0..100).map(|_| rules.jitter(rules.base, Duration::from_secs(2))).collect();
        assert!(waits.iter().all(|wait| (rules.base..=Duration::from_secs(6)).contains(wait)), "{waits:?}");
        assert!(waits.iter().max().unwrap().abs_diff(*waits.iter().min().unwrap()) > Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_wait_is_skipped_if_another_model_can_be_called() {
        let start = Instant::now();
        let patient = |replies| model(replies).without_waiting_for_rest();
        assert_eq!(ask(&patient(vec![vec![Err(busy(Some(20)))]])).await, [Err(busy(Some(20)))]);
        assert_eq!(start.elapsed(), Duration::ZERO);
        let short = patient(vec![vec![Err(busy(Some(2)))]; TRIES as usize]);
        assert_eq!(ask(&short).await.pop(), Some(Err(busy(Some(2)))));
        assert_eq!(start.elapsed().as_secs(), 6);
        let limited = || ModelError::Busy { retry_after: None, limited: true, detail: "slow".into() };
        assert_eq!(ask(&patient(vec![vec![Err(limited())]])).await, [Err(limited())]);
        assert_eq!(start.elapsed().as_secs(), 6, "without a requested delay there is no wait");
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_limit_waits_longer_and_is_tried_twice() {
        let burst = || ModelError::Busy {
            retry_after: None,
            limited: true,
            detail: "Request rate increased too quickly".into(),
        };
        let (script, waits) = without_waits(ask(&model(vec![vec![Err(burst())], vec![Err(burst())]])).await);
        assert_eq!(script, [again(1, 0, RetryReason::RateLimited), Err(burst())]);
        assert!(waits[0] >= Duration::from_secs(5), "{waits:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_calls_do_not_exceed_the_limit() {
        let guards = ModelGuards::default();
        guards.set(RestRules::default(), 1);
        let model = limited(vec![vec![text("a"), finish()], vec![text("b"), finish()]], &guards);
        let mut first = model.stream(Request::default());
        assert_eq!(first.next().await, Some(text("a")));
        let mut second = model.stream(Request::default());
        assert!(
            futures_util::FutureExt::now_or_never(second.next()).is_none(),
            "it waits for the first call"
        );
        drop(first);
        assert_eq!(second.next().await, Some(text("b")));
    }

    #[tokio::test(start_paused = true)]
    async fn failures_that_cannot_pass_soon_are_not_retried() {
        for error in [ModelError::Auth("no".into()), busy(Some(61))] {
            let model = model(vec![vec![Err(error.clone())]]);
            assert_eq!(ask(&model).await, [Err(error)]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_that_keeps_failing_is_paused_and_then_probed() {
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
        assert_eq!(
            second,
            [waits(), text("on"), finish()],
            "no further pause is needed: the first call was a probe"
        );
        assert_eq!(start.elapsed(), RestRules::default().time);
    }

    #[tokio::test(start_paused = true)]
    async fn a_requested_wait_is_honoured_within_attempts_and_patience() {
        let check = async |asked: Option<u64>, attempts: u32, patience: u64, calls: usize, seconds: u64| {
            let script = vec![vec![Err(busy(asked))]; 50];
            let inner = Arc::new(RetryScript(Mutex::new(script.into())));
            let patience = Duration::from_secs(patience);
            let rules = RetryRules { attempts, patience, ..RetryRules::default() };
            let model = Retry::new(inner.clone(), rules, &ModelGuards::default(), "https://a");
            let start = Instant::now();
            let (script, waits) = without_waits(ask(&model).await);
            assert_eq!(script.last(), Some(&Err(busy(asked))));
            let case = format!("{asked:?}, {attempts} tries, {patience:?}: {waits:?}");
            assert_eq!(50 - inner.0.lock().unwrap().len(), calls, "{case}");
            assert!(start.elapsed() <= patience && waits.len() + 1 == calls, "{case}");
            assert!(start.elapsed().as_secs().abs_diff(seconds) <= 1 || asked.is_none(), "{case}");
        };
        check(Some(1), 3, 60, 3, 2).await;
        check(Some(1), 20, 60, 20, 19).await;
        check(Some(12), 20, 60, 6, 60).await;
        check(Some(40), 3, 60, 2, 40).await;
        check(Some(61), 3, 60, 1, 0).await;
        check(Some(1), 20, 5, 6, 5).await;
        check(None, 1, 60, 1, 0).await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_empty_answer_is_complete_and_charged_once() {
        for said in [vec![], vec![text("Hm."), Ok(Delta::Retract)]] {
            let reply: DeltaScript = said.into_iter().chain([finish()]).collect();
            assert_eq!(ask(&model(vec![reply.clone()])).await, reply);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn filtered_and_truncated_answers_are_not_retried() {
        for why in [Finish::Filtered, Finish::Length] {
            let model = model(vec![vec![Ok(Delta::Finish(why))]]);
            assert_eq!(ask(&model).await, [Ok(Delta::Finish(why))]);
        }
    }
}
