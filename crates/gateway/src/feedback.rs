//! Judgements on answers.

use super::{
    GatewayState,
    caller::Caller,
    owned_runs::{own_run, readable_by_id, readable_run},
    refusal::{Refusal, answer, body, refused, unavailable},
};
use crate::json::{BodyRejection, Json};
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::Response,
};
use pudu_client::{
    base::MessageId,
    store::{Feedback, RunRow},
    wire::event,
};
use pudu_dispatch::bus::STORE_TIMEOUT;
use pudu_kit::clock;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Maximum length of a comment, in bytes.
const MAX_COMMENT_BYTES: usize = 16 * 1024;

/// A judgement.
#[derive(Deserialize, JsonSchema)]
pub(super) struct FeedbackBody {
    rating: i64,
    comment: Option<String>,
    message_id: Option<String>,
}

async fn of_run(gateway: &GatewayState, caller: &Caller, run: &RunRow) -> Result<Vec<Feedback>, Refusal> {
    let db = gateway.0.shared.db.within(STORE_TIMEOUT);
    let mut all = db.feedback(&run.thread, &caller.user).await.map_err(|error| unavailable(&error))?;
    all.retain(|feedback| feedback.run == run.id.as_str());
    Ok(all)
}

/// Keeps a judgement of the caller's on a run, in place of an earlier one.
pub(super) async fn put(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(ids): Path<(String, String)>,
    posted: Result<Json<FeedbackBody>, BodyRejection>,
) -> Response {
    let kept = async {
        let FeedbackBody { rating, comment, message_id } = body(posted)?;
        if !matches!(rating, 1 | -1) {
            return refused(StatusCode::BAD_REQUEST, "rating is 1 or -1");
        }
        if comment.as_ref().is_some_and(|comment| comment.len() > MAX_COMMENT_BYTES) {
            return refused(StatusCode::PAYLOAD_TOO_LARGE, "comment has more than 16 KiB");
        }
        let (_, run) = own_run(&gateway, &caller, &ids).await?;
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
        let db = gateway.0.shared.db.within(STORE_TIMEOUT);
        db.put_feedback(feedback).await.map_err(|error| unavailable(&error))?;
        let kept = of_run(&gateway, &caller, &run).await?;
        Ok(Json(kept.last().map(event::feedback).unwrap_or_default()))
    };
    answer(kept.await)
}

/// Lists the caller's judgements on a run.
pub(super) async fn list(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(ids): Path<(String, String)>,
) -> Response {
    let listed = async {
        let (_, run) = readable_run(&gateway, &caller, &ids).await?;
        Ok(Json(of_run(&gateway, &caller, &run).await?.iter().map(event::feedback).collect::<Vec<Value>>()))
    };
    answer(listed.await)
}

/// Lists the caller's judgements on a run that only its id names.
pub(super) async fn list_stateless(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Response {
    let listed = async {
        let (_, run) = readable_by_id(&gateway, &caller, &id).await?;
        Ok(Json(of_run(&gateway, &caller, &run).await?.iter().map(event::feedback).collect::<Vec<Value>>()))
    };
    answer(listed.await)
}

/// Counts the caller's judgements on a run.
pub(super) async fn stats(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(ids): Path<(String, String)>,
) -> Response {
    let counted = async {
        let (_, run) = readable_run(&gateway, &caller, &ids).await?;
        let all = of_run(&gateway, &caller, &run).await?;
        let of = |rating: i64| all.iter().filter(|one| one.rating == rating).count();
        Ok(Json(json!({ "run_id": run.id, "total": all.len(), "positive": of(1), "negative": of(-1) })))
    };
    answer(counted.await)
}

/// Deletes the caller's judgement on a run.
pub(super) async fn delete(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(ids): Path<(String, String)>,
) -> Response {
    answer(remove(&gateway, &caller, &ids, None).await)
}

/// Likewise, the one of an id.
pub(super) async fn delete_one(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path((thread, run, id)): Path<(String, String, String)>,
) -> Response {
    answer(remove(&gateway, &caller, &(thread, run), Some(&id)).await)
}

async fn remove(
    gateway: &GatewayState,
    caller: &Caller,
    ids: &(String, String),
    id: Option<&str>,
) -> Result<Json<Value>, Refusal> {
    let (_, run) = own_run(gateway, caller, ids).await?;
    let db = gateway.0.shared.db.within(STORE_TIMEOUT);
    match db.delete_feedback(&run.id, &caller.user, id).await.map_err(|error| unavailable(&error))? {
        true => Ok(Json(json!({ "success": true }))),
        false => refused(StatusCode::NOT_FOUND, "there is no such feedback"),
    }
}
