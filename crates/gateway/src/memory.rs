//! Memory of the caller: shown, changed, exported and forgotten. Shapes are DeerFlow's.
//!
//! It is the memory of the lead agent, as in DeerFlow; `?agent=NAME` selects that of a custom one. Settings with a
//! secret are not shown: of the model that reads conversations only the name is.

use super::{GatewayState, JsonReply, caller::Caller};
use crate::{json::Json, query::Query};
use axum::{
    extract::{Path, State},
    http::StatusCode,
};
use pudu_client::{
    MemoryOf, MemoryTrouble,
    memories::{MemoryError, MemoryRefusal},
    wire::memory::{AddedFact, FactChange},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Maximum size of an imported document, in bytes. An export of 2,000 facts of 2,000 characters each fits.
pub(super) const MAX_IMPORT_BYTES: usize = 32 * 1024 * 1024;

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

/// Shows the stored memory.
pub(super) async fn show(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Query(query): Query<MemoryQuery>,
) -> JsonReply {
    told(gateway.0.shared.client.get_memory(&query.of(caller)).await)
}

/// Shows the stored memory. It is always read again.
pub(super) async fn reload(
    gateway: State<GatewayState>,
    caller: Caller,
    query: Query<MemoryQuery>,
) -> JsonReply {
    show(gateway, caller, query).await
}

/// Forgets everything that any agent remembers of the caller.
pub(super) async fn clear(State(gateway): State<GatewayState>, caller: Caller) -> JsonReply {
    told(gateway.0.shared.client.clear_memory(&MemoryOf { user: caller.user, agent: None }).await)
}

/// Returns everything as one document, which `import` reads.
pub(super) async fn export(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Query(query): Query<MemoryQuery>,
) -> JsonReply {
    told(gateway.0.shared.client.export_memory(&query.of(caller)).await)
}

/// Replaces the stored memory by a document.
pub(super) async fn import(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Query(query): Query<MemoryQuery>,
    Json(document): Json<Value>,
) -> JsonReply {
    told(gateway.0.shared.client.import_memory(&query.of(caller), document).await)
}

/// Remembers a fact.
pub(super) async fn add(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Query(query): Query<MemoryQuery>,
    Json(fact): Json<AddedFact>,
) -> JsonReply {
    told(gateway.0.shared.client.create_memory_fact(&query.of(caller), fact).await)
}

/// Changes a fact.
pub(super) async fn edit(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(fact): Path<String>,
    Query(query): Query<MemoryQuery>,
    Json(change): Json<FactChange>,
) -> JsonReply {
    told(gateway.0.shared.client.update_memory_fact(&query.of(caller), &fact, change).await)
}

/// Forgets a fact.
pub(super) async fn forget(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(fact): Path<String>,
    Query(query): Query<MemoryQuery>,
) -> JsonReply {
    told(gateway.0.shared.client.delete_memory_fact(&query.of(caller), &fact).await)
}

/// Answers how memory is set up.
pub(super) async fn config(State(gateway): State<GatewayState>) -> Json<Value> {
    Json(gateway.0.shared.client.get_memory_config())
}

/// Answers with the memory configuration and the stored memory.
pub(super) async fn status(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Query(query): Query<MemoryQuery>,
) -> JsonReply {
    told(gateway.0.shared.client.get_memory_status(&query.of(caller)).await)
}

fn told(document: Result<Value, MemoryTrouble>) -> JsonReply {
    match document {
        Ok(document) => (StatusCode::OK, Json(document)),
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
        | MemoryRefusal::Secret
        | MemoryRefusal::BadFactId(_)
        | MemoryRefusal::BadAgent(_)
        | MemoryRefusal::BadDocument(_) => StatusCode::UNPROCESSABLE_ENTITY,
    }
}
