//! Known platform messages, and the conversation to which each belongs.

use crate::{
    Db, Result, crash,
    engines::{Tx, query},
};

/// Messages of one chat, with their conversation and reply.
pub(crate) struct Recorded {
    pub(crate) account: String,
    pub(crate) chat: String,
    pub(crate) messages: Vec<String>,
    pub(crate) conversation: String,
    pub(crate) ours: bool,
    /// The turn whose reply they show.
    pub(crate) turn: Option<String>,
}

impl Db {
    /// Records that messages of a chat belong to a conversation, and whether they are ours.
    pub async fn record(
        &self,
        account: &str,
        chat: &str,
        messages: &[String],
        conversation: &str,
        ours: bool,
        now: i64,
    ) -> Result<()> {
        let recorded = Recorded {
            account: account.to_owned(),
            chat: chat.to_owned(),
            messages: messages.to_vec(),
            conversation: conversation.to_owned(),
            ours,
            turn: None,
        };
        self.write(&crash::RECORD, move |tx| record(tx, &recorded, now)).await
    }

    /// Returns the conversation to which a message belongs, and whether the message is ours.
    pub async fn conversation_of(
        &self,
        account: &str,
        chat: &str,
        message: &str,
    ) -> Result<Option<(String, bool)>> {
        let sql = "SELECT conversation, ours FROM messages
            WHERE account = $1 AND chat = $2 AND message = $3 AND conversation IS NOT NULL";
        self.find(query(sql).bind_all([account, chat, message])).await
    }

    /// Returns a bot's messages, received and sent, that were recorded since `since`: chat and message.
    pub async fn known_since(&self, account: &str, since: i64) -> Result<Vec<(String, String)>> {
        let sql =
            "SELECT chat, message FROM messages WHERE at >= $1 AND account = $2 ORDER BY at, chat, message";
        self.all(query(sql).bind(since).bind(account)).await
    }
}

/// Records that a person's message exists. An existing record is kept.
pub(crate) fn seen(tx: &mut Tx<'_>, account: &str, chat: &str, message: &str, at: i64) -> Result<()> {
    let sql = "INSERT INTO messages (account, chat, message, ours, at) VALUES ($1, $2, $3, 0, $4)
        ON CONFLICT (account, chat, message) DO NOTHING";
    query(sql).bind(account).bind(chat).bind(message).bind(at).execute(tx)?;
    Ok(())
}

/// Records messages. A message once recorded as ours stays ours.
pub(crate) fn record(tx: &mut Tx<'_>, recorded: &Recorded, now: i64) -> Result<()> {
    let sql = "INSERT INTO messages (account, chat, message, conversation, ours, at, turn)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (account, chat, message) DO UPDATE SET conversation = excluded.conversation,
            turn = COALESCE(excluded.turn, messages.turn),
            ours = CASE WHEN messages.ours = 1 THEN 1 ELSE excluded.ours END";
    for message in &recorded.messages {
        let insert = query(sql).bind(&recorded.account).bind(&recorded.chat).bind(message);
        let insert = insert.bind(&recorded.conversation).bind(i64::from(recorded.ours)).bind(now);
        let insert = insert.bind(recorded.turn.as_deref());
        insert.execute(tx)?;
    }
    Ok(())
}
