//! Threads changed by clients: new values, and copies.
//!
//! Every message has its own row in the log, even one that a client adds to a thread: the row belongs to the run that
//! wrote it.

use super::{
    lifecycle::{listed, notes},
    owned::{OwnThread, own},
    state::{ShownCheckpoint, checkpoint_of},
};
use crate::{
    ApiError, Caller, GatewayState, Json, Scrubbed,
    runs::input::{self, InputMessage},
};
use pudu_base::{Message, MessageId, ThreadFolder, ThreadId, ThreadState, Todo, Update};
use pudu_harness::RunState;
use pudu_kit::clock;
use pudu_langgraph::{
    checkpoint, message,
    thread::{API_ACCOUNT, ListedThread, metadata},
};
use pudu_store::{ClientThread, NewThread, ThreadChange};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::{mem, sync::Arc};

/// Maximum length of a title, in bytes.
const MAX_TITLE_BYTES: usize = 1024;

/// A change of a thread's values.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct StateUpdate {
    #[serde(default)]
    values: Option<NewValues>,
    #[serde(default)]
    checkpoint: Value,
    #[serde(default)]
    checkpoint_id: Value,
}

/// The values that can be written. Missing ones stay unchanged.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct NewValues {
    messages: Value,
    title: Option<String>,
    todos: Option<Vec<Todo>>,
    artifacts: Option<Vec<String>>,
}

/// Replaces the named values of a thread.
pub(crate) async fn update_state(
    gateway: GatewayState,
    caller: Caller,
    OwnThread(thread): OwnThread,
    Json(update): Json<StateUpdate>,
) -> Result<ShownCheckpoint, ApiError> {
    write_values(&gateway, &thread, update).await?;
    checkpoint_of(&gateway, &own(&gateway, &caller, &thread.id).await?, None).await
}

async fn write_values(
    gateway: &GatewayState,
    thread: &ClientThread,
    update: StateUpdate,
) -> Result<(), ApiError> {
    let from = checkpoint::wanted(&update.checkpoint_id, &update.checkpoint).map_err(ApiError::invalid)?;
    let NewValues { messages, title, todos, artifacts } = update.values.unwrap_or_default();
    if title.as_ref().is_some_and(|title| title.len() > MAX_TITLE_BYTES) {
        return Err(ApiError::invalid("values.title has more than 1024 bytes"));
    }
    let given_messages = Some(messages).filter(|messages| !messages.is_null());
    let messages = given_messages.as_ref().map(input::messages).transpose();
    let messages = messages.map_err(|why| ApiError::invalid(format!("values.{why}")))?;
    let db = gateway.db();
    let past = match from {
        None => None,
        Some(seq) => Some(db.state_at(&thread.id, seq).await?.1),
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
        gateway.runs().change_thread(&thread.id, change).await?;
    }
    let Some(title) = title else { return Ok(()) };
    let change = ThreadChange { title: Some(title.trim().to_owned()), ..ThreadChange::default() };
    db.change_thread(&thread.id, change).await?;
    Ok(())
}

/// A message to write, and the fields that are sent back to its client.
type NewMessage = (Arc<Message>, Option<Arc<Value>>);

/// Removes a state's messages from the first one that differs from a list, and returns the rest of the list.
fn replace_messages(state: &mut ThreadState, messages: Vec<InputMessage>) -> Vec<NewMessage> {
    let fields = |sent: &InputMessage| Some(sent.fields.clone()).filter(|fields| !fields.is_null());
    let is_same = |sent: &InputMessage, (id, old): (&MessageId, &Arc<Message>)| {
        let old = message::to_json(old, state.client_fields.get(id).map(AsRef::as_ref));
        message::to_json(&sent.message, fields(sent).as_deref()) == old
    };
    let both = messages.iter().zip(&state.messages);
    let common = both.take_while(|(sent, old)| is_same(sent, *old)).count();
    let removed: Vec<MessageId> = state.messages.keys().skip(common).rev().cloned().collect();
    for id in removed {
        state.apply(Update::Remove(id));
    }
    state.begun.clear();
    let rest = messages.into_iter().skip(common);
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

/// Creates another thread from a state, with this title and the metadata of `thread`.
pub(crate) async fn copy_to(
    gateway: &GatewayState,
    caller: &Caller,
    thread: &ClientThread,
    (mut state, title, extra): (ThreadState, &str, Map<String, Value>),
) -> Result<ClientThread, ApiError> {
    let (db, id) = (gateway.db(), ThreadId::fresh());
    let mut all = metadata(thread);
    all.remove("deerflow_pinned");
    all.extend(extra);
    let new = NewThread {
        folder: ThreadFolder { owner: caller.user.clone(), thread: id.clone() },
        account: API_ACCOUNT.to_owned(),
        assistant: thread.assistant.clone(),
        metadata: notes(all)?,
        now: clock::now(),
    };
    db.create_thread(new).await?;
    let change = ThreadChange { title: Some(title.to_owned()), ..ThreadChange::default() };
    db.change_thread(&id, change).await?;
    let mut fields = mem::take(&mut state.client_fields);
    let messages = mem::take(&mut state.messages);
    let messages: Vec<NewMessage> =
        messages.into_iter().map(|(id, message)| (message, fields.shift_remove(&id))).collect();
    let copied = |run: &mut RunState| rewrite(run, state, messages);
    gateway.runs().change_thread(&id, copied).await?;
    own(gateway, caller, &id).await
}

/// Copies a thread: its messages, not its files.
pub(crate) async fn copy(
    gateway: GatewayState,
    caller: Caller,
    OwnThread(thread): OwnThread,
) -> Result<Scrubbed<ListedThread>, ApiError> {
    let state = gateway.agent().state(&thread.id).await?;
    let copied = copy_to(&gateway, &caller, &thread, (state, &thread.title, Map::new())).await?;
    Ok(Scrubbed(listed(&gateway, &caller, &copied)))
}
