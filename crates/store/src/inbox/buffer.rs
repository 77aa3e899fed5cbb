//! Group messages that do not address the bot, for platforms that give bots no history. Each one is used by one turn.

use crate::{
    Db, InboxItemId, Result, crash,
    engines::{Tx, query},
};
use std::collections::BTreeMap;

/// Maximum size of the messages of one chat or topic, in bytes. A prompt contains at most 40,000 characters.
const MAX_PLACE_BYTES: i64 = 256 * 1024;

/// A chat, or a topic in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferPlace {
    /// The bot.
    pub account: String,
    /// The chat.
    pub chat: String,
    /// The topic; empty outside of topics.
    pub topic: String,
}

/// A message to buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferedMessage {
    /// Chat or topic of the message.
    pub place: BufferPlace,
    /// The platform's identity of the event, unique in the account.
    pub event_key: String,
    /// The platform's id of the message.
    pub message: String,
    /// The author's id; empty for an author who may not use the bot, and for another bot.
    pub person: String,
    /// The author's name; empty for an author who may not use the bot.
    pub name: String,
    /// The text; empty for an author who may not use the bot.
    pub text: String,
    /// The other content of the message, JSON.
    pub piece: String,
    /// Time of the message, in milliseconds since 1970.
    pub at: i64,
}

/// Limits of one chat or topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferLimits {
    /// Maximum number of messages.
    pub messages: i64,
    /// Earliest time of a message to keep, in milliseconds since 1970.
    pub oldest: i64,
    /// The current time, in milliseconds since 1970.
    pub now: i64,
}

/// Request of a turn for the messages of a chat or topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferTake {
    /// Chat or topic of the messages.
    pub place: BufferPlace,
    /// First event of the turn. A repeated request for the same event returns the same messages.
    pub by: InboxItemId,
    /// Maximum number of messages, counted from the newest.
    pub max: i64,
    /// Earliest time of a message to take, in milliseconds since 1970.
    pub since: i64,
    /// Latest time of a message to take, in milliseconds since 1970.
    pub until: i64,
}

impl Db {
    /// Buffers a message once, and deletes older messages of its chat or topic that exceed the limits. Returns whether
    /// the message is new.
    pub async fn buffer_message(&self, message: BufferedMessage, limits: BufferLimits) -> Result<bool> {
        self.write(&crash::BUFFER_KEEP, move |tx| keep(tx, &message, &limits)).await
    }

    /// Replaces the text of a buffered message by the same author.
    pub async fn edit_buffered(
        &self,
        place: BufferPlace,
        message: &str,
        person: &str,
        text: &str,
    ) -> Result<()> {
        let sql = "UPDATE buffered_messages SET text = $1, bytes = $2 + OCTET_LENGTH(piece)
            WHERE account = $3 AND chat = $4 AND message = $5 AND person = $6 AND person <> ''";
        let edit = query(sql).bind(text).bind(size(text)).bind(&place.account).bind(&place.chat);
        self.execute(&crash::BUFFER_EDIT, edit.bind(message).bind(person)).await.map(drop)
    }

    /// Marks the buffered messages of a chat or topic for a turn, and returns the text and the JSON of each, oldest
    /// first. Deletes the messages that were marked for other turns.
    pub async fn take_buffered(&self, take: BufferTake) -> Result<Vec<(String, String)>> {
        self.write(&crash::BUFFER_TAKE, move |tx| {
            let BufferTake { place, by, max, since, until } = &take;
            let at = |sql: &'static str| query(sql).bind_all([&place.account, &place.chat, &place.topic]);
            let used = "DELETE FROM buffered_messages
                WHERE account = $1 AND chat = $2 AND topic = $3 AND taken <> $4";
            at(used).bind(*by).execute(tx)?;
            let mark = "UPDATE buffered_messages SET taken = $4
                WHERE account = $1 AND chat = $2 AND topic = $3 AND taken IS NULL AND at BETWEEN $5 AND $6";
            at(mark).bind(*by).bind(*since).bind(*until).execute(tx)?;
            let marked = "SELECT text, piece FROM buffered_messages
                WHERE account = $1 AND chat = $2 AND topic = $3 AND taken = $4
                ORDER BY at DESC, id DESC LIMIT $5";
            let mut messages: Vec<(String, String)> = at(marked).bind(*by).bind(*max).fetch_all(tx)?;
            messages.reverse();
            Ok(messages)
        })
        .await
    }

    /// Deletes buffered messages older than their bot's time in `oldest`, and all messages of bots missing from it.
    pub async fn expire_buffered(&self, oldest: BTreeMap<String, i64>) -> Result<()> {
        self.write(&crash::BUFFER_EXPIRE, move |tx| {
            let accounts: Vec<String> =
                query("SELECT DISTINCT account FROM buffered_messages").fetch_all(tx)?;
            for account in accounts {
                let before = oldest.get(&account).copied().unwrap_or(i64::MAX);
                let sql = "DELETE FROM buffered_messages WHERE account = $1 AND at < $2";
                query(sql).bind(&account).bind(before).execute(tx)?;
            }
            Ok(())
        })
        .await
    }
}

fn keep(tx: &mut Tx<'_>, message: &BufferedMessage, limits: &BufferLimits) -> Result<bool> {
    let BufferedMessage { place, event_key, message: id, person, name, text, piece, at } = message;
    let BufferPlace { account, chat, topic } = place;
    // Recognises a redelivery even after the message was deleted here.
    let known = "INSERT INTO inbox (account, event_key, payload, at, done) VALUES ($1, $2, '', $3, $3)
        ON CONFLICT (account, event_key) DO NOTHING RETURNING id";
    let event = query(known).bind(account).bind(event_key).bind(limits.now);
    if event.fetch_optional::<i64>(tx)?.is_none() {
        return Ok(false);
    }
    let sql =
        "INSERT INTO buffered_messages (account, chat, topic, message, person, name, text, piece, bytes, at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (account, chat, message) DO NOTHING";
    let insert = query(sql).bind(account).bind(chat).bind(topic).bind(id).bind(person).bind(name).bind(text);
    let bytes = size(text).saturating_add(size(piece));
    let inserted = insert.bind(piece).bind(bytes).bind(*at).execute(tx)?;
    prune(tx, place, limits)?;
    Ok(inserted == 1)
}

/// Deletes the oldest messages of a chat or topic until the remaining ones are within the limits.
fn prune(tx: &mut Tx<'_>, place: &BufferPlace, limits: &BufferLimits) -> Result<()> {
    let sql = "DELETE FROM buffered_messages WHERE id IN (SELECT id FROM
        (SELECT id, at, ROW_NUMBER() OVER (ORDER BY id DESC) AS number,
                CAST(SUM(bytes) OVER (ORDER BY id DESC) AS BIGINT) AS total
            FROM buffered_messages WHERE account = $1 AND chat = $2 AND topic = $3) AS newest
        WHERE number > $4 OR total > $5 OR at < $6)";
    let delete = query(sql).bind(&place.account).bind(&place.chat).bind(&place.topic);
    delete.bind(limits.messages).bind(MAX_PLACE_BYTES).bind(limits.oldest).execute(tx)?;
    Ok(())
}

fn size(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}
