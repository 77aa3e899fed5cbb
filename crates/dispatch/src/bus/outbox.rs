//! The outbox: a reply is kept before it is sent, and its events are done only when people see it.

use crate::bus::{
    Inbox,
    delivery::{Attempt, Deliverer, OutboxDelivery, OutboxItem},
    inbox,
    lane::DeliveryLanes,
    retry_until_stored,
};
use pudu_channels::{
    BoxFuture, FinalView, Hurry, KnownMessage, LiveReply, ReplyHandle, ReplyStore, ReplyStoreError,
};
use pudu_client::store::{Db, InboxItemId, NewTurn, ShownReply, TurnId};
use pudu_kit::clock;
use std::time::Duration;
use tokio_util::task::TaskTracker;

/// Keeps replies until they are delivered.
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

    /// Changes how old a reply may get.
    pub fn set_oldest(&self, oldest: Duration) {
        self.deliverer.set_oldest(oldest);
    }

    /// Returns whether a reply is too old to be sent.
    pub fn too_old(&self, item: &OutboxItem) -> bool {
        self.deliverer.too_old(item)
    }

    /// Gives a reply up; the row stays for people to look at.
    pub async fn park(&self, item: &OutboxItem, reason: &str) {
        self.deliverer.park(item, reason).await;
    }

    /// Returns the store of a reply.
    pub fn reply_store(&self, item: &OutboxItem) -> Box<dyn ReplyStore> {
        Box::new(OutboxReplyStore { db: self.deliverer.db.clone(), item: item.clone() })
    }

    /// Keeps a turn and assigns the events to it. Returns false if some events are settled or another turn's.
    pub async fn open(&self, turn: &NewTurn) -> bool {
        retry_until_stored("failed to open turn", || self.deliverer.db.open_turn(turn)).await.is_some()
    }

    /// Takes events away from a turn that does not answer them after all; they wait again.
    pub async fn give_back(&self, turn: &TurnId, items: &[InboxItemId]) {
        if !items.is_empty() {
            retry_until_stored("failed to give messages back", || self.deliverer.db.leave_turn(turn, items))
                .await;
        }
    }

    /// Keeps the final view; returns the one to deliver, which is the first one kept.
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

    /// Shows the final view and marks the turn as delivered. Returns after the first try: the rest is tried again in
    /// the reply's own time. `hurry` signals that the first try is waited for.
    pub async fn deliver(
        &self,
        item: &OutboxItem,
        mut reply: Box<dyn LiveReply>,
        view: &FinalView,
        hurry: &Hurry,
    ) {
        reply.set_hurry(hurry.clone());
        self.lanes.precede(&item.conversation).await;
        // A notice that a reply is too old is late in any case.
        let fresh = !self.too_old(item);
        let mut delivery = OutboxDelivery::new(item.clone(), reply, view.clone(), hurry.clone(), fresh);
        if delivery.asked_for || matches!(self.deliverer.attempt(&mut delivery).await, Attempt::Failed) {
            self.lanes.wait(delivery);
        }
    }

    /// Gives up the files of replies that wait in a conversation for their next try. Returns whether there are such
    /// replies.
    pub fn stop_files(&self, conversation: &str) -> bool {
        self.lanes.stop(conversation)
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

    fn known_messages<'a>(&'a self, since: i64) -> BoxFuture<'a, Result<Vec<KnownMessage>, ReplyStoreError>> {
        Box::pin(inbox::sightings(&self.db, &self.item.account, since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_channels::{ReplyView, SendError};
    use pudu_client::store::DbLocation;
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };
    use tokio_util::sync::CancellationToken;

    /// Fails each time.
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

    /// Delivers a reply that fails like this until it is too old. Returns the number of tries and of replies given up.
    async fn deliver_until_old(error: SendError) -> (u32, i64) {
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
        assert_eq!(tries.load(Ordering::Relaxed), 1, "the conversation waits for one try");
        tasks.close();
        tasks.wait().await;
        (tries.load(Ordering::Relaxed), db.parked_count("c").await.unwrap())
    }

    #[tokio::test]
    async fn a_reply_that_grew_too_old_while_it_waited_is_not_sent() {
        let after = Duration::from_millis(500);
        assert_eq!(deliver_until_old(SendError::Later { after }).await, (1, 1));
    }

    #[tokio::test]
    async fn a_delivered_reply_is_not_given_up_for_a_message_that_is_left_to_delete() {
        let after = Some(Duration::from_millis(500));
        assert_eq!(deliver_until_old(SendError::Untidy { after }).await, (2, 0));
    }
}
