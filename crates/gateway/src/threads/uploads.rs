//! Files that programs add to a thread's uploads: several at once, all or none, with a Markdown version of documents.

use super::owned::ThreadPath;
use crate::{ApiError, Caller, Confirmation, GatewayState, Json, http::body_limit};
use axum::extract::{
    Multipart, Path,
    multipart::{Field, MultipartError, MultipartRejection},
};
use pudu_base::{SandboxError, ThreadFolder, ThreadId};
use pudu_client::{
    Client,
    embed::{UploadError, UploadPart},
};
use pudu_config::Uploads;
use pudu_dispatch::local;
use pudu_langgraph::upload::{UploadList, UploadedFiles};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// Maximum number of fields in a request. Only files may exceed it, within their own limit.
const FIELDS: u32 = 100;
/// Maximum number of upload requests handled at once; more wait.
pub(crate) const MAX_CONCURRENT_UPLOADS: usize = 64;
/// Timeout of an upload request.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Receives files.
pub(crate) async fn put(
    gateway: GatewayState,
    caller: Caller,
    ThreadPath(thread): ThreadPath,
    form: Result<Multipart, MultipartRejection>,
) -> Result<Json<UploadedFiles>, ApiError> {
    let form = form.map_err(|error| match error {
        MultipartRejection::InvalidBoundary(_) => {
            ApiError::wrong_type("send a form with files and `content-type: multipart/form-data; boundary=…`")
        }
        error => ApiError::new(error.status(), error.body_text()),
    })?;
    let Ok(_place) = gateway.0.uploads.acquire().await else {
        return Err(ApiError::unavailable("the daemon is shutting down; try again"));
    };
    let stored = tokio::time::timeout(UPLOAD_TIMEOUT, take(&gateway, caller, &thread, form)).await;
    stored.unwrap_or_else(|_| Err(ApiError::timeout("the files arrived too slowly"))).map(Json)
}

async fn take(
    gateway: &GatewayState,
    caller: Caller,
    thread: &ThreadId,
    form: Multipart,
) -> Result<UploadedFiles, ApiError> {
    let shared = &gateway.0.shared;
    let rules = shared.rules().uploads.clone();
    let parts = receive(form, &rules, gateway.client()).await?;
    if parts.is_empty() {
        return Err(ApiError::bad_request("No files provided"));
    }
    let folder = ThreadFolder { owner: caller.user, thread: thread.clone() };
    let stored =
        gateway.client().take_uploads(&folder, local::ACCOUNT, &parts, rules.auto_convert_documents).await;
    stored.map_err(|error| match error {
        UploadError::Files(error) => error.into(),
        error => broken(&error),
    })
}

/// Writes the form's files to disk as they arrive, within the limits.
async fn receive(mut form: Multipart, rules: &Uploads, client: &Client) -> Result<Vec<UploadPart>, ApiError> {
    let (mut parts, mut fields, mut left) = (Vec::new(), 0, rules.max_total_size);
    while let Some(field) = form.next_field().await? {
        let name = field.file_name().unwrap_or_default().to_owned();
        fields += 1;
        if name.is_empty() {
            // A form without a selected file sends an empty one. Other fields are ignored.
            drain(field, &mut left, rules).await?;
            if fields > FIELDS {
                let detail = format!("the form has too many fields; the limit is {FIELDS}");
                return Err(ApiError::too_large(detail));
            }
            continue;
        }
        if parts.len() >= rules.max_files as usize {
            let detail = format!("Too many files: {} may come at once", rules.max_files);
            return Err(ApiError::too_large(detail));
        }
        let part = client.new_upload(&name).await.map_err(|error| broken(&error))?;
        write(field, &part, &mut left, rules).await?;
        parts.push(part);
    }
    Ok(parts)
}

async fn write(
    mut field: Field<'_>,
    part: &UploadPart,
    left: &mut u64,
    rules: &Uploads,
) -> Result<(), ApiError> {
    let mut file = tokio::fs::File::create_new(&part.path).await.map_err(|error| broken(&error))?;
    let mut size = 0;
    while let Some(bytes) = field.chunk().await? {
        let count = bytes.len() as u64;
        size += count;
        if size > rules.max_file_size {
            let detail = format!(
                "File too large: {} has more than {}",
                part.name,
                body_limit::text(rules.max_file_size)
            );
            return Err(ApiError::too_large(detail));
        }
        *left = left.checked_sub(count).ok_or_else(|| too_much(rules))?;
        file.write_all(&bytes).await.map_err(|error| broken(&error))?;
    }
    file.flush().await.map_err(|error| broken(&error))
}

async fn drain(mut field: Field<'_>, left: &mut u64, rules: &Uploads) -> Result<(), ApiError> {
    while let Some(bytes) = field.chunk().await? {
        *left = left.checked_sub(bytes.len() as u64).ok_or_else(|| too_much(rules))?;
    }
    Ok(())
}

fn too_much(rules: &Uploads) -> ApiError {
    let limit = body_limit::text(rules.max_total_size);
    ApiError::too_large(format!("Total upload size too large: {limit} may come at once"))
}

impl From<MultipartError> for ApiError {
    fn from(error: MultipartError) -> Self {
        Self::new(error.status(), error.body_text())
    }
}

fn broken(error: &dyn std::error::Error) -> ApiError {
    tracing::error!(%error, "failed to store upload");
    ApiError::internal("the files could not be stored")
}

/// Lists the uploads.
pub(crate) async fn list(
    gateway: GatewayState,
    ThreadPath(thread): ThreadPath,
) -> Result<Json<UploadList>, ApiError> {
    Ok(Json(gateway.client().list_uploads(&thread).await?))
}

/// Limits of uploads, in bytes.
#[derive(Serialize, JsonSchema)]
pub(crate) struct UploadLimits {
    /// Maximum number of files in a request.
    max_files: u32,
    max_file_size: u64,
    max_total_size: u64,
}

/// Returns the limits of uploads.
pub(crate) async fn limits(gateway: GatewayState, _: ThreadPath) -> Json<UploadLimits> {
    let Uploads { max_files, max_file_size, max_total_size, .. } = gateway.0.shared.rules().uploads;
    Json(UploadLimits { max_files, max_file_size, max_total_size })
}

/// Deletes an upload, and the text that was extracted from it.
pub(crate) async fn remove(
    gateway: GatewayState,
    ThreadPath(thread): ThreadPath,
    Path((_, name)): Path<(String, String)>,
) -> Result<Json<Confirmation>, ApiError> {
    let removed = gateway.client().delete_upload(&thread, &name).await;
    removed.map(|done| Json(Confirmation::with_message(done.message))).map_err(|error| match error {
        SandboxError::Outside { .. } => ApiError::bad_request("Invalid filename: it is a path"),
        error => error.into(),
    })
}
