//! Events that came in: one row per event, stored before its platform gets the acknowledgement, and known after it is
//! done.

use crate::{
    Db, InboxItemId, StoreError, TurnId, crash, messages, positions,
    statement::{Tx, query},
};

/// An event to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInboxItem {
    /// The account that it came to.
    pub account: String,
    /// The platform's identity of the event, unique in the account.
    pub event_key: String,
    /// The chat in which it happened.
    pub chat: String,
    /// The platform's id of a person's message that the event brought, to be known from now on.
    pub message: Option<String>,
    /// The event, JSON.
    pub payload: String,
    /// When it came, by our clock.
    pub at: i64,
    /// Resume position of the account's event stream behind it, if its channel keeps that.
    pub position: Option<String>,
}

/// An event was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertedEvent {
    /// It is new and has this number.
    New(InboxItemId),
    /// It had been taken before.
    Duplicate,
}

/// An event that waits for its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxRow {
    /// Its number.
    pub id: InboxItemId,
    /// The account that it came to.
    pub account: String,
    /// The event, JSON.
    pub payload: String,
    /// When it came.
    pub at: i64,
    /// The turn that answers it, if there is one yet.
    pub turn: Option<TurnId>,
}

type InboxColumns = (i64, String, String, i64, Option<String>);

impl Db {
    /// Stores an event durably, once, with the continuation position of its account's stream. It is recognised for at
    /// least 12 hours after it is done.
    pub async fn accept(&self, item: &NewInboxItem) -> Result<InsertedEvent, StoreError> {
        self.write(&crash::ACCEPT, item.clone(), |item, tx| Box::pin(accept(tx, item))).await
    }

    /// Changes an event that waits: the message was edited. Returns whether it still waited.
    pub async fn amend(&self, id: InboxItemId, payload: &str) -> Result<bool, StoreError> {
        let data = (id, payload.to_owned());
        self.write(&crash::AMEND, data, |(id, payload), tx| Box::pin(amend(tx, *id, payload))).await
    }

    /// Marks events as done that get no reply of their own: ignored or taken back.
    pub async fn finish(&self, ids: &[InboxItemId], now: i64) -> Result<(), StoreError> {
        self.write(&crash::FINISH, (ids.to_vec(), now), |(ids, now), tx| Box::pin(finish(tx, ids, *now)))
            .await
    }

    /// Returns the events that are not done, oldest first.
    pub async fn pending(&self) -> Result<Vec<InboxRow>, StoreError> {
        self.read_much((), |(), tx| Box::pin(pending(tx))).await
    }

    /// Returns the events that are not done, have no turn and came before this time, oldest first.
    pub async fn waiting_since(&self, before: i64) -> Result<Vec<InboxItemId>, StoreError> {
        self.read(before, |before, tx| Box::pin(waiting_since(tx, *before))).await
    }

    /// Returns an event, if it is not done and has no turn.
    pub async fn waiting(&self, id: InboxItemId) -> Result<Option<InboxRow>, StoreError> {
        self.read(id, |id, tx| Box::pin(waiting(tx, *id))).await
    }

    /// Counts the events that are not done.
    pub async fn pending_count(&self) -> Result<i64, StoreError> {
        let count = "SELECT COUNT(*) FROM inbox WHERE done IS NULL";
        self.read(count, |sql, tx| Box::pin(query(*sql).fetch_one(tx))).await
    }
}

impl From<InboxColumns> for InboxRow {
    fn from((id, account, payload, at, turn): InboxColumns) -> Self {
        Self { id: InboxItemId(id), account, payload, at, turn: turn.map(TurnId) }
    }
}

async fn pending(tx: &mut Tx<'_>) -> Result<Vec<InboxRow>, StoreError> {
    let sql = "SELECT id, account, payload, at, turn FROM inbox WHERE done IS NULL ORDER BY id";
    let rows: Vec<InboxColumns> = query(sql).fetch_all(tx).await?;
    Ok(rows.into_iter().map(InboxRow::from).collect())
}

async fn waiting_since(tx: &mut Tx<'_>, before: i64) -> Result<Vec<InboxItemId>, StoreError> {
    let sql = "SELECT id FROM inbox WHERE done IS NULL AND turn IS NULL AND at < $1 ORDER BY id";
    let ids: Vec<i64> = query(sql).bind(before).fetch_all(tx).await?;
    Ok(ids.into_iter().map(InboxItemId).collect())
}

async fn waiting(tx: &mut Tx<'_>, id: InboxItemId) -> Result<Option<InboxRow>, StoreError> {
    let sql =
        "SELECT id, account, payload, at, turn FROM inbox WHERE id = $1 AND done IS NULL AND turn IS NULL";
    let row: Option<InboxColumns> = query(sql).bind(id.0).fetch_optional(tx).await?;
    Ok(row.map(InboxRow::from))
}

async fn accept(tx: &mut Tx<'_>, item: &NewInboxItem) -> Result<InsertedEvent, StoreError> {
    if let Some(position) = &item.position {
        positions::save(tx, &item.account, position, item.at).await?;
    }
    let sql = "INSERT INTO inbox (account, event_key, payload, at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (account, event_key) DO NOTHING RETURNING id";
    let insert = query(sql).bind(&item.account).bind(&item.event_key).bind(&item.payload);
    let Some(id) = insert.bind(item.at).fetch_optional(tx).await? else {
        return Ok(InsertedEvent::Duplicate);
    };
    if let Some(message) = &item.message {
        messages::seen(tx, &item.account, &item.chat, message, item.at).await?;
    }
    Ok(InsertedEvent::New(InboxItemId(id)))
}

async fn amend(tx: &mut Tx<'_>, id: InboxItemId, payload: &str) -> Result<bool, StoreError> {
    let sql = "UPDATE inbox SET payload = $1 WHERE id = $2 AND done IS NULL";
    Ok(query(sql).bind(payload).bind(id.0).execute(tx).await? == 1)
}

/// Clears the payload of done events: only the key is still needed.
async fn finish(tx: &mut Tx<'_>, ids: &[InboxItemId], now: i64) -> Result<(), StoreError> {
    let sql = "UPDATE inbox SET done = $1, payload = '' WHERE id = $2 AND done IS NULL";
    for id in ids {
        query(sql).bind(now).bind(id.0).execute(tx).await?;
    }
    Ok(())
}
