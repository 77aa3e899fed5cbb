//! Cache of an access token with a limited lifetime.
//!
//! One caller requests the token, and the others wait for the result, whether a token or a failure. A token is renewed
//! before its expiry. If the renewal fails, the old token is used until it expires.

use super::{CallError, error::ErrorCase};
use pudu_net::scrub;
use secrecy::{ExposeSecret, SecretString};
use std::time::Duration;
use tokio::{sync::Mutex, time::Instant};

/// Maximum assumed lifetime of a token.
const MAX_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// Delay before another renewal after a failed one.
const RENEWAL_RETRY: Duration = Duration::from_secs(30);

/// A token as the platform issued it.
pub(crate) struct IssuedToken {
    pub(crate) text: SecretString,
    /// How long the token is valid.
    pub(crate) lifetime: Duration,
}

/// The token of one bot.
pub(crate) struct TokenCache<C> {
    /// How long before its expiry a token is renewed, at most a quarter of its lifetime.
    renewal: Duration,
    // Locked during a request, so that waiting callers get its result.
    state: Mutex<TokenState<C>>,
}

struct TokenState<C> {
    token: Option<CachedToken>,
    /// The last failure to get a token, with its time.
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

    /// Returns a token. Runs `issue` to request one if needed, which changes nothing on the platform.
    pub(crate) async fn get(
        &self,
        issue: impl Future<Output = Result<IssuedToken, CallError<C>>>,
    ) -> Result<SecretString, CallError<C>> {
        let asked = Instant::now();
        let mut state = self.state.lock().await;
        if let Some(token) = state.token.as_ref().filter(|token| Instant::now() < token.renew) {
            return Ok(token.text.clone());
        }
        // Another caller failed while this one waited.
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

    /// Makes a call with a token. Repeats it with a new token if the old one is no longer valid.
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

    /// Drops a rejected token, unless another one has already replaced it.
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
    async fn a_token_is_requested_once_and_renewed_before_it_expires() {
        let cache = TokenCache::new(Duration::from_secs(300));
        let get = async |answer: Result<IssuedToken, CallError>| {
            cache.get(async { answer }).await.map(|token| token.expose_secret().to_owned())
        };
        let cut = || Err(CallError::Unknown("cut".into()));
        let nothing_done = Err(CallError::Unconnected("cut".into()));
        assert_eq!(get(cut()).await, nothing_done, "requesting a token changes nothing");
        let both = tokio::join!(get(issued("a")), get(issued("b")));
        assert_eq!(both, (Ok("a".into()), Ok("a".into())));
        advance(HOUR - Duration::from_secs(299)).await;
        assert_eq!(get(cut()).await, Ok("a".into()), "the old token is used until it expires");
        assert_eq!(get(issued("b")).await, Ok("a".into()), "the renewal is not repeated immediately");
        advance(RENEWAL_RETRY).await;
        assert_eq!(get(Err(CallError::Auth("no".into()))).await, Err(CallError::Auth("no".into())));
        assert_eq!(get(issued("c")).await, Ok("c".into()));
        advance(HOUR).await;
        assert_eq!(get(cut()).await, nothing_done);
    }

    #[tokio::test]
    async fn a_rejected_token_is_dropped_unless_it_was_replaced() {
        let cache = TokenCache::new(Duration::from_secs(300));
        let get = async |text: &'static str| cache.get(async { issued(text) }).await.unwrap();
        let first = get("a").await;
        cache.forget(&first).await;
        assert_eq!(get("b").await.expose_secret(), "b");
        cache.forget(&first).await;
        assert_eq!(get("c").await.expose_secret(), "b");
    }

    /// A caller does not wait for the failures of all earlier callers.
    #[tokio::test(start_paused = true)]
    async fn waiting_callers_share_a_failed_request() {
        let cache = TokenCache::<NoCase>::new(Duration::from_secs(300));
        let start = Instant::now();
        let hangs = || async {
            tokio::time::sleep(Duration::from_secs(6)).await;
            Err(CallError::Unknown("the call timed out".into()))
        };
        let all = futures_util::future::join_all((0..100).map(|_| cache.get(hangs()))).await;
        assert!(all.iter().all(|one| matches!(one, Err(CallError::Unconnected(_)))));
        assert_eq!(start.elapsed(), Duration::from_secs(6));
        assert!(cache.get(async { issued("a") }).await.is_ok(), "the next caller requests a token again");
    }

    #[tokio::test(start_paused = true)]
    async fn an_excessive_lifetime_is_limited_to_a_day() {
        let cache = TokenCache::<NoCase>::new(Duration::from_secs(300));
        let issue = |text: &'static str| async move {
            Ok(IssuedToken { text: text.into(), lifetime: Duration::MAX })
        };
        assert_eq!(cache.get(issue("a")).await.unwrap().expose_secret(), "a");
        advance(MAX_LIFETIME).await;
        assert_eq!(cache.get(issue("b")).await.unwrap().expose_secret(), "b");
    }
}
