//! Creates, shows, changes and deletes threads for LangGraph's clients.

use super::{
    owned::{OwnThread, ReadableThread, own},
    thread,
};
use crate::{ApiError, Caller, Confirmation, GatewayState, Json, Scrubbed};
use pudu_base::{ThreadFolder, ThreadId};
use pudu_kit::clock;
use pudu_langgraph::thread::{API_ACCOUNT, ListedThread, metadata};
use pudu_store::{ClientThread, Deletion, NewThread, ThreadChange};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Maximum size of a client's metadata for a thread, in bytes.
const MAX_METADATA_BYTES: usize = 64 * 1024;
/// Metadata keys that a client may not write.
const OWNERS: [&str; 2] = ["owner_id", "user_id"];

/// A thread to create.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NewThreadBody {
    thread_id: Option<String>,
    assistant_id: Option<String>,
    metadata: Option<Map<String, Value>>,
    if_exists: Option<String>,
}

/// Creates a thread.
pub(crate) async fn create(
    gateway: GatewayState,
    caller: Caller,
    Json(asked): Json<NewThreadBody>,
) -> Result<Scrubbed<ListedThread>, ApiError> {
    if !matches!(asked.if_exists.as_deref(), None | Some("raise" | "do_nothing")) {
        return Err(ApiError::invalid("if_exists must be raise or do_nothing"));
    }
    let id = match &asked.thread_id {
        None => ThreadId::fresh(),
        Some(id) => thread::id(id)?,
    };
    let db = gateway.db();
    let new = NewThread {
        folder: ThreadFolder { owner: caller.user.clone(), thread: id.clone() },
        account: API_ACCOUNT.to_owned(),
        assistant: asked.assistant_id.unwrap_or_default(),
        metadata: notes(asked.metadata.unwrap_or_default())?,
        now: clock::now(),
    };
    let is_new = db.create_thread(new).await?;
    let thread = db.client_thread(&id).await?.ok_or_else(thread::not_found)?;
    match (thread.user == caller.user, asked.if_exists.as_deref()) {
        (true, Some("raise")) if !is_new => Err(ApiError::conflict("the thread already exists")),
        (true, _) => Ok(Scrubbed(listed(&gateway, &caller, &thread))),
        // The error does not name the owner.
        (false, _) => Err(ApiError::conflict("the thread id is in use")),
    }
}

/// Renders the metadata of a client, without the keys that clients may not write.
pub(crate) fn notes(mut metadata: Map<String, Value>) -> Result<String, ApiError> {
    metadata.retain(|key, _| !OWNERS.contains(&key.as_str()));
    let text = Value::Object(metadata).to_string();
    if text.len() > MAX_METADATA_BYTES {
        return Err(ApiError::too_large("metadata has more than 64 KiB"));
    }
    Ok(text)
}

/// Returns a thread as shown to a caller in lists.
pub(crate) fn listed(gateway: &GatewayState, caller: &Caller, thread: &ClientThread) -> ListedThread {
    mark_read_only(caller, thread, gateway.client().listed(thread))
}

/// Marks a thread read-only if it belongs to another user.
fn mark_read_only(caller: &Caller, thread: &ClientThread, listed: ListedThread) -> ListedThread {
    ListedThread { read_only: thread.user != caller.user, ..listed }
}

/// Shows a thread with its values.
pub(crate) async fn show(
    gateway: GatewayState,
    caller: Caller,
    ReadableThread(thread): ReadableThread,
) -> Result<Scrubbed<ListedThread>, ApiError> {
    let listed = gateway.client().with_values(&thread).await?;
    Ok(Scrubbed(mark_read_only(&caller, &thread, listed)))
}

/// Change of a thread's metadata.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThreadPatch {
    #[serde(default)]
    metadata: Map<String, Value>,
}

/// Merges metadata into a thread's metadata.
pub(crate) async fn patch(
    gateway: GatewayState,
    caller: Caller,
    OwnThread(thread): OwnThread,
    Json(ThreadPatch { metadata: mut patch }): Json<ThreadPatch>,
) -> Result<Scrubbed<ListedThread>, ApiError> {
    let pinned = match patch.remove("deerflow_pinned") {
        None => None,
        Some(Value::Bool(pinned)) => Some(pinned),
        Some(_) => return Err(ApiError::invalid("metadata.deerflow_pinned must be true or false")),
    };
    // Pinning alone does not count as using a thread.
    let updated = Some(clock::now()).filter(|_| !patch.is_empty() || pinned.is_none());
    let mut all = metadata(&thread);
    all.remove("deerflow_pinned");
    all.extend(patch);
    let change = ThreadChange { metadata: Some(notes(all)?), pinned, title: None, updated };
    gateway.db().change_thread(&thread.id, change).await?;
    let thread = own(&gateway, &caller, &thread.id).await?;
    Ok(Scrubbed(listed(&gateway, &caller, &thread)))
}

/// Deletes one of the caller's threads and all its data.
pub(crate) async fn delete(
    gateway: GatewayState,
    OwnThread(thread): OwnThread,
) -> Result<Json<Confirmation>, ApiError> {
    delete_thread(&gateway, &thread.id).await
}

/// Deletes a thread with its log, its runs and its files. The response has DeerFlow's shape.
pub(crate) async fn delete_thread(
    gateway: &GatewayState,
    id: &ThreadId,
) -> Result<Json<Confirmation>, ApiError> {
    match gateway.runs().delete_thread(id).await? {
        Deletion::Done => {
            tracing::info!(thread = %id, "deleted a thread on request");
            Ok(Json(Confirmation::with_message(format!("Deleted local thread data for {id}"))))
        }
        Deletion::InUse => Err(thread::in_flight()),
        Deletion::Unknown => Err(thread::not_found()),
    }
}
