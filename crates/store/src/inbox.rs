//! Events that came in: one row per event, stored before its platform gets the acknowledgement, and known after it is
//! done.

pub(crate) mod buffer;
mod positions;

use crate::{
    Db, InboxItemId, Result, TurnId, crash,
    engines::{from_row, query},
    outbox::messages,
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

from_row!(InboxRow { id, account, payload, at, turn });

impl Db {
    /// Stores an event durably, once, with the continuation position of its account's stream. It is recognised for at
    /// least 12 hours after it is done.
    pub async fn accept(&self, item: &NewInboxItem) -> Result<InsertedEvent> {
        let item = item.clone();
        self.write(&crash::ACCEPT, move |tx| {
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
        })
        .await
    }

    /// Changes an event that waits: the message was edited. Returns whether it still waited.
    pub async fn amend(&self, id: InboxItemId, payload: &str) -> Result<bool> {
        let sql = "UPDATE inbox SET payload = $1 WHERE id = $2 AND done IS NULL";
        Ok(self.execute(&crash::AMEND, query(sql).bind(payload).bind(id.0)).await? == 1)
    }

    /// Marks events as done that get no reply of their own: ignored or taken back.
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

    /// Returns the events that are not done, have no turn and came before this time, oldest first.
    pub async fn waiting_since(&self, before: i64) -> Result<Vec<InboxItemId>> {
        let sql = "SELECT id FROM inbox WHERE done IS NULL AND turn IS NULL AND at < $1 ORDER BY id";
        self.all(query(sql).bind(before)).await
    }

    /// Returns an event, if it is not done and has no turn.
    pub async fn waiting(&self, id: InboxItemId) -> Result<Option<InboxRow>> {
        let sql = "SELECT id, account, payload, at, turn FROM inbox WHERE id = $1 AND done IS NULL AND turn IS NULL";
        self.find(query(sql).bind(id)).await
    }

    /// Counts the events that are not done.
    pub async fn pending_count(&self) -> Result<i64> {
        self.one(query("SELECT COUNT(*) FROM inbox WHERE done IS NULL")).await
    }
}
