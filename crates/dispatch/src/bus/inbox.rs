//! The inbox: durable, deduplicated, bounded.

use crate::bus::{
    STORE_TIMEOUT,
    concealed::{ConcealedValues, EventIdentity},
    held::{HeldEvents, StoreOutcome},
    retry_until_stored,
};
use futures_util::{StreamExt, stream::FuturesOrdered};
use pudu_channels::{
    AcceptError, Accepted, Address, BoxFuture, EventSink, Inbound, InboundKind, KnownMessage,
    ReplyStoreError, StreamPosition,
};
use pudu_kit::clock;
use pudu_store::{Db, InboxItemId, InboxRow, InsertedEvent, NewInboxItem};
use secrecy::SecretString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::{
    sync::{
        mpsc::{self, error::TrySendError},
        watch,
    },
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Minimum age, in milliseconds, of a stored event without an outcome and without a handler before it is dispatched
/// again. Normally a handler takes it within a few milliseconds of its commit.
const FORGOTTEN: i64 = 15_000;
/// Minimum capacity of the queue of events to store, for all accounts together.
const MIN_QUEUED_EVENTS: usize = 1024;

/// A stored event that waits for its outcome.
#[derive(Clone, Debug)]
pub struct InboxItem {
    /// Its number in the inbox.
    pub id: InboxItemId,
    /// The event.
    pub inbound: Inbound,
    /// When this process received it.
    pub came: Instant,
}

/// Stores incoming events and passes them to the dispatcher.
#[derive(Clone)]
pub struct Inbox(Arc<Inner>);

struct Inner {
    db: Db,
    limit: usize,
    held: Mutex<HeldEvents>,
    /// Secrets that were removed from events.
    concealed: ConcealedValues,
    /// Sends events to the task that stores them.
    incoming_sender: mpsc::Sender<Incoming>,
    /// Sends stored events to the dispatcher.
    out: mpsc::Sender<InboxItem>,
}

/// An event to store.
struct Incoming {
    inbound: Inbound,
    position: Option<StreamPosition>,
    room: QueueSlot,
    outcome_sender: watch::Sender<StoreOutcome>,
}

impl Inbox {
    /// Creates an inbox that holds at most `limit` waiting events for each account, and the receiver of its events. The
    /// task that stores events runs in `tasks` until `stop`.
    pub fn new(
        db: Db,
        limit: usize,
        tasks: &TaskTracker,
        stop: CancellationToken,
    ) -> (Self, mpsc::Receiver<InboxItem>) {
        let limit = limit.max(1);
        let (out, taken) = mpsc::channel(limit);
        let (incoming_sender, incoming) = mpsc::channel(limit.max(MIN_QUEUED_EVENTS));
        let inner = Arc::new(Inner {
            db,
            limit,
            held: Mutex::default(),
            concealed: ConcealedValues::default(),
            incoming_sender,
            out,
        });
        let keeper = inner.clone().keep(incoming);
        tasks.spawn(async move { stop.run_until_cancelled(keeper).await });
        (Self(inner), taken)
    }

    /// Returns the events that an earlier process stored and did not finish, each with its turn if it has one. Called
    /// once, before any event is accepted.
    pub async fn recover(&self) -> Vec<(InboxItem, Option<String>)> {
        let items = retry_until_stored("failed to read pending events", || self.0.db.pending()).await;
        let mut left = Vec::new();
        for item in items.unwrap_or_default() {
            let turn = item.turn.clone();
            if let Some(arrival) = self.take_up(item).await {
                left.push((arrival, turn.map(|turn| turn.0)));
            }
        }
        left
    }

    /// Dispatches stored events again that no handler holds, for example because their handler failed.
    pub async fn sweep(&self) {
        let old = clock::now().saturating_sub(FORGOTTEN);
        let Ok(ids) = self.0.db.waiting_since(old).await else { return };
        // Events that were stored just now, after an outage, are dispatched by the task that stored them.
        if !self.0.held().rooms.is_empty() {
            return;
        }
        let forgotten =
            ids.into_iter().filter(|id| !self.0.held().items.contains_key(id)).collect::<Vec<_>>();
        for id in forgotten {
            tracing::warn!(item = id.0, "dispatching stored event without a handler");
            self.dispatch_stored(id).await;
        }
    }

    /// Dispatches an event that was stored in another way than by a channel, unless it is done or has a turn.
    pub async fn dispatch_stored(&self, id: InboxItemId) {
        let Ok(Some(item)) = self.0.db.waiting(id).await else { return };
        if let Some(arrival) = self.take_up(item).await {
            self.0.out.send(arrival).await.ok();
        }
    }

    /// Holds an item, or gives it up if it is unreadable.
    async fn take_up(&self, item: InboxRow) -> Option<InboxItem> {
        match serde_json::from_str(&item.payload) {
            Ok(inbound) => {
                self.0.held().hold(item.id, &inbound);
                Some(InboxItem { id: item.id, inbound, came: Instant::now() })
            }
            Err(error) => {
                tracing::error!(item = item.id.0, %error, "dropped stored event: decode error");
                self.finish(&[item.id]).await;
                None
            }
        }
    }

    /// Marks events as done that get no reply of their own.
    pub async fn finish(&self, ids: &[InboxItemId]) {
        if let Err(error) = self.0.db.finish(ids, clock::now()).await {
            tracing::error!(%error, "failed to mark events as done; checking them again");
        }
        self.release(ids);
    }

    /// Stops holding events: they are done, or left to another process.
    pub fn release(&self, ids: &[InboxItemId]) {
        let mut held = self.0.held();
        for id in ids {
            let gone = held.items.remove(id);
            held.forget(gone);
        }
    }

    /// Stores a message that does not address the bot but replies to one of the bot's messages: not every platform
    /// reports the author of the message being replied to.
    async fn accept_answer(
        &self,
        inbound: Inbound,
        position: Option<StreamPosition>,
    ) -> Result<Accepted, AcceptError> {
        let (address, answered) = (&inbound.address, inbound.reply_to.as_deref().unwrap_or_default());
        let found = self.0.soon().conversation_of(&address.account, &address.chat, answered).await;
        match found.map_err(|error| AcceptError::Store(error.to_string()))? {
            Some((_, true)) => self.take(Inbound { addressed: true, ..inbound }, position).await,
            _ => {
                self.concealed(&inbound);
                Ok(Accepted::Unaddressed)
            }
        }
    }

    /// # Cancel safety
    /// Dropping the future changes nothing: the event is stored and answered anyway.
    fn take(
        &self,
        mut inbound: Inbound,
        position: Option<StreamPosition>,
    ) -> BoxFuture<'_, Result<Accepted, AcceptError>> {
        self.0.concealed.conceal(&mut inbound);
        // Group messages that do not address the bot, and their edits, are not stored here. `Shared` buffers them for
        // accounts that are configured for it.
        if !inbound.addressed {
            let changed = matches!(inbound.kind, InboundKind::Edit { .. } | InboundKind::Recall);
            if changed && let Some(address) = self.waiting(&inbound) {
                inbound = Inbound { address, addressed: true, ..inbound };
            } else if self.0.held().has_part(&inbound) {
                // Only one part of an album mentions the bot.
                inbound.addressed = true;
            } else if matches!(inbound.kind, InboundKind::Message { .. }) && inbound.reply_to.is_some() {
                return Box::pin(self.accept_answer(inbound, position));
            } else {
                self.concealed(&inbound);
                return Box::pin(std::future::ready(Ok(Accepted::Unaddressed)));
            }
        }
        let sent = self.0.send(inbound, position);
        // An event that is refused because of a slow store is stored anyway once the store is back; the platform's
        // redelivery is then a duplicate.
        Box::pin(async move {
            let (mut outcome, copy) = sent?;
            let stored = tokio::time::timeout(STORE_TIMEOUT, outcome.wait_for(Option::is_some)).await;
            let stored = stored.map_err(|_| AcceptError::Store("the store does not answer".to_owned()))?;
            let accepted =
                stored.ok().and_then(|stored| stored.clone()).unwrap_or_else(|| Err(stopping()))?;
            Ok(if copy { Accepted::Duplicate } else { accepted })
        })
    }

    /// Returns the address of the waiting message that a change applies to. The new text of a message to the bot need
    /// not address the bot again.
    fn waiting(&self, change: &Inbound) -> Option<Address> {
        self.0.held().place(&change.address, &change.message)
    }

    /// Takes the secret that was removed from an event. The inbox no longer keeps it.
    pub fn concealed(&self, inbound: &Inbound) -> Option<SecretString> {
        self.0.concealed.take(inbound)
    }

    /// Returns the maximum number of waiting events of an account.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// Returns whether an account accepts no more events.
    pub fn is_full(&self, account: &str) -> bool {
        self.0.held().is_full(account, 0, self.0.limit)
    }
}

impl Inner {
    /// Returns the store with a time limit, for a platform that waits for the acknowledgement.
    fn soon(&self) -> Db {
        self.db.within(STORE_TIMEOUT)
    }

    fn held(&self) -> MutexGuard<'_, HeldEvents> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues an event to be stored. Returns a receiver of its outcome, and whether it is a copy of an event that is
    /// already queued; a copy takes no place in the queue.
    fn send(
        self: &Arc<Self>,
        inbound: Inbound,
        position: Option<StreamPosition>,
    ) -> Result<(watch::Receiver<StoreOutcome>, bool), AcceptError> {
        let (outcome_sender, outcome) = watch::channel(None);
        let identity = (inbound.address.account.clone(), inbound.key.clone());
        {
            let mut held = self.held();
            if let Some((_, first)) = held.rooms.get(&identity) {
                return Ok((first.clone(), true));
            }
            if held.is_full(&identity.0, inbound.size(), self.limit) {
                return Err(AcceptError::Full);
            }
            let event = held.event(&inbound);
            held.rooms.insert(identity.clone(), (event, outcome.clone()));
        }
        let room = QueueSlot(Arc::downgrade(self), identity);
        let sent = self.incoming_sender.try_send(Incoming { inbound, position, room, outcome_sender });
        sent.map_err(|unsent| {
            let (refusal, event) = match unsent {
                TrySendError::Full(event) => (AcceptError::Full, event),
                TrySendError::Closed(event) => (stopping(), event),
            };
            // A copy may already be waiting for this outcome.
            event.outcome_sender.send_replace(Some(Err(refusal.clone())));
            refusal
        })?;
        Ok((outcome, false))
    }

    /// Stores events concurrently, so that they share a commit, and passes them on in order of arrival. An event is
    /// stored and answered even if its caller goes away.
    async fn keep(self: Arc<Self>, mut incoming: mpsc::Receiver<Incoming>) {
        let mut storing = FuturesOrdered::new();
        loop {
            tokio::select! {
                biased;
                Some((event, stored)) = storing.next() => self.pass_on(event, stored).await,
                Some(event) = incoming.recv() => storing.push_back(async {
                    let stored = self.store(&event.inbound, event.position.as_ref()).await;
                    (event, stored)
                }),
                else => return,
            }
        }
    }

    async fn pass_on(&self, event: Incoming, stored: Result<InsertedEvent, AcceptError>) {
        let Incoming { inbound, room, outcome_sender, .. } = event;
        let kept = match stored {
            Ok(InsertedEvent::New(id)) => {
                self.held().hold(id, &inbound);
                // If the dispatcher no longer receives events, the next process dispatches this one.
                self.out.send(InboxItem { id, inbound, came: Instant::now() }).await.ok();
                Ok(Accepted::New)
            }
            Ok(InsertedEvent::Duplicate) => Ok(Accepted::Duplicate),
            Err(refusal) => Err(refusal),
        };
        drop(room);
        outcome_sender.send_replace(Some(kept));
    }

    async fn store(
        &self,
        inbound: &Inbound,
        position: Option<&StreamPosition>,
    ) -> Result<InsertedEvent, AcceptError> {
        let failed = |error: String| AcceptError::Store(error);
        let payload = serde_json::to_string(inbound).map_err(|error| failed(error.to_string()))?;
        let theirs = matches!(inbound.kind, InboundKind::Message { .. });
        let item = NewInboxItem {
            account: inbound.address.account.clone(),
            event_key: inbound.key.0.clone(),
            chat: inbound.address.chat.clone(),
            message: theirs.then(|| inbound.message.clone()),
            payload,
            at: clock::now(),
            position: position.map(|position| position.0.clone()),
        };
        self.db.accept(&item).await.map_err(|error| failed(error.to_string()))
    }
}

fn stopping() -> AcceptError {
    AcceptError::Store("the daemon is stopping".to_owned())
}

/// Place in the queue, released on drop.
struct QueueSlot(Weak<Inner>, EventIdentity);

impl Drop for QueueSlot {
    fn drop(&mut self) {
        if let Some(inner) = self.0.upgrade() {
            let mut held = inner.held();
            let gone = held.rooms.remove(&self.1);
            held.forget(gone.map(|(event, _)| event));
        }
    }
}

/// Returns the messages of an account that were seen or sent since `since`.
pub(super) async fn sightings(
    db: &Db,
    account: &str,
    since: i64,
) -> Result<Vec<KnownMessage>, ReplyStoreError> {
    let known = db.known_since(account, since).await.map_err(|error| ReplyStoreError(error.to_string()))?;
    Ok(known.into_iter().map(|(chat, message)| KnownMessage { chat, message }).collect())
}

impl EventSink for Inbox {
    fn accept<'a>(&'a self, inbound: Inbound) -> BoxFuture<'a, Result<Accepted, AcceptError>> {
        self.take(inbound, None)
    }

    fn accept_at<'a>(
        &'a self,
        inbound: Inbound,
        position: StreamPosition,
    ) -> BoxFuture<'a, Result<Accepted, AcceptError>> {
        self.take(inbound, Some(position))
    }

    fn save_position<'a>(
        &'a self,
        account: &'a str,
        position: StreamPosition,
    ) -> BoxFuture<'a, Result<(), ReplyStoreError>> {
        Box::pin(async move {
            let saved = self.0.soon().save_position(account, &position.0, clock::now()).await;
            saved.map_err(|error| ReplyStoreError(error.to_string()))
        })
    }

    fn position<'a>(
        &'a self,
        account: &'a str,
    ) -> BoxFuture<'a, Result<Option<StreamPosition>, ReplyStoreError>> {
        Box::pin(async move {
            let kept = self.0.soon().position(account).await;
            kept.map(|kept| kept.map(StreamPosition)).map_err(|error| ReplyStoreError(error.to_string()))
        })
    }

    fn known_messages<'a>(
        &'a self,
        account: &'a str,
        since: i64,
    ) -> BoxFuture<'a, Result<Vec<KnownMessage>, ReplyStoreError>> {
        Box::pin(async move { sightings(&self.0.soon(), account, since).await })
    }

    fn is_in_conversation<'a>(
        &'a self,
        address: &'a Address,
        message: &'a str,
    ) -> BoxFuture<'a, Result<bool, ReplyStoreError>> {
        Box::pin(async move {
            let found = self.0.soon().conversation_of(&address.account, &address.chat, message).await;
            found.map(|found| found.is_some()).map_err(|error| ReplyStoreError(error.to_string()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;
    use pudu_channels::{EventKey, Sender};
    use pudu_net::scrub;
    use pudu_store::DbLocation;
    use secrecy::ExposeSecret;
    use sqlx::{Connection, SqliteConnection};

    fn message_event(key: &str) -> Inbound {
        Inbound {
            key: EventKey(key.to_owned()),
            address: Address { account: "telegram".into(), chat: "1".into(), topic: None },
            private: true,
            message: key.to_owned(),
            reply_to: None,
            sender: Sender { id: "7".into(), name: "Ada".into(), language: None },
            addressed: true,
            at: 0,
            pointed: Vec::new(),
            hint: None,
            kind: InboundKind::Message { text: key.to_owned(), attachments: Vec::new(), album: None },
        }
    }

    #[tokio::test]
    async fn secret_typed_by_a_user_hides_nothing_in_other_texts() {
        let db = Db::open(&DbLocation::Memory).await.unwrap();
        let (inbox, _taken) = Inbox::new(db, 9, &TaskTracker::new(), CancellationToken::new());
        let words = "good morning everybody";
        let text = format!("/secret set GREETING {words}");
        let secret_message = |key: &str| Inbound {
            kind: InboundKind::Message { text: text.clone(), attachments: Vec::new(), album: None },
            ..message_event(key)
        };
        assert_eq!(inbox.accept(secret_message("1")).await, Ok(Accepted::New));
        assert_eq!([scrub::hide_in_talk(words), scrub::hide(words), scrub::hide_in_log(words)], [words; 3]);
        assert_eq!(
            inbox.concealed(&secret_message("1")).unwrap().expose_secret(),
            words,
            "the command has the secret"
        );
        // In a room others can read it, so no command accepts the secret.
        let (aside, answer) =
            (secret_message("2"), Inbound { reply_to: Some("0".into()), ..secret_message("3") });
        for inbound in [aside, answer].map(|inbound| Inbound { addressed: false, private: false, ..inbound })
        {
            assert_eq!(inbox.accept(inbound.clone()).await, Ok(Accepted::Unaddressed));
            assert!(inbox.concealed(&inbound).is_none());
        }
    }

    #[tokio::test]
    async fn copies_of_an_event_share_one_place_in_the_queue() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pudu.db");
        let db = Db::open(&DbLocation::Sqlite(file.clone())).await.unwrap();
        let (inbox, _taken) = Inbox::new(db, 2, &TaskTracker::new(), CancellationToken::new());
        let mut lock = SqliteConnection::connect(&format!("sqlite://{}", file.display())).await.unwrap();
        sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut lock).await.unwrap();
        let deliveries = join_all(["1", "1", "1", "2", "3"].map(|key| inbox.accept(message_event(key))));
        let (outcomes, unlocked) = tokio::join!(deliveries, sqlx::raw_sql("ROLLBACK").execute(&mut lock));
        unlocked.unwrap();
        let (new, copy) = (Ok(Accepted::New), Ok(Accepted::Duplicate));
        assert_eq!(outcomes, [new.clone(), copy.clone(), copy, new, Err(AcceptError::Full)]);
    }
}
