//! Threads in the format of LangGraph's clients.

use super::clock;
use pudu_base::{Outcome, ThreadId};
use pudu_store::ClientThread;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The account of threads and runs that API clients created.
pub const API_ACCOUNT: &str = "api";

/// A thread.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Thread")]
pub struct ListedThread {
    /// Its id.
    pub thread_id: ThreadId,
    /// State of its runs: `idle`, `busy`, `interrupted` or `error`.
    pub status: &'static str,
    /// When it was created.
    pub created_at: String,
    /// When it was last used.
    pub updated_at: String,
    /// Metadata set by clients.
    pub metadata: Map<String, Value>,
    /// The assistant for which it was created.
    pub assistant_id: Option<String>,
    /// The account that owns it, unless an API client created it.
    pub channel: Option<String>,
    /// Always empty.
    pub config: Map<String, Value>,
    /// Its values: in lists only the title.
    pub values: Value,
    /// Always empty.
    pub interrupts: Map<String, Value>,
    /// Whether the caller may only read it.
    pub read_only: bool,
}

impl ListedThread {
    /// Renders a thread for lists. `busy` is whether it has an active or waiting run.
    #[must_use]
    pub fn from_thread(thread: &ClientThread, busy: bool) -> Self {
        let non_empty = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Self {
            thread_id: thread.id.clone(),
            status: status(thread, busy),
            created_at: clock::iso(thread.created),
            updated_at: clock::iso(thread.updated),
            metadata: metadata(thread),
            assistant_id: non_empty(&thread.assistant),
            channel: Some(thread.account.clone()).filter(|account| account != API_ACCOUNT),
            config: Map::new(),
            values: non_empty(&thread.title).map_or_else(|| json!({}), |title| json!({ "title": title })),
            interrupts: Map::new(),
            read_only: false,
        }
    }
}

/// Returns a thread's status in LangGraph's terms.
fn status(thread: &ClientThread, busy: bool) -> &'static str {
    match thread.outcome.as_deref().and_then(|outcome| serde_json::from_str(outcome).ok()) {
        _ if busy => "busy",
        None | Some(Outcome::Success) => "idle",
        Some(Outcome::Stopped) => "interrupted",
        Some(Outcome::Timeout | Outcome::Limit | Outcome::Error(_)) => "error",
    }
}

/// Returns the metadata that clients set on a thread.
#[must_use]
pub fn metadata(thread: &ClientThread) -> Map<String, Value> {
    notes_of(&thread.metadata, thread.pinned)
}

/// Returns the metadata that clients set, given the columns of a thread.
#[must_use]
pub fn notes_of(metadata: &str, pinned: bool) -> Map<String, Value> {
    let mut notes: Map<String, Value> = serde_json::from_str(metadata).unwrap_or_default();
    if pinned {
        notes.insert("deerflow_pinned".into(), true.into());
    }
    notes
}
