//! The outbox: a reply is kept before it is sent, and its events are done only when people see it.

use crate::{
    bus::{Inbox, inbox, lane::DeliveryLanes, retry_until_stored},
    clock,
};
use pudu_channels::{
    BoxFuture, FinalView, Hurry, KnownMessage, LiveReply, ReplyHandle, ReplyStore, ReplyStoreError, SendError,
};
use pudu_client::store::{Db, Delivered, InboxItemId, NewTurn, ShownReply, TurnId};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio_util::task::TaskTracker;

/// The first wait after a failed delivery; each next is twice as long.
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Maximum delay of our own before the next try. It may end sooner when the platform answers another call
/// of the account.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);
/// Maximum delay that a platform may ask for: then it is asked again.
const MAX_PLATFORM_DELAY: Duration = Duration::from_secs(3600);

/// A reply on its way.
#[derive(Clone, Debug)]
pub(crate) struct OutboxItem {
    /// The turn.
    pub(crate) turn: TurnId,
    /// The conversation's key.
    pub(crate) conversation: String,
    /// The account that replies.
    pub(crate) account: String,
    /// The chat.
    pub(crate) chat: String,
    /// When the turn was opened, in milliseconds since 1970.
    pub(crate) created: i64,
    /// Before this moment the platform wants no call, in milliseconds since 1970.
    pub(crate) not_before: i64,
}

/// A reply on its way, and how its tries went.
pub(super) struct OutboxDelivery {
    pub(super) item: OutboxItem,
    reply: Box<dyn LiveReply>,
    view: FinalView,
    pub(super) hurry: Hurry,
    /// Whether it was young enough to be sent when it was taken on.
    fresh: bool,
    failures: u32,
    /// Whether somebody waited for it already.
    hastened: bool,
    /// When it is tried next.
    pub(super) due: Instant,
    /// Whether the platform wants no call before then, whatever else works.
    pub(super) asked_for: bool,
}

impl OutboxDelivery {
    /// Makes the next try due at once, since somebody waits for the reply. The first call overrides even a
    /// wait that the platform asked for: perhaps a file alone waits, which is given up then.
    pub(super) fn hasten(&mut self) {
        if !std::mem::replace(&mut self.hastened, true) {
            self.due = Instant::now();
        }
    }

    /// Waits for the next try, which may come sooner when the platform answers another call.
    pub(super) async fn pause(&mut self) {
        let wait = self.due.saturating_duration_since(Instant::now());
        match self.asked_for {
            true => tokio::time::sleep(wait).await,
            false => self.reply.pause(wait).await,
        }
    }
}

/// Result of a try.
pub(super) enum Attempt {
    /// Nothing is left to do.
    Settled,
    /// It is to be tried again.
    Failed,
}

/// Keeps replies until they are delivered.
#[derive(Clone)]
pub(crate) struct Outbox {
    db: Db,
    inbox: Inbox,
    lanes: DeliveryLanes,
    /// Tasks of the lanes, in which replies wait for their next try.
    pub(super) tasks: TaskTracker,
    /// A reply older than this is not sent any more: nobody waits for it, and it would surprise. In
    /// milliseconds; changes with the configuration.
    oldest: Arc<AtomicU64>,
}

/// Gives up what keeps a reply that is too old to be tried on, and is not all of it: its files, of which its words tell
/// then. Returns whether there is such a thing.
fn gives_up_files(view: &FinalView, hurry: &Hurry) -> bool {
    let last = !view.files.is_empty() && !hurry.is_stopped();
    if last {
        hurry.stop();
    }
    last
}

impl Outbox {
    pub(crate) fn new(db: Db, inbox: Inbox, oldest: Duration, tasks: TaskTracker) -> Self {
        let outbox = Self { db, inbox, lanes: DeliveryLanes::default(), tasks, oldest: Arc::default() };
        outbox.set_oldest(oldest);
        outbox
    }

    /// Changes how old a reply may get.
    pub(crate) fn set_oldest(&self, oldest: Duration) {
        self.oldest.store(u64::try_from(oldest.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the store of a reply.
    pub(crate) fn reply_store(&self, item: &OutboxItem) -> Box<dyn ReplyStore> {
        Box::new(OutboxReplyStore { db: self.db.clone(), item: item.clone() })
    }

    /// Keeps a turn and makes the events its own. False when some of them are settled or another turn's.
    pub(crate) async fn open(&self, turn: &NewTurn) -> bool {
        retry_until_stored("a turn could not be opened", || self.db.open_turn(turn)).await.is_some()
    }

    /// Takes events away from a turn that does not answer them after all; they wait again.
    pub(crate) async fn give_back(&self, turn: &TurnId, items: &[InboxItemId]) {
        if !items.is_empty() {
            retry_until_stored("messages could not be taken back", || self.db.leave_turn(turn, items)).await;
        }
    }

    /// Keeps the final view; returns the one to deliver, which is the first one kept.
    pub(crate) async fn conclude(&self, item: &OutboxItem, view: FinalView) -> FinalView {
        let kept = match serde_json::to_string(&view) {
            Ok(text) => {
                retry_until_stored("a reply could not be kept", || self.db.conclude(&item.turn, &text)).await
            }
            Err(error) => {
                tracing::error!(%error, "a reply cannot be written down");
                None
            }
        };
        kept.and_then(|kept| serde_json::from_str(&kept).ok()).unwrap_or(view)
    }

    /// Shows the final view and marks the turn as delivered. Returns after the first try: what it does not achieve is
    /// tried on in the reply's own time. `hurry` tells when somebody waits for that first try.
    pub(crate) async fn deliver(
        &self,
        item: &OutboxItem,
        mut reply: Box<dyn LiveReply>,
        view: &FinalView,
        hurry: &Hurry,
    ) {
        reply.hurry(hurry.clone());
        self.lanes.precede(&item.conversation).await;
        let early = u64::try_from(item.not_before.saturating_sub(clock::now())).unwrap_or(0);
        let mut delivery = OutboxDelivery {
            item: item.clone(),
            reply,
            view: view.clone(),
            hurry: hurry.clone(),
            // A word that a reply is too old comes late by itself.
            fresh: !self.too_old(item),
            failures: 0,
            hastened: false,
            due: Instant::now() + Duration::from_millis(early).min(MAX_PLATFORM_DELAY),
            asked_for: false,
        };
        if early > 0 || matches!(self.attempt(&mut delivery).await, Attempt::Failed) {
            self.lanes.wait(self, delivery);
        }
    }

    /// Lets the files of replies go that wait in a conversation for their next try. Tells whether there are such
    /// replies.
    pub(crate) fn stop_files(&self, conversation: &str) -> bool {
        self.lanes.stop(conversation)
    }

    /// Tries to deliver a reply, once.
    pub(super) async fn attempt(&self, delivery: &mut OutboxDelivery) -> Attempt {
        let OutboxDelivery { item, reply, view, hurry, fresh, .. } = delivery;
        let error = loop {
            if *fresh && self.too_old(item) && !gives_up_files(view, hurry) {
                self.park(item, "too old to be sent").await;
                return Attempt::Settled;
            }
            let error = match reply.finish(view).await {
                // Somebody chose something below it meanwhile: that is shown, too.
                Ok(()) => match self.done(item, view).await {
                    Some(newer) => {
                        *view = newer;
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

    /// Notes that a try failed, and when the next one may come.
    async fn put_off(&self, delivery: &mut OutboxDelivery, error: &SendError) {
        let wait = wait(error, delivery.failures);
        delivery.failures += 1;
        delivery.due = Instant::now() + wait;
        delivery.asked_for = matches!(error, SendError::Later { .. });
        let OutboxItem { account, chat, turn, .. } = &delivery.item;
        tracing::warn!(account, chat, turn = turn.0, %error, ?wait, "a reply could not be delivered and is tried again");
        let next = clock::now().saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
        if let Err(error) = self.db.failed(turn, &error.to_string(), next).await {
            tracing::warn!(%error, "an attempt could not be noted");
        }
    }

    /// Returns whether a reply is too old to be sent.
    pub(crate) fn too_old(&self, item: &OutboxItem) -> bool {
        let age = clock::now().saturating_sub(item.created);
        u64::try_from(age).is_ok_and(|age| age > self.oldest.load(Ordering::Relaxed))
    }

    /// Gives a reply up; the row stays for people to look at.
    pub(crate) async fn park(&self, item: &OutboxItem, reason: &str) {
        let OutboxItem { account, chat, turn, .. } = item;
        tracing::error!(account, chat, turn = turn.0, reason, "a reply is given up");
        let park = || self.db.park(&item.turn, reason, clock::now());
        self.release(retry_until_stored("a reply could not be given up", park).await);
    }

    /// Marks a reply as delivered, unless it reads otherwise by now: then that is returned.
    async fn done(&self, item: &OutboxItem, view: &FinalView) -> Option<FinalView> {
        let (mut shown, keep) = (serde_json::to_string(view).ok(), !view.choices.is_empty());
        loop {
            let done = || self.db.delivered(&item.turn, shown.as_deref(), keep, clock::now());
            match retry_until_stored("a delivered reply could not be marked", done).await {
                Some(Delivered::Outdated(newer)) => match serde_json::from_str::<FinalView>(&newer) {
                    Ok(newer) if newer != *view => return Some(newer),
                    // Another version wrote it in other letters.
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

/// Returns how long to wait before the next try.
fn wait(error: &SendError, attempt: u32) -> Duration {
    match error {
        SendError::Later { after } => (*after).min(MAX_PLATFORM_DELAY),
        _ => FIRST_RETRY_DELAY.saturating_mul(2u32.saturating_pow(attempt)).min(MAX_RETRY_DELAY),
    }
}

/// State that one reply keeps of itself.
struct OutboxReplyStore {
    db: Db,
    item: OutboxItem,
}

impl ReplyStore for OutboxReplyStore {
    fn save<'a>(&'a self, handle: &'a ReplyHandle) -> BoxFuture<'a, Result<(), ReplyStoreError>> {
        Box::pin(async move {
            let text = serde_json::to_string(handle).map_err(|error| ReplyStoreError(error.to_string()))?;
            let shown = ShownReply {
                handle: text,
                conversation: self.item.conversation.clone(),
                account: self.item.account.clone(),
                chat: self.item.chat.clone(),
                messages: handle.messages.clone(),
            };
            let saved = self.db.save_handle(&self.item.turn, &shown, clock::now()).await;
            saved.map_err(|error| ReplyStoreError(error.to_string()))
        })
    }

    fn known<'a>(&'a self, since: i64) -> BoxFuture<'a, Result<Vec<KnownMessage>, ReplyStoreError>> {
        Box::pin(inbox::sightings(&self.db, &self.item.account, since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_channels::ReplyView;
    use pudu_client::store::DbLocation;
    use std::sync::atomic::AtomicU32;
    use tokio_util::sync::CancellationToken;

    #[test]
    fn no_platform_is_waited_for_longer_than_an_hour() {
        let later = |seconds| SendError::Later { after: Duration::from_secs(seconds) };
        let failed = || SendError::Unreachable("x".into());
        let cases = [
            (later(7), 3, 7),
            (later(u64::MAX), 0, 3600),
            (failed(), 0, 1),
            (failed(), 4, 16),
            (failed(), 40, 60),
        ];
        for (error, attempt, seconds) in cases {
            assert_eq!(wait(&error, attempt), Duration::from_secs(seconds), "{error} {attempt}");
        }
    }

    /// Asks to wait each time.
    struct Busy(Arc<AtomicU32>, Duration);

    impl LiveReply for Busy {
        fn ready<'a>(&'a mut self) -> BoxFuture<'a, ()> {
            Box::pin(async {})
        }

        fn update<'a>(&'a mut self, _: &'a ReplyView) -> BoxFuture<'a, Result<(), SendError>> {
            Box::pin(async { Ok(()) })
        }

        fn finish<'a>(&'a mut self, _: &'a FinalView) -> BoxFuture<'a, Result<(), SendError>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(async { Err(SendError::Later { after: self.1 }) })
        }
    }

    #[tokio::test]
    async fn a_reply_that_grew_too_old_while_it_waited_is_not_sent() {
        let home = tempfile::tempdir().unwrap();
        let db = Db::open(&DbLocation::Sqlite(home.path().join("pudu.db"))).await.unwrap();
        let (inbox, _taken) = Inbox::new(db.clone(), 8, &TaskTracker::new(), CancellationToken::new());
        let tasks = TaskTracker::new();
        let outbox = Outbox::new(db.clone(), inbox, Duration::from_millis(400), tasks.clone());
        let item = OutboxItem {
            turn: TurnId("t".into()),
            conversation: "c".into(),
            account: "a".into(),
            chat: "1".into(),
            created: clock::now(),
            not_before: 0,
        };
        let turn = NewTurn {
            id: item.turn.clone(),
            conversation: "c".into(),
            account: "a".into(),
            thread: None,
            run: None,
            reply_target: String::new(),
            items: Vec::new(),
            final_view: None,
            now: item.created,
        };
        assert!(outbox.open(&turn).await);
        let tries = Arc::new(AtomicU32::new(0));
        let reply = Box::new(Busy(tries.clone(), Duration::from_millis(500)));
        outbox.deliver(&item, reply, &FinalView::default(), &Hurry::default()).await;
        assert_eq!(tries.load(Ordering::Relaxed), 1, "the conversation waits for one try");
        tasks.close();
        tasks.wait().await;
        assert_eq!((tries.load(Ordering::Relaxed), db.parked_count("c").await.unwrap()), (1, 1));
    }
}
