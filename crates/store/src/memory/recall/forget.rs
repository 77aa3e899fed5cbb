//! Deletes the entries of users and threads, including every word that occurs only in them.
//!
//! A user's entries cannot be found after the first transaction. Their rows are then deleted in small transactions, so
//! that no other caller waits long. If the process dies in between, the sweep continues.

use super::{
    index::{ScopeChange, delete},
    key,
};
use crate::{Db, Result, crash, engines::query};
use pudu_base::{MessageId, ThreadId, UserId};
use std::collections::BTreeMap;

/// Maximum number of entries deleted in one transaction.
const MAX_CHUNK_ENTRIES: i64 = 256;

impl Db {
    /// Deletes all entries of a user, for every agent.
    pub async fn forget_user(&self, user: &UserId) -> Result<()> {
        // Detaches the scopes from the user. No user has an empty id.
        let sql = "UPDATE recall_scopes SET user_id = '', agent = CAST(id AS TEXT) WHERE user_id = $1";
        self.execute(&crash::RECALL_FORGET_USER, query(sql).bind(user)).await?;
        self.purge_forgotten().await
    }

    /// Deletes all users' entries that come from a thread, both facts and turns.
    pub async fn forget_thread(&self, thread: &ThreadId) -> Result<()> {
        let sql = "SELECT id, scope, at FROM recall_docs WHERE thread = $1 AND thread <> '' LIMIT $2";
        self.forget_in_parts(&crash::RECALL_FORGET_THREAD, sql, thread.as_str()).await
    }

    /// Deletes all users' turns older than a time, in milliseconds since 1970.
    pub async fn forget_turns_before(&self, at: i64) -> Result<()> {
        let sql = "SELECT docs.id, docs.scope, docs.at FROM recall_docs docs JOIN recall_scopes scopes
            ON docs.scope = scopes.id WHERE docs.at < CAST($1 AS BIGINT) AND scopes.kind = 'turn' LIMIT $2";
        self.forget_in_parts(&crash::RECALL_EXPIRE, sql, &at.to_string()).await
    }

    /// Deletes all users' entries for the given messages of a thread.
    pub async fn forget_messages(&self, thread: &ThreadId, messages: &[MessageId]) -> Result<()> {
        let messages = messages.iter().map(|id| key(id.as_str())).collect::<Vec<_>>();
        let (thread, messages) = (key(thread.as_str()), messages.to_vec());
        self.write(&crash::RECALL_FORGET_THREAD, move |tx| {
            let sql = "SELECT id, scope, at FROM recall_docs WHERE thread = $1 AND doc = $2";
            let mut changes = BTreeMap::<i64, ScopeChange>::new();
            for message in &messages {
                let found: Vec<(i64, i64, i64)> = query(sql).bind(&thread).bind(message).fetch_all(tx)?;
                for (id, scope, _) in found {
                    delete(tx, scope, id, changes.entry(scope).or_default())?;
                }
            }
            for (scope, change) in changes {
                change.store(tx, scope)?;
            }
            Ok(())
        })
        .await
    }

    /// Deletes the remaining rows of forgotten users.
    pub(crate) async fn purge_forgotten(&self) -> Result<()> {
        let sql = "SELECT docs.id, docs.scope, docs.at FROM recall_scopes scopes JOIN recall_docs docs
            ON docs.scope = scopes.id WHERE scopes.user_id = $1 LIMIT $2";
        self.forget_in_parts(&crash::RECALL_PURGE, sql, "").await?;
        let sql = "DELETE FROM recall_scopes WHERE user_id = ''
            AND NOT EXISTS (SELECT 1 FROM recall_docs WHERE recall_docs.scope = recall_scopes.id)";
        self.execute(&crash::RECALL_PURGE, query(sql)).await.map(drop)
    }

    /// Deletes the entries that a query finds, in small transactions, until it finds no more.
    async fn forget_in_parts(&self, name: &'static crash::Write, sql: &'static str, of: &str) -> Result<()> {
        loop {
            let of = key(of);
            let work = self.write(name, move |tx| {
                // Deletes some entries and returns how many.
                let found: Vec<(i64, i64, i64)> =
                    query(sql).bind(&of).bind(MAX_CHUNK_ENTRIES).fetch_all(tx)?;
                let mut changes = BTreeMap::<i64, ScopeChange>::new();
                for (id, scope, _) in &found {
                    delete(tx, *scope, *id, changes.entry(*scope).or_default())?;
                }
                for (scope, change) in changes {
                    change.store(tx, scope)?;
                }
                Ok(i64::try_from(found.len()).unwrap_or(MAX_CHUNK_ENTRIES))
            });
            if work.await? < MAX_CHUNK_ENTRIES {
                return Ok(());
            }
        }
    }
}
