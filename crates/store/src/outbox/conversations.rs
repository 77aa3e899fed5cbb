//! Conversations: the thread of a chat, topic or chain, its agent, its model and its mode.

use crate::{
    Db, Result, StoreError, crash,
    engines::{from_row, query},
    threads,
};
use pudu_base::{ThreadFolder, ThreadId};

/// A conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationRow {
    /// The conversation's key.
    pub key: String,
    /// The account.
    pub account: String,
    /// The chat.
    pub chat: String,
    /// The thread to which it is bound.
    pub thread: ThreadId,
    /// The model that people chose for it.
    pub model: Option<String>,
    /// The mode that people chose for it.
    pub mode: Option<String>,
    /// The thinking effort that people chose, in the caller's format.
    pub thinking: Option<String>,
    /// The agent that people chose, in the caller's format.
    pub agent: Option<String>,
    /// Time of its last use, in milliseconds since 1970.
    pub updated: i64,
}

/// The conversations of a chat that a command may apply to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChatConversations<'a> {
    /// The account.
    pub account: &'a str,
    /// The chat.
    pub chat: &'a str,
    /// The key of the chat's own conversation. Keys of chains continue with `:m` or `:a`; other keys belong to topics.
    pub base: &'a str,
    /// Whether topics are included.
    pub topics: bool,
}

from_row!(ConversationRow { key, account, chat, thread, model, mode, thinking, agent, updated });

impl Db {
    /// Returns a conversation, if it was ever bound.
    pub async fn conversation(&self, key: &str) -> Result<Option<ConversationRow>> {
        let sql =
            "SELECT key, account, chat, thread, model, mode, thinking, agent, updated FROM conversations
                WHERE key = $1";
        self.find(query(sql).bind(key)).await
    }

    /// Returns the most recently used conversation of a chat.
    pub async fn latest(&self, room: ChatConversations<'_>) -> Result<Option<ConversationRow>> {
        let sql =
            "SELECT key, account, chat, thread, model, mode, thinking, agent, updated FROM conversations
                WHERE account = $1 AND chat = $2
                AND ($4 = 1 OR key = $3 OR substr(key, 1, length($3) + 2) IN ($3 || ':m', $3 || ':a'))
                ORDER BY updated DESC, key DESC LIMIT 1";
        let ChatConversations { account, chat, base, topics } = room;
        self.find(query(sql).bind(account).bind(chat).bind(base).bind(topics)).await
    }

    /// Returns the conversations of a chat that have a run in progress, newest first: the key, and the reply target,
    /// JSON.
    pub async fn at_work(&self, room: ChatConversations<'_>) -> Result<Vec<(String, String)>> {
        let sql = "SELECT key, placement FROM turns JOIN conversations ON key = conversation
            WHERE delivered IS NULL AND parked IS NULL AND final_view IS NULL AND run IS NOT NULL
            AND conversations.account = $1 AND chat = $2
            AND ($4 = 1 OR key = $3 OR substr(key, 1, length($3) + 2) IN ($3 || ':m', $3 || ':a'))
            ORDER BY created DESC, id DESC";
        let ChatConversations { account, chat, base, topics } = room;
        self.all(query(sql).bind(account).bind(chat).bind(base).bind(topics)).await
    }

    /// Binds a conversation to a thread, at first contact and when it restarts. People's choices for the conversation
    /// are kept.
    pub async fn bind(
        &self,
        key: &str,
        account: &str,
        chat: &str,
        folder: &ThreadFolder,
        now: i64,
    ) -> Result<()> {
        let sql =
            "INSERT INTO conversations (key, account, chat, thread, updated) VALUES ($1, $2, $3, $4, $5)
                ON CONFLICT (key) DO UPDATE SET thread = excluded.thread, updated = excluded.updated";
        let insert = query(sql).bind_all([key, account, chat]).bind(&folder.thread).bind(now).into_owned();
        let (account, folder) = (account.to_owned(), folder.clone());
        self.write(&crash::BIND, move |tx| {
            insert.execute(tx)?;
            threads::belongs(tx, &folder, &account, now)
        })
        .await
    }

    /// Sets the model of a bound conversation, or resets it to the default.
    pub async fn set_model(&self, key: &str, model: Option<&str>) -> Result<()> {
        let sql = "UPDATE conversations SET model = $1 WHERE key = $2";
        self.choose(&crash::SET_MODEL, sql, key, model).await
    }

    /// Sets the mode of a bound conversation, or resets it to the default.
    pub async fn set_mode(&self, key: &str, mode: Option<&str>) -> Result<()> {
        let sql = "UPDATE conversations SET mode = $1 WHERE key = $2";
        self.choose(&crash::SET_MODE, sql, key, mode).await
    }

    /// Sets the thinking effort of a bound conversation, or resets it to the default.
    pub async fn set_thinking(&self, key: &str, thinking: Option<&str>) -> Result<()> {
        let sql = "UPDATE conversations SET thinking = $1 WHERE key = $2";
        self.choose(&crash::SET_THINKING, sql, key, thinking).await
    }

    /// Sets the agent of a bound conversation, or resets it to the default.
    pub async fn set_agent(&self, key: &str, agent: Option<&str>) -> Result<()> {
        let sql = "UPDATE conversations SET agent = $1 WHERE key = $2";
        self.choose(&crash::SET_AGENT, sql, key, agent).await
    }

    async fn choose(
        &self,
        name: &'static crash::Write,
        sql: &'static str,
        key: &str,
        choice: Option<&str>,
    ) -> Result<()> {
        match self.execute(name, query(sql).bind(choice).bind(key)).await? {
            0 => Err(StoreError::Conflict("the conversation has no thread yet")),
            _ => Ok(()),
        }
    }
}
