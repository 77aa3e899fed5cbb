//! Conversations from which something may be learnt, and users who want nothing remembered.
//!
//! One row a conversation and memory: a further run moves it, so that a conversation is read once it pauses. The row is
//! deleted together with the update of the position read so far, so that nothing is read twice and a crash in between
//! loses nothing. A reader claims a row for a while and renews that as it reads, so that of several processes one reads
//! it.

use crate::{
    Db, Result, Spender, crash,
    engines::{FromRow, Row, Statement, Tx, query},
};
use pudu_base::{RunId, ThreadId, UserId};

/// A conversation from which something may be learnt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learning {
    /// The user or the room whose memory it is for.
    pub user: UserId,
    /// The agent whose memory it is; empty for the lead agent.
    pub agent: String,
    /// The thread.
    pub thread: ThreadId,
    /// Its newest run.
    pub run: RunId,
    /// The person and user that the run works for.
    pub spender: Spender,
    /// When it is due, in milliseconds since 1970.
    pub due: i64,
    /// How often it failed.
    pub attempts: i64,
    /// Of those that are due, the highest are read first.
    pub priority: i64,
    /// The first and the last message to read: messages before and behind are another user's. Empty if unknown.
    pub span: (String, String),
}

/// A reader of conversations, and the end of its claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearningReader {
    /// Its name, different for each process.
    pub name: String,
    /// The end of the claim, in milliseconds since 1970.
    pub until: i64,
}

/// SQL that reads conversations.
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
    /// Stores a conversation to be read, in place of its earlier row. Where `max` wait already, a new one without
    /// priority is not stored: false. 0 is no limit.
    pub async fn keep_learning(&self, learning: Learning, max: i64) -> Result<bool> {
        self.write(&crash::KEEP_LEARNING, move |tx| keep(tx, &learning, max)).await
    }

    /// Returns up to `limit` conversations that are due at a time and that no reader has claimed: by priority, then by
    /// due time.
    pub async fn learnings(&self, now: i64, limit: i64) -> Result<Vec<Learning>> {
        let sql = columns!("WHERE due <= $1 AND reads_until <= $1 ORDER BY priority DESC, due LIMIT $2");
        self.all(query(sql).bind(now).bind(limit)).await
    }

    /// Returns the waiting conversations of a user, due or not, claimed or not.
    pub async fn learnings_of(&self, user: &UserId) -> Result<Vec<Learning>> {
        let sql = columns!("WHERE user_id = $1 ORDER BY agent, thread");
        self.all(query(sql).bind(user)).await
    }

    /// Takes a conversation away from its current reader.
    pub async fn take_learning(&self, learning: &Learning, reader: &LearningReader) -> Result<()> {
        self.claim_learning(learning, reader, i64::MAX).await.map(drop)
    }

    /// Returns when the next conversation is due, or its reader late, in milliseconds since 1970.
    pub async fn next_learning(&self) -> Result<Option<i64>> {
        let sql = "SELECT MIN(CASE WHEN reads_until > due THEN reads_until ELSE due END) FROM learnings";
        self.one(query(sql)).await
    }

    /// Claims a conversation, or renews the claim. False if another reader has it, if a further run of the conversation
    /// was stored, or if it was removed.
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

    /// Ends all claims: for the one process that has the database alone, and so knows that all readers are gone.
    pub async fn release_learnings(&self) -> Result<()> {
        let sql = "UPDATE learnings SET reader = '', reads_until = 0 WHERE reader <> ''";
        self.execute(&crash::RELEASE_LEARNINGS, query(sql)).await.map(drop)
    }

    /// Returns the last message of a conversation that was read for this memory, if any was.
    pub async fn learnt_up_to(&self, learning: &Learning) -> Result<Option<String>> {
        let sql = "SELECT message FROM learnt WHERE user_id = $1 AND agent = $2 AND thread = $3";
        self.find(named(sql, learning)).await
    }

    /// Notes that a conversation was read up to a message, and ends the claim. If a further run was kept meanwhile, that
    /// one is read later. False when it is not the reader's any more: nothing is noted then.
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

    /// Puts a conversation off that could not be read, unless a further run was kept meanwhile, and ends the claim.
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

    /// Gives up a conversation that cannot be read; its later runs are read again.
    pub async fn drop_learning(&self, learning: &Learning) -> Result<()> {
        self.execute(&crash::DROP_LEARNING, done(learning)).await.map(drop)
    }

    /// Returns whether a user wants nothing remembered.
    pub async fn is_memory_off(&self, user: &UserId) -> Result<bool> {
        let sql = "SELECT 1 FROM memory_off WHERE user_id = $1";
        self.finds(query(sql).bind(user)).await
    }

    /// Notes whether a user wants nothing remembered.
    pub async fn set_memory_off(&self, user: &UserId, off: bool) -> Result<()> {
        let sql = match off {
            true => "INSERT INTO memory_off (user_id) VALUES ($1) ON CONFLICT (user_id) DO NOTHING",
            false => "DELETE FROM memory_off WHERE user_id = $1",
        };
        self.execute(&crash::MEMORY_OFF, query(sql).bind(user.as_str())).await.map(drop)
    }
}

/// Binds a row's key, as `$1` to `$3`.
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
    // A reader that has it at the moment continues with the earlier contents.
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
