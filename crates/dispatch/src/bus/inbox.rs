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
use pudu_client::store::{Db, InboxItemId, InboxRow, InsertedEvent, NewInboxItem};
use pudu_kit::clock;
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

/// Time after which an event that waits for its outcome is dispatched again if no handler holds it, in milliseconds.
/// Only a few milliseconds are between its commit and the moment it is held.
const FORGOTTEN: i64 = 15_000;
/// Minimum capacity for events, of all accounts, that are on their way into the store.
const MIN_QUEUED_EVENTS: usize = 1024;

/// An event that was kept and waits for its outcome.
#[derive(Clone, Debug)]
pub struct InboxItem {
    /// Its number in the inbox.
    pub id: InboxItemId,
    /// The event.
    pub inbound: Inbound,
    /// When this process got it.
    pub came: Instant,
}

/// Keeps incoming events and hands them to the dispatcher.
#[derive(Clone)]
pub struct Inbox(Arc<Inner>);

struct Inner {
    db: Db,
    limit: usize,
    held: Mutex<HeldEvents>,
    /// Secrets that were taken out of events.
    concealed: ConcealedValues,
    /// To the keeper.
    way_in: mpsc::Sender<Incoming>,
    /// To the dispatcher.
    out: mpsc::Sender<InboxItem>,
}

/// An event on its way in.
struct Incoming {
    inbound: Inbound,
    position: Option<StreamPosition>,
    room: QueueSlot,
    told: watch::Sender<StoreOutcome>,
}

impl Inbox {
    /// Makes an inbox in which at most `limit` events of each account wait, and the end from which they are taken. Its
    /// keeper works among `tasks` until `stop`.
    pub fn new(
        db: Db,
        limit: usize,
        tasks: &TaskTracker,
        stop: CancellationToken,
    ) -> (Self, mpsc::Receiver<InboxItem>) {
        let limit = limit.max(1);
        let (out, taken) = mpsc::channel(limit);
        let (way_in, incoming) = mpsc::channel(limit.max(MIN_QUEUED_EVENTS));
        let inner = Arc::new(Inner {
            db,
            limit,
            held: Mutex::default(),
            concealed: ConcealedValues::default(),
            way_in,
            out,
        });
        let keeper = inner.clone().keep(incoming);
        tasks.spawn(async move { stop.run_until_cancelled(keeper).await });
        (Self(inner), taken)
    }

    /// Returns the events that an earlier process kept and did not finish, each with its turn if it has one. Called
    /// once, before anything is accepted.
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

    /// Hands out stored events again that no handler holds: their handler failed.
    pub async fn sweep(&self) {
        let old = clock::now().saturating_sub(FORGOTTEN);
        let Ok(ids) = self.0.db.waiting_since(old).await else { return };
        // Events that the store has just taken after an outage are handed out by the task that brought them.
        if !self.0.held().rooms.is_empty() {
            return;
        }
        let forgotten =
            ids.into_iter().filter(|id| !self.0.held().items.contains_key(id)).collect::<Vec<_>>();
        for id in forgotten {
            let Ok(Some(item)) = self.0.db.waiting(id).await else { continue };
            tracing::warn!(item = item.id.0, "dispatching stored event that nobody held");
            if let Some(arrival) = self.take_up(item).await {
                self.0.out.send(arrival).await.ok();
            }
        }
    }

    /// Holds an item; one that cannot be read is given up.
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
            tracing::error!(%error, "failed to mark events as done; looking at them again");
        }
        self.release(ids);
    }

    /// Lets events go: they are done, or wait for another process.
    pub fn release(&self, ids: &[InboxItemId]) {
        let mut held = self.0.held();
        for id in ids {
            let gone = held.items.remove(id);
            held.forget(gone);
        }
    }

    /// Keeps a message that is not addressed to the bot, if it answers one of the bot's: not every platform reports
    /// whose message is answered.
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
    /// Dropping the future changes nothing: the event is kept and answered all the same.
    fn take(
        &self,
        mut inbound: Inbound,
        position: Option<StreamPosition>,
    ) -> BoxFuture<'_, Result<Accepted, AcceptError>> {
        self.0.concealed.conceal(&mut inbound);
        // A message of a group to others, and its edit, is not kept here. `Shared` buffers it for accounts that want it.
        if !inbound.addressed {
            let changed = matches!(inbound.kind, InboundKind::Edit { .. } | InboundKind::Recall);
            if changed && let Some(address) = self.waiting(&inbound) {
                inbound = Inbound { address, addressed: true, ..inbound };
            } else if self.0.held().has_part(&inbound) {
                // Only one part of an album names the bot.
                inbound.addressed = true;
            } else if matches!(inbound.kind, InboundKind::Message { .. }) && inbound.reply_to.is_some() {
                return Box::pin(self.accept_answer(inbound, position));
            } else {
                self.concealed(&inbound);
                return Box::pin(std::future::ready(Ok(Accepted::Unaddressed)));
            }
        }
        let sent = self.0.send(inbound, position);
        // An event that is refused by then is kept all the same when the store is back; the platform's next try finds
        // that it was there before.
        Box::pin(async move {
            let (mut outcome, copy) = sent?;
            let told = tokio::time::timeout(STORE_TIMEOUT, outcome.wait_for(Option::is_some)).await;
            let told = told.map_err(|_| AcceptError::Store("the store does not answer".to_owned()))?;
            let accepted = told.ok().and_then(|told| told.clone()).unwrap_or_else(|| Err(stopping()))?;
            Ok(if copy { Accepted::Duplicate } else { accepted })
        })
    }

    /// Returns the address of the waiting message that an unaddressed change is about. New words of a message
    /// to the bot need not name it any more.
    fn waiting(&self, change: &Inbound) -> Option<Address> {
        self.0.held().place(&change.address, &change.message)
    }

    /// Returns the secret that was taken out of an event, once: it is not kept any longer.
    pub fn concealed(&self, inbound: &Inbound) -> Option<SecretString> {
        self.0.concealed.take(inbound)
    }

    /// Returns how many events of an account may wait.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// Returns whether no more events of an account are taken.
    pub fn is_full(&self, account: &str) -> bool {
        self.0.held().is_full(account, 0, self.0.limit)
    }
}

impl Inner {
    /// The store, for a platform that waits.
    fn soon(&self) -> Db {
        self.db.within(STORE_TIMEOUT)
    }

    fn held(&self) -> MutexGuard<'_, HeldEvents> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an event to the keeper. Returns where its outcome will be, and whether it is a copy of one that is on its
    /// way: that takes no place of its own.
    fn send(
        self: &Arc<Self>,
        inbound: Inbound,
        position: Option<StreamPosition>,
    ) -> Result<(watch::Receiver<StoreOutcome>, bool), AcceptError> {
        let (told, outcome) = watch::channel(None);
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
        let sent = self.way_in.try_send(Incoming { inbound, position, room, told });
        sent.map_err(|unsent| {
            let (refusal, event) = match unsent {
                TrySendError::Full(event) => (AcceptError::Full, event),
                TrySendError::Closed(event) => (stopping(), event),
            };
            // A copy may wait for it already.
            event.told.send_replace(Some(Err(refusal.clone())));
            refusal
        })?;
        Ok((outcome, false))
    }

    /// Keeps events side by side, so that they share a commit, and hands them on in the order in which they
    /// came. An event is kept and answered even if the caller that brought it goes meanwhile.
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
        let Incoming { inbound, room, told, .. } = event;
        let kept = match stored {
            Ok(InsertedEvent::New(id)) => {
                self.held().hold(id, &inbound);
                // It waits for the next start if the dispatcher takes no more.
                self.out.send(InboxItem { id, inbound, came: Instant::now() }).await.ok();
                Ok(Accepted::New)
            }
            Ok(InsertedEvent::Duplicate) => Ok(Accepted::Duplicate),
            Err(refusal) => Err(refusal),
        };
        drop(room);
        told.send_replace(Some(kept));
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
    AcceptError::Store("the daemon stops".to_owned())
}

/// Room for an event, given back when it is not needed any more.
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
    use pudu_client::{net::scrub, store::DbLocation};
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
    async fn what_somebody_gives_as_a_secret_hides_nothing_of_what_others_read() {
        let db = Db::open(&DbLocation::Memory).await.unwrap();
        let (inbox, _taken) = Inbox::new(db, 9, &TaskTracker::new(), CancellationToken::new());
        let words = "good morning everybody";
        let text = format!("/secret set GREETING {words}");
        let gives = |key: &str| Inbound {
            kind: InboundKind::Message { text: text.clone(), attachments: Vec::new(), album: None },
            ..message_event(key)
        };
        assert_eq!(inbox.accept(gives("1")).await, Ok(Accepted::New));
        assert_eq!([scrub::hide_in_talk(words), scrub::hide(words), scrub::hide_in_log(words)], [words; 3]);
        assert_eq!(inbox.concealed(&gives("1")).unwrap().expose_secret(), words, "its command has it");
        // Said to others in a room: the secret is never asked for.
        let (aside, answer) = (gives("2"), Inbound { reply_to: Some("0".into()), ..gives("3") });
        for inbound in [aside, answer].map(|inbound| Inbound { addressed: false, private: false, ..inbound })
        {
            assert_eq!(inbox.accept(inbound.clone()).await, Ok(Accepted::Unaddressed));
            assert!(inbox.concealed(&inbound).is_none());
        }
    }

    #[tokio::test]
    async fn copies_of_an_event_wait_for_the_store_in_one_place() {
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
