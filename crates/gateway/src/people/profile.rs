//! Profiles: a page that each person writes of themselves (DeerFlow's `USER.md`, which is one for all there).

use crate::{ApiError, Caller, GatewayState, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum size of a profile, in bytes.
const MAX_PROFILE_BYTES: usize = 64 * 1024;

/// A profile; null if there is none.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ShownProfile {
    content: Option<String>,
}

/// Shows the caller's profile.
pub(crate) async fn show(gateway: GatewayState, caller: Caller) -> Result<Json<ShownProfile>, ApiError> {
    let content = gateway.client().profile(&caller.user).await.map_err(|error| failed(&error))?;
    Ok(Json(ShownProfile { content }))
}

/// A profile to keep.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewProfile {
    content: String,
}

/// Stores the caller's profile; an empty one is removed.
pub(crate) async fn write(
    gateway: GatewayState,
    caller: Caller,
    Json(NewProfile { content }): Json<NewProfile>,
) -> Result<Json<ShownProfile>, ApiError> {
    if content.len() > MAX_PROFILE_BYTES {
        return Err(ApiError::too_large("a profile has 64 KiB at most"));
    }
    let content = Some(content.trim().to_owned()).filter(|content| !content.is_empty());
    let kept = gateway.client().set_profile(&caller.user, content.clone()).await;
    kept.map_err(|error| failed(&error))?;
    Ok(Json(ShownProfile { content }))
}

fn failed(error: &std::io::Error) -> ApiError {
    tracing::error!(%error, "failed to keep profile");
    ApiError::internal("the profile could not be kept; the log says why")
}
