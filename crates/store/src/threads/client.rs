//! Threads as API clients see them: the ones that they created, and those of their users' chats.

use crate::{
    Db, Result, crash,
    engines::{Tx, from_row, query},
    threads,
};
use pudu_base::{ThreadFolder, ThreadId, UserId};

/// A thread as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientThread {
    /// Its id.
    pub id: ThreadId,
    /// The owner.
    pub user: UserId,
    /// The bot through which it is used, or `api` for threads created by clients.
    pub account: String,
    /// Its title; empty until it has one.
    pub title: String,
    /// The assistant for which it was created; empty if none was given.
    pub assistant: String,
    /// Metadata of clients, JSON, or empty.
    pub metadata: String,
    /// Whether it is pinned above others in lists.
    pub pinned: bool,
    /// Time of its creation, in milliseconds since 1970.
    pub created: i64,
    /// Time of its last use.
    pub updated: i64,
    /// Outcome of its newest run, JSON; `None` if the run has not ended, or there is none.
    pub outcome: Option<String>,
}

from_row!(ClientThread {
    id,
    user: "user_id",
    account,
    title,
    assistant,
    metadata,
    pinned,
    created,
    updated,
    outcome,
});

/// A thread to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewThread {
    /// Its id and its owner.
    pub folder: ThreadFolder,
    /// Its `account`: `api` for clients.
    pub account: String,
    /// The assistant; may be empty.
    pub assistant: String,
    /// Metadata of the client, JSON.
    pub metadata: String,
    /// The current time, in milliseconds since 1970.
    pub now: i64,
}

/// Change of a thread's row. `None` leaves a column unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadChange {
    /// Metadata of clients, JSON.
    pub metadata: Option<String>,
    /// Whether it is pinned above others in lists.
    pub pinned: Option<bool>,
    /// Its title.
    pub title: Option<String>,
    /// Time of its last use.
    pub updated: Option<i64>,
}

macro_rules! rows {
    ($($rest:expr),+) => {
        concat!(
            "SELECT id, user_id, account, title, assistant, metadata, pinned, created, updated,
                (SELECT outcome FROM runs WHERE runs.thread = threads.id ORDER BY started DESC, runs.id DESC LIMIT 1) AS outcome
                FROM threads ",
            $($rest),+
        )
    };
}
pub(crate) use rows;

impl Db {
    /// Creates a thread and returns whether it is new. An existing thread with the id, even another user's, is not
    /// changed.
    pub async fn create_thread(&self, thread: NewThread) -> Result<bool> {
        self.write(&crash::CREATE_THREAD, move |tx| {
            let id = thread.folder.thread.as_str();
            if query("SELECT 1 FROM threads WHERE id = $1").bind(id).finds(tx)? {
                return Ok(false);
            }
            threads::belongs(tx, &thread.folder, &thread.account, thread.now)?;
            let sql = "UPDATE threads SET assistant = $2, metadata = $3 WHERE id = $1";
            query(sql).bind(id).bind(thread.assistant.as_str()).bind(thread.metadata.as_str()).execute(tx)?;
            Ok(true)
        })
        .await
    }

    /// Returns a thread.
    pub async fn client_thread(&self, thread: &ThreadId) -> Result<Option<ClientThread>> {
        self.find(query(rows!("WHERE id = $1")).bind(thread.as_str())).await
    }

    /// Changes a thread's row. Returns whether there was one.
    pub async fn change_thread(&self, thread: &ThreadId, change: ThreadChange) -> Result<bool> {
        let thread = thread.clone();
        self.write(&crash::CHANGE_THREAD, move |tx| self::change(tx, &thread, &change)).await
    }
}

fn change(tx: &mut Tx<'_>, thread: &ThreadId, change: &ThreadChange) -> Result<bool> {
    let sql = "UPDATE threads SET metadata = COALESCE($2, metadata), pinned = COALESCE($3, pinned),
        title = COALESCE($4, title), updated = COALESCE($5, updated) WHERE id = $1";
    let update = query(sql).bind(thread.as_str()).bind(change.metadata.as_deref());
    let update = update.bind(change.pinned.map(i64::from)).bind(change.title.as_deref()).bind(change.updated);
    Ok(update.execute(tx)? > 0)
}
