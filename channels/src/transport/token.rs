//! Cache of an access token that a platform issues for a time.
//!
//! One caller asks for it, the others wait for the answer, be it a token or a failure. A token is renewed before its
//! end; the old one is good until then, should the platform not answer.

use super::{CallError, error::ErrorCase};
use pudu_net::scrub;
use secrecy::{ExposeSecret, SecretString};
use std::time::Duration;
use tokio::{sync::Mutex, time::Instant};

/// Maximum time that a token is believed to be good.
const MAX_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// Delay before another renewal after one that failed.
const RENEWAL_RETRY: Duration = Duration::from_secs(30);

/// A token as the platform issued it.
pub(crate) struct IssuedToken {
    pub(crate) text: SecretString,
    /// How long it is good.
    pub(crate) lifetime: Duration,
}

/// The token of one account.
pub(crate) struct TokenCache<C> {
    /// How long before its end a token is renewed, at most a quarter of its lifetime.
    renewal: Duration,
    // Held while the platform is asked: a waiting caller gets that answer.
    state: Mutex<TokenState<C>>,
}

struct TokenState<C> {
    token: Option<CachedToken>,
    /// The last failure to get one, and when it was.
    failed: Option<(Instant, CallError<C>)>,
}

#[derive(Clone)]
struct CachedToken {
    text: SecretString,
    ends: Instant,
    renew: Instant,
}

impl<C: ErrorCase> TokenCache<C> {
    pub(crate) fn new(renewal: Duration) -> Self {
        Self { renewal, state: Mutex::new(TokenState { token: None, failed: None }) }
    }

    /// Returns a token; `issue` asks the platform for one if need be, which changes nothing there.
    pub(crate) async fn get(
        &self,
        issue: impl Future<Output = Result<IssuedToken, CallError<C>>>,
    ) -> Result<SecretString, CallError<C>> {
        let asked = Instant::now();
        let mut state = self.state.lock().await;
        if let Some(token) = state.token.as_ref().filter(|token| Instant::now() < token.renew) {
            return Ok(token.text.clone());
        }
        // Another caller has tried meanwhile, in vain.
        if let Some((_, error)) = state.failed.as_ref().filter(|(at, _)| *at > asked) {
            return Err(error.clone());
        }
        match issue.await {
            Ok(issued) => {
                let token = self.keep(issued);
                *state = TokenState { token: Some(token.clone()), failed: None };
                Ok(token.text)
            }
            Err(error) => {
                let (error, now) = (error.before(), Instant::now());
                let good = state.token.as_mut().filter(|token| now < token.ends);
                match good.filter(|_| !matches!(error, CallError::Auth(_))) {
                    Some(token) => {
                        token.renew = now + RENEWAL_RETRY;
                        Ok(token.text.clone())
                    }
                    None => {
                        state.failed = Some((now, error.clone()));
                        Err(error)
                    }
                }
            }
        }
    }

    /// Makes a call with a token; once more with a new one if that is not good any more.
    pub(crate) async fn call<T, I, F>(
        &self,
        issue: impl Fn() -> I,
        call: impl Fn(SecretString) -> F,
    ) -> Result<T, CallError<C>>
    where
        I: Future<Output = Result<IssuedToken, CallError<C>>>,
        F: Future<Output = Result<T, CallError<C>>>,
    {
        let token = self.get(issue()).await?;
        match call(token.clone()).await {
            Err(CallError::StaleToken(_)) => {
                self.forget(&token).await;
                call(self.get(issue()).await?).await
            }
            outcome => outcome,
        }
    }

    fn keep(&self, IssuedToken { text, lifetime }: IssuedToken) -> CachedToken {
        scrub::remember_issued(text.expose_secret());
        let (now, lifetime) = (Instant::now(), lifetime.min(MAX_LIFETIME));
        let renew = now + lifetime.saturating_sub(self.renewal.min(lifetime / 4));
        CachedToken { text, ends: now + lifetime, renew }
    }

    /// Drops a token that is not taken, unless another has replaced it already.
    async fn forget(&self, bad: &SecretString) {
        let mut state = self.state.lock().await;
        if state.token.as_ref().is_some_and(|token| token.text.expose_secret() == bad.expose_secret()) {
            state.token = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::NoCase;
    use tokio::time::advance;

    const HOUR: Duration = Duration::from_secs(3600);

    fn issued(text: &str) -> Result<IssuedToken, CallError> {
        Ok(IssuedToken { text: text.into(), lifetime: HOUR })
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_asked_for_once_and_renewed_before_its_end() {
        let cache = TokenCache::new(Duration::from_secs(300));
        let get = async |answer: Result<IssuedToken, CallError>| {
            cache.get(async { answer }).await.map(|token| token.expose_secret().to_owned())
        };
        let cut = || Err(CallError::Unknown("cut".into()));
        let nothing_done = Err(CallError::Unconnected("cut".into()));
        assert_eq!(get(cut()).await, nothing_done, "asking for a token does nothing");
        let both = tokio::join!(get(issued("a")), get(issued("b")));
        assert_eq!(both, (Ok("a".into()), Ok("a".into())));
        advance(HOUR - Duration::from_secs(299)).await;
        assert_eq!(get(cut()).await, Ok("a".into()), "it is good until its end");
        assert_eq!(get(issued("b")).await, Ok("a".into()), "the renewal is not tried again at once");
        advance(RENEWAL_RETRY).await;
        assert_eq!(get(Err(CallError::Auth("no".into()))).await, Err(CallError::Auth("no".into())));
        assert_eq!(get(issued("c")).await, Ok("c".into()));
        advance(HOUR).await;
        assert_eq!(get(cut()).await, nothing_done);
    }

    #[tokio::test]
    async fn a_token_that_is_not_taken_is_dropped_unless_it_was_replaced() {
        let cache = TokenCache::new(Duration::from_secs(300));
        let get = async |text: &'static str| cache.get(async { issued(text) }).await.unwrap();
        let first = get("a").await;
        cache.forget(&first).await;
        assert_eq!(get("b").await.expose_secret(), "b");
        cache.forget(&first).await;
        assert_eq!(get("c").await.expose_secret(), "b");
    }

    /// A caller does not wait for the failures of all callers before it.
    #[tokio::test(start_paused = true)]
    async fn whoever_waits_for_the_token_shares_its_failure() {
        let cache = TokenCache::<NoCase>::new(Duration::from_secs(300));
        let begun = Instant::now();
        let hangs = || async {
            tokio::time::sleep(Duration::from_secs(6)).await;
            Err(CallError::Unknown("no answer in time".into()))
        };
        let all = futures_util::future::join_all((0..100).map(|_| cache.get(hangs()))).await;
        assert!(all.iter().all(|one| matches!(one, Err(CallError::Unconnected(_)))));
        assert_eq!(begun.elapsed(), Duration::from_secs(6));
        assert!(cache.get(async { issued("a") }).await.is_ok(), "the next one asks again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lifetime_beyond_all_reason_is_a_day() {
        let cache = TokenCache::<NoCase>::new(Duration::from_secs(300));
        let issue = |text: &'static str| async move {
            Ok(IssuedToken { text: text.into(), lifetime: Duration::MAX })
        };
        assert_eq!(cache.get(issue("a")).await.unwrap().expose_secret(), "a");
        advance(MAX_LIFETIME).await;
        assert_eq!(cache.get(issue("b")).await.unwrap().expose_secret(), "b");
    }
}
