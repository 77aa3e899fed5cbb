//! The outbox: a reply is stored before it is sent, and its events are done only when the reply is visible.

use crate::bus::{
    Inbox,
    delivery::{Attempt, Deliverer, OutboxDelivery, OutboxItem},
    inbox,
    lane::DeliveryLanes,
    retry_until_stored,
};
use pudu_channels::{
    BoxFuture, FinalView, Hurry, KnownMessage, LiveReply, ReplyHandle, ReplyStore, ReplyStoreError,
    ReplyView, SendError,
};
use pudu_kit::clock;
use pudu_store::{Db, InboxItemId, NewTurn, ShownReply, TurnId};
use std::time::Duration;
use tokio_util::task::TaskTracker;

/// Delay before another attempt to show a question that an earlier reply holds back.
const HELD_BACK_DELAY: Duration = Duration::from_secs(1);

/// Stores replies until they are delivered.
#[derive(Clone)]
pub struct Outbox {
    deliverer: Deliverer,
    lanes: DeliveryLanes,
}

impl Outbox {
    /// Creates an outbox that gives up replies older than `oldest`.
    pub fn new(db: Db, inbox: Inbox, oldest: Duration, tasks: TaskTracker) -> Self {
        let deliverer = Deliverer::new(db, inbox, oldest);
        Self { lanes: DeliveryLanes::new(deliverer.clone(), tasks), deliverer }
    }

    /// Sets the maximum age of a reply.
    pub fn set_oldest(&self, oldest: Duration) {
        self.deliverer.set_oldest(oldest);
    }

    /// Returns whether a reply is too old to be sent.
    pub fn too_old(&self, item: &OutboxItem) -> bool {
        self.deliverer.too_old(item)
    }

    /// Gives a reply up. Its row stays in the store for inspection.
    pub async fn park(&self, item: &OutboxItem, reason: &str) {
        self.deliverer.park(item, reason).await;
    }

    /// Returns the store for the state of a reply.
    pub fn reply_store(&self, item: &OutboxItem) -> Box<dyn ReplyStore> {
        Box::new(OutboxReplyStore { db: self.deliverer.db.clone(), item: item.clone() })
    }

    /// Stores a turn and assigns the events to it. Returns false if some events are done or belong to another turn.
    pub async fn open(&self, turn: &NewTurn) -> bool {
        retry_until_stored("failed to open turn", || self.deliverer.db.open_turn(turn)).await.is_some()
    }

    /// Detaches events from a turn that does not answer them after all. They then wait again.
    pub async fn give_back(&self, turn: &TurnId, items: &[InboxItemId]) {
        if !items.is_empty() {
            retry_until_stored("failed to give messages back", || self.deliverer.db.leave_turn(turn, items))
                .await;
        }
    }

    /// Stores the final view, unless one is already stored. Returns the stored one, to be delivered.
    pub async fn conclude(&self, item: &OutboxItem, view: FinalView) -> FinalView {
        let kept = match serde_json::to_string(&view) {
            Ok(text) => {
                retry_until_stored("failed to store reply", || self.deliverer.db.conclude(&item.turn, &text))
                    .await
            }
            Err(error) => {
                tracing::error!(%error, "failed to encode reply");
                None
            }
        };
        kept.and_then(|kept| serde_json::from_str(&kept).ok()).unwrap_or(view)
    }

    /// Shows the final view and marks the turn as delivered. Returns after the first attempt, or at once if earlier
    /// replies of the conversation still wait; further attempts follow later. `hurry` signals that something is waiting
    /// for the first attempt.
    pub async fn deliver(
        &self,
        item: &OutboxItem,
        mut reply: Box<dyn LiveReply>,
        view: &FinalView,
        hurry: &Hurry,
    ) {
        reply.set_hurry(hurry.clone());
        let held_back = self.lanes.precede(&item.conversation).await;
        // A notice that a reply is too old is always late, and is sent anyway.
        let fresh = !self.too_old(item);
        let mut delivery = OutboxDelivery::new(item.clone(), reply, view.clone(), hurry.clone(), fresh);
        if held_back
            || delivery.asked_for
            || matches!(self.deliverer.attempt(&mut delivery).await, Attempt::Failed)
        {
            self.lanes.wait(delivery);
        }
    }

    /// Wraps a reply so that it does not appear while an earlier reply of its conversation is waiting.
    pub fn in_order(&self, item: &OutboxItem, reply: Box<dyn LiveReply>) -> Box<dyn LiveReply> {
        let (lanes, conversation) = (self.lanes.clone(), item.conversation.clone());
        Box::new(OrderedReply { reply, lanes, conversation, shown: false })
    }

    /// Gives up the files of a conversation's waiting replies. Returns whether any reply is waiting.
    pub fn stop_files(&self, conversation: &str) -> bool {
        self.lanes.stop(conversation)
    }
}

/// A reply whose first message waits for earlier replies of the conversation, so that it appears below them.
struct OrderedReply {
    reply: Box<dyn LiveReply>,
    lanes: DeliveryLanes,
    conversation: String,
    /// Whether its first message is in the chat.
    shown: bool,
}

impl LiveReply for OrderedReply {
    fn ready<'a>(&'a mut self) -> BoxFuture<'a, ()> {
        self.reply.ready()
    }

    fn next_refresh<'a>(&'a mut self) -> BoxFuture<'a, ()> {
        self.reply.next_refresh()
    }

    fn pause<'a>(&'a mut self, wait: Duration) -> BoxFuture<'a, ()> {
        self.reply.pause(wait)
    }

    fn update<'a>(&'a mut self, view: &'a ReplyView) -> BoxFuture<'a, Result<(), SendError>> {
        if !self.shown && self.lanes.holds_back(&self.conversation) {
            return Box::pin(std::future::ready(Err(SendError::Later { after: HELD_BACK_DELAY })));
        }
        Box::pin(async move { self.reply.update(view).await.inspect(|()| self.shown = true) })
    }

    fn set_hurry(&mut self, hurry: Hurry) {
        self.reply.set_hurry(hurry);
    }

    fn finish<'a>(&'a mut self, view: &'a FinalView) -> BoxFuture<'a, Result<(), SendError>> {
        self.reply.finish(view)
    }
}

/// Stored state of one reply.
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

    fn known_messages<'a>(&'a self, since: i64) -> BoxFuture<'a, Result<Vec<KnownMessage>, ReplyStoreError>> {
        Box::pin(inbox::sightings(&self.db, &self.item.account, since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_store::DbLocation;
    use std::{
        path::Path,
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
    };
    use tokio_util::sync::CancellationToken;

    /// Fails on each attempt.
    struct Busy(Arc<AtomicU32>, SendError);

    impl LiveReply for Busy {
        fn ready<'a>(&'a mut self) -> BoxFuture<'a, ()> {
            Box::pin(async {})
        }

        fn update<'a>(&'a mut self, _: &'a ReplyView) -> BoxFuture<'a, Result<(), SendError>> {
            Box::pin(async { Ok(()) })
        }

        fn finish<'a>(&'a mut self, _: &'a FinalView) -> BoxFuture<'a, Result<(), SendError>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(async { Err(self.1.clone()) })
        }
    }

    /// Opens an outbox in a folder. It gives up replies older than 400 milliseconds.
    async fn outbox(home: &Path, tasks: &TaskTracker) -> Outbox {
        let db = Db::open(&DbLocation::Sqlite(home.join("pudu.db"))).await.unwrap();
        let (inbox, _taken) = Inbox::new(db.clone(), 8, &TaskTracker::new(), CancellationToken::new());
        Outbox::new(db, inbox, Duration::from_millis(400), tasks.clone())
    }

    fn item() -> OutboxItem {
        OutboxItem {
            turn: TurnId("t".into()),
            conversation: "c".into(),
            account: "a".into(),
            chat: "1".into(),
            created: clock::now(),
            not_before: 0,
        }
    }

    #[tokio::test]
    async fn a_reply_that_waits_holds_newer_ones_back_though_it_never_failed() {
        let home = tempfile::tempdir().unwrap();
        let outbox = outbox(home.path(), &TaskTracker::new()).await;
        let reply = Box::new(Busy(Arc::default(), SendError::Unreachable("x".into())));
        let (view, hurry) = (FinalView::default(), Hurry::default());
        outbox.lanes.wait(OutboxDelivery::new(item(), reply, view, hurry, true));
        assert!(outbox.lanes.holds_back("c"));
        assert!(!outbox.lanes.holds_back("d"));
    }

    /// Delivers a reply that keeps failing with `error` until it is too old. Returns the number of attempts and of
    /// replies given up.
    async fn deliver_until_old(error: SendError) -> (u32, i64) {
        let (home, tasks) = (tempfile::tempdir().unwrap(), TaskTracker::new());
        let (outbox, item) = (outbox(home.path(), &tasks).await, item());
        let turn = NewTurn {
            id: item.turn.clone(),
            conversation: "c".into(),
            account: "a".into(),
            folder: None,
            run: None,
            reply_target: String::new(),
            items: Vec::new(),
            people: Vec::new(),
            final_view: None,
            now: item.created,
        };
        assert!(outbox.open(&turn).await);
        let tries = Arc::new(AtomicU32::new(0));
        let reply = Box::new(Busy(tries.clone(), error));
        outbox.deliver(&item, reply, &FinalView::default(), &Hurry::default()).await;
        assert_eq!(tries.load(Ordering::Relaxed), 1, "the conversation waits for one attempt");
        tasks.close();
        tasks.wait().await;
        (tries.load(Ordering::Relaxed), outbox.deliverer.db.parked_count("c").await.unwrap())
    }

    #[tokio::test]
    async fn reply_that_became_too_old_while_waiting_is_not_sent() {
        let after = Duration::from_millis(500);
        assert_eq!(deliver_until_old(SendError::Later { after }).await, (1, 1));
    }

    #[tokio::test]
    async fn delivered_reply_is_not_given_up_because_of_a_leftover_message() {
        let after = Some(Duration::from_millis(500));
        assert_eq!(deliver_until_old(SendError::Untidy { after }).await, (2, 0));
    }
}
