//! Turns, which are the outbox: one row per visible reply.
//!
//! A turn is open until its reply is delivered or given up. The events that it answers are marked as done in the same
//! transaction, so each event waits for exactly one reply.

pub(crate) mod choices;
pub(crate) mod conversations;
pub(crate) mod messages;

use crate::{
    Db, InboxItemId, Result, StoreError, TurnId, crash,
    engines::{Tx, from_row, query},
    error::SETTLED,
    runs::records,
    schedules::history,
    threads::{self, members},
};
use messages::Recorded;
use pudu_base::{RunId, ThreadFolder, ThreadId};
use std::collections::HashMap;

/// A turn to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTurn {
    /// Its id.
    pub id: TurnId,
    /// The conversation's key.
    pub conversation: String,
    /// The account that replies.
    pub account: String,
    /// The thread, if the agent answers, with its owner in case the thread is new.
    pub folder: Option<ThreadFolder>,
    /// The run, if the agent answers.
    pub run: Option<RunId>,
    /// The reply's target, JSON.
    pub reply_target: String,
    /// The events that it answers. Each must be waiting and have no other turn.
    pub items: Vec<InboxItemId>,
    /// Platform ids of the authors whose messages in a room are answered. They become members of its thread.
    pub people: Vec<String>,
    /// The reply, JSON, if it is already known.
    pub final_view: Option<String>,
    /// The current time, in milliseconds since 1970.
    pub now: i64,
}

/// Record of a reply's messages on a platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownReply {
    /// The channel's record of the reply, JSON.
    pub handle: String,
    /// The conversation's key.
    pub conversation: String,
    /// The bot.
    pub account: String,
    /// The chat.
    pub chat: String,
    /// The platform's ids of its messages.
    pub messages: Vec<String>,
}

/// Result of delivering a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// The turn and these events are done.
    Done(Vec<InboxItemId>),
    /// The reply has changed in the meantime. Contains the new reply, JSON, to be delivered instead.
    Outdated(String),
}

/// An open turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnRow {
    /// Its id.
    pub id: TurnId,
    /// The conversation's key.
    pub conversation: String,
    /// The account that replies.
    pub account: String,
    /// The thread, if the agent answers.
    pub thread: Option<ThreadId>,
    /// The run, if the agent answers.
    pub run: Option<RunId>,
    /// The reply's target, JSON.
    pub reply_target: String,
    /// The events that it answers, oldest first.
    pub items: Vec<InboxItemId>,
    /// The channel's record of the reply on the platform, JSON.
    pub handle: Option<String>,
    /// The reply, JSON, once it is known.
    pub final_view: Option<String>,
    /// Number of failed deliveries.
    pub attempts: i64,
    /// Time of the next delivery attempt.
    pub next_at: i64,
    /// Time when it was opened.
    pub created: i64,
}

from_row!(TurnRow {
    id,
    conversation,
    account,
    thread,
    run,
    reply_target: "placement",
    items = Vec::new(),
    handle,
    final_view,
    attempts,
    next_at,
    created,
});

impl Db {
    /// Opens a turn with the record of its run, and assigns the events to it.
    pub async fn open_turn(&self, turn: &NewTurn) -> Result<()> {
        let (turn, owner) = (turn.clone(), self.process().to_owned());
        self.write(&crash::OPEN_TURN, move |tx| open(tx, &turn, &owner)).await
    }

    /// Adds events to the turn of a run that was in progress when people sent them. Fails if the turn's reply is
    /// already known.
    pub async fn join_turn(&self, turn: &TurnId, items: &[InboxItemId], people: Vec<String>) -> Result<()> {
        let (turn, items) = (turn.clone(), items.to_vec());
        self.write(&crash::JOIN_TURN, move |tx| {
            // This update changes nothing. It locks the row, so that a turn cannot conclude while it takes an event.
            let sql = "UPDATE turns SET attempts = attempts
                WHERE id = $1 AND final_view IS NULL AND delivered IS NULL AND parked IS NULL";
            changed(query(sql).bind(&turn.0).execute(tx)?)?;
            members::join(tx, &turn, &people)?;
            claim(tx, &turn, &items)
        })
        .await
    }

    /// Records that people cleared the goal of an open turn's run.
    pub async fn drop_goal(&self, turn: &TurnId) -> Result<()> {
        let sql = "UPDATE runs SET goal_dropped = 1 WHERE id =
            (SELECT run FROM turns WHERE id = $1 AND delivered IS NULL AND parked IS NULL)";
        changed(self.execute(&crash::DROP_GOAL, query(sql).bind(turn)).await?)
    }

    /// Stores the record of an open turn's messages on the platform, replacing the earlier record.
    pub async fn save_handle(&self, turn: &TurnId, shown: &ShownReply, now: i64) -> Result<()> {
        let recorded = Recorded {
            account: shown.account.clone(),
            chat: shown.chat.clone(),
            messages: shown.messages.clone(),
            conversation: shown.conversation.clone(),
            ours: true,
            turn: Some(turn.0.clone()),
        };
        let (turn, handle) = (turn.clone(), shown.handle.clone());
        self.write(&crash::SAVE_HANDLE, move |tx| {
            let sql = "UPDATE turns SET handle = $1 WHERE id = $2 AND delivered IS NULL AND parked IS NULL";
            changed(query(sql).bind(&handle).bind(&turn.0).execute(tx)?)?;
            messages::record(tx, &recorded, now)
        })
        .await
    }

    /// Stores the reply of an open turn, unless one is already stored. Returns the stored reply.
    pub async fn conclude(&self, turn: &TurnId, final_view: &str) -> Result<String> {
        let (turn, view) = (turn.clone(), final_view.to_owned());
        self.write(&crash::CONCLUDE, move |tx| {
            let sql = "UPDATE turns SET final_view = COALESCE(final_view, $1)
                WHERE id = $2 AND delivered IS NULL AND parked IS NULL RETURNING final_view";
            let update = query(sql).bind(&view).bind(&turn.0);
            update.fetch_optional(tx)?.ok_or(SETTLED)
        })
        .await
    }

    /// Removes events that came too late for the run from its turn, whose reply is not known yet. They wait again.
    pub async fn leave_turn(&self, turn: &TurnId, items: &[InboxItemId]) -> Result<()> {
        let (turn, items) = (turn.clone(), items.to_vec());
        self.write(&crash::LEAVE_TURN, move |tx| {
            let sql = "UPDATE inbox SET turn = NULL WHERE id = $1 AND turn = $2 AND done IS NULL
                AND EXISTS (SELECT 1 FROM turns WHERE turns.id = $2 AND final_view IS NULL)";
            for item in &items {
                if query(sql).bind(item.0).bind(&turn.0).execute(tx)? == 0 {
                    return Err(StoreError::Conflict("the event is done or belongs to another turn"));
                }
            }
            Ok(())
        })
        .await
    }

    /// Records that the reply was delivered: the turn and its events are done. `shown` is the delivered reply, JSON, if
    /// it has to be checked against the newest one. `keep` keeps the reply, because it offers a choice.
    pub async fn delivered(
        &self,
        turn: &TurnId,
        shown: Option<&str>,
        keep: bool,
        now: i64,
    ) -> Result<Delivered> {
        let (turn, shown) = (turn.clone(), shown.map(str::to_owned));
        self.write(&crash::DELIVERED, move |tx| delivered(tx, &turn, shown.as_deref(), keep, now)).await
    }

    /// Records a failed delivery, to be retried at `next_at`.
    pub async fn failed(&self, turn: &TurnId, error: &str, next_at: i64) -> Result<()> {
        let sql = "UPDATE turns SET attempts = attempts + 1, error = $1, next_at = $2
            WHERE id = $3 AND delivered IS NULL AND parked IS NULL";
        let update = query(sql).bind(error).bind(next_at).bind(turn);
        changed(self.execute(&crash::FAILED, update).await?)
    }

    /// Gives up an open turn that cannot be delivered or is too old. Its events are done, and the row is kept for
    /// inspection. Returns the events.
    pub async fn park(&self, turn: &TurnId, reason: &str, now: i64) -> Result<Vec<InboxItemId>> {
        let (turn, reason) = (turn.clone(), reason.to_owned());
        self.write(&crash::PARK, move |tx| {
            let sql = "UPDATE turns SET parked = $1, error = $2
                WHERE id = $3 AND delivered IS NULL AND parked IS NULL";
            changed(query(sql).bind(now).bind(&reason).bind(&turn.0).execute(tx)?)?;
            let sql = "UPDATE inbox SET done = $1 WHERE turn = $2 AND done IS NULL RETURNING id";
            settle(tx, sql, &turn, now)
        })
        .await
    }

    /// Returns the bots and the targets, JSON, of a thread's newest replies, newest first.
    pub async fn reply_targets(&self, thread: &ThreadId) -> Result<Vec<(String, String)>> {
        let sql = "SELECT account, placement FROM turns WHERE thread = $1 ORDER BY created DESC, id LIMIT 50";
        self.all(query(sql).bind(thread)).await
    }

    /// Returns the open turns, oldest first.
    pub async fn open_turns(&self) -> Result<Vec<TurnRow>> {
        self.read_much(move |tx| {
            let sql =
                "SELECT id, conversation, account, thread, run, placement, handle, final_view, attempts,
                    next_at, created FROM turns WHERE delivered IS NULL AND parked IS NULL ORDER BY created, id";
            let mut turns: Vec<TurnRow> = query(sql).fetch_all(tx)?;
            let mut items = claimed(tx)?;
            for turn in &mut turns {
                turn.items = items.remove(&turn.id.0).unwrap_or_default();
            }
            Ok(turns)
        })
        .await
    }

    /// Returns whether a turn's reply is not delivered: the turn is open or was given up.
    pub async fn is_undelivered(&self, turn: &TurnId) -> Result<bool> {
        let sql = "SELECT COUNT(*) FROM turns WHERE id = $1 AND delivered IS NULL";
        Ok(self.one::<i64>(query(sql).bind(turn)).await? > 0)
    }

    /// Counts the replies of a conversation that were given up.
    pub async fn parked_count(&self, conversation: &str) -> Result<i64> {
        let sql = "SELECT COUNT(*) FROM turns WHERE conversation = $1 AND parked IS NOT NULL";
        self.one(query(sql).bind(conversation)).await
    }
}

/// Returns the events of each open turn.
fn claimed(tx: &mut Tx<'_>) -> Result<HashMap<String, Vec<InboxItemId>>> {
    let sql = "SELECT turn, id FROM inbox WHERE turn IS NOT NULL AND done IS NULL ORDER BY id";
    let rows: Vec<(String, InboxItemId)> = query(sql).fetch_all(tx)?;
    let mut items: HashMap<String, Vec<InboxItemId>> = HashMap::new();
    for (turn, id) in rows {
        items.entry(turn).or_default().push(id);
    }
    Ok(items)
}

/// Opens a turn with the record of its run, and assigns its events to it.
pub(crate) fn open(tx: &mut Tx<'_>, turn: &NewTurn, owner: &str) -> Result<()> {
    let sql = "INSERT INTO turns
        (id, conversation, account, thread, run, placement, final_view, next_at, created)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8) ON CONFLICT (id) DO NOTHING";
    let insert = query(sql).bind(&turn.id.0).bind(&turn.conversation).bind(&turn.account);
    let insert = insert.bind(turn.folder.as_ref().map(|folder| folder.thread.as_str()));
    let insert = insert.bind(turn.run.as_ref().map(RunId::as_str));
    let insert = insert.bind(&turn.reply_target).bind(turn.final_view.as_deref()).bind(turn.now);
    if insert.execute(tx)? == 0 {
        return Err(StoreError::Conflict("a turn with this id already exists"));
    }
    let sql = "UPDATE conversations SET updated = $1 WHERE key = $2";
    query(sql).bind(turn.now).bind(&turn.conversation).execute(tx)?;
    if let Some(folder) = &turn.folder {
        let sql = "SELECT 1 FROM conversations WHERE key = $1 AND thread <> $2";
        let moved = query(sql).bind(&turn.conversation).bind(folder.thread.as_str());
        if moved.finds(tx)? {
            // The thread was deleted in the meantime.
            return Err(StoreError::Conflict("the conversation is bound to another thread"));
        }
        threads::belongs(tx, folder, &turn.account, turn.now)?;
        if let Some(run) = &turn.run {
            records::accept_of_chat(tx, run, &folder.thread, owner, turn.now)?;
        }
    }
    members::join(tx, &turn.id, &turn.people)?;
    claim(tx, &turn.id, &turn.items)?;
    let run = turn.run.as_ref().zip(turn.folder.as_ref()).map(|(run, folder)| (run, &folder.thread));
    match turn.items.is_empty() {
        true => Ok(()),
        false => history::opened(tx, &turn.id, run, turn.items.len(), turn.now),
    }
}

fn claim(tx: &mut Tx<'_>, turn: &TurnId, items: &[InboxItemId]) -> Result<()> {
    let sql = "UPDATE inbox SET turn = $1 WHERE id = $2 AND done IS NULL AND (turn IS NULL OR turn = $1)";
    for item in items {
        if query(sql).bind(&turn.0).bind(item.0).execute(tx)? == 0 {
            return Err(StoreError::Conflict("the event is done or has another turn"));
        }
    }
    Ok(())
}

/// Marks a turn as delivered. Deletes the reply, because its text is in the thread's log and on the platform, unless it
/// offers a choice that will be recorded in it.
fn delivered(tx: &mut Tx<'_>, turn: &TurnId, shown: Option<&str>, keep: bool, now: i64) -> Result<Delivered> {
    if let Some(shown) = shown {
        let sql = "SELECT final_view FROM turns WHERE id = $1 AND delivered IS NULL";
        let newest: Option<Option<String>> = query(sql).bind(&turn.0).fetch_optional(tx)?;
        if let Some(newer) = newest.flatten().filter(|newest| newest != shown) {
            return Ok(Delivered::Outdated(newer));
        }
    }
    let sql = if keep {
        "UPDATE turns SET delivered = COALESCE(delivered, $1), parked = NULL, error = NULL WHERE id = $2"
    } else {
        "UPDATE turns SET delivered = COALESCE(delivered, $1), parked = NULL, error = NULL, final_view = NULL,
            handle = NULL WHERE id = $2"
    };
    changed(query(sql).bind(now).bind(&turn.0).execute(tx)?)?;
    let sql = "UPDATE inbox SET done = $1, payload = '' WHERE turn = $2 AND done IS NULL RETURNING id";
    Ok(Delivered::Done(settle(tx, sql, turn, now)?))
}

/// Marks a turn's events as done and returns them.
fn settle(tx: &mut Tx<'_>, sql: &'static str, turn: &TurnId, now: i64) -> Result<Vec<InboxItemId>> {
    query(sql).bind(now).bind(turn).fetch_all(tx)
}

pub(crate) fn changed(rows: u64) -> Result<()> {
    if rows == 0 { Err(SETTLED) } else { Ok(()) }
}
