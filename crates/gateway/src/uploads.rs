//! Files that programs put among a thread's uploads: several at once, all or none, and as Markdown beside them
//! where they are documents.

use super::{
    GatewayState, artifacts::refused, body_limit, caller::Caller, errors::refuse, json::Json, thread,
};
use axum::{
    extract::{
        Multipart, Path, State,
        multipart::{Field, MultipartRejection},
    },
    http::StatusCode,
    response::{IntoResponse, Response},
};
use pudu_client::{
    Client,
    base::{ThreadFolder, ThreadId},
    embed::{UploadError, UploadPart},
    wire::upload::UploadedFiles,
};
use pudu_config::Uploads;
use pudu_dispatch::local;
use serde_json::json;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// Maximum number of fields in a request that are no files.
const FIELDS: u32 = 100;
/// Maximum number of upload requests handled at once; more wait.
pub(super) const MAX_CONCURRENT_UPLOADS: usize = 64;
/// How long an upload request may take.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(15 * 60);

type Refused = Box<Response>;

/// Takes files.
pub(super) async fn put(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(thread): Path<String>,
    form: Result<Multipart, MultipartRejection>,
) -> Response {
    let thread = match thread::id(&thread) {
        Ok(thread) => thread,
        Err(refusal) => return *refusal,
    };
    let form = match form {
        Ok(form) => form,
        Err(MultipartRejection::InvalidBoundary(_)) => {
            let told =
                "the body is to be a form with files, with `Content-Type: multipart/form-data; boundary=…`";
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, told);
        }
        Err(error) => return refuse(error.status(), &error.body_text()),
    };
    let Ok(_place) = gateway.0.uploads.acquire().await else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "the daemon stops");
    };
    let taken = tokio::time::timeout(UPLOAD_TIMEOUT, take(&gateway, caller, &thread, form)).await;
    let taken = taken.unwrap_or_else(|_| no(StatusCode::REQUEST_TIMEOUT, "the files took too long to come"));
    match taken {
        Ok(files) => Json(files).into_response(),
        Err(refusal) => *refusal,
    }
}

async fn take(
    gateway: &GatewayState,
    caller: Caller,
    thread: &ThreadId,
    form: Multipart,
) -> Result<UploadedFiles, Refused> {
    let shared = &gateway.0.shared;
    let rules = shared.rules().uploads.clone();
    let parts = receive(form, &rules, &shared.client).await?;
    if parts.is_empty() {
        return no(StatusCode::BAD_REQUEST, "No files provided");
    }
    let folder = ThreadFolder { owner: caller.user, thread: thread.clone() };
    let taken =
        shared.client.take_uploads(&folder, local::ACCOUNT, &parts, rules.auto_convert_documents).await;
    taken.map_err(|error| match error {
        UploadError::Files(error) => Box::new(refused(&error)),
        error => broken(&error),
    })
}

/// Writes the form's files to disk as they come, within the limits.
async fn receive(mut form: Multipart, rules: &Uploads, client: &Client) -> Result<Vec<UploadPart>, Refused> {
    let (mut parts, mut fields, mut left) = (Vec::new(), 0, rules.max_total_size);
    while let Some(field) = form.next_field().await.map_err(|error| garbled(&error))? {
        let name = field.file_name().unwrap_or_default().to_owned();
        fields += 1;
        if name.is_empty() {
            // A form without a chosen file sends an empty one; other fields are ignored.
            drain(field, &mut left, rules).await?;
            if fields > FIELDS {
                let detail = format!("more than {FIELDS} fields came");
                return no(StatusCode::PAYLOAD_TOO_LARGE, &detail);
            }
            continue;
        }
        if parts.len() >= rules.max_files as usize {
            let detail = format!("Too many files: {} may come at once", rules.max_files);
            return no(StatusCode::PAYLOAD_TOO_LARGE, &detail);
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
) -> Result<(), Refused> {
    let mut file = tokio::fs::File::create_new(&part.path).await.map_err(|error| broken(&error))?;
    let mut size = 0;
    while let Some(bytes) = field.chunk().await.map_err(|error| garbled(&error))? {
        let count = bytes.len() as u64;
        size += count;
        if size > rules.max_file_size {
            let detail = format!(
                "File too large: {} has more than {}",
                part.name,
                body_limit::text(rules.max_file_size)
            );
            return no(StatusCode::PAYLOAD_TOO_LARGE, &detail);
        }
        *left = left.checked_sub(count).ok_or_else(|| too_much(rules))?;
        file.write_all(&bytes).await.map_err(|error| broken(&error))?;
    }
    file.flush().await.map_err(|error| broken(&error))
}

async fn drain(mut field: Field<'_>, left: &mut u64, rules: &Uploads) -> Result<(), Refused> {
    while let Some(bytes) = field.chunk().await.map_err(|error| garbled(&error))? {
        *left = left.checked_sub(bytes.len() as u64).ok_or_else(|| too_much(rules))?;
    }
    Ok(())
}

fn too_much(rules: &Uploads) -> Refused {
    let detail =
        format!("Total upload size too large: {} may come at once", body_limit::text(rules.max_total_size));
    Box::new(refuse(StatusCode::PAYLOAD_TOO_LARGE, &detail))
}

fn no<T>(status: StatusCode, detail: &str) -> Result<T, Refused> {
    Err(Box::new(refuse(status, detail)))
}

fn garbled(error: &axum::extract::multipart::MultipartError) -> Refused {
    Box::new(refuse(error.status(), &error.body_text()))
}

fn broken(error: &dyn std::error::Error) -> Refused {
    tracing::error!(%error, "failed to store upload");
    Box::new(refuse(StatusCode::INTERNAL_SERVER_ERROR, "the files could not be kept"))
}

/// Lists the uploads.
pub(super) async fn list(State(gateway): State<GatewayState>, Path(thread): Path<String>) -> Response {
    let thread = match thread::id(&thread) {
        Ok(thread) => thread,
        Err(refusal) => return *refusal,
    };
    match gateway.0.shared.client.list_uploads(&thread).await {
        Ok(uploads) => Json(uploads).into_response(),
        Err(error) => refused(&error),
    }
}

/// Answers the limits of uploads.
pub(super) async fn limits(State(gateway): State<GatewayState>, Path(thread): Path<String>) -> Response {
    if let Err(refusal) = thread::id(&thread) {
        return *refusal;
    }
    let Uploads { max_files, max_file_size, max_total_size, .. } = gateway.0.shared.rules().uploads.clone();
    let limits =
        json!({ "max_files": max_files, "max_file_size": max_file_size, "max_total_size": max_total_size });
    Json(limits).into_response()
}

/// Removes an upload, and the text that was made from it.
pub(super) async fn remove(
    State(gateway): State<GatewayState>,
    Path((thread, name)): Path<(String, String)>,
) -> Response {
    let thread = match thread::id(&thread) {
        Ok(thread) => thread,
        Err(refusal) => return *refusal,
    };
    match gateway.0.shared.client.delete_upload(&thread, &name).await {
        Ok(done) => Json(done).into_response(),
        Err(pudu_client::base::SandboxError::Outside { .. }) => {
            refuse(StatusCode::BAD_REQUEST, "Invalid filename: it is a path")
        }
        Err(error) => refused(&error),
    }
}
