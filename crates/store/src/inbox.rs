//! Received events: one row per event, stored before the platform gets the acknowledgement, and kept for a while after
//! the event is done, to recognise redeliveries.

pub(crate) mod buffer;
mod positions;

use crate::{
    Db, InboxItemId, Result, TurnId, crash,
    engines::{Tx, from_row, query},
    outbox::messages,
};

/// An event to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInboxItem {
    /// The account that received it.
    pub account: String,
    /// The platform's identity of the event, unique in the account.
    pub event_key: String,
    /// The chat of the event.
    pub chat: String,
    /// The platform's id of the message in the event, which is recorded as known.
    pub message: Option<String>,
    /// The event, JSON.
    pub payload: String,
    /// Time of its arrival by our clock, in milliseconds since 1970.
    pub at: i64,
    /// Position in the bot's event stream after this event, if its channel tracks positions.
    pub position: Option<String>,
}

/// Outcome of storing an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertedEvent {
    /// It is new and has this id.
    New(InboxItemId),
    /// It had been stored before.
    Duplicate,
}

/// An event that is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxRow {
    /// Its id.
    pub id: InboxItemId,
    /// The account that received it.
    pub account: String,
    /// The event, JSON.
    pub payload: String,
    /// Time of its arrival.
    pub at: i64,
    /// The turn that answers it, if one has claimed it.
    pub turn: Option<TurnId>,
}

from_row!(InboxRow { id, account, payload, at, turn });

impl Db {
    /// Stores an event durably and once, with the position in its bot's stream. Redeliveries are recognised for at
    /// least 12 hours after the event is done.
    pub async fn accept(&self, item: &NewInboxItem) -> Result<InsertedEvent> {
        let item = item.clone();
        self.write(&crash::ACCEPT, move |tx| insert(tx, &item)).await
    }

    /// Replaces the payload of a waiting event whose message was edited. Returns whether the event was still waiting.
    pub async fn amend(&self, id: InboxItemId, payload: &str) -> Result<bool> {
        let sql = "UPDATE inbox SET payload = $1 WHERE id = $2 AND done IS NULL";
        Ok(self.execute(&crash::AMEND, query(sql).bind(payload).bind(id.0)).await? == 1)
    }

    /// Marks ignored or retracted events, which get no reply, as done.
    pub async fn finish(&self, ids: &[InboxItemId], now: i64) -> Result<()> {
        let ids = ids.to_vec();
        self.write(&crash::FINISH, move |tx| {
            // Clears the payload of done events: only the key is still needed.
            let sql = "UPDATE inbox SET done = $1, payload = '' WHERE id = $2 AND done IS NULL";
            for id in &ids {
                query(sql).bind(now).bind(id.0).execute(tx)?;
            }
            Ok(())
        })
        .await
    }

    /// Returns the events that are not done, oldest first.
    pub async fn pending(&self) -> Result<Vec<InboxRow>> {
        let sql = "SELECT id, account, payload, at, turn FROM inbox WHERE done IS NULL ORDER BY id";
        self.all(query(sql)).await
    }

    /// Returns the events that are not done, have no turn and arrived before this time, oldest first.
    pub async fn waiting_since(&self, before: i64) -> Result<Vec<InboxItemId>> {
        let sql = "SELECT id FROM inbox WHERE done IS NULL AND turn IS NULL AND at < $1 ORDER BY id";
        self.all(query(sql).bind(before)).await
    }

    /// Returns an event if it is not done and has no turn.
    pub async fn waiting(&self, id: InboxItemId) -> Result<Option<InboxRow>> {
        let sql = "SELECT id, account, payload, at, turn FROM inbox WHERE id = $1 AND done IS NULL AND turn IS NULL";
        self.find(query(sql).bind(id)).await
    }

    /// Counts the events that are not done.
    pub async fn pending_count(&self) -> Result<i64> {
        self.one(query("SELECT COUNT(*) FROM inbox WHERE done IS NULL")).await
    }
}

/// Stores an event, unless it is known, and the position in its bot's stream.
pub(crate) fn insert(tx: &mut Tx<'_>, item: &NewInboxItem) -> Result<InsertedEvent> {
    if let Some(position) = &item.position {
        positions::save(tx, &item.account, position, item.at)?;
    }
    let sql = "INSERT INTO inbox (account, event_key, payload, at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (account, event_key) DO NOTHING RETURNING id";
    let insert = query(sql).bind(&item.account).bind(&item.event_key).bind(&item.payload);
    let Some(id) = insert.bind(item.at).fetch_optional(tx)? else {
        return Ok(InsertedEvent::Duplicate);
    };
    if let Some(message) = &item.message {
        messages::seen(tx, &item.account, &item.chat, message, item.at)?;
    }
    Ok(InsertedEvent::New(id))
}
