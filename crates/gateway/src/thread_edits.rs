//! Threads as clients write them: other values, and copies.
//!
//! A message has a row of its own in the log, even if a client puts it into a thread: it belongs to the run that wrote
//! the row.

use super::{
    GatewayState,
    caller::Caller,
    errors::refuse,
    input::{self, InputMessage},
    json::{BodyRejection, Json},
    owned::own,
    refusal::{ACCOUNT, Refusal, answer, body, changed, scrubbed, unavailable},
    thread_state::checkpoint_of,
    threads::{listed, notes},
};
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::Response,
};
use pudu_client::{
    base::{Message, MessageId, ThreadFolder, ThreadId, ThreadState, Todo, Update},
    harness::RunState,
    store::{ClientThread, NewThread, StoreError, ThreadChange},
    wire::{checkpoint, message, thread::metadata},
};
use pudu_dispatch::bus::STORE_TIMEOUT;
use pudu_kit::clock;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::{mem, sync::Arc};

/// Maximum length of a title, in bytes.
const MAX_TITLE_BYTES: usize = 1024;

/// A change of a thread's values.
#[derive(Deserialize, JsonSchema)]
pub(super) struct StateUpdate {
    #[serde(default)]
    values: Option<NewValues>,
    #[serde(default)]
    checkpoint: Value,
    #[serde(default)]
    checkpoint_id: Value,
}

/// The values that can be written; those that are not named stay.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct NewValues {
    messages: Value,
    title: Option<String>,
    todos: Option<Vec<Todo>>,
    artifacts: Option<Vec<String>>,
}

/// Changes the values of a thread: named values are replaced.
pub(super) async fn update_state(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    posted: Result<Json<StateUpdate>, BodyRejection>,
) -> Response {
    let updated = async {
        let (thread, update) = (own(&gateway, &caller, &id).await?, body(posted)?);
        write_values(&gateway, &thread, update).await?;
        checkpoint_of(&gateway, &own(&gateway, &caller, &id).await?, None).await
    };
    answer(updated.await)
}

async fn write_values(
    gateway: &GatewayState,
    thread: &ClientThread,
    update: StateUpdate,
) -> Result<(), Refusal> {
    let wrong = |why: &str| Box::new(refuse(StatusCode::UNPROCESSABLE_ENTITY, why));
    let from = checkpoint::wanted(&update.checkpoint_id, &update.checkpoint).map_err(|why| wrong(&why))?;
    let NewValues { messages, title, todos, artifacts } = update.values.unwrap_or_default();
    if title.as_ref().is_some_and(|title| title.len() > MAX_TITLE_BYTES) {
        return Err(wrong("values.title has more than 1024 bytes"));
    }
    let named = Some(messages).filter(|messages| !messages.is_null());
    let messages = named.as_ref().map(input::messages).transpose();
    let messages = messages.map_err(|why| wrong(&format!("values.{why}")))?;
    let db = gateway.0.shared.db.within(STORE_TIMEOUT);
    let past = match from {
        None => None,
        Some(seq) => Some(db.state_at(&thread.id, seq).await.map_err(|error| unavailable(&error))?.1),
    };
    if past.is_some() || messages.is_some() || todos.is_some() || artifacts.is_some() {
        let change = |run: &mut RunState| {
            let mut state = past.unwrap_or_else(|| run.state().clone());
            state.todos = todos.unwrap_or(state.todos);
            if let Some(artifacts) = artifacts {
                state.artifacts = artifacts.into_iter().map(|path| (path, run.run.clone())).collect();
            }
            let new = messages.map(|messages| replace_messages(&mut state, messages)).unwrap_or_default();
            rewrite(run, state, new);
        };
        changed(gateway.0.shared.client.change_thread(&thread.id, change).await)?;
    }
    let Some(title) = title else { return Ok(()) };
    let change = ThreadChange { title: Some(title.trim().to_owned()), ..ThreadChange::default() };
    db.change_thread(&thread.id, change).await.map(drop).map_err(|error| unavailable(&error))
}

/// A message to write, and the fields that its client gets back.
type NewMessage = (Arc<Message>, Option<Arc<Value>>);

/// Removes the messages of a state that do not begin the given list, and returns the rest of the list.
fn replace_messages(state: &mut ThreadState, messages: Vec<InputMessage>) -> Vec<NewMessage> {
    let fields = |sent: &InputMessage| Some(sent.fields.clone()).filter(|fields| !fields.is_null());
    let is_same = |sent: &InputMessage, (id, old): (&MessageId, &Arc<Message>)| {
        let old = message::to_json(old, state.client_fields.get(id).map(AsRef::as_ref));
        message::to_json(&sent.message, fields(sent).as_deref()) == old
    };
    let both = messages.iter().zip(&state.messages);
    let kept = both.take_while(|(sent, old)| is_same(sent, *old)).count();
    let gone: Vec<MessageId> = state.messages.keys().skip(kept).rev().cloned().collect();
    for id in gone {
        state.apply(Update::Remove(id));
    }
    state.begun.clear();
    let rest = messages.into_iter().skip(kept);
    rest.map(|sent| (Arc::new(sent.message.clone()), fields(&sent))).collect()
}

fn rewrite(run: &mut RunState, state: ThreadState, messages: Vec<NewMessage>) {
    run.apply(Update::Restore(Arc::new(state)));
    for (message, fields) in messages {
        let id = message.id().clone();
        run.apply(Update::Message(message));
        if let Some(fields) = fields {
            run.apply(Update::ClientFields { message: id, fields });
        }
    }
}

/// Makes another thread of a state, with the same notes and title.
pub(super) async fn copy_to(
    gateway: &GatewayState,
    caller: &Caller,
    thread: &ClientThread,
    (mut state, title, extra): (ThreadState, &str, Map<String, Value>),
) -> Result<ClientThread, Refusal> {
    let (db, id) = (gateway.0.shared.db.within(STORE_TIMEOUT), ThreadId::fresh());
    let mut all = metadata(thread);
    all.remove("deerflow_pinned");
    all.extend(extra);
    let new = NewThread {
        folder: ThreadFolder { owner: caller.user.clone(), thread: id.clone() },
        account: ACCOUNT.to_owned(),
        assistant: thread.assistant.clone(),
        metadata: notes(all)?,
        now: clock::now(),
    };
    db.create_thread(new).await.map_err(|error| unavailable(&error))?;
    let change = ThreadChange { title: Some(title.to_owned()), ..ThreadChange::default() };
    db.change_thread(&id, change).await.map_err(|error: StoreError| unavailable(&error))?;
    let mut fields = mem::take(&mut state.client_fields);
    let messages = mem::take(&mut state.messages);
    let messages: Vec<NewMessage> =
        messages.into_iter().map(|(id, message)| (message, fields.shift_remove(&id))).collect();
    let copied = |run: &mut RunState| rewrite(run, state, messages);
    changed(gateway.0.shared.client.change_thread(&id, copied).await)?;
    own(gateway, caller, id.as_str()).await
}

/// Makes a copy of a thread: its messages, not its files.
pub(super) async fn copy(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Response {
    let copied = async {
        let thread = own(&gateway, &caller, &id).await?;
        let state = gateway.0.shared.client.state(&thread.id).await.map_err(|error| unavailable(&error))?;
        let copied = copy_to(&gateway, &caller, &thread, (state, &thread.title, Map::new())).await?;
        Ok(scrubbed(&listed(&gateway, &caller, &copied)))
    };
    answer(copied.await)
}
