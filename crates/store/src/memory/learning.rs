//! Conversations waiting for memory extraction, and users who switched memory off.
//!
//! There is one row per conversation and memory. Each further run postpones it, so that a conversation is read when it
//! pauses. The row is deleted in the transaction that stores the read position, so that nothing is read twice and a
//! crash loses nothing. A reader claims a row for a limited time and renews the claim while it reads, so that only one
//! process reads it.

use crate::{
    Db, Result, Spender, crash,
    engines::{FromRow, Row, Statement, Tx, query},
};
use pudu_base::{RunId, ThreadId, UserId};

/// A conversation waiting for memory extraction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learning {
    /// The user or room whose memory learns from it.
    pub user: UserId,
    /// The agent whose memory learns from it; empty for the lead agent.
    pub agent: String,
    /// The thread.
    pub thread: ThreadId,
    /// Its newest run.
    pub run: RunId,
    /// The person and user that the run works for.
    pub spender: Spender,
    /// Time when it is due, in milliseconds since 1970.
    pub due: i64,
    /// Number of failed attempts.
    pub attempts: i64,
    /// Priority among conversations that are due. The highest is read first.
    pub priority: i64,
    /// The first and the last message to read. Messages outside this range are another user's. Empty if unknown.
    pub span: (String, String),
}

/// A reader of conversations and the expiry of its claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearningReader {
    /// Its name, unique for each process.
    pub name: String,
    /// Time when its claims expire, in milliseconds since 1970.
    pub until: i64,
}

/// SQL that selects waiting conversations.
macro_rules! columns {
    ($which:literal) => {
        concat!(
            "SELECT user_id, agent, thread, run, account, person, spender, room, due, attempts, priority, first, last
                FROM learnings ",
            $which
        )
    };
}

impl FromRow for Learning {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let room: String = row.column("room")?;
        let spender = Spender {
            account: row.column("account")?,
            person: row.column("person")?,
            user: row.column("spender")?,
            room: if room.is_empty() { None } else { Some(row.column("room")?) },
        };
        Ok(Self {
            user: row.column("user_id")?,
            agent: row.column("agent")?,
            thread: row.column("thread")?,
            run: row.column("run")?,
            spender,
            due: row.column("due")?,
            attempts: row.column("attempts")?,
            priority: row.column("priority")?,
            span: (row.column("first")?, row.column("last")?),
        })
    }
}

impl Db {
    /// Stores a conversation to be read, replacing its earlier row. Returns false, and stores nothing, for a new
    /// conversation without priority if `max` conversations already wait. 0 means no limit.
    pub async fn keep_learning(&self, learning: Learning, max: i64) -> Result<bool> {
        self.write(&crash::KEEP_LEARNING, move |tx| keep(tx, &learning, max)).await
    }

    /// Returns up to `limit` conversations that are due and not claimed, by priority, then by due time.
    pub async fn learnings(&self, now: i64, limit: i64) -> Result<Vec<Learning>> {
        let sql = columns!("WHERE due <= $1 AND reads_until <= $1 ORDER BY priority DESC, due LIMIT $2");
        self.all(query(sql).bind(now).bind(limit)).await
    }

    /// Returns the waiting conversations of a user, due or not, claimed or not.
    pub async fn learnings_of(&self, user: &UserId) -> Result<Vec<Learning>> {
        let sql = columns!("WHERE user_id = $1 ORDER BY agent, thread");
        self.all(query(sql).bind(user)).await
    }

    /// Claims a conversation for a reader, even if another reader has claimed it.
    pub async fn take_learning(&self, learning: &Learning, reader: &LearningReader) -> Result<()> {
        self.claim_learning(learning, reader, i64::MAX).await.map(drop)
    }

    /// Returns when the next conversation is due and its claim, if any, has expired, in milliseconds since 1970.
    pub async fn next_learning(&self) -> Result<Option<i64>> {
        let sql = "SELECT MIN(CASE WHEN reads_until > due THEN reads_until ELSE due END) FROM learnings";
        self.one(query(sql)).await
    }

    /// Claims a conversation, or renews the claim. Returns false if another reader has claimed it, a further run of the
    /// conversation was stored, or the row was deleted.
    pub async fn claim_learning(
        &self,
        learning: &Learning,
        reader: &LearningReader,
        now: i64,
    ) -> Result<bool> {
        let sql = "UPDATE learnings SET reader = $4, reads_until = $5
            WHERE user_id = $1 AND agent = $2 AND thread = $3
            AND (reader = $4 OR (run = $6 AND reads_until <= $7))";
        let claim = named(sql, learning).bind(&reader.name).bind(reader.until).bind(&learning.run).bind(now);
        Ok(self.execute(&crash::CLAIM_LEARNING, claim).await? > 0)
    }

    /// Ends all claims. Only for a process with exclusive use of the database, which has no other readers.
    pub async fn release_learnings(&self) -> Result<()> {
        let sql = "UPDATE learnings SET reader = '', reads_until = 0 WHERE reader <> ''";
        self.execute(&crash::RELEASE_LEARNINGS, query(sql)).await.map(drop)
    }

    /// Returns the last message of a conversation that has been read for this memory, if any.
    pub async fn learnt_up_to(&self, learning: &Learning) -> Result<Option<String>> {
        let sql = "SELECT message FROM learnt WHERE user_id = $1 AND agent = $2 AND thread = $3";
        self.find(named(sql, learning)).await
    }

    /// Records that a conversation was read up to a message, and ends the claim. If a further run was stored in the
    /// meantime, the conversation is read again later. Returns false, and stores nothing, if the reader lost its claim.
    pub async fn learnt(&self, learning: &Learning, reader: &LearningReader, message: &str) -> Result<bool> {
        let (learning, reader, message) = (learning.clone(), reader.name.clone(), message.to_owned());
        self.write(&crash::LEARNT, move |tx| {
            let sql = "UPDATE learnings SET reader = '', reads_until = 0
                WHERE user_id = $1 AND agent = $2 AND thread = $3 AND reader = $4";
            if named(sql, &learning).bind(&reader).execute(tx)? == 0 {
                return Ok(false);
            }
            let sql = "INSERT INTO learnt (user_id, agent, thread, message) VALUES ($1, $2, $3, $4)
                ON CONFLICT (user_id, agent, thread) DO UPDATE SET message = excluded.message";
            named(sql, &learning).bind(&message).execute(tx)?;
            done(&learning).execute(tx)?;
            Ok(true)
        })
        .await
    }

    /// Postpones a conversation that could not be read, unless a further run was stored in the meantime, and ends the
    /// claim.
    pub async fn put_off_learning(&self, later: &Learning, reader: &LearningReader) -> Result<()> {
        let (later, reader) = (later.clone(), reader.name.clone());
        self.write(&crash::PUT_OFF_LEARNING, move |tx| {
            let sql = "UPDATE learnings SET due = $5, attempts = $6
                WHERE user_id = $1 AND agent = $2 AND thread = $3 AND reader = $4 AND run = $7";
            let update = named(sql, &later).bind(&reader).bind(later.due).bind(later.attempts);
            update.bind(later.run.as_str()).execute(tx)?;
            let sql = "UPDATE learnings SET reader = '', reads_until = 0
                WHERE user_id = $1 AND agent = $2 AND thread = $3 AND reader = $4";
            named(sql, &later).bind(&reader).execute(tx).map(drop)
        })
        .await
    }

    /// Deletes a conversation that cannot be read. Later runs store it again.
    pub async fn drop_learning(&self, learning: &Learning) -> Result<()> {
        self.execute(&crash::DROP_LEARNING, done(learning)).await.map(drop)
    }

    /// Returns whether a user switched memory off.
    pub async fn is_memory_off(&self, user: &UserId) -> Result<bool> {
        let sql = "SELECT 1 FROM memory_off WHERE user_id = $1";
        self.finds(query(sql).bind(user)).await
    }

    /// Switches a user's memory off or on.
    pub async fn set_memory_off(&self, user: &UserId, off: bool) -> Result<()> {
        let sql = match off {
            true => "INSERT INTO memory_off (user_id) VALUES ($1) ON CONFLICT (user_id) DO NOTHING",
            false => "DELETE FROM memory_off WHERE user_id = $1",
        };
        self.execute(&crash::MEMORY_OFF, query(sql).bind(user.as_str())).await.map(drop)
    }
}

/// Binds a row's key as `$1` to `$3`.
fn named<'q>(sql: &'static str, learning: &'q Learning) -> Statement<'q> {
    query(sql).bind(learning.user.as_str()).bind(&learning.agent).bind(learning.thread.as_str())
}

fn keep(tx: &mut Tx<'_>, learning: &Learning, max: i64) -> Result<bool> {
    if max > 0 && learning.priority == 0 {
        let sql = "SELECT CASE WHEN COUNT(*) >= $4 AND COALESCE(SUM(CASE WHEN user_id = $1 AND agent = $2
            AND thread = $3 THEN 1 ELSE 0 END), 0) = 0 THEN 1 ELSE 0 END FROM learnings";
        if named(sql, learning).bind(max).fetch_one::<i64>(tx)? > 0 {
            return Ok(false);
        }
    }
    // The claim is kept: a current reader continues with the earlier contents.
    let sql = "INSERT INTO learnings (user_id, agent, thread, run, account, person, spender, room, due, attempts, priority,
        first, last)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT (user_id, agent, thread) DO UPDATE SET
        run = excluded.run, account = excluded.account, person = excluded.person, spender = excluded.spender,
        room = excluded.room, due = excluded.due, attempts = excluded.attempts, last = excluded.last,
        priority = CASE WHEN excluded.priority > learnings.priority THEN excluded.priority ELSE learnings.priority END";
    let Learning { run, spender, due, attempts, priority, span: (first, last), .. } = learning;
    let insert = named(sql, learning).bind(run.as_str()).bind(&spender.account).bind(&spender.person);
    let room = spender.room.as_ref().map_or("", UserId::as_str);
    let insert = insert.bind(spender.user.as_str()).bind(room).bind(*due).bind(*attempts).bind(*priority);
    insert.bind(first).bind(last).execute(tx)?;
    Ok(true)
}

fn done(learning: &Learning) -> Statement<'_> {
    let sql = "DELETE FROM learnings WHERE user_id = $1 AND agent = $2 AND thread = $3 AND run = $4";
    named(sql, learning).bind(&learning.run)
}
