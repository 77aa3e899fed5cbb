//! Conversations from which something may be learnt, and users who want nothing remembered.
//!
//! One row a conversation and memory: a further run moves it, so that a conversation is read once it pauses. It goes with
//! the note up to where it was read, so that nothing is read twice and a death in between loses nothing.

use crate::{
    Db, Spender, StoreError, crash,
    statement::{WriteTx, query},
};
use pudu_base::{RunId, ThreadId, UserId};
use sqlx::AnyConnection;

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
    /// For whom that worked.
    pub spender: Spender,
    /// When it is due, in milliseconds since 1970.
    pub due: i64,
    /// How often it failed.
    pub attempts: i64,
}

type LearningColumns = (String, String, String, String, String, String, String, i64, i64);

impl Db {
    /// Keeps a conversation to be read, in place of what was kept of it.
    pub async fn keep_learning(&self, learning: Learning) -> Result<(), StoreError> {
        self.write(&crash::KEEP_LEARNING, learning, |learning, tx| Box::pin(keep(tx, learning))).await
    }

    /// Returns conversations to be read, those first that are due first; `limit` of them.
    pub async fn learnings(&self, limit: i64) -> Result<Vec<Learning>, StoreError> {
        self.read(limit, |limit, tx| Box::pin(learnings(tx, *limit))).await
    }

    /// Returns the last message of a conversation that was read for this memory, if any was.
    pub async fn learnt_up_to(&self, learning: &Learning) -> Result<Option<String>, StoreError> {
        self.read(learning, |learning, tx| Box::pin(up_to(tx, learning))).await
    }

    /// Notes that a conversation was read up to a message. If a further run was kept meanwhile, that one is read later.
    pub async fn learnt(&self, learning: &Learning, message: &str) -> Result<(), StoreError> {
        let data = (learning.clone(), message.to_owned());
        self.write(&crash::LEARNT, data, |(learning, message), tx| Box::pin(learnt(tx, learning, message)))
            .await
    }

    /// Gives a conversation up that cannot be read; what comes later of it is read again.
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

async fn keep(tx: &mut WriteTx<'_>, learning: &Learning) -> Result<(), StoreError> {
    let sql = "INSERT INTO learnings (user_id, agent, thread, run, account, person, spender, due, attempts)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (user_id, agent, thread) DO UPDATE SET
        run = excluded.run, account = excluded.account, person = excluded.person, spender = excluded.spender,
        due = excluded.due, attempts = excluded.attempts";
    let Learning { user, agent, thread, run, spender, due, attempts } = learning;
    let texts = [user.as_str(), agent, thread.as_str(), run.as_str(), &spender.account, &spender.person];
    let insert = texts.into_iter().fold(query(sql), |insert, text| insert.bind(text));
    insert.bind(spender.user.as_str()).bind(*due).bind(*attempts).execute(tx).await?;
    Ok(())
}

async fn learnings(tx: &mut AnyConnection, limit: i64) -> Result<Vec<Learning>, StoreError> {
    let sql = "SELECT user_id, agent, thread, run, account, person, spender, due, attempts FROM learnings
        ORDER BY due LIMIT $1";
    let rows: Vec<LearningColumns> = sqlx::query_as(sql).bind(limit).fetch_all(tx).await?;
    let learning = |(user, agent, thread, run, account, person, spender, due, attempts): LearningColumns| {
        let id = |text: &str| UserId::of(text).map_err(|error| StoreError::Corrupt(error.to_string()));
        let (user, spender) = (id(&user)?, id(&spender)?);
        // A memory that is not the person's own is their room's.
        let room = (user != spender).then(|| user.clone());
        let spender = Spender { account, person, user: spender, room };
        Ok(Learning { user, agent, thread: thread.into(), run: run.into(), spender, due, attempts })
    };
    rows.into_iter().map(learning).collect()
}

async fn up_to(tx: &mut AnyConnection, learning: &Learning) -> Result<Option<String>, StoreError> {
    let sql = "SELECT message FROM learnt WHERE user_id = $1 AND agent = $2 AND thread = $3";
    let row = sqlx::query_scalar(sql).bind(learning.user.as_str()).bind(&learning.agent);
    Ok(row.bind(learning.thread.as_str()).fetch_optional(tx).await?)
}

async fn learnt(tx: &mut WriteTx<'_>, learning: &Learning, message: &str) -> Result<(), StoreError> {
    let sql = "INSERT INTO learnt (user_id, agent, thread, message) VALUES ($1, $2, $3, $4)
        ON CONFLICT (user_id, agent, thread) DO UPDATE SET message = excluded.message";
    let insert = query(sql).bind(learning.user.as_str()).bind(&learning.agent);
    insert.bind(learning.thread.as_str()).bind(message).execute(tx).await?;
    done(tx, learning).await
}

async fn done(tx: &mut WriteTx<'_>, learning: &Learning) -> Result<(), StoreError> {
    let sql = "DELETE FROM learnings WHERE user_id = $1 AND agent = $2 AND thread = $3 AND run = $4";
    let delete = query(sql).bind(learning.user.as_str()).bind(&learning.agent);
    delete.bind(learning.thread.as_str()).bind(learning.run.as_str()).execute(tx).await?;
    Ok(())
}

async fn is_off(tx: &mut AnyConnection, user: &UserId) -> Result<bool, StoreError> {
    let sql = "SELECT COUNT(*) FROM memory_off WHERE user_id = $1";
    Ok(sqlx::query_scalar::<_, i64>(sql).bind(user.as_str()).fetch_one(tx).await? > 0)
}
