//! The handlers of scheduled tasks.

use super::{
    answer::{DeletedTask, TaskAnswer, TaskRunAnswer, TriggeredTask},
    body::{NewTaskBody, TaskEditBody},
};
use crate::{ApiError, Caller, GatewayState, Json, Query, threads::owned::ReadableThread};
use axum::extract::Path;
use pudu_dispatch::ScheduleLauncher;
use pudu_schedules::{Schedules, TaskError};
use pudu_store::ScheduledTask;
use schemars::JsonSchema;
use serde::Deserialize;

/// Number of listed runs, unless the client asks for another.
const RUNS: i64 = 50;
/// Maximum number of listed runs.
const MAX_RUNS: i64 = 200;

/// A page of runs.
#[derive(Deserialize, JsonSchema)]
pub(super) struct TaskRunsQuery {
    /// Maximum number of runs, from 1 to 200; 50 if it is missing.
    limit: Option<i64>,
    /// Number of newer runs to leave out.
    offset: Option<i64>,
}

impl From<TaskError> for ApiError {
    fn from(error: TaskError) -> Self {
        let text = error.to_string();
        match error {
            TaskError::Missing => Self::not_found(text),
            TaskError::Refused(refusal) if refusal.is_conflict() => Self::conflict(text),
            TaskError::Refused(_) => Self::invalid(text),
            TaskError::TooMany(_) | TaskError::Active | TaskError::Full => Self::conflict(text),
            TaskError::Failed(_) => Self::bad_gateway(text),
            TaskError::Store(error) => error.into(),
        }
    }
}

fn schedules(gateway: &GatewayState) -> &Schedules {
    &gateway.0.shared.schedules
}

fn answer(gateway: &GatewayState, task: ScheduledTask) -> TaskAnswer {
    TaskAnswer::new(task, schedules(gateway).rules().enabled)
}

fn answers(gateway: &GatewayState, tasks: Vec<ScheduledTask>) -> Json<Vec<TaskAnswer>> {
    Json(tasks.into_iter().map(|task| answer(gateway, task)).collect())
}

/// Lists the caller's tasks.
pub(super) async fn list(gateway: GatewayState, caller: Caller) -> Result<Json<Vec<TaskAnswer>>, ApiError> {
    Ok(answers(&gateway, schedules(&gateway).list(&caller.user).await?))
}

/// Lists the caller's tasks that use a thread.
pub(super) async fn of_thread(
    gateway: GatewayState,
    caller: Caller,
    ReadableThread(thread): ReadableThread,
) -> Result<Json<Vec<TaskAnswer>>, ApiError> {
    let tasks = gateway.db().scheduled_tasks_of_thread(&caller.user, &thread.id).await?;
    Ok(answers(&gateway, tasks))
}

/// Creates a task.
pub(super) async fn create(
    gateway: GatewayState,
    caller: Caller,
    Json(body): Json<NewTaskBody>,
) -> Result<Json<TaskAnswer>, ApiError> {
    let draft = body.read(&gateway, &caller).await?;
    let task = schedules(&gateway).create(draft).await?;
    Ok(Json(answer(&gateway, task)))
}

/// Shows a task.
pub(super) async fn show(
    gateway: GatewayState,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<TaskAnswer>, ApiError> {
    let task = schedules(&gateway).find(&caller.user, &id).await?;
    Ok(Json(answer(&gateway, task)))
}

/// Changes a task.
pub(super) async fn edit(
    gateway: GatewayState,
    caller: Caller,
    Path(id): Path<String>,
    Json(body): Json<TaskEditBody>,
) -> Result<Json<TaskAnswer>, ApiError> {
    schedules(&gateway).find(&caller.user, &id).await?;
    let edit = body.read(&gateway, &caller).await?;
    let task = schedules(&gateway).edit(&caller.user, &id, edit).await?;
    Ok(Json(answer(&gateway, task)))
}

/// Pauses a task.
pub(super) async fn pause(
    gateway: GatewayState,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<TaskAnswer>, ApiError> {
    let task = schedules(&gateway).pause(&caller.user, &id).await?;
    Ok(Json(answer(&gateway, task)))
}

/// Resumes a task.
pub(super) async fn resume(
    gateway: GatewayState,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<TaskAnswer>, ApiError> {
    let task = schedules(&gateway).resume(&caller.user, &id).await?;
    Ok(Json(answer(&gateway, task)))
}

/// Starts a task now.
pub(super) async fn trigger(
    gateway: GatewayState,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<TriggeredTask>, ApiError> {
    let launcher = ScheduleLauncher::new(gateway.0.shared.clone());
    schedules(&gateway).trigger(&launcher, &caller.user, &id).await?;
    Ok(Json(TriggeredTask { id, triggered: true }))
}

/// Deletes a task.
pub(super) async fn delete(
    gateway: GatewayState,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<DeletedTask>, ApiError> {
    schedules(&gateway).delete(&caller.user, &id).await?;
    Ok(Json(DeletedTask { id, deleted: true }))
}

/// Lists the runs of a task.
pub(super) async fn runs(
    gateway: GatewayState,
    caller: Caller,
    Path(id): Path<String>,
    Query(page): Query<TaskRunsQuery>,
) -> Result<Json<Vec<TaskRunAnswer>>, ApiError> {
    let task = schedules(&gateway).find(&caller.user, &id).await?;
    let (limit, offset) = (page.limit.unwrap_or(RUNS), page.offset.unwrap_or(0));
    if !(1..=MAX_RUNS).contains(&limit) || offset < 0 {
        return Err(ApiError::invalid("limit must be a number from 1 to 200, and offset a number from 0"));
    }
    let runs = gateway.db().scheduled_runs(&task.id, limit, offset).await?;
    Ok(Json(runs.into_iter().map(TaskRunAnswer::from).collect()))
}
