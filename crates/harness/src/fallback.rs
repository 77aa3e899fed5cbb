//! A model with fallback models that answer if it fails.

use futures_util::{StreamExt, stream};
use pudu_base::{Delta, Model, ModelError, ModelStream, Request, RetryReason};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Wraps a model: on an outage, an overload or missing credit the next model is called before a user sees an error.
/// Each request starts with the first model again; while it rests, its breaker makes that cheap.
pub struct Fallback {
    first: Arc<dyn Model>,
    others: Arc<[Arc<dyn Model>]>,
    standby: Arc<Mutex<Option<String>>>,
}

impl Fallback {
    /// Wraps a model with its fallbacks, in order.
    #[must_use]
    pub fn new(first: Arc<dyn Model>, others: Vec<Arc<dyn Model>>) -> Self {
        Self { first, others: others.into(), standby: Arc::default() }
    }
}

impl Model for Fallback {
    fn name(&self) -> &str {
        self.first.name()
    }

    fn context_window(&self) -> u64 {
        self.first.context_window()
    }

    fn max_output(&self) -> Option<u64> {
        let mut all = [&self.first].into_iter().chain(self.others.iter()).map(|model| model.max_output());
        all.try_fold(0, |most, one| Some(most.max(one?)))
    }

    fn answerers(&self) -> Vec<String> {
        let all = [&self.first].into_iter().chain(self.others.iter());
        all.flat_map(|model| model.answerers()).collect()
    }

    fn supports_vision(&self) -> bool {
        self.first.supports_vision()
    }

    fn only_echoes(&self) -> bool {
        self.first.only_echoes()
    }

    fn standby(&self) -> Option<String> {
        self.standby.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn stream(&self, request: Request) -> ModelStream {
        let asking = FallbackAsking {
            current: self.first.stream(request.clone()),
            others: self.others.clone(),
            next: 0,
            name: None,
            standby: self.standby.clone(),
            request,
            error: None,
            pending: None,
            over: false,
        };
        stream::unfold(asking, |mut asking| async move { Some((asking.next().await?, asking)) }).boxed()
    }
}

/// One request and the models that it is sent to.
struct FallbackAsking {
    request: Request,
    current: ModelStream,
    others: Arc<[Arc<dyn Model>]>,
    /// Index of the next model.
    next: usize,
    /// The current model, if it is not the first.
    name: Option<String>,
    standby: Arc<Mutex<Option<String>>>,
    /// Why the first model failed; reported to users if all fail.
    error: Option<ModelError>,
    pending: Option<Delta>,
    over: bool,
}

impl FallbackAsking {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        if let Some(delta) = self.pending.take() {
            return Some(Ok(delta));
        }
        if self.over {
            return None;
        }
        match self.current.next().await? {
            Ok(delta) => {
                if matches!(delta, Delta::Finish(_)) {
                    *self.standby.lock().unwrap_or_else(PoisonError::into_inner) = self.name.clone();
                }
                Some(Ok(delta))
            }
            Err(error) => Some(self.failed(error)),
        }
    }

    fn failed(&mut self, error: ModelError) -> Result<Delta, ModelError> {
        // The user did not choose the fallback, so after any of its errors the next one is tried.
        let tries_next = self.error.is_some() || may_pass_over(&error);
        let Some(model) = self.others.get(self.next).filter(|_| tries_next) else {
            self.over = true;
            return Err(self.error.take().unwrap_or(error));
        };
        tracing::warn!(model = model.name(), %error, "falling back to another model");
        self.next += 1;
        let free = error.is_free();
        self.error.get_or_insert(error);
        let mut request = self.request.clone();
        if !model.supports_vision() {
            request.images.clear();
        }
        self.current = model.stream(request);
        self.name = Some(model.name().to_owned());
        self.pending = self.name.clone().map(Delta::Model);
        let attempt = u32::try_from(self.next).unwrap_or(u32::MAX);
        Ok(Delta::Again { attempt, wait: Duration::ZERO, reason: RetryReason::FellBack, free })
    }
}

/// Returns whether another model may succeed: an invalid request or key is reported instead.
fn may_pass_over(error: &ModelError) -> bool {
    error.retriable() || matches!(error, ModelError::Quota(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::Finish;

    /// A model that always gives the same reply.
    struct SaidModel(&'static str, Vec<Result<Delta, ModelError>>);

    impl Model for SaidModel {
        fn name(&self) -> &str {
            self.0
        }

        fn stream(&self, _: Request) -> ModelStream {
            stream::iter(self.1.clone()).boxed()
        }
    }

    fn model(name: &'static str, said: Vec<Result<Delta, ModelError>>) -> Arc<dyn Model> {
        Arc::new(SaidModel(name, said))
    }

    fn text(text: &str) -> Result<Delta, ModelError> {
        Ok(Delta::Text(text.into()))
    }

    fn finish() -> Result<Delta, ModelError> {
        Ok(Delta::Finish(Finish::Complete))
    }

    async fn ask(model: &Fallback) -> Vec<Result<Delta, ModelError>> {
        model.stream(Request::default()).collect().await
    }

    fn switch(attempt: u32, to: &str, free: bool) -> [Result<Delta, ModelError>; 2] {
        let again = Delta::Again { attempt, wait: Duration::ZERO, reason: RetryReason::FellBack, free };
        [Ok(again), Ok(Delta::Model(to.to_owned()))]
    }

    #[tokio::test]
    async fn a_fallback_answers_when_the_first_model_cannot_and_status_shows_it() {
        let quota = || Err(ModelError::Quota("pay".into()));
        let down = || Err(ModelError::Unreachable("down".into()));
        let first = model("one", vec![text("Hal"), quota()]);
        let fallback = Fallback::new(
            first,
            vec![model("two", vec![down()]), model("three", vec![text("Hi"), finish()])],
        );
        let mut expect = vec![text("Hal")];
        expect.extend(switch(1, "two", true));
        expect.extend(switch(2, "three", false));
        expect.extend([text("Hi"), finish()]);
        assert_eq!(ask(&fallback).await, expect);
        assert_eq!(fallback.standby().as_deref(), Some("three"));
        let well = Fallback::new(model("one", vec![text("Hi"), finish()]), vec![model("two", vec![])]);
        assert_eq!((ask(&well).await, well.standby()), (vec![text("Hi"), finish()], None));
    }

    #[tokio::test]
    async fn an_invalid_request_is_reported_and_so_is_the_first_error_if_all_models_fail() {
        let refused = || Err(ModelError::Auth("no".into()));
        let fallback =
            Fallback::new(model("one", vec![refused()]), vec![model("two", vec![text("Hi"), finish()])]);
        assert_eq!(ask(&fallback).await, [refused()]);
        let quota = || Err(ModelError::Quota("pay".into()));
        let all = Fallback::new(
            model("one", vec![quota()]),
            vec![model("two", vec![Err(ModelError::Garbled("x".into()))])],
        );
        assert_eq!(ask(&all).await.pop(), Some(quota()));
        let last = model("three", vec![text("Hi"), finish()]);
        let second = Fallback::new(model("one", vec![quota()]), vec![model("two", vec![refused()]), last]);
        assert_eq!(
            ask(&second).await.pop(),
            Some(finish()),
            "a wrong key of the second model does not affect the first"
        );
    }
}
