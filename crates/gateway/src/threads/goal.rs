//! The goal of a thread's runs.

use super::owned::{OwnThread, ReadableThread};
use crate::{ApiError, GatewayState, Json, Scrubbed};
use pudu_base::Update;
use pudu_client::embed::GoalError;
use pudu_harness::RunState;
use pudu_store::ClientThread;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// A goal to set.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct GoalBody {
    objective: String,
    max_continuations: Option<u32>,
}

async fn goal(gateway: &GatewayState, thread: &ClientThread) -> Result<Scrubbed<Value>, ApiError> {
    Ok(Scrubbed(gateway.client().get_goal(&thread.id).await?))
}

/// Shows the goal of a thread.
pub(crate) async fn show(
    gateway: GatewayState,
    ReadableThread(thread): ReadableThread,
) -> Result<Scrubbed<Value>, ApiError> {
    goal(&gateway, &thread).await
}

/// Sets the goal of a thread.
pub(crate) async fn set(
    gateway: GatewayState,
    OwnThread(thread): OwnThread,
    Json(GoalBody { objective, max_continuations }): Json<GoalBody>,
) -> Result<Scrubbed<Value>, ApiError> {
    Ok(Scrubbed(gateway.client().set_goal(&thread.id, &objective, max_continuations).await?))
}

impl From<GoalError> for ApiError {
    fn from(error: GoalError) -> Self {
        match error {
            GoalError::Wrong(why) => Self::invalid(why),
            GoalError::Thread(error) => error.into(),
            GoalError::Log(error) => error.into(),
        }
    }
}

/// Clears the goal of a thread.
pub(crate) async fn clear(
    gateway: GatewayState,
    OwnThread(thread): OwnThread,
) -> Result<Scrubbed<Value>, ApiError> {
    let change = |run: &mut RunState| {
        if run.state().goal.is_some() {
            run.apply(Update::Goal(None));
        }
    };
    gateway.runs().change_thread(&thread.id, change).await?;
    goal(&gateway, &thread).await
}
