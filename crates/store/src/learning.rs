//! Conversations from which something may be learnt, and users who want nothing remembered.
//!
//! One row a conversation and memory: a further run moves it, so that a conversation is read once it pauses. The row is
//! deleted together with the update of the position read so far, so that nothing is read twice and a crash in between
//! loses nothing. A reader claims a row for a while and renews that as it reads, so that of several processes one reads
//! it.

use crate::{
    Db, Spender, StoreError, crash,
    statement::{Statement, Tx, query},
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

type Text = String;
type LearningColumns = (Text, Text, Text, Text, Text, Text, Text, Text, i64, i64, i64, Text, Text);

impl Db {
    /// Stores a conversation to be read, in place of its earlier row. Where `max` wait already, a new one without
    /// priority is not stored: false. 0 is no limit.
    pub async fn keep_learning(&self, learning: Learning, max: i64) -> Result<bool, StoreError> {
        let data = (learning, max);
        self.write(&crash::KEEP_LEARNING, data, |(learning, max), tx| Box::pin(keep(tx, learning, *max)))
            .await
    }

    /// Returns up to `limit` conversations that are due at a time and that no reader has claimed: by priority, then by
    /// due time.
    pub async fn learnings(&self, now: i64, limit: i64) -> Result<Vec<Learning>, StoreError> {
        self.read_much((now, limit), |(now, limit), tx| Box::pin(learnings(tx, *now, *limit))).await
    }

    /// Returns the waiting conversations of a user, due or not, claimed or not.
    pub async fn learnings_of(&self, user: &UserId) -> Result<Vec<Learning>, StoreError> {
        self.read_much(user, |user, tx| Box::pin(learnings_of(tx, user))).await
    }

    /// Takes a conversation away from its current reader.
    pub async fn take_learning(
        &self,
        learning: &Learning,
        reader: &LearningReader,
    ) -> Result<(), StoreError> {
        let data = (learning.clone(), reader.clone());
        self.write(&crash::CLAIM_LEARNING, data, |(learning, reader), tx| {
            Box::pin(async move { claim(tx, learning, reader, i64::MAX).await.map(drop) })
        })
        .await
    }

    /// Returns when the next conversation is due, or its reader late, in milliseconds since 1970.
    pub async fn next_learning(&self) -> Result<Option<i64>, StoreError> {
        self.read_much((), |(), tx| Box::pin(next(tx))).await
    }

    /// Claims a conversation, or renews the claim. False if another reader has it, if a further run of the conversation
    /// was stored, or if it was removed.
    pub async fn claim_learning(
        &self,
        learning: &Learning,
        reader: &LearningReader,
        now: i64,
    ) -> Result<bool, StoreError> {
        let data = (learning.clone(), reader.clone(), now);
        self.write(&crash::CLAIM_LEARNING, data, |(learning, reader, now), tx| {
            Box::pin(claim(tx, learning, reader, *now))
        })
        .await
    }

    /// Ends all claims: for the one process that has the database alone, and so knows that all readers are gone.
    pub async fn release_learnings(&self) -> Result<(), StoreError> {
        let sql = "UPDATE learnings SET reader = '', reads_until = 0 WHERE reader <> ''";
        self.write(&crash::RELEASE_LEARNINGS, sql, |sql, tx| {
            Box::pin(async move { query(*sql).execute(tx).await.map(drop) })
        })
        .await
    }

    /// Returns the last message of a conversation that was read for this memory, if any was.
    pub async fn learnt_up_to(&self, learning: &Learning) -> Result<Option<String>, StoreError> {
        self.read(learning, |learning, tx| Box::pin(up_to(tx, learning))).await
    }

    /// Notes that a conversation was read up to a message, and ends the claim. If a further run was kept meanwhile, that
    /// one is read later. False when it is not the reader's any more: nothing is noted then.
    pub async fn learnt(
        &self,
        learning: &Learning,
        reader: &LearningReader,
        message: &str,
    ) -> Result<bool, StoreError> {
        let data = (learning.clone(), reader.name.clone(), message.to_owned());
        self.write(&crash::LEARNT, data, |(learning, reader, message), tx| {
            Box::pin(learnt(tx, learning, reader, message))
        })
        .await
    }

    /// Puts a conversation off that could not be read, unless a further run was kept meanwhile, and ends the claim.
    pub async fn put_off_learning(
        &self,
        later: &Learning,
        reader: &LearningReader,
    ) -> Result<(), StoreError> {
        let data = (later.clone(), reader.name.clone());
        self.write(&crash::PUT_OFF_LEARNING, data, |(later, reader), tx| Box::pin(put_off(tx, later, reader)))
            .await
    }

    /// Gives up a conversation that cannot be read; its later runs are read again.
    pub async fn drop_learning(&self, learning: &Learning) -> Result<(), StoreError> {
        self.write(&crash::DROP_LEARNING, learning.clone(), |learning, tx| Box::pin(done(tx, learning))).await
    }

    /// Returns whether a user wants nothing remembered.
    pub async fn is_memory_off(&self, user: &UserId) -> Result<bool, StoreError> {
        self.read(user, |user, tx| Box::pin(is_off(tx, user))).await
    }

    /// Notes whether a user wants nothing remembered.
    pub async fn set_memory_off(&self, user: &UserId, off: bool) -> Result<(), StoreError> {
        let sql = match off {
            true => "INSERT INTO memory_off (user_id) VALUES ($1) ON CONFLICT (user_id) DO NOTHING",
            false => "DELETE FROM memory_off WHERE user_id = $1",
        };
        let data = (sql, user.clone());
        self.write(&crash::MEMORY_OFF, data, |(sql, user), tx| {
            Box::pin(async move { query(*sql).bind(user.as_str()).execute(tx).await.map(drop) })
        })
        .await
    }
}

/// Binds a row's key, as `$1` to `$3`.
fn named<'q>(sql: &'static str, learning: &'q Learning) -> Statement<'q> {
    query(sql).bind(learning.user.as_str()).bind(&learning.agent).bind(learning.thread.as_str())
}

async fn keep(tx: &mut Tx<'_>, learning: &Learning, max: i64) -> Result<bool, StoreError> {
    if max > 0 && learning.priority == 0 {
        let sql = "SELECT CASE WHEN COUNT(*) >= $4 AND COALESCE(SUM(CASE WHEN user_id = $1 AND agent = $2
            AND thread = $3 THEN 1 ELSE 0 END), 0) = 0 THEN 1 ELSE 0 END FROM learnings";
        if named(sql, learning).bind(max).fetch_one::<i64>(tx).await? > 0 {
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
    insert.bind(first).bind(last).execute(tx).await?;
    Ok(true)
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

async fn learnings_of(tx: &mut Tx<'_>, user: &UserId) -> Result<Vec<Learning>, StoreError> {
    let sql = columns!("WHERE user_id = $1 ORDER BY agent, thread");
    let rows: Vec<LearningColumns> = query(sql).bind(user.as_str()).fetch_all(tx).await?;
    rows.into_iter().map(learning).collect()
}

async fn learnings(tx: &mut Tx<'_>, now: i64, limit: i64) -> Result<Vec<Learning>, StoreError> {
    let sql = columns!("WHERE due <= $1 AND reads_until <= $1 ORDER BY priority DESC, due LIMIT $2");
    let rows: Vec<LearningColumns> = query(sql).bind(now).bind(limit).fetch_all(tx).await?;
    rows.into_iter().map(learning).collect()
}

fn learning(row: LearningColumns) -> Result<Learning, StoreError> {
    let (user, agent, thread, run, account, person, spender, room, due, attempts, priority, first, last) =
        row;
    let id = |text: &str| UserId::from_raw(text).map_err(|error| StoreError::Corrupt(error.to_string()));
    let room = Some(room).filter(|room| !room.is_empty()).map(|room| id(&room)).transpose()?;
    let spender = Spender { account, person, user: id(&spender)?, room };
    let (user, thread, run, span) = (id(&user)?, thread.into(), run.into(), (first, last));
    Ok(Learning { user, agent, thread, run, spender, due, attempts, priority, span })
}

async fn next(tx: &mut Tx<'_>) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT MIN(CASE WHEN reads_until > due THEN reads_until ELSE due END) FROM learnings";
    query(sql).fetch_one(tx).await
}

async fn claim(
    tx: &mut Tx<'_>,
    learning: &Learning,
    reader: &LearningReader,
    now: i64,
) -> Result<bool, StoreError> {
    let sql =
        "UPDATE learnings SET reader = $4, reads_until = $5 WHERE user_id = $1 AND agent = $2 AND thread = $3
        AND (reader = $4 OR (run = $6 AND reads_until <= $7))";
    let update = named(sql, learning).bind(&reader.name).bind(reader.until).bind(learning.run.as_str());
    Ok(update.bind(now).execute(tx).await? > 0)
}

async fn up_to(tx: &mut Tx<'_>, learning: &Learning) -> Result<Option<String>, StoreError> {
    let sql = "SELECT message FROM learnt WHERE user_id = $1 AND agent = $2 AND thread = $3";
    let row = query(sql).bind(learning.user.as_str()).bind(&learning.agent);
    row.bind(learning.thread.as_str()).fetch_optional(tx).await
}

async fn learnt(
    tx: &mut Tx<'_>,
    learning: &Learning,
    reader: &str,
    message: &str,
) -> Result<bool, StoreError> {
    let sql = "UPDATE learnings SET reader = '', reads_until = 0
        WHERE user_id = $1 AND agent = $2 AND thread = $3 AND reader = $4";
    if named(sql, learning).bind(reader).execute(tx).await? == 0 {
        return Ok(false);
    }
    let sql = "INSERT INTO learnt (user_id, agent, thread, message) VALUES ($1, $2, $3, $4)
        ON CONFLICT (user_id, agent, thread) DO UPDATE SET message = excluded.message";
    named(sql, learning).bind(message).execute(tx).await?;
    done(tx, learning).await?;
    Ok(true)
}

async fn put_off(tx: &mut Tx<'_>, later: &Learning, reader: &str) -> Result<(), StoreError> {
    let sql = "UPDATE learnings SET due = $5, attempts = $6
        WHERE user_id = $1 AND agent = $2 AND thread = $3 AND reader = $4 AND run = $7";
    let update = named(sql, later).bind(reader).bind(later.due).bind(later.attempts);
    update.bind(later.run.as_str()).execute(tx).await?;
    let sql = "UPDATE learnings SET reader = '', reads_until = 0
        WHERE user_id = $1 AND agent = $2 AND thread = $3 AND reader = $4";
    named(sql, later).bind(reader).execute(tx).await.map(drop)
}

async fn done(tx: &mut Tx<'_>, learning: &Learning) -> Result<(), StoreError> {
    let sql = "DELETE FROM learnings WHERE user_id = $1 AND agent = $2 AND thread = $3 AND run = $4";
    named(sql, learning).bind(learning.run.as_str()).execute(tx).await.map(drop)
}

async fn is_off(tx: &mut Tx<'_>, user: &UserId) -> Result<bool, StoreError> {
    let sql = "SELECT COUNT(*) FROM memory_off WHERE user_id = $1";
    Ok(query(sql).bind(user.as_str()).fetch_one::<i64>(tx).await? > 0)
}
