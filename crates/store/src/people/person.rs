//! Export and deletion of the rows of one person: a user and the platform identities of that user.
//!
//! Messages of other people are kept, and the costs of runs are kept without a name. Threads and the recall index are
//! deleted by their own modules.

mod keys;
mod redact;
mod shared;

pub use keys::{AccountPerson, PersonKeys, RoomMessage};
pub use shared::SharedThread;

use crate::{
    Db, DbLocation, InboxItemId, Result, StoreError, ThreadRow, TurnId, crash,
    engines::{DbEngine, FromRow, Row, Tx, open_file, query},
};
use keys::message_of;
use pudu_base::{Message, UserId, digest};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Rows of a table, each with its columns and values.
#[derive(Clone, Debug, PartialEq)]
pub struct PersonTable {
    /// Name of the table in the export.
    pub name: &'static str,
    /// The rows.
    pub rows: Vec<Map<String, Value>>,
}

/// Kind of an import note that records a forgotten user. Its item is the digest of the user's id.
pub const FORGOTTEN_NOTE: &str = "forgotten";

/// Maximum number of tries to empty the write-ahead log, which readers can block.
const CHECKPOINTS: u32 = 50;
/// Interval between two such tries.
const CHECKPOINT_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// Exported tables of a user, with their queries.
const OF_USER: &[(&str, &str)] = &[
    (
        "account",
        "SELECT id, email, system_role, needs_setup, token_version, oauth_provider, oauth_id, oauth_issuer, created
            FROM users
            WHERE id = $1",
    ),
    (
        "feedback",
        "SELECT id, run, thread, message, rating, comment, created FROM feedback WHERE user_id = $1 ORDER BY id",
    ),
    ("identities", "SELECT account, person, name, at FROM identities WHERE user_id = $1 ORDER BY account, person"),
    (
        "usage",
        "SELECT run, thread, account, person, day, caller, model, calls, input, output, cached, cache_writes, reasoning,
            cost, currency FROM spending WHERE user_id = $1 ORDER BY day, run, caller, model",
    ),
    (
        "api_tokens",
        "SELECT id, name, scopes, created, expires, used FROM api_tokens WHERE user_id = $1 ORDER BY created, id",
    ),
    (
        "scheduled_tasks",
        "SELECT id, thread, title, prompt, kind, spec, zone, status, agent, model, budget, account, chat, target, next_run,
            last_run, last_error, run_count, created, updated FROM scheduled_tasks WHERE user_id = $1 ORDER BY created, id",
    ),
    (
        "scheduled_task_runs",
        "SELECT id, task, thread, run, scheduled_for, cause, status, error, started, finished FROM scheduled_task_runs
            WHERE task IN (SELECT id FROM scheduled_tasks WHERE user_id = $1) ORDER BY created, id",
    ),
    ("memory_off", "SELECT user_id FROM memory_off WHERE user_id = $1"),
    ("to_be_learnt", "SELECT agent, thread, run, due FROM learnings WHERE user_id = $1 ORDER BY thread"),
];
/// Exported tables of a platform identity, with their queries.
const OF_PERSON: &[(&str, &str)] = &[
    ("paired", "SELECT account, person, name, at FROM paired WHERE account = $1 AND person = $2"),
    (
        "approvals",
        "SELECT id, thread, tool, arguments, wish, name, asked, approved, decided_by, decided FROM approvals
            WHERE account = $1 AND person = $2 ORDER BY asked, id",
    ),
    (
        "decided_approvals",
        "SELECT id, thread, tool, approved, decided FROM approvals
            WHERE account = $1 AND decided_by <> ''
                AND (decided_by IN ($2, $3) OR substr(decided_by, 1, length($2) + 8) = $2 || ' (token ')
            ORDER BY decided, id",
    ),
    (
        "audit",
        "SELECT at, thread, run, account, action, detail, verdict, code, ended FROM audit
            WHERE account = $1 AND person = $2 ORDER BY id",
    ),
    (
        "buffered_messages",
        "SELECT account, chat, topic, message, name, text, piece, at FROM buffered_messages
            WHERE account = $1 AND person = $2 ORDER BY id",
    ),
    (
        "room_threads",
        "SELECT thread, account, at FROM thread_people WHERE account = $1 AND person = $2 ORDER BY at, thread",
    ),
];

/// Statements that delete or redact a user's rows.
const FORGET_USER: &[&str] = &[
    "DELETE FROM users WHERE id = $1",
    "DELETE FROM api_tokens WHERE user_id = $1",
    "DELETE FROM feedback WHERE user_id = $1",
    "DELETE FROM identities WHERE user_id = $1",
    "DELETE FROM memory_off WHERE user_id = $1",
    "DELETE FROM scheduled_task_runs WHERE task IN (SELECT id FROM scheduled_tasks WHERE user_id = $1)",
    "DELETE FROM scheduled_tasks WHERE user_id = $1",
    "DELETE FROM learnings WHERE user_id = $1 OR spender = $1",
    "DELETE FROM learnt WHERE user_id = $1",
    "UPDATE spending SET user_id = '', person = '' WHERE user_id = $1",
    "DELETE FROM budgets WHERE scope = 'person' AND subject = $1",
    "DELETE FROM memory_merges WHERE source = $1 OR target = $1",
    "DELETE FROM adoptions WHERE source = $1 OR target = $1",
    "DELETE FROM imports WHERE kind IN ('memory', 'account') AND item = $1",
    "UPDATE audit SET detail = '' WHERE account = '' AND detail = $1",
    "UPDATE audit SET person = '' WHERE account = '' AND person = $1",
];
/// Statements that delete or redact an identity's rows.
const FORGET_PERSON: &[&str] = &[
    "DELETE FROM identities WHERE account = $1 AND person = $2",
    "DELETE FROM paired WHERE account = $1 AND person = $2",
    "DELETE FROM pairing_codes WHERE account = $1 AND (issuer = $2 OR person = $2 OR person = $1 || chr10 || $2)",
    "DELETE FROM approvals WHERE account = $1 AND person = $2",
    "UPDATE approvals SET decided_by = '' WHERE account = $1 AND decided_by <> ''
        AND (decided_by IN ($2, $3) OR substr(decided_by, 1, length($2) + 8) = $2 || ' (token ')",
    "UPDATE audit SET person = '', detail = '' WHERE account = $1 AND person = $2",
    "UPDATE spending SET person = '' WHERE account = $1 AND person = $2",
    "DELETE FROM learnings WHERE account = $1 AND person = $2",
    "DELETE FROM thread_people WHERE account = $1 AND person = $2",
    "DELETE FROM buffered_messages WHERE account = $1 AND person = $2",
    "DELETE FROM scheduled_task_runs WHERE task IN (SELECT id FROM scheduled_tasks WHERE account = $1 AND person = $2)",
    "DELETE FROM scheduled_tasks WHERE account = $1 AND person = $2",
];

impl Db {
    /// Lists the distinct platform identities in all rows, with a name if one is known.
    pub async fn account_people(&self) -> Result<Vec<AccountPerson>> {
        let sql = "SELECT account, person, MAX(name) AS name FROM (
                SELECT account, person, name FROM identities UNION SELECT account, person, name FROM paired
                UNION SELECT account, person, name FROM approvals UNION SELECT account, person, '' FROM audit
                UNION SELECT account, person, name FROM buffered_messages
                UNION SELECT account, person, '' FROM scheduled_tasks
                UNION SELECT account, person, '' FROM spending UNION SELECT account, person, '' FROM thread_people) AS known
            WHERE account <> '' AND person <> '' GROUP BY account, person ORDER BY account, person";
        self.all(query(sql)).await
    }

    /// Lists the distinct users in all rows, each with the address of the sign-in account, if any.
    pub async fn known_users(&self) -> Result<Vec<(UserId, Option<String>)>> {
        let sql = "SELECT known.id, users.email FROM (SELECT id FROM users UNION SELECT user_id FROM threads
                UNION SELECT user_id FROM identities UNION SELECT user_id FROM recall_scopes
                UNION SELECT user_id FROM spending UNION SELECT user_id FROM feedback
                UNION SELECT user_id FROM scheduled_tasks) AS known
            LEFT JOIN users ON users.id = known.id WHERE known.id <> '' ORDER BY known.id";
        self.all(query(sql)).await
    }

    /// Returns a person's rows of the exported tables, which exclude threads and memory.
    pub async fn person_tables(&self, keys: &PersonKeys) -> Result<Vec<PersonTable>> {
        let keys = keys.clone();
        self.read_much(move |tx| tables(tx, &keys)).await
    }

    /// Returns a user's threads, most recently used first.
    pub async fn threads_of_user(&self, user: &UserId) -> Result<Vec<ThreadRow>> {
        let sql = "SELECT id, account, user_id, title, created, updated, log_bytes, file_bytes FROM threads
            WHERE user_id = $1 ORDER BY updated DESC, id DESC";
        self.all(query(sql).bind(user.as_str())).await
    }

    /// Returns the messages of a person's turns in other users' threads, from the log.
    pub async fn room_messages(&self, keys: &PersonKeys) -> Result<Vec<RoomMessage>> {
        let keys = keys.clone();
        self.read_much(move |tx| room_messages(tx, &keys)).await
    }

    /// Returns the stored replies to a person, JSON.
    pub async fn views_of_person(&self, keys: &PersonKeys) -> Result<Vec<String>> {
        let keys = keys.clone();
        self.read_much(move |tx| {
            let sql = "SELECT final_view FROM turns JOIN threads ON threads.id = turns.thread
                WHERE final_view IS NOT NULL AND threads.user_id = $1";
            let mut views = Vec::new();
            for user in keys.users() {
                views.extend(query(sql).bind(user).fetch_all::<String>(tx)?);
            }
            let sql = "SELECT placement, final_view FROM turns WHERE final_view IS NOT NULL AND account = $1";
            for AccountPerson { account, person, .. } in &keys.people {
                let rows: Vec<(String, String)> = query(sql).bind(account).fetch_all(tx)?;
                let own =
                    rows.into_iter().filter(|(placement, _)| is_of(placement, keys.reply_sender, person));
                views.extend(own.map(|(_, view)| view));
            }
            Ok(views)
        })
        .await
    }

    /// Returns whether a person has work in progress: an open turn, an unsettled model call, an unfinished run, or a
    /// waiting event.
    pub async fn is_person_at_work(&self, keys: &PersonKeys) -> Result<bool> {
        let keys = keys.clone();
        self.read_much(move |tx| {
            let turns = "SELECT COUNT(*) FROM turns JOIN threads ON threads.id = turns.thread
                WHERE delivered IS NULL AND parked IS NULL AND threads.user_id = $1";
            let calls = "SELECT COUNT(*) FROM reservations WHERE user_id = $1";
            let runs = "SELECT COUNT(*) FROM runs WHERE user_id = $1 AND ended IS NULL";
            for (user, sql) in keys.users().flat_map(|user| [(user, turns), (user, calls), (user, runs)]) {
                if query(sql).bind(user.as_str()).fetch_one::<i64>(tx)? > 0 {
                    return Ok(true);
                }
            }
            let (events, turns) = rows_of_person(tx, &keys, false)?;
            Ok(!events.is_empty() || !turns.is_empty())
        })
        .await
    }

    /// Returns a person's waiting events and open turns, left by a previous process. Only for a process with exclusive
    /// use of the database.
    pub async fn left_of_person(&self, keys: &PersonKeys) -> Result<(Vec<InboxItemId>, Vec<TurnId>)> {
        let keys = keys.clone();
        self.read_much(move |tx| rows_of_person(tx, &keys, false)).await
    }

    /// Deletes a person's rows, except for threads and the recall index. Their words in other users' threads are
    /// replaced with a notice, and names are removed from the audit and the costs of runs. Shared threads pass to their
    /// rooms. Does nothing and returns `false` if a thread with such words has an open turn.
    pub async fn forget_person(
        &self,
        keys: &PersonKeys,
        messages: Vec<RoomMessage>,
        shared: Vec<SharedThread>,
    ) -> Result<bool> {
        let of = keys.clone();
        let (events, turns) = self.read_much(move |tx| rows_of_person(tx, &of, true)).await?;
        let keys = keys.clone();
        self.write(&crash::FORGET_PERSON, move |tx| {
            if shared::is_in_use(tx, &messages)? {
                return Ok(false);
            }
            forget(tx, &keys, &messages, &events, &turns)?;
            shared::hand_over(tx, &shared)?;
            Ok(true)
        })
        .await
    }

    /// Removes deleted data from a SQLite file and its write-ahead log. A server eventually does this itself.
    pub async fn compact(&self) -> Result<()> {
        self.clean_file("VACUUM").await
    }

    /// Removes deleted data from SQLite's write-ahead log. A server does this itself.
    ///
    /// # Errors
    /// If a reader keeps the log in use for seconds, so that deleted text is still in it, or if the store fails.
    pub async fn purge_write_log(&self) -> Result<()> {
        self.clean_file("").await
    }

    /// Runs a statement on a SQLite file and empties its write-ahead log. Fails if readers keep the log in use.
    async fn clean_file(&self, sql: &'static str) -> Result<()> {
        let DbLocation::Sqlite(path) = self.location().clone() else { return Ok(()) };
        let runtime = tokio::runtime::Handle::current();
        let clean = move || {
            let connection = open_file(&path, DbEngine::Sqlite.writing())?;
            connection.execute_batch(sql)?;
            for _ in 0..CHECKPOINTS {
                let is_busy: bool =
                    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
                if !is_busy {
                    return Ok(());
                }
                runtime.block_on(tokio::time::sleep(CHECKPOINT_PAUSE));
            }
            Err(log_in_use())
        };
        let cleaned = tokio::task::spawn_blocking(clean).await;
        cleaned.map_err(|error| StoreError::Unavailable(error.to_string()))?
    }
}

fn log_in_use() -> StoreError {
    let why =
        "the database's write-ahead log is in use and still contains the deleted data: repeat the request";
    StoreError::Unavailable(why.to_owned())
}

fn tables(tx: &mut Tx<'_>, keys: &PersonKeys) -> Result<Vec<PersonTable>> {
    let mut tables = Vec::new();
    for (name, sql) in OF_USER {
        let mut rows = Vec::new();
        for user in keys.users() {
            rows.extend(query(*sql).bind(user.as_str()).fetch_all(tx)?);
        }
        tables.push(PersonTable { name, rows });
    }
    for (name, sql) in OF_PERSON {
        let mut rows = Vec::new();
        for AccountPerson { account, person, name } in &keys.people {
            let found = query(*sql).bind(account).bind(person);
            let found = if sql.contains("$3") { found.bind(name) } else { found };
            rows.extend(found.fetch_all(tx)?);
        }
        tables.push(PersonTable { name, rows });
    }
    Ok(tables)
}

/// Reads all columns of a row by name. All values are numbers or texts.
impl FromRow for Map<String, Value> {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let value = |at| match row.column::<Option<i64>>(at) {
            Ok(number) => Ok::<_, StoreError>(number.map(Value::from)),
            Err(_) => Ok(row.column::<Option<String>>(at)?.map(Value::from)),
        };
        let to_pair = |(at, name): (usize, &str)| Ok((name.to_owned(), value(at)?.unwrap_or_default()));
        row.names().into_iter().enumerate().map(to_pair).collect()
    }
}

fn room_messages(tx: &mut Tx<'_>, keys: &PersonKeys) -> Result<Vec<RoomMessage>> {
    // Tests for a substring by replacing it, because LIKE treats some characters as wildcards in both engines.
    let sql = "SELECT log.thread, log.run, log.body, threads.user_id FROM threads JOIN log ON log.thread = threads.id
        WHERE threads.account = $1 AND REPLACE(log.body, $2, '') <> log.body";
    let mut turns = BTreeSet::new();
    for AccountPerson { account, person, .. } in &keys.people {
        let mark = format!("\"person\":{}", Value::from(person.as_str()));
        let rows = query(sql).bind(account).bind(&mark);
        let rows: Vec<(String, String, String, String)> = rows.fetch_all(tx)?;
        for (thread, run, body, owner) in rows {
            if keys.users().any(|user| user.as_str() == owner) {
                continue;
            }
            let own = |message: &Message| matches!(message, Message::Human(human) if human.person.as_deref() == Some(person));
            if message_of(&body)?.is_some_and(|message| own(&message)) {
                turns.insert((thread, run));
            }
        }
    }
    // Each run works for one person, so everything that it wrote belongs to their turn.
    let sql = "SELECT threads.user_id, threads.account, log.seq, log.body FROM threads
        JOIN log ON log.thread = threads.id WHERE log.thread = $1 AND log.run = $2 ORDER BY log.seq";
    let mut messages = Vec::new();
    for (thread, run) in turns {
        let rows: Vec<(String, String, i64, String)> = query(sql).bind(&thread).bind(&run).fetch_all(tx)?;
        for (owner, account, seq, body) in rows {
            let message = message_of(&body)?;
            // Skips messages that other people sent during the run.
            if let Some(message) =
                message.filter(|message| !shared::is_of_other(message, &account, &keys.people))
            {
                let (thread, run) = (thread.as_str().into(), run.as_str().into());
                let owner = UserId::from_raw(&owner).unwrap_or_default();
                messages.push(RoomMessage { thread, owner, run, seq, message });
            }
        }
    }
    Ok(messages)
}

/// Returns the events and turns of a person that are done, or those that are not.
fn rows_of_person(
    tx: &mut Tx<'_>,
    keys: &PersonKeys,
    is_done: bool,
) -> Result<(Vec<InboxItemId>, Vec<TurnId>)> {
    let (events_sql, turns_sql) = if is_done {
        (
            "SELECT id, payload FROM inbox WHERE done IS NOT NULL AND account = $1",
            "SELECT id, placement FROM turns WHERE (delivered IS NOT NULL OR parked IS NOT NULL) AND account = $1",
        )
    } else {
        (
            "SELECT id, payload FROM inbox WHERE done IS NULL AND account = $1",
            "SELECT id, placement FROM turns WHERE delivered IS NULL AND parked IS NULL AND account = $1",
        )
    };
    let (mut events, mut turns) = (Vec::new(), Vec::new());
    for AccountPerson { account, person, .. } in &keys.people {
        let rows: Vec<(InboxItemId, String)> = query(events_sql).bind(account).fetch_all(tx)?;
        let own = rows.into_iter().filter(|(_, payload)| is_of(payload, keys.event_sender, person));
        events.extend(own.map(|(id, _)| id));
        let rows: Vec<(TurnId, String)> = query(turns_sql).bind(account).fetch_all(tx)?;
        let own = rows.into_iter().filter(|(_, placement)| is_of(placement, keys.reply_sender, person));
        turns.extend(own.map(|(id, _)| id));
    }
    Ok((events, turns))
}

fn is_of(text: &str, pointer: &str, person: &str) -> bool {
    let value = serde_json::from_str::<Value>(text).ok();
    value.as_ref().and_then(|value| value.pointer(pointer)?.as_str()) == Some(person)
}

fn forget(
    tx: &mut Tx<'_>,
    keys: &PersonKeys,
    messages: &[RoomMessage],
    events: &[InboxItemId],
    turns: &[TurnId],
) -> Result<()> {
    redact::messages(tx, messages)?;
    for id in events {
        // The row is kept, so that a late redelivery is recognised.
        query("UPDATE inbox SET payload = '{}' WHERE id = $1").bind(*id).execute(tx)?;
    }
    for id in turns {
        query("DELETE FROM turns WHERE id = $1").bind(id).execute(tx)?;
    }
    for AccountPerson { account, person, name } in &keys.people {
        for sql in FORGET_PERSON {
            let sql = sql.replace("chr10", "'\n'");
            let statement = query(sql.clone()).bind(account).bind(person);
            let statement = if sql.contains("$3") { statement.bind(name) } else { statement };
            statement.execute(tx)?;
        }
    }
    for user in keys.users() {
        for sql in FORGET_USER {
            query(*sql).bind(user.as_str()).execute(tx)?;
        }
        // Prevents an import from restoring a forgotten person.
        let sql = "INSERT INTO imports (kind, item, digest, seq, done, at) VALUES ($1, $2, '', 0, 1, 0)
            ON CONFLICT DO NOTHING";
        query(sql).bind(FORGOTTEN_NOTE).bind(&digest(user.as_str())).execute(tx)?;
    }
    Ok(())
}
