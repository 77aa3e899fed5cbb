//! Alternative versions of a thread: regenerated answers, edited questions, and branches.

use super::{edits::copy_to, owned::OwnThread, thread};
use crate::{ApiError, Caller, GatewayState, Json, Scrubbed};
use pudu_base::{Human, Message, MessageId, RunId, Seq, ThreadId, ThreadState, Update};
use pudu_langgraph::{checkpoint, message};
use pudu_store::ClientThread;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Number of log rows read at once.
const PAGE: i64 = 512;
/// Maximum length of a branch's title, in characters.
const MAX_TITLE_CHARS: usize = 256;

/// The answer to regenerate.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct RegenerateBody {
    message_id: String,
}

/// A question to rephrase.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct EditBody {
    human_message_id: String,
    replacement_text: String,
}

/// The newest turn of a thread: its question, and the position before it.
struct NewestTurn {
    human: Human,
    /// The run that answered it; `None` if it was copied from another thread.
    run: Option<RunId>,
    before: Seq,
    state: ThreadState,
}

/// Finds the newest turn. Refuses threads without a finished turn.
async fn newest_turn(gateway: &GatewayState, thread: &ClientThread) -> Result<NewestTurn, ApiError> {
    if !gateway.runs().live_runs(&thread.id).is_empty() {
        return Err(thread::in_flight());
    }
    let state = gateway.agent().state(&thread.id).await?;
    if state.goal.is_some() {
        return Err(ApiError::conflict("the thread has a goal: clear it first"));
    }
    let human = state.messages.values().rev().find_map(|message| match &**message {
        Message::Human(human) => Some(human.clone()),
        Message::Assistant(_) | Message::Tool(_) | Message::Reminder(_) => None,
    });
    // A stopped or failed turn may have no answer.
    let Some(human) = human else {
        return Err(ApiError::conflict("the thread has no question yet"));
    };
    let Some((seq, run)) = origin_of(gateway, thread, &human.id).await? else {
        return Err(ApiError::conflict("the checkpoint before the newest question is not known any more"));
    };
    let db = gateway.db();
    let found = db.run(&run).await?;
    let run = found.filter(|found| found.thread == thread.id).map(|found| found.id);
    Ok(NewestTurn { human, run, before: seq - 1, state })
}

/// Returns the log row of a message, and the run that wrote it.
async fn origin_of(
    gateway: &GatewayState,
    thread: &ClientThread,
    id: &MessageId,
) -> Result<Option<(Seq, RunId)>, ApiError> {
    let db = gateway.db();
    let mut at = Seq::MAX;
    loop {
        let page = db.log_before(&thread.id, at, PAGE).await?;
        let is_it = |update: &Update| matches!(update, Update::Message(message) if message.id() == id);
        if let Some(entry) = page.iter().find(|entry| is_it(&entry.update)) {
            return Ok(Some((entry.seq, entry.run.clone())));
        }
        match page.last() {
            Some(last) => at = last.seq,
            None => return Ok(None),
        }
    }
}

fn reference(seq: Seq) -> Value {
    json!({ "checkpoint_ns": "", "checkpoint_id": checkpoint::id(seq), "checkpoint_map": null })
}

fn question(human: &Human, text: &str) -> Value {
    let fields = message::to_json(&Message::Human(human.clone()), None).unwrap_or_default();
    let mut fields: Map<String, Value> = if let Value::Object(fields) = fields { fields } else { Map::new() };
    fields.insert("content".into(), json!([{ "type": "text", "text": text }]));
    Value::Object(fields)
}

/// Returns the run input for regenerating the newest answer.
pub(crate) async fn regenerate(
    gateway: GatewayState,
    OwnThread(thread): OwnThread,
    Json(RegenerateBody { message_id: wanted }): Json<RegenerateBody>,
) -> Result<Scrubbed<Value>, ApiError> {
    let turn = newest_turn(&gateway, &thread).await?;
    if !since_question(&turn).any(|message| message.id().as_str() == wanted) {
        return Err(ApiError::conflict("only the newest answer can be regenerated"));
    }
    let mut prepared = json!({
        "input": { "messages": [question(&turn.human, &turn.human.text)] },
        "checkpoint": reference(turn.before),
        "metadata": {
            "regenerate_from_message_id": wanted,
            "regenerate_checkpoint_id": checkpoint::id(turn.before),
        },
    });
    name_run(&mut prepared, turn.run.as_ref());
    Ok(Scrubbed(prepared))
}

/// Adds the run whose answer is replaced. Clients remove all rows of that run, so a turn copied from another thread
/// names none.
fn name_run(prepared: &mut Value, run: Option<&RunId>) {
    if let Some(run) = run {
        prepared["target_run_id"] = json!(run);
        prepared["metadata"]["regenerate_from_run_id"] = json!(run);
    }
}

fn since_question(turn: &NewestTurn) -> impl Iterator<Item = &Arc<Message>> {
    let newest = turn.state.messages.values().rev();
    newest.take_while(|message| !matches!(***message, Message::Human(_)))
}

/// Returns the run input for rephrasing the newest question.
pub(crate) async fn edit(
    gateway: GatewayState,
    OwnThread(thread): OwnThread,
    Json(EditBody { human_message_id, replacement_text }): Json<EditBody>,
) -> Result<Scrubbed<Value>, ApiError> {
    let turn = newest_turn(&gateway, &thread).await?;
    if turn.human.id.as_str() != human_message_id {
        return Err(ApiError::conflict("only the newest question can be edited"));
    }
    let text = replacement_text.trim();
    if text.is_empty() || text == turn.human.text.trim() {
        return Err(ApiError::conflict("the new question must differ from the old one"));
    }
    let new = MessageId::fresh();
    let sources: Vec<&str> = since_question(&turn).map(|message| message.id().as_str()).collect();
    let human = Human { id: new.clone(), ..turn.human.clone() };
    let mut prepared = json!({
        "input": { "messages": [question(&human, text)] },
        "checkpoint": reference(turn.before),
        "metadata": {
            "replay_kind": "edit",
            "edit_from_message_id": human_message_id,
            "edit_message_id": new,
            "edit_version_group_id": human_message_id,
            "regenerate_checkpoint_id": checkpoint::id(turn.before),
        },
        "replacement_human_message_id": new,
        "source_message_ids": sources,
    });
    name_run(&mut prepared, turn.run.as_ref());
    Ok(Scrubbed(prepared))
}

/// Where a thread branches off.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct BranchBody {
    message_id: String,
    #[serde(default)]
    title: Option<String>,
    /// Clients also send the ids of the turn's messages.
    #[serde(default, rename = "message_ids")]
    _messages: Vec<String>,
}

/// A thread made from another one's messages.
#[derive(Serialize, JsonSchema)]
pub(crate) struct BranchedThread {
    thread_id: ThreadId,
    parent_thread_id: ThreadId,
    parent_checkpoint_id: String,
    branched_from_message_id: MessageId,
    workspace_clone_mode: &'static str,
    history_seed_mode: &'static str,
}

/// Creates a thread from another one's messages, up to the end of a message's turn. Files are not copied.
pub(crate) async fn branch(
    gateway: GatewayState,
    caller: Caller,
    OwnThread(thread): OwnThread,
    Json(asked): Json<BranchBody>,
) -> Result<Json<BranchedThread>, ApiError> {
    if asked.title.as_ref().is_some_and(|title| title.chars().count() > MAX_TITLE_CHARS) {
        return Err(ApiError::invalid("title has more than 256 characters"));
    }
    let message_id = MessageId::from(asked.message_id.as_str());
    let (seq, mut state) = gateway.agent().state_now(&thread.id).await?;
    let Some(at) = state.messages.get_index_of(&message_id) else {
        return Err(ApiError::conflict(
            "the thread has no message with this id, so it cannot be branched from there",
        ));
    };
    // The whole turn is included.
    let is_question = |message: &Arc<Message>| matches!(**message, Message::Human(_));
    let next = state.messages.values().skip(at + 1).position(is_question);
    let later = next.map_or(state.messages.len(), |next| at + 1 + next);
    let later: Vec<MessageId> = state.messages.keys().skip(later).rev().cloned().collect();
    later.into_iter().for_each(|id| state.apply(Update::Remove(id)));
    state.begun.clear();
    let title = asked.title.unwrap_or_else(|| thread.title.clone());
    let parent_checkpoint_id = checkpoint::id(seq);
    let extra = [
        ("deerflow_branch", json!(true)),
        ("branch_parent_thread_id", json!(thread.id)),
        ("branch_parent_checkpoint_id", json!(parent_checkpoint_id)),
        ("branch_parent_message_id", json!(message_id)),
    ];
    let extra: Map<String, Value> = extra.map(|(key, value)| (key.to_owned(), value)).into_iter().collect();
    let created = copy_to(&gateway, &caller, &thread, (state, &title, extra)).await?;
    Ok(Json(BranchedThread {
        thread_id: created.id,
        parent_thread_id: thread.id,
        parent_checkpoint_id,
        branched_from_message_id: message_id,
        // DeerFlow copies the files of the newest turn, so it has no name for omitting those.
        workspace_clone_mode: if next.is_some() { "skipped_historical_turn" } else { "skipped" },
        history_seed_mode: "seeded",
    }))
}
