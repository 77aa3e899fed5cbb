//! Assistants, as LangGraph's clients look for them: the lead agent, then the custom agents. Shapes are DeerFlow's.

use super::{
    GatewayState, JsonReply,
    caller::Caller,
    json::{self, Json},
    threads::{next_page, selected},
    unsupported,
};
use axum::{
    body::Bytes,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use pudu_client::base::UserId;
use pudu_kit::clock;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// Graph of all assistants, and name of the first one.
const LEAD: &str = "lead_agent";
/// Maximum number of assistants of an answer.
const MAX_LISTED: usize = 1_000;

/// Creation time reported for assistants: none is stored.
static SINCE: LazyLock<String> = LazyLock::new(|| clock::text(clock::now()));

/// Search for assistants. Metadata is not looked at, as in DeerFlow.
#[derive(Deserialize, JsonSchema)]
pub(super) struct AssistantSearch {
    #[serde(default)]
    graph_id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default = "page")]
    limit: usize,
    #[serde(default)]
    offset: usize,
    #[serde(default)]
    select: Option<Vec<String>>,
}

fn page() -> usize {
    10
}

impl Default for AssistantSearch {
    fn default() -> Self {
        Self { graph_id: None, name: None, limit: page(), offset: 0, select: None }
    }
}

impl AssistantSearch {
    /// Reads a body, which may be missing.
    fn read(body: &[u8]) -> Result<Self, JsonReply> {
        if body.is_empty() {
            return Ok(Self::default());
        }
        json::read(body).map_err(|error| {
            let detail = format!("this is no search for assistants: {}", error.body_text());
            (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({ "detail": detail })))
        })
    }

    fn finds(&self, assistant: &Value) -> bool {
        let text = |key: &str| assistant.get(key).and_then(Value::as_str).unwrap_or_default();
        self.graph_id.as_ref().is_none_or(|graph| text("graph_id") == graph)
            && self
                .name
                .as_ref()
                .is_none_or(|name| text("name").to_lowercase().contains(&name.to_lowercase()))
    }
}

/// Lists assistants.
pub(super) async fn search(State(gateway): State<GatewayState>, caller: Caller, body: Bytes) -> Response {
    let wanted = match AssistantSearch::read(&body) {
        Ok(wanted) => wanted,
        Err(refusal) => return refusal.into_response(),
    };
    let mut found = gateway.assistants(&caller.user).await;
    found.retain(|assistant| wanted.finds(assistant));
    let (limit, offset) = (wanted.limit.min(MAX_LISTED), wanted.offset);
    let next = next_page(offset.saturating_add(limit), offset.saturating_add(limit) < found.len());
    let page = found.into_iter().skip(offset).take(limit);
    let page: Vec<Value> = page.map(|assistant| selected(assistant, wanted.select.as_deref())).collect();
    (next, Json(page)).into_response()
}

/// Counts assistants.
pub(super) async fn count(State(gateway): State<GatewayState>, caller: Caller, body: Bytes) -> JsonReply {
    match AssistantSearch::read(&body) {
        Ok(wanted) => {
            let all = gateway.assistants(&caller.user).await;
            (StatusCode::OK, Json(json!(all.iter().filter(|assistant| wanted.finds(assistant)).count())))
        }
        Err(refusal) => refusal,
    }
}

/// Shows an assistant.
pub(super) async fn show(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> JsonReply {
    gateway.assistant(&caller, &id, |assistant| assistant).await
}

/// Shows the graph of an assistant, which is never drawn.
pub(super) async fn graph(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> JsonReply {
    gateway.assistant(&caller, &id, |_| json!({ "graph_id": LEAD, "nodes": [], "edges": [] })).await
}

/// Shows the schemas of an assistant, which are empty.
pub(super) async fn schemas(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> JsonReply {
    let empty = json!({
        "graph_id": LEAD,
        "input_schema": {},
        "output_schema": {},
        "state_schema": {},
        "config_schema": {},
    });
    gateway.assistant(&caller, &id, |_| empty).await
}

/// Shows the subgraphs of an assistant: always none, because sub-agents have runs of their own.
pub(super) async fn subgraphs(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
) -> JsonReply {
    gateway.assistant(&caller, &name, |_| json!({})).await
}

/// Likewise, of one namespace.
pub(super) async fn subgraph(
    state: State<GatewayState>,
    caller: Caller,
    Path((name, _)): Path<(String, String)>,
) -> JsonReply {
    subgraphs(state, caller, Path(name)).await
}

/// Refuses to change or delete an assistant.
pub(super) async fn fixed(_: Bytes) -> Response {
    unsupported::answer(unsupported::Part::OwnAssistants)
}

impl GatewayState {
    /// Returns the assistants of a user. Custom agents are among them if the operator wants that.
    async fn assistants(&self, user: &UserId) -> Vec<Value> {
        let mut assistants = vec![assistant(LEAD, "system", "The lead agent")];
        if self.0.watcher.current().agents_api {
            let roster = self.0.shared.client.roster(Some(user)).await;
            let custom =
                roster.agents.iter().map(|custom| assistant(&custom.name, "user", &custom.profile.about));
            assistants.extend(custom);
        }
        assistants
    }

    async fn assistant(&self, caller: &Caller, id: &str, show: impl FnOnce(Value) -> Value) -> JsonReply {
        match self
            .assistants(&caller.user)
            .await
            .into_iter()
            .find(|assistant| assistant["assistant_id"] == id)
        {
            Some(assistant) => (StatusCode::OK, Json(show(assistant))),
            None => {
                let detail = format!("Assistant {id} not found");
                (StatusCode::NOT_FOUND, Json(json!({ "detail": detail })))
            }
        }
    }
}

fn assistant(name: &str, created_by: &str, description: &str) -> Value {
    json!({
        "assistant_id": name,
        "graph_id": LEAD,
        "name": name,
        "config": {},
        "metadata": { "created_by": created_by },
        "description": description,
        "created_at": *SINCE,
        "updated_at": *SINCE,
        "version": 1,
    })
}
