//! Transfer of threads to another user: the first administrator gets the threads created before sign-in was set up.
//!
//! The row of an adoption is written with the account and deleted after the last thread, so that a crash in between
//! loses nothing. Threads of chats keep their owner, because they may belong to other people. Deliberately absent: the
//! files of threads and memory, which do not belong to the store.

use crate::{
    Db, Result, crash,
    engines::{FromRow, Row, Tx, query},
    memory::merge,
    threads,
};
use pudu_base::{ThreadId, UserId};

/// A transfer of a user's threads to another user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adoption {
    /// The current owner.
    pub source: UserId,
    /// The new owner.
    pub target: UserId,
    /// Threads created after this time are not transferred, in milliseconds since 1970.
    pub at: i64,
    /// Whether the source is one person, whose memory moves with the threads.
    pub is_one_person: bool,
}

impl FromRow for Adoption {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let (source, target, at) = FromRow::from_row(row)?;
        // The merge of memory was recorded when the adoption began.
        Ok(Self { source, target, at, is_one_person: false })
    }
}

impl Db {
    /// Begins a transfer of a user's threads.
    pub async fn adopt(&self, adoption: Adoption) -> Result<()> {
        self.write(&crash::ADOPT, move |tx| begin(tx, &adoption)).await
    }

    /// Returns the pending transfers.
    pub async fn adoptions(&self) -> Result<Vec<Adoption>> {
        self.all(query("SELECT source, target, at FROM adoptions ORDER BY source")).await
    }

    /// Returns the threads still to be transferred.
    pub async fn threads_to_adopt(&self, adoption: &Adoption) -> Result<Vec<ThreadId>> {
        // Threads of the HTTP API, the page and the terminal, except for the terminal's current thread.
        let sql =
            "SELECT id FROM threads WHERE user_id = $1 AND account IN ('api', 'local') AND created <= $2
                AND NOT EXISTS (SELECT 1 FROM conversations
                    WHERE conversations.thread = threads.id AND conversations.account <> 'api')
                ORDER BY updated DESC, id";
        let ids = query(sql).bind(adoption.source.as_str()).bind(adoption.at);
        self.all(ids).await
    }

    /// Transfers a thread with its user's feedback. Returns `false` if the thread is in use, or the adoption was
    /// cancelled or replaced by a later one.
    pub async fn adopt_thread(&self, adoption: &Adoption, thread: &ThreadId) -> Result<bool> {
        let (adoption, thread) = (adoption.clone(), thread.clone());
        self.write(&crash::ADOPT_THREAD, move |tx| move_thread(tx, &adoption, &thread)).await
    }

    /// Ends a transfer, after its last thread.
    pub async fn adopted(&self, adoption: &Adoption) -> Result<()> {
        let Adoption { source, target, at, .. } = adoption;
        // A transfer that was requested in the meantime is kept.
        let sql = "DELETE FROM adoptions WHERE source = $1 AND target = $2 AND at = $3";
        let delete = query(sql).bind(source).bind(target).bind(*at);
        self.execute(&crash::ADOPTED, delete).await.map(drop)
    }
}

/// Records that a user's threads must be transferred, and their memory if the user is one person.
pub(crate) fn begin(tx: &mut Tx<'_>, adoption: &Adoption) -> Result<()> {
    let Adoption { source, target, at, is_one_person } = adoption;
    if source == target {
        return Ok(());
    }
    let sql = "INSERT INTO adoptions (source, target, at) VALUES ($1, $2, $3)
        ON CONFLICT (source) DO UPDATE SET target = excluded.target, at = excluded.at";
    query(sql).bind(source.as_str()).bind(target.as_str()).bind(*at).execute(tx)?;
    let sql = "UPDATE scheduled_tasks SET user_id = $2 WHERE user_id = $1 AND account = ''";
    query(sql).bind(source).bind(target).execute(tx)?;
    let sql = "SELECT COUNT(*) FROM threads WHERE user_id = $1 AND account NOT IN ('api', 'local')";
    let has_chats = query(sql).bind(source.as_str()).fetch_one::<i64>(tx)? > 0;
    match *is_one_person && !has_chats {
        true => merge::begin(tx, source, target),
        false => Ok(()),
    }
}

fn move_thread(tx: &mut Tx<'_>, adoption: &Adoption, thread: &ThreadId) -> Result<bool> {
    let order = "SELECT 1 FROM adoptions WHERE source = $1 AND target = $2 AND at = $3";
    let order = query(order).bind(adoption.source.as_str()).bind(adoption.target.as_str()).bind(adoption.at);
    if !order.finds(tx)? || !threads::is_unused(tx, thread, i64::MAX)? {
        return Ok(false);
    }
    const ROWS: [&str; 3] = [
        "UPDATE threads SET user_id = $2 WHERE id = $3 AND user_id = $1",
        "UPDATE runs SET user_id = $2 WHERE thread = $3 AND user_id = $1",
        "UPDATE feedback SET user_id = $2 WHERE thread = $3 AND user_id = $1 AND NOT EXISTS (SELECT 1 FROM feedback other
            WHERE other.thread = feedback.thread AND other.run = feedback.run AND other.user_id = $2)",
    ];
    let (source, target) = (adoption.source.as_str(), adoption.target.as_str());
    for sql in ROWS {
        query(sql).bind(source).bind(target).bind(thread.as_str()).execute(tx)?;
    }
    Ok(true)
}
