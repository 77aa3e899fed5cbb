//! Feedback on answers.

use super::owned::{OwnRun, ReadableRun};
use crate::{ApiError, Caller, Confirmation, GatewayState, Json};
use axum::extract::Path;
use pudu_base::{MessageId, RunId};
use pudu_kit::clock;
use pudu_langgraph::event::ListedFeedback;
use pudu_store::{Feedback, RunRow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum length of a comment, in bytes.
const MAX_COMMENT_BYTES: usize = 16 * 1024;

/// A rating.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct FeedbackBody {
    rating: i64,
    comment: Option<String>,
    message_id: Option<String>,
}

async fn of_run(gateway: &GatewayState, caller: &Caller, run: &RunRow) -> Result<Vec<Feedback>, ApiError> {
    let mut all = gateway.db().feedback(&run.thread, &caller.user).await?;
    all.retain(|feedback| feedback.run == run.id.as_str());
    Ok(all)
}

/// Stores the caller's feedback on a run, in place of earlier feedback.
pub(crate) async fn put(
    gateway: GatewayState,
    caller: Caller,
    OwnRun { row: run, .. }: OwnRun,
    Json(FeedbackBody { rating, comment, message_id }): Json<FeedbackBody>,
) -> Result<Json<ListedFeedback>, ApiError> {
    if !matches!(rating, 1 | -1) {
        return Err(ApiError::bad_request("rating must be 1 or -1"));
    }
    if comment.as_ref().is_some_and(|comment| comment.len() > MAX_COMMENT_BYTES) {
        return Err(ApiError::too_large("comment has more than 16 KiB"));
    }
    let feedback = Feedback {
        id: MessageId::fresh().to_string(),
        run: run.id.to_string(),
        thread: run.thread.to_string(),
        user: caller.user.clone(),
        message: message_id,
        rating,
        comment,
        created: clock::now(),
    };
    gateway.db().put_feedback(feedback).await?;
    let ratings = of_run(&gateway, &caller, &run).await?;
    ratings.last().map(|rating| Json(rating.into())).ok_or_else(missing)
}

/// Lists the caller's feedback on a run.
pub(crate) async fn list(
    gateway: GatewayState,
    caller: Caller,
    ReadableRun { row: run, .. }: ReadableRun,
) -> Result<Json<Vec<ListedFeedback>>, ApiError> {
    Ok(Json(of_run(&gateway, &caller, &run).await?.iter().map(Into::into).collect()))
}

/// Counts of the caller's feedback on a run.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FeedbackCounts {
    run_id: RunId,
    total: usize,
    positive: usize,
    negative: usize,
}

/// Counts the caller's feedback on a run.
pub(crate) async fn stats(
    gateway: GatewayState,
    caller: Caller,
    ReadableRun { row: run, .. }: ReadableRun,
) -> Result<Json<FeedbackCounts>, ApiError> {
    let all = of_run(&gateway, &caller, &run).await?;
    let count = |rating: i64| all.iter().filter(|one| one.rating == rating).count();
    Ok(Json(FeedbackCounts { run_id: run.id, total: all.len(), positive: count(1), negative: count(-1) }))
}

/// Deletes the caller's feedback on a run.
pub(crate) async fn delete(
    gateway: GatewayState,
    caller: Caller,
    OwnRun { row: run, .. }: OwnRun,
) -> Result<Json<Confirmation>, ApiError> {
    remove(&gateway, &caller, &run, None).await
}

/// Deletes the caller's feedback that is named in the path.
pub(crate) async fn delete_one(
    gateway: GatewayState,
    caller: Caller,
    OwnRun { row: run, .. }: OwnRun,
    Path((_, _, id)): Path<(String, String, String)>,
) -> Result<Json<Confirmation>, ApiError> {
    remove(&gateway, &caller, &run, Some(&id)).await
}

async fn remove(
    gateway: &GatewayState,
    caller: &Caller,
    run: &RunRow,
    id: Option<&str>,
) -> Result<Json<Confirmation>, ApiError> {
    match gateway.db().delete_feedback(&run.id, &caller.user, id).await? {
        true => Ok(Json(Confirmation::silent())),
        false => Err(missing()),
    }
}

fn missing() -> ApiError {
    ApiError::not_found("feedback not found")
}
