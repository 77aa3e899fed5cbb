//! Threads as LangGraph's clients use them: made, found, changed, deleted.

mod cursor;

use super::{
    GatewayState,
    caller::Caller,
    owned::{own, readable},
    refusal::{ACCOUNT, IN_FLIGHT, Refusal, answer, body, missing, refused, scrubbed, unavailable, wrong},
    thread,
};
use crate::json::{BodyRejection, Json};
use axum::{
    extract::{Path, State},
    http::{HeaderName, StatusCode},
    response::{IntoResponse, Response},
};
use pudu_client::{
    base::{ThreadFolder, ThreadId},
    store::{
        ClientThread, Deletion, NewThread, ThreadChange, ThreadCondition, ThreadCursor, ThreadFacts,
        ThreadOrder, ThreadQuery, ThreadRunStatus,
    },
    wire::thread::{ListedThread, metadata, notes_of},
};
use pudu_dispatch::bus::STORE_TIMEOUT;
use pudu_kit::clock;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use std::sync::Arc;

/// Default and maximum number of listed threads.
const LISTED: (usize, usize) = (10, 1000);
/// Header with the `offset` of the next page.
pub(super) const NEXT_PAGE: HeaderName = HeaderName::from_static("x-pagination-next");
/// Header with the `cursor` of the next page, which repeats and loses no thread while others are written.
pub(super) const NEXT_CURSOR: HeaderName = HeaderName::from_static("x-pagination-cursor");
/// Maximum size of a client's notes on a thread, in bytes.
const MAX_METADATA_BYTES: usize = 64 * 1024;
/// Keys of notes that a client may not write.
const OWNERS: [&str; 2] = ["owner_id", "user_id"];

/// A thread to make.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct NewThreadBody {
    thread_id: Option<String>,
    assistant_id: Option<String>,
    metadata: Option<Map<String, Value>>,
    if_exists: Option<String>,
}

/// Makes a thread.
pub(super) async fn create(
    State(gateway): State<GatewayState>,
    caller: Caller,
    posted: Result<Json<NewThreadBody>, BodyRejection>,
) -> Response {
    answer(async { Ok(scrubbed(&made(&gateway, &caller, body(posted)?).await?)) }.await)
}

async fn made(gateway: &GatewayState, caller: &Caller, asked: NewThreadBody) -> Result<Value, Refusal> {
    if !matches!(asked.if_exists.as_deref(), None | Some("raise" | "do_nothing")) {
        return wrong("if_exists is neither raise nor do_nothing");
    }
    let id = match &asked.thread_id {
        None => ThreadId::fresh(),
        Some(id) => thread::id(id)?,
    };
    let db = gateway.0.shared.db.within(STORE_TIMEOUT);
    let metadata = notes(asked.metadata.unwrap_or_default())?;
    let new = NewThread {
        folder: ThreadFolder { owner: caller.user.clone(), thread: id.clone() },
        account: ACCOUNT.to_owned(),
        assistant: asked.assistant_id.unwrap_or_default(),
        metadata,
        now: clock::now(),
    };
    let is_new = db.create_thread(new).await.map_err(|error| unavailable(&error))?;
    let thread = db.client_thread(&id).await.map_err(|error| unavailable(&error))?;
    let Some(thread) = thread else { return missing() };
    match (thread.user == caller.user, asked.if_exists.as_deref()) {
        (true, Some("raise")) if !is_new => refused(StatusCode::CONFLICT, "the thread exists"),
        (true, _) => Ok(listed(gateway, caller, &thread)),
        // The answer does not name the owner.
        (false, _) => refused(StatusCode::CONFLICT, "the thread's id is taken"),
    }
}

/// Writes the notes of a client, without the keys that a client may not set.
pub(super) fn notes(mut metadata: Map<String, Value>) -> Result<String, Refusal> {
    metadata.retain(|key, _| !OWNERS.contains(&key.as_str()));
    let text = Value::Object(metadata).to_string();
    if text.len() > MAX_METADATA_BYTES {
        return refused(StatusCode::PAYLOAD_TOO_LARGE, "metadata has more than 64 KiB");
    }
    Ok(text)
}

/// Writes a thread as lists show it to a caller.
pub(super) fn listed(gateway: &GatewayState, caller: &Caller, thread: &ClientThread) -> Value {
    json!(shown(caller, thread, gateway.0.shared.client.listed(thread)))
}

/// Marks a thread that the caller may only read.
fn shown(caller: &Caller, thread: &ClientThread, listed: ListedThread) -> ListedThread {
    ListedThread { read_only: thread.user != caller.user, ..listed }
}

/// Keeps the requested keys of an answer; all keys if none was requested.
pub(super) fn selected(mut told: Value, keys: Option<&[String]>) -> Value {
    if let (Some(keys), Value::Object(told)) = (keys.filter(|keys| !keys.is_empty()), &mut told) {
        told.retain(|key, _| keys.contains(key));
    }
    told
}

/// Refuses keys that nothing listed has.
pub(super) fn check_selected(listed: &str, keys: &[String], known: &[&str]) -> Result<(), Refusal> {
    match keys.iter().find(|key| !known.contains(&key.as_str())) {
        Some(key) => {
            let why = format!("select: a {listed} has no `{key}`; its keys are {}", known.join(", "));
            wrong(&why)
        }
        None => Ok(()),
    }
}

/// Returns the header with the position of the next page, if there is one.
pub(super) fn next_page(next: usize, has_more: bool) -> Option<[(HeaderName, String); 1]> {
    has_more.then(|| [(NEXT_PAGE, next.to_string())])
}

/// Which threads are looked for.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ThreadSearch {
    metadata: Option<Map<String, Value>>,
    status: Option<String>,
    ids: Option<Vec<String>>,
    limit: Option<usize>,
    offset: Option<usize>,
    sort_by: Option<String>,
    sort_order: Option<String>,
    query: Option<String>,
    /// Position at which the list continues: `X-Pagination-Cursor` of the page before.
    cursor: Option<String>,
    select: Option<Vec<String>>,
    values: Option<Map<String, Value>>,
    extract: Option<Map<String, Value>>,
}

/// Keys of a thread that a search can be asked for.
const KEYS: [&str; 12] = [
    "thread_id",
    "status",
    "created_at",
    "updated_at",
    "metadata",
    "assistant_id",
    "channel",
    "config",
    "context",
    "values",
    "interrupts",
    "read_only",
];

impl ThreadSearch {
    /// Refuses keys that would not be obeyed: lists know the title of a thread's values.
    fn check(&self) -> Result<(), Refusal> {
        if let Some(key) = self.values.iter().flat_map(Map::keys).find(|key| *key != "title") {
            return wrong(&format!("values.{key}: threads are found by the `title` of their values alone"));
        }
        if self.extract.as_ref().is_some_and(|extract| !extract.is_empty()) {
            return wrong("extract is not offered: GET /threads/{id} has the values of a thread");
        }
        check_selected("thread", self.select.as_deref().unwrap_or_default(), &KEYS)
    }

    /// Returns the search as the store makes it.
    fn filter(self, gateway: &GatewayState) -> Result<ThreadQuery, Refusal> {
        self.check()?;
        let limit = self.limit.unwrap_or(LISTED.0);
        if !(1..=LISTED.1).contains(&limit) {
            return wrong("limit must be a whole number from 1 to 1000");
        }
        let status = self
            .status
            .as_deref()
            .map(|word| ThreadRunStatus::ALL.into_iter().find(|one| one.name() == word));
        let Some(status) = status.map_or(Some(None), |found| found.map(Some)) else {
            return wrong("status must be idle, busy, interrupted or error");
        };
        let ascending = match self.sort_order.as_deref() {
            None | Some("desc") => false,
            Some("asc") => true,
            Some(_) => return wrong("sort_order must be `asc` or `desc`"),
        };
        let order = match self.sort_by.as_deref() {
            None | Some("updated_at") => ThreadOrder::Updated,
            Some("created_at") => ThreadOrder::Created,
            Some("thread_id") => ThreadOrder::Id,
            Some("status") => ThreadOrder::Status,
            Some(_) => return wrong("sort_by must be `thread_id`, `status`, `created_at` or `updated_at`"),
        };
        let after = match self.cursor.as_deref().map(cursor::read) {
            None => None,
            Some(Some(_)) if order != ThreadOrder::Updated || ascending => {
                return wrong("cursor needs `sort_by: updated_at` and `sort_order: desc`");
            }
            Some(Some(cursor)) => Some(cursor),
            Some(None) => return wrong("cursor must be a value of the header X-Pagination-Cursor"),
        };
        Ok(ThreadQuery {
            ids: self.ids,
            status,
            busy: gateway.0.shared.client.busy_threads(),
            fits: condition(self.metadata, self.values, self.query),
            order,
            ascending,
            after,
            offset: self.offset.unwrap_or(0),
            limit,
        })
    }
}

/// Returns the condition on notes and title; `None` where there is none.
fn condition(
    notes: Option<Map<String, Value>>,
    values: Option<Map<String, Value>>,
    query: Option<String>,
) -> Option<ThreadCondition> {
    let notes = notes.filter(|notes| !notes.is_empty());
    let title = values.and_then(|mut values| values.remove("title"));
    let words = query.map(|words| words.to_lowercase()).filter(|words| !words.is_empty());
    if notes.is_none() && title.is_none() && words.is_none() {
        return None;
    }
    Some(Arc::new(move |facts: &ThreadFacts| {
        title.as_ref().is_none_or(|title| *title == facts.title)
            && words.as_ref().is_none_or(|words| facts.title.to_lowercase().contains(words))
            && notes.as_ref().is_none_or(|wanted| {
                let notes = notes_of(&facts.metadata, facts.pinned);
                wanted.iter().all(|(key, value)| notes.get(key) == Some(value))
            })
    }))
}

/// Finds threads that the caller may read.
pub(super) async fn search(
    State(gateway): State<GatewayState>,
    caller: Caller,
    posted: Result<Json<ThreadSearch>, BodyRejection>,
) -> Response {
    let listed = async {
        let search = body(posted)?;
        let select = search.select.clone();
        let filter = search.filter(&gateway)?;
        let db = gateway.0.shared.db.within(STORE_TIMEOUT);
        let found = db.find_threads(&caller.user, &filter).await.map_err(|error| unavailable(&error))?;
        let page = found.threads.iter().map(|thread| listed(&gateway, &caller, thread));
        let page: Vec<Value> = page.map(|thread| selected(thread, select.as_deref())).collect();
        let is_cursored = filter.order == ThreadOrder::Updated && !filter.ascending;
        let last = found.threads.last().filter(|_| found.has_more && is_cursored);
        let cursor = last.map(|thread| [(NEXT_CURSOR, cursor::write(&ThreadCursor::behind(thread)))]);
        let next = next_page(filter.offset.saturating_add(filter.limit), found.has_more);
        Ok((next, cursor, scrubbed(&page)).into_response())
    };
    answer(listed.await)
}

/// Counts threads that the caller may read.
pub(super) async fn count(
    State(gateway): State<GatewayState>,
    caller: Caller,
    posted: Result<Json<ThreadSearch>, BodyRejection>,
) -> Response {
    let counted = async {
        let filter = ThreadSearch { limit: None, cursor: None, ..body(posted)? }.filter(&gateway)?;
        let db = gateway.0.shared.db.within(STORE_TIMEOUT);
        Ok(Json(db.count_threads(&caller.user, &filter).await.map_err(|error| unavailable(&error))?))
    };
    answer(counted.await)
}

/// Shows a thread with its values.
pub(super) async fn show(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Response {
    let shown = async {
        let thread = readable(&gateway, &caller, &id).await?;
        let listed = gateway.0.shared.client.with_values(&thread).await;
        Ok(scrubbed(&shown(&caller, &thread, listed.map_err(|error| unavailable(&error))?)))
    };
    answer(shown.await)
}

/// Returns the current values of a thread.
pub(super) async fn values(gateway: &GatewayState, thread: &ClientThread) -> Result<Box<RawValue>, Refusal> {
    gateway.0.shared.client.values(thread).await.map_err(|error| unavailable(&error))
}

/// Change of a thread's notes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ThreadPatch {
    #[serde(default)]
    metadata: Map<String, Value>,
}

/// Merges notes into those of a thread.
pub(super) async fn patch(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    posted: Result<Json<ThreadPatch>, BodyRejection>,
) -> Response {
    let patched = async {
        let (thread, mut patch) = (own(&gateway, &caller, &id).await?, body(posted)?.metadata);
        let pinned = match patch.remove("deerflow_pinned") {
            None => None,
            Some(Value::Bool(pinned)) => Some(pinned),
            Some(_) => {
                let why = "metadata.deerflow_pinned is neither true nor false";
                return wrong(why);
            }
        };
        // Pinning alone is no use of a thread.
        let updated = Some(clock::now()).filter(|_| !patch.is_empty() || pinned.is_none());
        let mut all = metadata(&thread);
        all.remove("deerflow_pinned");
        all.extend(patch);
        let change = ThreadChange { metadata: Some(notes(all)?), pinned, title: None, updated };
        let db = gateway.0.shared.db.within(STORE_TIMEOUT);
        db.change_thread(&thread.id, change).await.map_err(|error| unavailable(&error))?;
        own(&gateway, &caller, &id).await.map(|thread| scrubbed(&listed(&gateway, &caller, &thread)))
    };
    answer(patched.await)
}

/// Deletes a thread of the caller's with all that it left behind.
pub(super) async fn delete(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Response {
    let deleted = async {
        let thread = own(&gateway, &caller, &id).await?;
        match gateway.0.shared.client.delete_thread(&thread.id).await.map_err(|error| unavailable(&error))? {
            Deletion::Done => {
                tracing::info!(thread = %thread.id, "deleted a thread on request");
                let message = format!("Deleted local thread data for {}", thread.id);
                Ok(Json(json!({ "success": true, "message": message })))
            }
            Deletion::InUse => refused(StatusCode::CONFLICT, IN_FLIGHT),
            Deletion::Unknown => missing(),
        }
    };
    answer(deleted.await)
}
