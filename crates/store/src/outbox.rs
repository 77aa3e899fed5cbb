//! Turns, which are the outbox: one row per reply that people will see.
//!
//! A turn is open until its reply is delivered or given up, and the events that it answers are done at
//! that moment, in the same transaction. So each event has exactly one reply to wait for.

pub(crate) mod choices;
pub(crate) mod conversations;
pub(crate) mod messages;

use crate::{
    Db, InboxItemId, Result, StoreError, TurnId, crash,
    engines::{Tx, from_row, query},
    error::SETTLED,
    runs::records,
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
    /// The thread, where the agent is asked, with its owner if it is new.
    pub folder: Option<ThreadFolder>,
    /// The run, where the agent is asked.
    pub run: Option<RunId>,
    /// The reply's target, JSON.
    pub reply_target: String,
    /// The events that it answers; each waits and has no other turn.
    pub items: Vec<InboxItemId>,
    /// The platform's ids of the people whose words the agent is to answer in a room: they are members of its thread.
    pub people: Vec<String>,
    /// The reply, JSON, where it is known already.
    pub final_view: Option<String>,
    /// When.
    pub now: i64,
}

/// Record of a reply's messages on the platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownReply {
    /// The channel's record of the reply, JSON.
    pub handle: String,
    /// The conversation's key.
    pub conversation: String,
    /// The account.
    pub account: String,
    /// The chat.
    pub chat: String,
    /// The platform's ids of the messages that show it.
    pub messages: Vec<String>,
}

/// Result of delivering a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// It is done, and so are these events.
    Done(Vec<InboxItemId>),
    /// It reads otherwise by now, JSON: that is to be shown.
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
    /// The thread, where the agent is asked.
    pub thread: Option<ThreadId>,
    /// The run, where the agent is asked.
    pub run: Option<RunId>,
    /// The reply's target, JSON.
    pub reply_target: String,
    /// The events that it answers, oldest first.
    pub items: Vec<InboxItemId>,
    /// The channel's record of the reply on the platform, JSON.
    pub handle: Option<String>,
    /// The reply, JSON, once it is known.
    pub final_view: Option<String>,
    /// How often delivering failed.
    pub attempts: i64,
    /// When delivering may be tried next.
    pub next_at: i64,
    /// When it was opened.
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
    /// Opens a turn, with the record of its run, and makes the events its own.
    pub async fn open_turn(&self, turn: &NewTurn) -> Result<()> {
        let (turn, owner) = (turn.clone(), self.process().to_owned());
        self.write(&crash::OPEN_TURN, move |tx| open(tx, &turn, &owner)).await
    }

    /// Adds events to a turn: these people sent them to the run while it worked. A turn whose reply is
    /// known takes no more.
    pub async fn join_turn(&self, turn: &TurnId, items: &[InboxItemId], people: Vec<String>) -> Result<()> {
        let (turn, items) = (turn.clone(), items.to_vec());
        self.write(&crash::JOIN_TURN, move |tx| {
            // The update changes nothing; its purpose is that a turn cannot conclude while it takes an event.
            let sql = "UPDATE turns SET attempts = attempts
                WHERE id = $1 AND final_view IS NULL AND delivered IS NULL AND parked IS NULL";
            changed(query(sql).bind(&turn.0).execute(tx)?)?;
            members::join(tx, &turn, &people)?;
            claim(tx, &turn, &items)
        })
        .await
    }

    /// Notes that people took the goal back that the run of an open turn works towards.
    pub async fn drop_goal(&self, turn: &TurnId) -> Result<()> {
        let sql = "UPDATE runs SET goal_dropped = 1 WHERE id =
            (SELECT run FROM turns WHERE id = $1 AND delivered IS NULL AND parked IS NULL)";
        changed(self.execute(&crash::DROP_GOAL, query(sql).bind(turn)).await?)
    }

    /// Stores the part of an open turn's reply that is on the platform, in place of the earlier record.
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

    /// Keeps the reply of an open turn. The first one stays; returns the one that is kept.
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

    /// Takes events away from a turn whose reply is not known yet: they were meant for its run and came
    /// too late. They wait again.
    pub async fn leave_turn(&self, turn: &TurnId, items: &[InboxItemId]) -> Result<()> {
        let (turn, items) = (turn.clone(), items.to_vec());
        self.write(&crash::LEAVE_TURN, move |tx| {
            let sql = "UPDATE inbox SET turn = NULL WHERE id = $1 AND turn = $2 AND done IS NULL
                AND EXISTS (SELECT 1 FROM turns WHERE turns.id = $2 AND final_view IS NULL)";
            for item in &items {
                if query(sql).bind(item.0).bind(&turn.0).execute(tx)? == 0 {
                    return Err(StoreError::Conflict("the event is done or not of this turn"));
                }
            }
            Ok(())
        })
        .await
    }

    /// The reply is where people see it: the turn and its events are done. `shown` is the reply that they see,
    /// JSON, where it matters that it is the newest; `keep` says that something can be chosen below it.
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

    /// Delivering failed and may be tried again at `next_at`.
    pub async fn failed(&self, turn: &TurnId, error: &str, next_at: i64) -> Result<()> {
        let sql = "UPDATE turns SET attempts = attempts + 1, error = $1, next_at = $2
            WHERE id = $3 AND delivered IS NULL AND parked IS NULL";
        let update = query(sql).bind(error).bind(next_at).bind(turn);
        changed(self.execute(&crash::FAILED, update).await?)
    }

    /// Gives an open turn up, hopeless or too old: its events are done, the row is kept for people to
    /// look at. Returns the events.
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

    /// Returns whether a turn's reply has yet to reach people: it is open, or was given up.
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

/// Returns the events that open turns answer.
fn claimed(tx: &mut Tx<'_>) -> Result<HashMap<String, Vec<InboxItemId>>> {
    let sql = "SELECT turn, id FROM inbox WHERE turn IS NOT NULL AND done IS NULL ORDER BY id";
    let rows: Vec<(String, InboxItemId)> = query(sql).fetch_all(tx)?;
    let mut items: HashMap<String, Vec<InboxItemId>> = HashMap::new();
    for (turn, id) in rows {
        items.entry(turn).or_default().push(id);
    }
    Ok(items)
}

fn open(tx: &mut Tx<'_>, turn: &NewTurn, owner: &str) -> Result<()> {
    let sql = "INSERT INTO turns
        (id, conversation, account, thread, run, placement, final_view, next_at, created)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8) ON CONFLICT (id) DO NOTHING";
    let insert = query(sql).bind(&turn.id.0).bind(&turn.conversation).bind(&turn.account);
    let insert = insert.bind(turn.folder.as_ref().map(|folder| folder.thread.as_str()));
    let insert = insert.bind(turn.run.as_ref().map(RunId::as_str));
    let insert = insert.bind(&turn.reply_target).bind(turn.final_view.as_deref()).bind(turn.now);
    if insert.execute(tx)? == 0 {
        return Err(StoreError::Conflict("there is a turn with this id already"));
    }
    let sql = "UPDATE conversations SET updated = $1 WHERE key = $2";
    query(sql).bind(turn.now).bind(&turn.conversation).execute(tx)?;
    if let Some(folder) = &turn.folder {
        let sql = "SELECT 1 FROM conversations WHERE key = $1 AND thread <> $2";
        let moved = query(sql).bind(&turn.conversation).bind(folder.thread.as_str());
        if moved.finds(tx)? {
            // The thread was deleted meanwhile.
            return Err(StoreError::Conflict("the conversation talks to another thread"));
        }
        threads::belongs(tx, folder, &turn.account, turn.now)?;
        if let Some(run) = &turn.run {
            records::accept_of_chat(tx, run, &folder.thread, owner, turn.now)?;
        }
    }
    members::join(tx, &turn.id, &turn.people)?;
    claim(tx, &turn.id, &turn.items)
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

/// The words are in the thread's log and on the platform; a third copy would only cost room. They are kept where
/// people may choose below the reply: the choice is recorded there.
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
