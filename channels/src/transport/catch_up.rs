//! Reads messages sent while the bot was not listening, chat by chat, on platforms that do not redeliver events. An
//! event that is already stored is recognised by its key.

use super::{CallError, error::ErrorCase};
use crate::{AcceptError, BoxFuture, ReplyStoreError, recovery::Backoff, recovery::Recovery};
use std::{future::pending, time::Duration};
use tokio::time::sleep;

/// Maximum time to wait when the platform asks to wait.
const MAX_RATE_LIMIT_DELAY: Duration = Duration::from_secs(90);
/// Number of consecutive unreadable chats that ends a round.
const MAX_FAILED_CHATS: usize = 3;
/// Maximum delay between two rounds of reading.
const MAX_ROUND_DELAY: Duration = Duration::from_secs(600);

/// Reads missed messages concurrently with a connection, round after round until all were read.
#[derive(Default)]
pub(crate) struct CatchUp<'a> {
    running: Option<BoxFuture<'a, (bool, Backoff)>>,
    backoff: Option<Backoff>,
    rounds: u32,
    /// Whether another round was requested while one ran: its results may be outdated.
    again: bool,
}

impl<'a> CatchUp<'a> {
    /// Begins a round after `delay`, which grows with the rounds, or as soon as the platform recovers. While a round
    /// runs, it only marks that round as incomplete. `read` gets the number of the round, from 0.
    pub(crate) fn begin<F>(&mut self, delay: Duration, platform: &Recovery, read: impl FnOnce(u32) -> F)
    where
        F: Future<Output = bool> + Send + 'a,
    {
        if self.running.is_some() {
            self.again = true;
            return;
        }
        let (read, platform) = (read(self.rounds), platform.clone());
        let delay = delay.saturating_mul(1 << self.rounds.min(10)).min(MAX_ROUND_DELAY.max(delay));
        let mut backoff = self.backoff.unwrap_or_else(Backoff::new);
        self.rounds += 1;
        self.running = Some(Box::pin(async move {
            if !delay.is_zero() {
                backoff.pause(&platform, delay).await;
                backoff.start_try();
            }
            (read.await, backoff)
        }));
    }

    /// Waits for the end of the round, and returns whether all was read. If not, the caller begins another. Never
    /// returns while no round runs.
    ///
    /// # Cancel safety
    /// The next call continues the round.
    pub(crate) async fn next(&mut self) -> bool {
        let Some(running) = &mut self.running else { return pending().await };
        let (complete, backoff) = running.await;
        self.running = None;
        let complete = complete && !std::mem::take(&mut self.again);
        self.backoff = (!complete).then_some(backoff);
        if complete {
            self.rounds = 0;
        }
        complete
    }
}

/// Reason why an event was not stored. It must be delivered again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum IntakeError<C: ErrorCase> {
    #[error(transparent)]
    NotAccepted(#[from] AcceptError),
    #[error("a look-up failed: {0}")]
    Lookup(#[from] CallError<C>),
    #[error("failed to read the conversations: {0}")]
    Store(#[from] ReplyStoreError),
    #[error("the bot's identity is not known yet")]
    Early,
}

/// Reads each chat. After the first round the order is random, so that chats which always fail do not prevent others
/// from being read. Returns whether everything readable was read; if not, it has to be read again later.
pub(crate) async fn read_missed<C, F>(
    mut chats: Vec<String>,
    round: u32,
    mut read: impl FnMut(String) -> F,
) -> bool
where
    C: ErrorCase,
    F: Future<Output = Result<(), IntakeError<C>>>,
{
    if round > 0 {
        fastrand::shuffle(&mut chats);
    }
    let (mut complete, mut failed) = (true, 0);
    for chat in chats {
        let mut outcome = read(chat.clone()).await;
        if let Err(IntakeError::Lookup(error)) = &outcome
            && let Some(wait) = error.wait()
        {
            sleep(wait.min(MAX_RATE_LIMIT_DELAY)).await;
            outcome = read(chat.clone()).await;
        }
        match outcome {
            Ok(()) => failed = 0,
            Err(IntakeError::Lookup(error)) if !error.is_passing() => {
                tracing::debug!(%error, chat, "skipped history: it may not be read");
            }
            Err(error) => {
                (complete, failed) = (false, failed + 1);
                tracing::warn!(%error, chat, "failed to read missed messages; reading again later");
                let others_too = !matches!(&error, IntakeError::Lookup(error) if error.is_outage());
                if others_too || failed >= MAX_FAILED_CHATS {
                    break;
                }
            }
        }
    }
    complete
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::NoCase;
    use std::sync::Mutex;
    use tokio::time::Instant;

    /// Reads chats with these outcomes, once each. Returns the chats that were read, and whether everything was read.
    async fn read(outcomes: Vec<Option<IntakeError<NoCase>>>) -> (Vec<String>, bool) {
        let chats = (0..outcomes.len()).map(|chat| chat.to_string()).collect();
        let (read, left) = (Mutex::new(Vec::new()), Mutex::new(outcomes));
        let complete = read_missed(chats, 0, |chat: String| {
            let outcome = left.lock().unwrap()[chat.parse::<usize>().unwrap()].take();
            read.lock().unwrap().push(chat);
            async { outcome.map_or(Ok(()), Err) }
        })
        .await;
        (read.into_inner().unwrap(), complete)
    }

    #[tokio::test(start_paused = true)]
    async fn temporary_failures_are_read_again_and_unreadable_chats_are_skipped() {
        let lookup = |error| Some(IntakeError::Lookup(error));
        let check = async |outcomes, read_chats: &[&str], complete| {
            assert_eq!(
                read(outcomes).await,
                (read_chats.iter().map(ToString::to_string).collect(), complete)
            );
        };
        let cut = || lookup(CallError::Unknown("cut".into()));
        let second = Duration::from_secs(1);
        check(vec![None, None], &["0", "1"], true).await;
        check(vec![lookup(CallError::Refused("no".into())), None], &["0", "1"], true).await;
        check(vec![lookup(CallError::Wait(second)), None], &["0", "0", "1"], true).await;
        check(vec![lookup(CallError::WaitForAll(second)), None], &["0", "0", "1"], true).await;
        check(vec![cut(), None], &["0", "1"], false).await;
        check(vec![cut(), cut(), None, cut(), cut(), None], &["0", "1", "2", "3", "4", "5"], false).await;
        check(vec![cut(), cut(), cut(), None], &["0", "1", "2"], false).await;
        check(vec![lookup(CallError::Auth("no".into())), None], &["0"], false).await;
        check(vec![cut(), Some(IntakeError::NotAccepted(AcceptError::Full)), None], &["0", "1"], false).await;
    }

    #[tokio::test(start_paused = true)]
    async fn rounds_run_one_at_a_time_and_ever_less_often() {
        let (begun, mut catch_up, platform) = (Instant::now(), CatchUp::default(), Recovery::default());
        let mut times = Vec::new();
        for _ in 0..7 {
            catch_up.begin(Duration::from_secs(30), &platform, |_| async { true });
            catch_up.begin(Duration::ZERO, &platform, |_| async { true });
            assert!(!catch_up.next().await, "another round was requested during this one");
            times.push(begun.elapsed().as_secs());
        }
        assert_eq!(
            times,
            [4, 8, 12, 16, 24, 40, 72],
            "the retry interval of a call that the platform answers with an error"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn rounds_are_counted_from_zero_after_a_complete_one() {
        let (mut catch_up, platform) = (CatchUp::default(), Recovery::default());
        for (expected, complete) in [(0, false), (1, true), (0, true)] {
            catch_up.begin(Duration::ZERO, &platform, |round| async move {
                assert_eq!(round, expected);
                complete
            });
            assert_eq!(catch_up.next().await, complete);
        }
    }
}
