//! Threads of one person that contain messages of others: a reply chain in a group belongs to the person who began it.

use super::keys::{AccountPerson, PersonKeys, RoomMessage, message_of};
use crate::{
    Db, Result, crash,
    engines::{Tx, query},
    error::unreadable,
    json::to_json,
};
use pudu_base::{Message, MessageId, ThreadId, Update, UserId};
use std::collections::{BTreeMap, BTreeSet};

/// A thread of a person with turns of other people.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedThread {
    /// The thread.
    pub thread: ThreadId,
    /// The owner of the thread: the person's user, or a former one.
    pub owner: UserId,
    /// The room of the thread, which becomes its owner when the person is forgotten.
    pub room: UserId,
    /// All messages except those of other people's turns.
    pub own: Vec<RoomMessage>,
    /// The messages of other people's turns.
    pub others: Vec<RoomMessage>,
}

impl Db {
    /// Returns the threads of a person that have turns of other people. A user without platform identities, such as a
    /// room, has none: all messages in a room belong to the room.
    pub async fn shared_threads(&self, keys: &PersonKeys) -> Result<Vec<SharedThread>> {
        let keys = keys.clone();
        self.read_much(move |tx| shared(tx, &keys)).await
    }

    /// Deletes a person's conversations waiting for memory extraction.
    pub async fn forget_learnings(&self, keys: &PersonKeys) -> Result<()> {
        let keys = keys.clone();
        self.write(&crash::FORGET_LEARNINGS, move |tx| {
            let sql = "DELETE FROM learnings WHERE user_id = $1 OR spender = $1";
            for user in keys.users() {
                query(sql).bind(user.as_str()).execute(tx)?;
            }
            let sql = "DELETE FROM learnings WHERE account = $1 AND person = $2";
            for AccountPerson { account, person, .. } in &keys.people {
                query(sql).bind(account).bind(person).execute(tx)?;
            }
            Ok(())
        })
        .await
    }

    /// Lists the chats of all conversations, each with its bot.
    pub async fn chats(&self) -> Result<Vec<(String, String)>> {
        self.all(query("SELECT DISTINCT account, chat FROM conversations ORDER BY account, chat")).await
    }

    /// Returns whether one of these threads has an open turn.
    pub async fn has_open_turn(&self, threads: &BTreeSet<ThreadId>) -> Result<bool> {
        let threads = threads.clone();
        self.read(move |tx| {
            for thread in threads.iter() {
                let open = query(OPEN_TURN).bind(thread.as_str());
                if open.finds(tx)? {
                    return Ok(true);
                }
            }
            Ok(false)
        })
        .await
    }
}

const OPEN_TURN: &str =
    "SELECT thread FROM turns WHERE thread = $1 AND delivered IS NULL AND parked IS NULL LIMIT 1";

/// Returns whether a thread of one of the messages has an open turn, within a transaction.
pub(super) fn is_in_use(tx: &mut Tx<'_>, messages: &[RoomMessage]) -> Result<bool> {
    let threads: BTreeSet<&str> = messages.iter().map(|message| message.thread.as_str()).collect();
    for thread in threads {
        if query(OPEN_TURN).bind(thread).finds(tx)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Makes each thread's room its owner.
pub(super) fn hand_over(tx: &mut Tx<'_>, shared: &[SharedThread]) -> Result<()> {
    let sql = "UPDATE threads SET user_id = $1 WHERE id = $2";
    for SharedThread { thread, room, .. } in shared {
        query(sql).bind(room.as_str()).bind(thread.as_str()).execute(tx)?;
    }
    Ok(())
}

fn shared(tx: &mut Tx<'_>, keys: &PersonKeys) -> Result<Vec<SharedThread>> {
    if keys.people.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "SELECT log.thread, threads.account, log.body FROM threads JOIN log ON log.thread = threads.id
        WHERE threads.user_id = $1 AND REPLACE(log.body, '\"person\":', '') <> log.body";
    let mut threads = BTreeMap::new();
    for user in keys.users() {
        let rows: Vec<(String, String, String)> = query(sql).bind(user.as_str()).fetch_all(tx)?;
        for (thread, account, body) in rows {
            if message_of(&body)?.is_some_and(|message| is_of_other(&message, &account, &keys.people)) {
                threads.insert(thread, (user, account));
            }
        }
    }
    let mut shared = Vec::new();
    for (thread, (owner, account)) in threads {
        shared.push(parted(tx, keys, thread, owner, &account)?);
    }
    Ok(shared)
}

/// Splits the messages of a thread. Others own the messages of runs in which only they wrote, and their own messages in
/// the person's runs.
fn parted(
    tx: &mut Tx<'_>,
    keys: &PersonKeys,
    thread: String,
    owner: &UserId,
    account: &str,
) -> Result<SharedThread> {
    let sql = "SELECT chat FROM conversations WHERE thread = $1 AND account = $2 LIMIT 1";
    let chat: Option<String> = query(sql).bind(&thread).bind(account).fetch_optional(tx)?;
    let sql = "SELECT run, seq, body FROM log WHERE thread = $1 ORDER BY seq";
    let rows: Vec<(String, i64, String)> = query(sql).bind(&thread).fetch_all(tx)?;
    let mut messages = Vec::new();
    for (run, seq, body) in rows {
        if let Some(message) = message_of(&body)? {
            let (thread, owner) = (thread.as_str().into(), owner.clone());
            messages.push(RoomMessage { thread, owner, run: run.as_str().into(), seq, message });
        }
    }
    let other = |one: &RoomMessage| is_of_other(&one.message, account, &keys.people);
    let spoke = |of_others: bool| {
        let own_messages = messages.iter().filter(|one| matches!(one.message, Message::Human(_)));
        let own_messages = own_messages.filter(|one| other(one) == of_others);
        own_messages.map(|one| one.run.clone()).collect::<BTreeSet<_>>()
    };
    let (theirs, own) = (spoke(true), spoke(false));
    let (others, own) = messages
        .iter()
        .cloned()
        .partition(|one| other(one) || (theirs.contains(&one.run) && !own.contains(&one.run)));
    let room = UserId::room(account, &chat.unwrap_or_default());
    Ok(SharedThread { thread: thread.into(), owner: owner.clone(), room, own, others })
}

/// Returns whether a message was written by a person other than these.
pub(super) fn is_of_other(message: &Message, account: &str, people: &[AccountPerson]) -> bool {
    let Message::Human(human) = message else { return false };
    let Some(said_by) = human.person.as_deref() else { return false };
    !people.iter().any(|one| one.account == account && one.person == said_by)
}

/// Removes the traces of forgotten turns from a thread's other rows: their goals, and kept excerpts of their results.
/// `gone` contains the runs and messages of the forgotten turns.
pub(super) fn redact_traces(
    tx: &mut Tx<'_>,
    thread: &str,
    gone: &BTreeSet<(&str, &MessageId)>,
) -> Result<()> {
    let runs: BTreeSet<&str> = gone.iter().map(|(run, _)| *run).collect();
    let messages: BTreeSet<&MessageId> = gone.iter().map(|(_, id)| *id).collect();
    let sql = "SELECT seq, body, run FROM log WHERE thread = $1
        AND (REPLACE(body, '\"op\":\"goal\"', '') <> body OR REPLACE(body, '\"op\":\"mask\"', '') <> body)";
    let rows: Vec<(i64, String, String)> = query(sql).bind(thread).fetch_all(tx)?;
    let mut updates = Vec::new();
    for (seq, body, run) in rows {
        let update: Update =
            serde_json::from_str(&body).map_err(|error| unreadable("a thread's row", &error))?;
        updates.push((seq, update, run));
    }
    let set = updates.iter().filter(|(_, _, run)| runs.contains(run.as_str()));
    let objectives: BTreeSet<String> = set
        .filter_map(|(_, update, _)| match update {
            Update::Goal(Some(goal)) => Some(goal.objective.clone()),
            _ => None,
        })
        .collect();
    for (seq, update, _) in updates {
        let silent = match update {
            Update::Goal(Some(goal)) if objectives.contains(&goal.objective) => Update::Goal(None),
            Update::Mask { through, mut kept } if kept.keys().any(|id| messages.contains(id)) => {
                kept.retain(|id, _| !messages.contains(id));
                Update::Mask { through, kept }
            }
            _ => continue,
        };
        let body = to_json(&silent)?;
        let sql = "UPDATE log SET body = $1 WHERE thread = $2 AND seq = $3";
        query(sql).bind(&body).bind(thread).bind(seq).execute(tx)?;
    }
    Ok(())
}
