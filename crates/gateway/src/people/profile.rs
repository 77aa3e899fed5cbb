//! Profiles: texts that users write about themselves. In DeerFlow, one `USER.md` is shared by all users.

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
    let content = gateway.agent().profile(&caller.user).await.map_err(|error| failed(&error))?;
    Ok(Json(ShownProfile { content }))
}

/// A profile to store.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewProfile {
    content: String,
}

/// Stores the caller's profile. An empty one deletes it.
pub(crate) async fn write(
    gateway: GatewayState,
    caller: Caller,
    Json(NewProfile { content }): Json<NewProfile>,
) -> Result<Json<ShownProfile>, ApiError> {
    if content.len() > MAX_PROFILE_BYTES {
        return Err(ApiError::too_large("the profile is too large; the limit is 64 KiB"));
    }
    let content = Some(content.trim().to_owned()).filter(|content| !content.is_empty());
    let saved = gateway.agent().set_profile(&caller.user, content.clone()).await;
    saved.map_err(|error| failed(&error))?;
    Ok(Json(ShownProfile { content }))
}

fn failed(error: &std::io::Error) -> ApiError {
    tracing::error!(%error, "failed to store profile");
    ApiError::internal("the profile could not be stored; see the log for the reason")
}
