//! One attempt to deliver a reply: shows it and marks its turn as delivered, given up, or due for another attempt.

use crate::bus::{Inbox, retry_until_stored};
use pudu_channels::{FinalView, Hurry, LiveReply, SendError};
use pudu_kit::clock;
use pudu_store::{Db, Delivered, InboxItemId, TurnId};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// Delay after the first failed delivery; doubles with each further failure.
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Maximum delay before the next attempt, if the platform does not ask for one. It ends early when the platform answers
/// another call of the account.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);
/// Maximum delay that a platform can ask for; after that, the call is made anyway.
const MAX_PLATFORM_DELAY: Duration = Duration::from_secs(3600);
/// How long an undeliverable reply holds back newer ones in its conversation.
pub(super) const ORDER_TIMEOUT: Duration = Duration::from_secs(30);

/// A reply to deliver.
#[derive(Clone, Debug)]
pub struct OutboxItem {
    /// The turn.
    pub turn: TurnId,
    /// The conversation's key.
    pub conversation: String,
    /// The account that replies.
    pub account: String,
    /// The chat.
    pub chat: String,
    /// When the turn was opened, in milliseconds since 1970.
    pub created: i64,
    /// Earliest time at which the platform allows a call, in milliseconds since 1970.
    pub not_before: i64,
}

/// A reply to deliver, and the state of its attempts.
pub(super) struct OutboxDelivery {
    pub(super) item: OutboxItem,
    reply: Box<dyn LiveReply>,
    view: FinalView,
    pub(super) hurry: Hurry,
    /// Whether it was young enough to be sent when its delivery began.
    fresh: bool,
    /// Whether the answer is delivered, and only a leftover message of the reply has to be deleted.
    delivered: bool,
    failures: u32,
    /// Whether the next attempt has already been moved forward once.
    hastened: bool,
    /// Time of the next attempt.
    pub(super) due: Instant,
    /// Whether the platform asked for this delay. If so, the success of other calls does not shorten it.
    pub(super) asked_for: bool,
    /// End of [`ORDER_TIMEOUT`], counted from when the reply began to wait; `None` before that.
    in_order_until: Option<Instant>,
}

impl OutboxDelivery {
    /// Creates a delivery. `fresh` is whether the reply is young enough to be sent.
    pub(super) fn new(
        item: OutboxItem,
        reply: Box<dyn LiveReply>,
        view: FinalView,
        hurry: Hurry,
        fresh: bool,
    ) -> Self {
        let early = u64::try_from(item.not_before.saturating_sub(clock::now())).unwrap_or(0);
        let due = Instant::now() + Duration::from_millis(early).min(MAX_PLATFORM_DELAY);
        Self {
            item,
            reply,
            view,
            hurry,
            fresh,
            delivered: false,
            failures: 0,
            hastened: false,
            due,
            asked_for: early > 0,
            in_order_until: None,
        }
    }

    /// Holds back newer replies from now on, for [`ORDER_TIMEOUT`].
    pub(super) fn begin_to_wait(&mut self) {
        self.in_order_until = Some(Instant::now() + ORDER_TIMEOUT);
    }

    /// Returns the time until which the reply holds back newer ones, which would otherwise appear above it; `None` if
    /// it does not.
    pub(super) fn in_order_until(&self) -> Option<Instant> {
        self.in_order_until.filter(|until| !self.delivered && *until > Instant::now())
    }

    /// Makes the next attempt due now, because something is waiting for the reply. Works only once, and overrides
    /// even a delay that the platform asked for: if only a file is missing, the attempt gives it up.
    pub(super) fn hasten(&mut self) {
        if !std::mem::replace(&mut self.hastened, true) {
            self.due = Instant::now();
        }
    }

    /// Waits for the next attempt. The success of another call ends the wait early, unless the platform asked for it.
    pub(super) async fn pause(&mut self) {
        let wait = self.due.saturating_duration_since(Instant::now());
        match self.asked_for {
            true => tokio::time::sleep(wait).await,
            false => self.reply.pause(wait).await,
        }
    }
}

/// Result of an attempt.
pub(super) enum Attempt {
    /// Nothing is left to do.
    Settled,
    /// Another attempt is needed.
    Failed,
}

/// Delivers replies.
#[derive(Clone)]
pub(super) struct Deliverer {
    pub(super) db: Db,
    inbox: Inbox,
    /// Maximum age of a reply that is still sent, in milliseconds: an older one would only surprise its reader. Changes
    /// with the configuration.
    oldest: Arc<AtomicU64>,
}

/// Gives up the files of a reply that is too old for further attempts. The reply's text then mentions them. Returns
/// whether there were files to give up.
fn gives_up_files(view: &FinalView, hurry: &Hurry) -> bool {
    let last = !view.files.is_empty() && !hurry.is_stopped();
    if last {
        hurry.stop();
    }
    last
}

impl Deliverer {
    pub(super) fn new(db: Db, inbox: Inbox, oldest: Duration) -> Self {
        let deliverer = Self { db, inbox, oldest: Arc::default() };
        deliverer.set_oldest(oldest);
        deliverer
    }

    /// Sets the maximum age of a reply.
    pub(super) fn set_oldest(&self, oldest: Duration) {
        self.oldest.store(u64::try_from(oldest.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Makes one attempt to deliver a reply.
    pub(super) async fn attempt(&self, delivery: &mut OutboxDelivery) -> Attempt {
        let OutboxDelivery { item, reply, view, hurry, fresh, delivered, .. } = delivery;
        let error = loop {
            if *fresh && !*delivered && self.too_old(item) && !gives_up_files(view, hurry) {
                self.park(item, "too old to be sent").await;
                return Attempt::Settled;
            }
            let error = match self.finish(item, &mut **reply, view, delivered).await {
                // If a choice below the reply has been made since, the changed reply is delivered as well.
                Ok(()) => match self.done(item, view).await {
                    Some(newer) => {
                        *view = newer;
                        *delivered = false;
                        continue;
                    }
                    None => return Attempt::Settled,
                },
                Err(SendError::Refused(reason)) => {
                    self.park(item, &reason).await;
                    return Attempt::Settled;
                }
                Err(error) => error,
            };
            if !self.too_old(item) {
                break error;
            }
            if !gives_up_files(view, hurry) {
                self.park(item, &format!("too old to be sent: {error}")).await;
                return Attempt::Settled;
            }
        };
        self.put_off(delivery, &error).await;
        Attempt::Failed
    }

    /// Tries to finish a reply. A delivered one that is too old counts as finished; its superfluous messages stay.
    async fn finish(
        &self,
        item: &OutboxItem,
        reply: &mut dyn LiveReply,
        view: &FinalView,
        delivered: &mut bool,
    ) -> Result<(), SendError> {
        let finished = reply.finish(view).await;
        *delivered |= matches!(finished, Err(SendError::Untidy { .. }));
        match finished {
            Err(error) if *delivered && self.too_old(item) => {
                let OutboxItem { account, chat, turn, .. } = item;
                tracing::warn!(account, chat, turn = turn.0, %error, "gave up deleting message of delivered reply");
                Ok(())
            }
            finished => finished,
        }
    }

    /// Records a failed attempt and the time of the next one.
    async fn put_off(&self, delivery: &mut OutboxDelivery, error: &SendError) {
        let wait = wait(error, delivery.failures);
        delivery.failures += 1;
        delivery.due = Instant::now() + wait;
        delivery.asked_for = matches!(error, SendError::Later { .. } | SendError::Untidy { after: Some(_) });
        let OutboxItem { account, chat, turn, .. } = &delivery.item;
        match delivery.delivered {
            true => {
                tracing::info!(account, chat, turn = turn.0, %error, ?wait, "delivered reply; deleting the rest later");
            }
            false => {
                tracing::warn!(account, chat, turn = turn.0, %error, ?wait, "failed to deliver reply; trying again");
            }
        }
        let next = clock::now().saturating_add(clock::millis(wait));
        if let Err(error) = self.db.failed(turn, &error.to_string(), next).await {
            tracing::warn!(%error, "failed to record delivery attempt");
        }
    }

    /// Returns whether a reply is too old to be sent.
    pub(super) fn too_old(&self, item: &OutboxItem) -> bool {
        let age = clock::now().saturating_sub(item.created);
        u64::try_from(age).is_ok_and(|age| age > self.oldest.load(Ordering::Relaxed))
    }

    /// Gives a reply up. Its row stays in the store for inspection.
    pub(super) async fn park(&self, item: &OutboxItem, reason: &str) {
        let OutboxItem { account, chat, turn, .. } = item;
        tracing::error!(account, chat, turn = turn.0, reason, "gave up reply");
        let park = || self.db.park(&item.turn, reason, clock::now());
        self.release(retry_until_stored("failed to give up reply", park).await);
    }

    /// Marks a reply as delivered. If its stored text has changed, returns the new one instead.
    async fn done(&self, item: &OutboxItem, view: &FinalView) -> Option<FinalView> {
        let (mut shown, keep) = (serde_json::to_string(view).ok(), !view.choices.is_empty());
        loop {
            let done = || self.db.delivered(&item.turn, shown.as_deref(), keep, clock::now());
            match retry_until_stored("failed to mark reply as delivered", done).await {
                Some(Delivered::Outdated(newer)) => match serde_json::from_str::<FinalView>(&newer) {
                    Ok(newer) if newer != *view => return Some(newer),
                    // Another version of pudu serialised the same view differently.
                    _ => shown = None,
                },
                Some(Delivered::Done(events)) => {
                    self.release(Some(events));
                    return None;
                }
                None => return None,
            }
        }
    }

    fn release(&self, events: Option<Vec<InboxItemId>>) {
        self.inbox.release(&events.unwrap_or_default());
    }
}

/// Returns the delay before the next attempt.
fn wait(error: &SendError, attempt: u32) -> Duration {
    match error {
        SendError::Later { after } | SendError::Untidy { after: Some(after) } => {
            (*after).min(MAX_PLATFORM_DELAY)
        }
        _ => FIRST_RETRY_DELAY.saturating_mul(2u32.saturating_pow(attempt)).min(MAX_RETRY_DELAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_with_failures_up_to_a_limit() {
        let later = |seconds| SendError::Later { after: Duration::from_secs(seconds) };
        let failed = || SendError::Unreachable("x".into());
        let cases = [
            (later(7), 3, 7),
            (later(u64::MAX), 0, 3600),
            (SendError::Untidy { after: Some(Duration::from_secs(9)) }, 3, 9),
            (SendError::Untidy { after: None }, 1, 2),
            (failed(), 0, 1),
            (failed(), 4, 16),
            (failed(), 40, 60),
        ];
        for (error, attempt, seconds) in cases {
            assert_eq!(wait(&error, attempt), Duration::from_secs(seconds), "{error} {attempt}");
        }
    }
}
