//! A model that is asked again when asking again may help.

use futures_util::{StreamExt, stream};
use pudu_base::{Delta, Model, ModelError, ModelStream, Request};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// The first wait; each next is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// A person waits no longer than this for one try; if the provider asks for more, that is told at once.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// After so many requests in a row that failed for good, requests fail at once for a while.
const BROKEN_AFTER: u32 = 5;
/// How long.
const REST: Duration = Duration::from_secs(30);

/// Wraps a model: waits and asks again on failures that may pass, honours the provider's own waiting
/// time, and after many failures rests the provider instead of making everybody wait. The count lives as
/// long as the model, so it spans runs.
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
}

impl Model for Retry {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn window(&self) -> u64 {
        self.model.window()
    }

    fn sees(&self) -> bool {
        self.model.sees()
    }

    fn stream(&self, request: Request) -> ModelStream {
        let asking = Asking {
            model: self.model.clone(),
            tries: self.tries,
            breaker: self.breaker.clone(),
            request,
            attempt: 0,
            state: State::Ask(Duration::ZERO),
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
    state: State,
    /// Whether this try gave words or calls.
    spoke: bool,
}

enum State {
    /// Ask after a wait.
    Ask(Duration),
    /// An answer comes.
    Reading(ModelStream),
    /// Nothing more comes.
    Over,
}

impl Asking {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            match &mut self.state {
                State::Over => return None,
                State::Ask(wait) => {
                    tokio::time::sleep(*wait).await;
                    if let Err(error) = self.breaker.admit() {
                        self.state = State::Over;
                        return Some(Err(error));
                    }
                    self.attempt += 1;
                    self.spoke = false;
                    self.state = State::Reading(self.model.stream(self.request.clone()));
                }
                State::Reading(stream) => {
                    let next = stream.next().await;
                    return Some(self.judge(next));
                }
            }
        }
    }

    fn judge(&mut self, next: Option<Result<Delta, ModelError>>) -> Result<Delta, ModelError> {
        match next {
            Some(Ok(Delta::Finish(_))) if !self.spoke => {
                self.again(ModelError::Garbled("an empty answer".into()))
            }
            Some(Ok(delta)) => {
                self.spoke |= matches!(delta, Delta::Text(_) | Delta::Call(_));
                if matches!(delta, Delta::Finish(_)) {
                    self.breaker.worked();
                    self.state = State::Over;
                }
                Ok(delta)
            }
            Some(Err(error)) => self.again(error),
            None => self.again(ModelError::Unreachable("the answer was cut".into())),
        }
    }

    /// Decides whether another try is made, and tells the reader.
    fn again(&mut self, error: ModelError) -> Result<Delta, ModelError> {
        let patience =
            !matches!(&error, ModelError::Busy { retry_after: Some(asked), .. } if *asked > LONGEST_WAIT);
        if !error.retriable() || !patience || self.attempt >= self.tries {
            self.state = State::Over;
            self.breaker.failed(&error);
            return Err(error);
        }
        let wait = wait(&error, self.attempt);
        self.state = State::Ask(wait);
        Ok(Delta::Again { attempt: self.attempt, wait, reason: reason(&error).to_owned() })
    }
}

fn wait(error: &ModelError, attempt: u32) -> Duration {
    let own = FIRST_WAIT * 2u32.saturating_pow(attempt.saturating_sub(1));
    match error {
        ModelError::Busy { retry_after: Some(asked), .. } => *asked,
        _ => own.min(LONGEST_WAIT),
    }
}

fn reason(error: &ModelError) -> &'static str {
    match error {
        ModelError::Busy { .. } => "the model is busy",
        ModelError::Garbled(_) => "the model's answer was broken",
        _ => "the model cannot be reached",
    }
}

/// Rests a provider that keeps failing.
#[derive(Debug, Default)]
struct Breaker(Mutex<Circuit>);

#[derive(Debug, Default)]
struct Circuit {
    failures: u32,
    rests_until: Option<Instant>,
}

impl Breaker {
    /// Lets a request through. While the provider rests, one request after the rest is the probe.
    fn admit(&self) -> Result<(), ModelError> {
        let mut circuit = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match circuit.rests_until {
            Some(until) if Instant::now() < until => {
                let left = until - Instant::now();
                Err(ModelError::Unreachable(format!("it failed often and rests {} s", left.as_secs().max(1))))
            }
            Some(_) => {
                circuit.rests_until = Some(Instant::now() + REST);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn worked(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Circuit::default();
    }

    fn failed(&self, error: &ModelError) {
        // What is wrong with one request or key, or a wish to wait, says nothing about the provider's health.
        if !error.retriable() || matches!(error, ModelError::Busy { retry_after: Some(_), .. }) {
            return;
        }
        let mut circuit = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        circuit.failures += 1;
        if circuit.failures >= BROKEN_AFTER {
            circuit.rests_until = Some(Instant::now() + REST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::Finish;
    use std::collections::VecDeque;

    const TRIES: u32 = 4;

    type Reply = Vec<Result<Delta, ModelError>>;

    /// A model that answers each call with the next of its replies.
    struct Scripted(Mutex<VecDeque<Reply>>);

    impl Model for Scripted {
        fn name(&self) -> &'static str {
            "scripted"
        }

        fn stream(&self, _: Request) -> ModelStream {
            let reply = self.0.lock().unwrap().pop_front().expect("no reply left");
            stream::iter(reply).boxed()
        }
    }

    fn model(replies: Vec<Reply>) -> Retry {
        Retry::new(Arc::new(Scripted(Mutex::new(replies.into()))), TRIES - 1)
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

    fn again(attempt: u32, wait: u64, reason: &str) -> Result<Delta, ModelError> {
        Ok(Delta::Again { attempt, wait: Duration::from_millis(wait), reason: reason.into() })
    }

    async fn ask(model: &Retry) -> Reply {
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
            again(1, 7_000, "the model is busy"),
            text("Hel"),
            again(2, 1_000, "the model cannot be reached"),
            again(3, 2_000, "the model's answer was broken"),
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
        let mut replies = vec![vec![Err(busy(None))]; (TRIES * BROKEN_AFTER) as usize];
        replies.push(vec![text("back"), finish()]);
        let model = model(replies);
        for _ in 0..BROKEN_AFTER {
            assert_eq!(ask(&model).await.pop(), Some(Err(busy(None))));
        }
        let resting = ModelError::Unreachable("it failed often and rests 30 s".into());
        assert_eq!(ask(&model).await, [Err(resting)]);
        tokio::time::advance(REST).await;
        assert_eq!(ask(&model).await, [text("back"), finish()]);
    }
}
