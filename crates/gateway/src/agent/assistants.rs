//! Assistants as LangGraph's clients expect them: the lead agent, then the custom agents. Requests and responses have
//! DeerFlow's shapes.

use crate::{
    ApiError, Caller, GatewayState, Json,
    http::{json, unsupported},
    threads::search::{PageHeader, next_page, selected},
};
use axum::{body::Bytes, extract::Path};
use pudu_base::UserId;
use pudu_kit::clock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// Graph of all assistants, and name of the first one.
const LEAD: &str = "lead_agent";
/// Maximum number of assistants in a response.
const MAX_LISTED: usize = 1_000;

/// Creation time reported for assistants: none is stored.
static SINCE: LazyLock<String> = LazyLock::new(|| clock::text(clock::now()));

/// Search for assistants. Metadata is ignored, as in DeerFlow.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct AssistantSearch {
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
    /// Parses a body, which may be missing.
    fn read(body: &[u8]) -> Result<Self, ApiError> {
        if body.is_empty() {
            return Ok(Self::default());
        }
        json::read(body)
    }

    fn finds(&self, assistant: &ListedAssistant) -> bool {
        let name = assistant.name.to_lowercase();
        self.graph_id.as_ref().is_none_or(|graph| assistant.graph_id == graph)
            && self.name.as_ref().is_none_or(|wanted| name.contains(&wanted.to_lowercase()))
    }
}

/// An assistant.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Assistant")]
pub(crate) struct ListedAssistant {
    assistant_id: String,
    graph_id: &'static str,
    name: String,
    /// Always empty.
    config: Map<String, Value>,
    metadata: AssistantNotes,
    description: String,
    created_at: &'static str,
    updated_at: &'static str,
    version: u32,
}

/// Metadata of an assistant.
#[derive(Serialize, JsonSchema)]
struct AssistantNotes {
    /// `system`, or `user` if it is a custom agent.
    created_by: &'static str,
}

/// Lists assistants.
pub(crate) async fn search(
    gateway: GatewayState,
    caller: Caller,
    body: Bytes,
) -> Result<(PageHeader, Json<Vec<Value>>), ApiError> {
    let search = AssistantSearch::read(&body)?;
    let mut found = gateway.assistants(&caller.user).await;
    found.retain(|assistant| search.finds(assistant));
    let (limit, offset) = (search.limit.min(MAX_LISTED), search.offset);
    let next = next_page(offset.saturating_add(limit), offset.saturating_add(limit) < found.len());
    let page = found.into_iter().skip(offset).take(limit);
    let page: Vec<Value> = page.map(|found| selected(json!(found), search.select.as_deref())).collect();
    Ok((next, Json(page)))
}

/// Counts assistants.
pub(crate) async fn count(
    gateway: GatewayState,
    caller: Caller,
    body: Bytes,
) -> Result<Json<usize>, ApiError> {
    let search = AssistantSearch::read(&body)?;
    let all = gateway.assistants(&caller.user).await;
    Ok(Json(all.iter().filter(|assistant| search.finds(assistant)).count()))
}

/// Shows an assistant.
pub(crate) async fn show(
    gateway: GatewayState,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ListedAssistant>, ApiError> {
    gateway.assistant(&caller, &id).await.map(Json)
}

/// The graph of an assistant. It is never drawn, so it is always empty.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AssistantGraph {
    graph_id: &'static str,
    nodes: Vec<Value>,
    edges: Vec<Value>,
}

/// Shows the graph of an assistant.
pub(crate) async fn graph(
    gateway: GatewayState,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<AssistantGraph>, ApiError> {
    gateway.assistant(&caller, &id).await?;
    Ok(Json(AssistantGraph { graph_id: LEAD, nodes: Vec::new(), edges: Vec::new() }))
}

/// The schemas of an assistant: always empty.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AssistantSchemas {
    graph_id: &'static str,
    input_schema: Map<String, Value>,
    output_schema: Map<String, Value>,
    state_schema: Map<String, Value>,
    config_schema: Map<String, Value>,
}

/// Shows the schemas of an assistant.
pub(crate) async fn schemas(
    gateway: GatewayState,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<AssistantSchemas>, ApiError> {
    gateway.assistant(&caller, &id).await?;
    Ok(Json(AssistantSchemas {
        graph_id: LEAD,
        input_schema: Map::new(),
        output_schema: Map::new(),
        state_schema: Map::new(),
        config_schema: Map::new(),
    }))
}

/// Shows the subgraphs of an assistant: always none, because sub-agents have runs of their own.
pub(crate) async fn subgraphs(
    gateway: GatewayState,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Map<String, Value>>, ApiError> {
    gateway.assistant(&caller, &name).await?;
    Ok(Json(Map::new()))
}

/// Shows the subgraphs of one namespace.
pub(crate) async fn subgraph(
    gateway: GatewayState,
    caller: Caller,
    Path((name, _)): Path<(String, String)>,
) -> Result<Json<Map<String, Value>>, ApiError> {
    subgraphs(gateway, caller, Path(name)).await
}

/// Which versions of an assistant are listed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VersionsBody {
    #[serde(default = "page")]
    limit: usize,
    #[serde(default)]
    offset: usize,
    metadata: Option<Map<String, Value>>,
}

/// Lists the versions of an assistant: there is one.
pub(crate) async fn versions(
    gateway: GatewayState,
    caller: Caller,
    Path(id): Path<String>,
    Json(wanted): Json<VersionsBody>,
) -> Result<Json<Vec<ListedAssistant>>, ApiError> {
    if wanted.metadata.is_some_and(|metadata| !metadata.is_empty()) {
        return Err(ApiError::invalid("metadata: versions cannot be searched by metadata"));
    }
    let found = gateway.assistant(&caller, &id).await?;
    Ok(Json(std::iter::once(found).skip(wanted.offset).take(wanted.limit).collect()))
}

/// The version that an assistant is to have.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LatestBody {
    version: u32,
}

/// Sets the version of an assistant. Only the one that it has exists.
pub(crate) async fn set_latest(
    gateway: GatewayState,
    caller: Caller,
    Path(id): Path<String>,
    Json(LatestBody { version }): Json<LatestBody>,
) -> Result<Json<ListedAssistant>, ApiError> {
    let found = gateway.assistant(&caller, &id).await?;
    match version == found.version {
        true => Ok(Json(found)),
        false => Err(ApiError::not_found(format!("{id} has only version {}", found.version))),
    }
}

/// Refuses to change or delete an assistant.
pub(crate) async fn fixed(_: Bytes) -> ApiError {
    unsupported::answer(unsupported::Part::OwnAssistants)
}

impl GatewayState {
    /// Returns the assistants of a user. Custom agents are included if the operator enabled their API.
    async fn assistants(&self, user: &UserId) -> Vec<ListedAssistant> {
        let mut assistants = vec![ListedAssistant::new(LEAD, "system", "The lead agent")];
        if self.config().agents_api {
            let roster = self.agent().roster(Some(user)).await;
            let custom = roster.agents.iter();
            assistants.extend(
                custom.map(|custom| ListedAssistant::new(&custom.name, "user", &custom.profile.about)),
            );
        }
        assistants
    }

    async fn assistant(&self, caller: &Caller, id: &str) -> Result<ListedAssistant, ApiError> {
        let all = self.assistants(&caller.user).await;
        let found = all.into_iter().find(|assistant| assistant.assistant_id == id);
        found.ok_or_else(|| ApiError::not_found(format!("Assistant {id} not found")))
    }
}

impl ListedAssistant {
    fn new(name: &str, created_by: &'static str, description: &str) -> Self {
        Self {
            assistant_id: name.to_owned(),
            graph_id: LEAD,
            name: name.to_owned(),
            config: Map::new(),
            metadata: AssistantNotes { created_by },
            description: description.to_owned(),
            created_at: &SINCE,
            updated_at: &SINCE,
            version: 1,
        }
    }
}
