//! Imports from another program. Each item is stored in one transaction with its note, so that a repeated import finds
//! the finished items and imports nothing twice.
//!
//! Deliberately absent: the formats of the other program.

use crate::{
    Db, Result, ScheduledTask, crash,
    engines::{Tx, from_row, query},
    people::identities,
    schedules,
    sweep::CHUNK,
    threads,
    threads::log::{self, LogRows},
};
use pudu_base::{MessageId, Seq, ThreadFolder, Update, UserId, digest};
use std::fmt;

/// Run id of imported messages in the log.
const RUN: &str = "import";

/// A note that an item was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportNote {
    /// The kind of item.
    pub kind: String,
    /// Its id.
    pub item: String,
    /// A digest of the item at its source.
    pub digest: String,
    /// Position up to which a thread's log is a copy of the source; 0 for other items.
    pub seq: Seq,
    /// Whether the import of the item is complete.
    pub done: bool,
}

/// A thread to import from another program.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedThread {
    /// Its id, and the user whose folder contains its files.
    pub folder: ThreadFolder,
    /// The bot through which people use it; empty if none.
    pub account: String,
    /// Its title; empty if it has none.
    pub title: String,
    /// Time when it was created, in milliseconds since 1970.
    pub created: i64,
    /// Time of its last use.
    pub updated: i64,
    /// The updates are appended after this position: 0, or the position of an earlier note.
    pub at: Seq,
    /// Changes of its state.
    pub updates: Vec<Update>,
    /// The last message that memory has already learnt from.
    pub learnt: Option<MessageId>,
    /// A digest of the thread at its source.
    pub digest: String,
}

/// A sign-in account.
#[derive(Clone, PartialEq, Eq)]
pub struct UserAccount {
    /// The user.
    pub user: UserId,
    /// The e-mail address for signing in.
    pub email: String,
    /// The password's hash, in DeerFlow's format; `None` for users who sign in through a provider.
    pub password_hash: Option<String>,
    /// `admin` or `user`.
    pub role: String,
    /// Whether the user has to choose a password first.
    pub needs_setup: bool,
    /// Version of the user's sessions. An increment ends all sessions.
    pub token_version: i64,
    /// The provider through which the user signs in.
    pub oauth_provider: Option<String>,
    /// The user's id at the provider.
    pub oauth_id: Option<String>,
    /// Time when it was created, in milliseconds since 1970.
    pub created: i64,
}

/// Omits the password's hash.
impl fmt::Debug for UserAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let account = (&self.user, &self.email, &self.role);
        f.debug_tuple("UserAccount").field(&account).finish_non_exhaustive()
    }
}

/// Outcome of importing a sign-in account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MovedAccount {
    /// The account was added.
    New,
    /// The account already exists and is equal to the source.
    Same,
    /// Changes at the source since the last import were applied.
    Renewed,
    /// The account was changed here since its import and is kept unchanged.
    Changed,
    /// Another account has the address or the id at the provider.
    Taken,
}

/// A user's rating of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// Its id.
    pub id: String,
    /// The run that answered.
    pub run: String,
    /// The thread.
    pub thread: String,
    /// The user.
    pub user: UserId,
    /// The message, if it is about one.
    pub message: Option<String>,
    /// 1 or -1.
    pub rating: i64,
    /// The user's comment.
    pub comment: Option<String>,
    /// Time of the rating, in milliseconds since 1970.
    pub created: i64,
}

/// A row that is imported unless one with its key exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportRecord {
    /// A platform identity and its user.
    Identity(crate::Identity),
    /// A conversation.
    Conversation {
        /// The conversation's key.
        key: String,
        /// The bot.
        account: String,
        /// The chat.
        chat: String,
        /// The first message of a chain, whose replies continue the conversation.
        message: Option<String>,
        /// The thread.
        folder: ThreadFolder,
        /// Time of its last use, in milliseconds since 1970.
        updated: i64,
    },
    /// A rating.
    Feedback(Feedback),
    /// A scheduled task.
    Schedule(Box<ScheduledTask>),
}

from_row!(ImportNote { kind, item, digest, seq, done });

impl Db {
    /// Returns the notes of all imports.
    pub async fn import_notes(&self) -> Result<Vec<ImportNote>> {
        let sql = "SELECT kind, item, digest, seq, done FROM imports ORDER BY kind, item";
        self.all(query(sql)).await
    }

    /// Stores the note that an item was imported or is about to be.
    pub async fn note_import(&self, note: ImportNote, now: i64) -> Result<()> {
        self.write(&crash::IMPORT_NOTE, move |tx| put_note(tx, &note, now)).await
    }

    /// Imports a thread with its note, and returns the new position of its log.
    ///
    /// # Errors
    /// A conflict if the thread was changed by another writer.
    pub async fn import_thread(&self, thread: ImportedThread, now: i64) -> Result<Seq> {
        let rows =
            LogRows::new(&thread.folder.thread, &RUN.into(), thread.at, thread.updated, &thread.updates)?;
        let thread = ImportedThread { updates: Vec::new(), ..thread };
        self.write(&crash::IMPORT_THREAD, move |tx| put_thread(tx, &thread, &rows, now)).await
    }

    /// Imports a sign-in account with its note. Changes made in pudu since an earlier import are kept.
    pub async fn import_account(&self, account: UserAccount, now: i64) -> Result<MovedAccount> {
        self.write(&crash::IMPORT_RECORDS, move |tx| put_account(tx, &account, now)).await
    }

    /// Imports rows. Returns for each row whether it is new.
    pub async fn import_records(&self, records: Vec<ImportRecord>) -> Result<Vec<bool>> {
        let mut all = Vec::new();
        for chunk in records.chunks(usize::try_from(CHUNK).unwrap_or(1)) {
            let records = chunk.to_vec();
            let put = self.write(&crash::IMPORT_RECORDS, move |tx| {
                let mut put = Vec::with_capacity(records.len());
                for record in &records {
                    put.push(match record {
                        ImportRecord::Identity(identity) => identities::identify_if_new(tx, identity)?,
                        ImportRecord::Conversation { key, account, chat, message, folder, updated } => {
                            put_conversation(tx, [key, account, chat], message.as_deref(), folder, *updated)?
                        }
                        ImportRecord::Feedback(feedback) => put_feedback(tx, feedback)?,
                        ImportRecord::Schedule(task) => put_schedule(tx, task)?,
                    });
                }
                Ok(put)
            });
            all.extend(put.await?);
        }
        Ok(all)
    }
}

/// Stores a scheduled task, unless it was imported before.
fn put_schedule(tx: &mut Tx<'_>, task: &ScheduledTask) -> Result<bool> {
    let sql = "INSERT INTO imports (kind, item, digest, seq, done, at) VALUES ('schedule', $1, '', 0, 1, $2)
        ON CONFLICT (kind, item) DO NOTHING";
    let is_new = query(sql).bind(&task.id).bind(task.created).execute(tx)? > 0;
    if is_new {
        schedules::insert(tx, task)?;
    }
    Ok(is_new)
}

fn put_note(tx: &mut Tx<'_>, note: &ImportNote, now: i64) -> Result<()> {
    let sql = "INSERT INTO imports (kind, item, digest, seq, done, at) VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (kind, item) DO UPDATE SET digest = excluded.digest, seq = excluded.seq, done = excluded.done,
            at = excluded.at";
    let insert = query(sql).bind(&note.kind).bind(&note.item).bind(&note.digest).bind(note.seq);
    insert.bind(i64::from(note.done)).bind(now).execute(tx)?;
    Ok(())
}

fn put_thread(tx: &mut Tx<'_>, thread: &ImportedThread, rows: &LogRows, now: i64) -> Result<Seq> {
    let seq = log::append(tx, rows)?;
    let sql =
        "UPDATE threads SET user_id = $1, account = $2, title = $3, created = $4, updated = $5, measured = 0
            WHERE id = $6";
    let update = query(sql).bind(thread.folder.owner.as_str()).bind(&thread.account).bind(&thread.title);
    let id = thread.folder.thread.as_str();
    update.bind(thread.created).bind(thread.updated).bind(id).execute(tx)?;
    if let Some(message) = &thread.learnt {
        let sql = "INSERT INTO learnt (user_id, agent, thread, message) VALUES ($1, '', $2, $3)
            ON CONFLICT (user_id, agent, thread) DO UPDATE SET message = excluded.message";
        let insert = query(sql).bind(thread.folder.owner.as_str()).bind(id);
        insert.bind(message.as_str()).execute(tx)?;
    }
    let (kind, item, digest) = ("thread".to_owned(), id.to_owned(), thread.digest.clone());
    put_note(tx, &ImportNote { kind, item, digest, seq, done: true }, now)?;
    Ok(seq)
}

fn put_conversation(
    tx: &mut Tx<'_>,
    texts: [&String; 3],
    message: Option<&str>,
    folder: &ThreadFolder,
    updated: i64,
) -> Result<bool> {
    let sql = "INSERT INTO conversations (key, account, chat, thread, updated) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (key) DO NOTHING";
    let insert = query(sql).bind_all(texts);
    let new = insert.bind(folder.thread.as_str()).bind(updated).execute(tx)? > 0;
    if new {
        let [key, account, chat] = texts;
        threads::belongs(tx, folder, account, updated)?;
        if let Some(message) = message {
            let sql = "INSERT INTO messages (account, chat, message, conversation, ours, at)
                VALUES ($1, $2, $3, $4, 0, $5) ON CONFLICT DO NOTHING";
            let insert = query(sql).bind(account).bind(chat).bind(message).bind(key);
            insert.bind(updated).execute(tx)?;
        }
    }
    Ok(new)
}

/// Selects the credentials and the role of an account as one text, for comparison.
const SIGN_IN: &str = "SELECT email || ' ' || COALESCE(password_hash, '') || ' ' || system_role || ' '
    || CAST(needs_setup AS TEXT) || ' ' || CAST(token_version AS TEXT) FROM users WHERE id = $1";

fn put_account(tx: &mut Tx<'_>, account: &UserAccount, now: i64) -> Result<MovedAccount> {
    let id = account.user.as_str();
    let UserAccount { email, role, needs_setup, token_version, .. } = account;
    let hash = account.password_hash.as_deref();
    let imported =
        format!("{email} {} {role} {} {token_version}", hash.unwrap_or_default(), u8::from(*needs_setup));
    let here: Option<String> = query(SIGN_IN).bind(id).fetch_optional(tx)?;
    let sql = "SELECT digest FROM imports WHERE kind = 'account' AND item = $1";
    let known: Option<String> = query(sql).bind(id).fetch_optional(tx)?;
    let moved = match here {
        None if put_user(tx, account)? => MovedAccount::New,
        None => return Ok(MovedAccount::Taken),
        Some(here) if here == imported => MovedAccount::Same,
        Some(here) if known == Some(digest(&here)) && here.split(' ').next() == Some(email.as_str()) => {
            let sql =
                "UPDATE users SET password_hash = $1, system_role = $2, needs_setup = $3, token_version = $4
                    WHERE id = $5";
            let update = query(sql).bind(hash).bind(role).bind(i64::from(*needs_setup)).bind(*token_version);
            update.bind(id).execute(tx)?;
            MovedAccount::Renewed
        }
        Some(_) => return Ok(MovedAccount::Changed),
    };
    let (kind, item, digest) = ("account".to_owned(), id.to_owned(), digest(&imported));
    put_note(tx, &ImportNote { kind, item, digest, seq: 0, done: true }, now)?;
    Ok(moved)
}

pub(crate) fn put_user(tx: &mut Tx<'_>, user: &UserAccount) -> Result<bool> {
    let sql = "INSERT INTO users (id, email, password_hash, system_role, needs_setup, token_version, oauth_provider,
        oauth_id, created) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING";
    let insert = query(sql).bind(user.user.as_str()).bind(&user.email).bind(user.password_hash.as_deref());
    let insert = insert.bind(&user.role).bind(i64::from(user.needs_setup)).bind(user.token_version);
    let insert = insert.bind(user.oauth_provider.as_deref()).bind(user.oauth_id.as_deref());
    Ok(insert.bind(user.created).execute(tx)? > 0)
}

fn put_feedback(tx: &mut Tx<'_>, feedback: &Feedback) -> Result<bool> {
    // Feedback is deleted with its thread, and is not imported without it.
    let thread = query("SELECT 1 FROM threads WHERE id = $1").bind(&feedback.thread);
    if thread.fetch_optional::<i64>(tx)?.is_none() {
        return Ok(false);
    }
    let sql = "INSERT INTO feedback (id, run, thread, user_id, message, rating, comment, created)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING";
    let insert = query(sql).bind(&feedback.id).bind(&feedback.run).bind(&feedback.thread);
    let insert = insert.bind(feedback.user.as_str()).bind(feedback.message.as_deref()).bind(feedback.rating);
    Ok(insert.bind(feedback.comment.as_deref()).bind(feedback.created).execute(tx)? > 0)
}
