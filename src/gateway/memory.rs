//! Memory of the person who asks: shown, changed, exported and forgotten. Shapes are DeerFlow's.
//!
//! It is the memory of the lead agent, as in DeerFlow; `?agent=NAME` is that of a custom one. Nobody's settings are told
//! that hold a secret: the model that reads conversations is named and no more.

use super::{GatewayState, JsonReply, caller::Caller};
use crate::gateway::json::Json;
use axum::{
    extract::{Path, Query, State},
    http::StatusCode,
};
use pudu_client::{
    MemoryMode, MemoryOf, MemoryRules, MemoryTrouble,
    memories::{
        DocumentDetail, FactCategory, FactEdit, FactSource, MemoryDocument, MemoryError, MemoryRefusal,
        NewFact,
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// The agent whose memory is meant.
#[derive(Deserialize, JsonSchema)]
pub(super) struct MemoryQuery {
    #[serde(default)]
    agent: Option<String>,
}

impl MemoryQuery {
    fn of(self, caller: Caller) -> MemoryOf {
        MemoryOf { user: caller.user, agent: self.agent.filter(|agent| !agent.is_empty()) }
    }
}

/// Shows what is remembered.
pub(super) async fn show(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Query(query): Query<MemoryQuery>,
) -> JsonReply {
    told(gateway.0.shared.client.memories().read(&query.of(caller)).await)
}

/// Shows what is remembered. It is read anew in any case.
pub(super) async fn reload(
    gateway: State<GatewayState>,
    caller: Caller,
    query: Query<MemoryQuery>,
) -> JsonReply {
    show(gateway, caller, query).await
}

/// Forgets everything that any agent remembers of whoever asks.
pub(super) async fn clear(State(gateway): State<GatewayState>, caller: Caller) -> JsonReply {
    let (memories, of) = (gateway.0.shared.client.memories(), MemoryOf { user: caller.user, agent: None });
    match memories.forget_all(&of).await {
        Ok(()) => told(memories.read(&of).await),
        Err(error) => refused(&error),
    }
}

/// Returns everything as one document, which `import` reads.
pub(super) async fn export(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Query(query): Query<MemoryQuery>,
) -> JsonReply {
    match gateway.0.shared.client.memories().export(&query.of(caller)).await {
        Ok(document) => (StatusCode::OK, Json(document)),
        Err(error) => refused(&error),
    }
}

/// Replaces what is remembered by a document.
pub(super) async fn import(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Query(query): Query<MemoryQuery>,
    Json(document): Json<Value>,
) -> JsonReply {
    let (memories, of) = (gateway.0.shared.client.memories(), query.of(caller));
    match memories.import(&of, document).await {
        Ok(_) => told(memories.read(&of).await),
        Err(error) => refused(&error),
    }
}

/// A fact to remember.
#[derive(Deserialize, JsonSchema)]
pub(super) struct AddedFact {
    content: String,
    #[serde(default = "context")]
    category: String,
    #[serde(default = "half")]
    confidence: f64,
}

fn context() -> String {
    "context".to_owned()
}

fn half() -> f64 {
    0.5
}

/// Remembers a fact.
pub(super) async fn add(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Query(query): Query<MemoryQuery>,
    Json(AddedFact { content, category, confidence }): Json<AddedFact>,
) -> JsonReply {
    let fact = NewFact {
        content,
        category: FactCategory::parse(&category, None),
        confidence,
        source: FactSource::manual(),
        origin: None,
    };
    told(gateway.0.shared.client.memories().add(&query.of(caller), fact).await)
}

/// Change of a fact: what is missing or null stays.
#[derive(Deserialize, JsonSchema)]
pub(super) struct FactChange {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    category: Option<String>,
    #[serde(default)]
    confidence: Option<f64>,
}

/// Changes a fact.
pub(super) async fn edit(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(fact): Path<String>,
    Query(query): Query<MemoryQuery>,
    Json(FactChange { content, category, confidence }): Json<FactChange>,
) -> JsonReply {
    let category = category.map(|category| FactCategory::parse(&category, None));
    let edit = FactEdit { content, category, confidence, revision: None };
    told(gateway.0.shared.client.memories().edit(&query.of(caller), &fact, edit).await)
}

/// Forgets a fact.
pub(super) async fn forget(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(fact): Path<String>,
    Query(query): Query<MemoryQuery>,
) -> JsonReply {
    let (memories, of) = (gateway.0.shared.client.memories(), query.of(caller));
    match memories.forget(&of, &fact).await {
        Ok(()) => told(memories.read(&of).await),
        Err(error) => refused(&error),
    }
}

/// Answers how memory is set up.
pub(super) async fn config(State(gateway): State<GatewayState>) -> Json<Value> {
    Json(settings(&gateway))
}

/// Answers how memory is set up, and what is remembered.
pub(super) async fn status(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Query(query): Query<MemoryQuery>,
) -> JsonReply {
    match gateway.0.shared.client.memories().read(&query.of(caller)).await {
        Ok(document) => {
            let data = document.to_json(DocumentDetail::Api);
            (StatusCode::OK, Json(json!({ "config": settings(&gateway), "data": data })))
        }
        Err(error) => refused(&error),
    }
}

/// Writes the rules under the keys of both shapes that DeerFlow had.
fn settings(gateway: &GatewayState) -> Value {
    let memory = gateway.0.watcher.current().memory.clone();
    let Some(rules) = memory.rules else {
        return json!({ "enabled": false, "injection_enabled": false, "manager_class": "noop" });
    };
    let MemoryRules { mode, injection, debounce, last_reading, options, .. } = rules;
    let numbers = json!({
        "debounce_seconds": debounce.as_secs(),
        "max_facts": options.max_facts,
        "fact_confidence_threshold": options.min_confidence,
        "max_injection_tokens": options.max_injection_tokens,
        "fact_eviction_policy": options.eviction.name(),
        "guaranteed_categories": options.guaranteed_categories,
        "guaranteed_token_budget": options.guaranteed_tokens,
        "staleness_review_enabled": options.staleness_review,
        "staleness_age_days": options.staleness_days,
        "consolidation_enabled": options.consolidation,
        "model": memory.model,
    });
    json!({
        "enabled": true,
        "mode": match mode {
            MemoryMode::Middleware => "middleware",
            MemoryMode::Tool => "tool",
        },
        "injection_enabled": injection,
        "shutdown_flush_timeout_seconds": last_reading.as_secs(),
        "manager_class": "deermem",
        "storage_path": "",
        "debounce_seconds": debounce.as_secs(),
        "max_facts": options.max_facts,
        "fact_confidence_threshold": options.min_confidence,
        "max_injection_tokens": options.max_injection_tokens,
        "backend_config": numbers,
    })
}

fn told(document: Result<MemoryDocument, MemoryTrouble>) -> JsonReply {
    match document {
        Ok(document) => (StatusCode::OK, Json(document.to_json(DocumentDetail::Api))),
        Err(error) => refused(&error),
    }
}

fn refused(error: &MemoryTrouble) -> JsonReply {
    let (status, detail) = match error {
        MemoryTrouble::Files(MemoryError::UnknownFact(id)) => {
            (StatusCode::NOT_FOUND, format!("Memory fact '{id}' not found."))
        }
        MemoryTrouble::Files(MemoryError::Conflict { .. }) => {
            (StatusCode::CONFLICT, "Memory changed concurrently; reload and retry.".to_owned())
        }
        MemoryTrouble::Files(MemoryError::Refused(refusal)) => (refused_status(refusal), refusal.to_string()),
        MemoryTrouble::Files(MemoryError::Busy { .. }) => {
            (StatusCode::SERVICE_UNAVAILABLE, "memory is locked by another program; try again".to_owned())
        }
        MemoryTrouble::Store(_) => {
            tracing::error!(%error, "failed to use memory");
            (StatusCode::SERVICE_UNAVAILABLE, "the store does not answer just now; try again".to_owned())
        }
        MemoryTrouble::Files(_) | MemoryTrouble::Broken => {
            tracing::error!(%error, "failed to use memory");
            (StatusCode::INTERNAL_SERVER_ERROR, "memory cannot be used; the log says why".to_owned())
        }
    };
    (status, Json(json!({ "detail": detail })))
}

fn refused_status(refusal: &MemoryRefusal) -> StatusCode {
    match refusal {
        MemoryRefusal::EmptyContent => StatusCode::BAD_REQUEST,
        MemoryRefusal::Duplicate { .. } | MemoryRefusal::NoRoom { .. } => StatusCode::CONFLICT,
        MemoryRefusal::TooLong { .. }
        | MemoryRefusal::BadConfidence
        | MemoryRefusal::BadFactId(_)
        | MemoryRefusal::BadAgent(_)
        | MemoryRefusal::BadDocument(_) => StatusCode::UNPROCESSABLE_ENTITY,
    }
}
