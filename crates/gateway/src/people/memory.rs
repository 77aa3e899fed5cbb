//! The caller's memory: show, change, export and delete. Requests and responses have DeerFlow's shapes.
//!
//! As in DeerFlow, this is the memory of the lead agent; `?agent=NAME` selects that of a custom agent. Settings that
//! may contain secrets are omitted: for the model that reads conversations, only its name is shown.

use crate::{ApiError, Caller, GatewayState, Json, Query};
use axum::{extract::Path, http::StatusCode};
use pudu_agent::{MemoryOf, MemoryTrouble};
use pudu_langgraph::memory::{AddedFact, FactChange};
use pudu_memory::{MemoryError, MemoryRefusal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Maximum size of an imported document, in bytes. An export of 2,000 facts of 2,000 characters each fits.
pub(crate) const MAX_IMPORT_BYTES: usize = 32 * 1024 * 1024;

/// The agent whose memory is meant.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct MemoryQuery {
    #[serde(default)]
    agent: Option<String>,
}

impl MemoryQuery {
    fn memory_of(self, caller: Caller) -> MemoryOf {
        MemoryOf { user: caller.user, agent: self.agent.filter(|agent| !agent.is_empty()) }
    }
}

/// Shows the stored memory.
pub(crate) async fn show(
    gateway: GatewayState,
    caller: Caller,
    Query(query): Query<MemoryQuery>,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(gateway.client().get_memory(&query.memory_of(caller)).await?))
}

/// Shows the stored memory, which is always read again anyway.
pub(crate) async fn reload(
    gateway: GatewayState,
    caller: Caller,
    query: Query<MemoryQuery>,
) -> Result<Json<Value>, ApiError> {
    show(gateway, caller, query).await
}

/// Deletes everything that any agent remembers about the caller.
pub(crate) async fn clear(gateway: GatewayState, caller: Caller) -> Result<Json<Value>, ApiError> {
    Ok(Json(gateway.client().clear_memory(&MemoryOf { user: caller.user, agent: None }).await?))
}

/// Returns the whole memory as a document that `import` reads.
pub(crate) async fn export(
    gateway: GatewayState,
    caller: Caller,
    Query(query): Query<MemoryQuery>,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(gateway.client().export_memory(&query.memory_of(caller)).await?))
}

/// Replaces the stored memory with a document.
pub(crate) async fn import(
    gateway: GatewayState,
    caller: Caller,
    Query(query): Query<MemoryQuery>,
    Json(document): Json<Value>,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(gateway.client().import_memory(&query.memory_of(caller), document).await?))
}

/// Adds a fact.
pub(crate) async fn add(
    gateway: GatewayState,
    caller: Caller,
    Query(query): Query<MemoryQuery>,
    Json(fact): Json<AddedFact>,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(gateway.client().create_memory_fact(&query.memory_of(caller), fact).await?))
}

/// Changes a fact.
pub(crate) async fn edit(
    gateway: GatewayState,
    caller: Caller,
    Path(fact): Path<String>,
    Query(query): Query<MemoryQuery>,
    Json(change): Json<FactChange>,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(gateway.client().update_memory_fact(&query.memory_of(caller), &fact, change).await?))
}

/// Deletes a fact.
pub(crate) async fn forget(
    gateway: GatewayState,
    caller: Caller,
    Path(fact): Path<String>,
    Query(query): Query<MemoryQuery>,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(gateway.client().delete_memory_fact(&query.memory_of(caller), &fact).await?))
}

/// Returns the memory settings.
pub(crate) async fn config(gateway: GatewayState) -> Json<Value> {
    Json(gateway.client().get_memory_config())
}

/// Returns the memory settings and the stored memory.
pub(crate) async fn status(
    gateway: GatewayState,
    caller: Caller,
    Query(query): Query<MemoryQuery>,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(gateway.client().get_memory_status(&query.memory_of(caller)).await?))
}

impl From<MemoryTrouble> for ApiError {
    fn from(error: MemoryTrouble) -> Self {
        match error {
            MemoryTrouble::Files(MemoryError::UnknownFact(id)) => {
                Self::not_found(format!("Memory fact '{id}' not found."))
            }
            MemoryTrouble::Files(MemoryError::Conflict { .. }) => {
                Self::conflict("Memory changed concurrently; reload and retry.")
            }
            MemoryTrouble::Files(MemoryError::Refused(refusal)) => {
                Self::new(refused_status(&refusal), refusal.to_string())
            }
            MemoryTrouble::Files(MemoryError::Busy { .. }) => {
                Self::unavailable("memory is locked by another program; try again")
            }
            MemoryTrouble::Store(error) => error.into(),
            MemoryTrouble::Files(_) | MemoryTrouble::Broken => {
                tracing::error!(%error, "failed to use memory");
                Self::internal("the memory cannot be used; see the log for the reason")
            }
        }
    }
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
