//! Profiles: a page that each person writes of themselves (DeerFlow's `USER.md`, which is one for all there).

use super::{GatewayState, JsonReply, caller::Caller};
use crate::json::Json;
use axum::{extract::State, http::StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Maximum size of a profile, in bytes.
const MAX_PROFILE_BYTES: usize = 64 * 1024;

/// Shows the caller's profile; null if there is none.
pub(super) async fn show(State(gateway): State<GatewayState>, caller: Caller) -> JsonReply {
    match gateway.0.shared.client.profile(&caller.user).await {
        Ok(content) => (StatusCode::OK, Json(json!({ "content": content }))),
        Err(error) => failed(&error),
    }
}

/// A profile to keep.
#[derive(Deserialize, JsonSchema)]
pub(super) struct NewProfile {
    content: String,
}

/// Stores the caller's profile; an empty one is removed.
pub(super) async fn write(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Json(NewProfile { content }): Json<NewProfile>,
) -> JsonReply {
    if content.len() > MAX_PROFILE_BYTES {
        let detail = "a profile has 64 KiB at most";
        return (StatusCode::PAYLOAD_TOO_LARGE, Json(json!({ "detail": detail })));
    }
    let content = Some(content.trim().to_owned()).filter(|content| !content.is_empty());
    match gateway.0.shared.client.set_profile(&caller.user, content.clone()).await {
        Ok(()) => (StatusCode::OK, Json(json!({ "content": content }))),
        Err(error) => failed(&error),
    }
}

fn failed(error: &std::io::Error) -> JsonReply {
    tracing::error!(%error, "failed to keep profile");
    let detail = "the profile could not be kept; the log says why";
    (StatusCode::INTERNAL_SERVER_ERROR, Json(json!({ "detail": detail })))
}
