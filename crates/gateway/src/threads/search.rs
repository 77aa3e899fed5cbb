//! Search for threads, and paging of lists.

use super::{cursor, lifecycle::listed};
use crate::{ApiError, Caller, GatewayState, Json, Scrubbed};
use axum::http::HeaderName;
use pudu_langgraph::thread::notes_of;
use pudu_store::{ThreadCondition, ThreadCursor, ThreadFacts, ThreadOrder, ThreadQuery, ThreadRunStatus};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Default and maximum number of listed threads.
const LISTED: (usize, usize) = (10, 1000);
/// Header with the `offset` of the next page.
pub(crate) const NEXT_PAGE: HeaderName = HeaderName::from_static("x-pagination-next");
/// Header with the `cursor` of the next page. Such pages neither repeat nor skip a thread while others change.
pub(crate) const NEXT_CURSOR: HeaderName = HeaderName::from_static("x-pagination-cursor");
/// Keeps the requested keys of a result; all keys if none is requested.
pub(crate) fn selected(mut told: Value, keys: Option<&[String]>) -> Value {
    if let (Some(keys), Value::Object(told)) = (keys.filter(|keys| !keys.is_empty()), &mut told) {
        told.retain(|key, _| keys.contains(key));
    }
    told
}

/// Refuses keys that the listed objects do not have.
pub(crate) fn check_selected(listed: &str, keys: &[String], known: &[&str]) -> Result<(), ApiError> {
    match keys.iter().find(|key| !known.contains(&key.as_str())) {
        Some(key) => {
            let why = format!("select: unknown key `{key}` of a {listed}; the keys are {}", known.join(", "));
            Err(ApiError::invalid(why))
        }
        None => Ok(()),
    }
}

/// Header about the next page, if there is one.
pub(crate) type PageHeader = Option<[(HeaderName, String); 1]>;

/// Returns the header with the position of the next page, if there is one.
pub(crate) fn next_page(next: usize, has_more: bool) -> PageHeader {
    has_more.then(|| [(NEXT_PAGE, next.to_string())])
}

/// Search conditions for threads.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ThreadSearch {
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

/// Keys of a thread that a search can select.
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
    /// Refuses unsupported conditions: the title is the only value of a thread that can be searched.
    fn check(&self) -> Result<(), ApiError> {
        if let Some(key) = self.values.iter().flat_map(Map::keys).find(|key| *key != "title") {
            return Err(ApiError::invalid(format!("values.{key}: only `title` can be searched")));
        }
        if self.extract.as_ref().is_some_and(|extract| !extract.is_empty()) {
            return Err(ApiError::invalid(
                "extract is not supported: GET /threads/{id} returns the values of a thread",
            ));
        }
        check_selected("thread", self.select.as_deref().unwrap_or_default(), &KEYS)
    }

    /// Converts the search to a query of the store.
    fn filter(self, gateway: &GatewayState) -> Result<ThreadQuery, ApiError> {
        self.check()?;
        let limit = self.limit.unwrap_or(LISTED.0);
        if !(1..=LISTED.1).contains(&limit) {
            return Err(ApiError::invalid("limit must be a whole number from 1 to 1000"));
        }
        let status = self
            .status
            .as_deref()
            .map(|word| ThreadRunStatus::ALL.into_iter().find(|one| one.name() == word));
        let Some(status) = status.map_or(Some(None), |found| found.map(Some)) else {
            return Err(ApiError::invalid("status must be idle, busy, interrupted or error"));
        };
        let ascending = match self.sort_order.as_deref() {
            None | Some("desc") => false,
            Some("asc") => true,
            Some(_) => return Err(ApiError::invalid("sort_order must be `asc` or `desc`")),
        };
        let order = match self.sort_by.as_deref() {
            None | Some("updated_at") => ThreadOrder::Updated,
            Some("created_at") => ThreadOrder::Created,
            Some("thread_id") => ThreadOrder::Id,
            Some("status") => ThreadOrder::Status,
            Some(_) => {
                return Err(ApiError::invalid(
                    "sort_by must be `thread_id`, `status`, `created_at` or `updated_at`",
                ));
            }
        };
        let after = match self.cursor.as_deref().map(cursor::read) {
            None => None,
            Some(Some(_)) if order != ThreadOrder::Updated || ascending => {
                return Err(ApiError::invalid("cursor needs `sort_by: updated_at` and `sort_order: desc`"));
            }
            Some(Some(cursor)) => Some(cursor),
            Some(None) => {
                return Err(ApiError::invalid("cursor must be a value of the header X-Pagination-Cursor"));
            }
        };
        Ok(ThreadQuery {
            ids: self.ids,
            status,
            busy: gateway.runs().busy_threads(),
            fits: condition(self.metadata, self.values, self.query),
            order,
            ascending,
            after,
            offset: self.offset.unwrap_or(0),
            limit,
        })
    }
}

/// Returns the condition on metadata and title; `None` if there is none.
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
pub(crate) async fn search(
    gateway: GatewayState,
    caller: Caller,
    Json(search): Json<ThreadSearch>,
) -> Result<((PageHeader, PageHeader), Scrubbed<Vec<Value>>), ApiError> {
    let select = search.select.clone();
    let filter = search.filter(&gateway)?;
    let found = gateway.db().find_threads(&caller.user, &filter).await?;
    let page = found.threads.iter().map(|thread| json!(listed(&gateway, &caller, thread)));
    let page: Vec<Value> = page.map(|thread| selected(thread, select.as_deref())).collect();
    let is_cursored = filter.order == ThreadOrder::Updated && !filter.ascending;
    let last = found.threads.last().filter(|_| found.has_more && is_cursored);
    let cursor = last.map(|thread| [(NEXT_CURSOR, cursor::write(&ThreadCursor::behind(thread)))]);
    let next = next_page(filter.offset.saturating_add(filter.limit), found.has_more);
    Ok(((next, cursor), Scrubbed(page)))
}

/// Counts threads that the caller may read.
pub(crate) async fn count(
    gateway: GatewayState,
    caller: Caller,
    Json(search): Json<ThreadSearch>,
) -> Result<Json<usize>, ApiError> {
    let filter = ThreadSearch { limit: None, cursor: None, ..search }.filter(&gateway)?;
    Ok(Json(gateway.db().count_threads(&caller.user, &filter).await?))
}
