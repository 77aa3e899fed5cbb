//! Files that programs put among a thread's uploads: several at once, all or none, and as Markdown beside them
//! where they are documents.

use super::{GatewayState, artifacts::refused, errors::refuse, file::in_address, thread};
use crate::gateway::json::Json;
use crate::{bus::STORE_TIMEOUT, clock, config::Uploads, local};
use axum::{
    extract::{
        Multipart, Path, State,
        multipart::{Field, MultipartRejection},
    },
    http::StatusCode,
    response::{IntoResponse, Response},
};
use pudu_client::{
    base::{MessageId, ReadOutcome, SharedFile, ThreadId},
    sandbox::Upload,
};
use serde_json::{Map, Value, json};
use std::{
    path::PathBuf,
    time::{Duration, UNIX_EPOCH},
};
use tokio::io::AsyncWriteExt;

/// So many uploads are listed.
const LISTED: usize = 10_000;
/// So many fields that are no files may come along.
const FIELDS: u32 = 100;
/// Maximum number of upload requests handled at once; more wait.
pub(super) const MAX_CONCURRENT_UPLOADS: usize = 64;
/// How long an upload request may take.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(15 * 60);

type Refused = Box<Response>;

/// Takes files.
pub(super) async fn put(
    State(gateway): State<GatewayState>,
    Path(thread): Path<String>,
    form: Result<Multipart, MultipartRejection>,
) -> Response {
    let thread = match thread::id(&thread) {
        Ok(thread) => thread,
        Err(refusal) => return *refusal,
    };
    let form = match form {
        Ok(form) => form,
        Err(error) => return refuse(error.status(), &error.body_text()),
    };
    let Ok(_place) = gateway.0.uploads.acquire().await else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "the daemon stops");
    };
    let taken = tokio::time::timeout(UPLOAD_TIMEOUT, take(&gateway, &thread, form)).await;
    let taken = taken.unwrap_or_else(|_| no(StatusCode::REQUEST_TIMEOUT, "the files took too long to come"));
    match taken {
        Ok(files) => {
            let message = format!("Successfully uploaded {} file(s)", files.len());
            let answer = json!({ "success": true, "files": files, "message": message, "skipped_files": [] });
            Json(answer).into_response()
        }
        Err(refusal) => *refusal,
    }
}

async fn take(gateway: &GatewayState, thread: &ThreadId, form: Multipart) -> Result<Vec<Value>, Refused> {
    let shared = &gateway.0.shared;
    let rules = shared.rules().uploads.clone();
    let parts = receive(form, &rules, shared.home.join("tmp")).await?;
    if parts.is_empty() {
        return no(StatusCode::BAD_REQUEST, "No files provided");
    }
    // A thread that has files has a row, by which they are found when they are old. They are new until all are there.
    let _kept = shared.client.keep_files().await;
    let db = shared.db.within(STORE_TIMEOUT);
    let folder = thread.clone().into();
    db.thread_used(&folder, local::ACCOUNT, clock::now()).await.map_err(|error| broken(&error))?;
    let mut kept: Vec<(SharedFile, String)> = Vec::new();
    for part in &parts {
        match shared.client.adopt(thread, &part.path, &part.name).await {
            Ok(file) => kept.push((file, part.name.clone())),
            Err(error) => {
                for (file, _) in &kept {
                    shared.client.remove_upload(thread, &file.name).await.ok();
                }
                return Err(Box::new(refused(&error)));
            }
        }
    }
    let mut told = Vec::new();
    for (mut file, called) in kept {
        if rules.auto_convert_documents {
            shared.client.read_document(thread, &mut file).await;
        }
        told.push(shown(thread, &file, &called));
    }
    db.thread_used(&folder, local::ACCOUNT, clock::now()).await.map_err(|error| broken(&error))?;
    Ok(told)
}

/// A file that came, outside of the thread's folder. It is gone when this is, unless it was moved.
struct UploadedPart {
    name: String,
    path: PathBuf,
}

impl Drop for UploadedPart {
    fn drop(&mut self) {
        // An error means that it was moved.
        std::fs::remove_file(&self.path).ok();
    }
}

/// Writes the form's files to disk as they come, within the limits.
async fn receive(
    mut form: Multipart,
    rules: &Uploads,
    folder: PathBuf,
) -> Result<Vec<UploadedPart>, Refused> {
    tokio::fs::create_dir_all(&folder).await.map_err(|error| broken(&error))?;
    let (mut parts, mut fields, mut left) = (Vec::new(), 0, rules.max_total_size);
    while let Some(field) = form.next_field().await.map_err(|error| garbled(&error))? {
        let name = field.file_name().unwrap_or_default().to_owned();
        fields += 1;
        if name.is_empty() {
            // A form without a chosen file sends an empty one; other fields are nobody's.
            drain(field, &mut left, fields).await?;
            continue;
        }
        if parts.len() >= rules.max_files as usize {
            let detail = format!("Too many files: {} may come at once", rules.max_files);
            return no(StatusCode::PAYLOAD_TOO_LARGE, &detail);
        }
        let part = UploadedPart { name, path: folder.join(format!("{}.part", MessageId::fresh())) };
        write(field, &part, &mut left, rules).await?;
        parts.push(part);
    }
    Ok(parts)
}

async fn write(
    mut field: Field<'_>,
    part: &UploadedPart,
    left: &mut u64,
    rules: &Uploads,
) -> Result<(), Refused> {
    let mut file = tokio::fs::File::create_new(&part.path).await.map_err(|error| broken(&error))?;
    let mut size = 0;
    while let Some(bytes) = field.chunk().await.map_err(|error| garbled(&error))? {
        let count = bytes.len() as u64;
        size += count;
        if size > rules.max_file_size {
            let detail = format!("File too large: {} has more than {} bytes", part.name, rules.max_file_size);
            return no(StatusCode::PAYLOAD_TOO_LARGE, &detail);
        }
        *left = left.checked_sub(count).ok_or_else(|| too_much(rules))?;
        file.write_all(&bytes).await.map_err(|error| broken(&error))?;
    }
    file.flush().await.map_err(|error| broken(&error))
}

async fn drain(mut field: Field<'_>, left: &mut u64, fields: u32) -> Result<(), Refused> {
    while let Some(bytes) = field.chunk().await.map_err(|error| garbled(&error))? {
        let (rest, spent) = left.overflowing_sub(bytes.len() as u64);
        if spent || fields > FIELDS {
            return no(StatusCode::PAYLOAD_TOO_LARGE, "too much came that is no file");
        }
        *left = rest;
    }
    Ok(())
}

fn too_much(rules: &Uploads) -> Refused {
    let detail = format!("Total upload size too large: {} bytes may come at once", rules.max_total_size);
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

/// A file as clients of DeerFlow's know it. Where its wire has a path of this machine, the agent's stands.
fn shown(thread: &ThreadId, file: &SharedFile, called: &str) -> Value {
    let mut info = info(thread, &file.name, &file.path, file.size);
    if file.name != called {
        info.insert("original_filename".to_owned(), called.into());
    }
    match &file.reading {
        None => {}
        Some(ReadOutcome::Text(text)) => {
            let name = text.path.rsplit('/').next().unwrap_or_default();
            info.insert("markdown_file".to_owned(), name.into());
            info.insert("markdown_path".to_owned(), text.path.as_str().into());
            info.insert("markdown_virtual_path".to_owned(), text.path.as_str().into());
            info.insert("markdown_artifact_url".to_owned(), artifact(thread, &text.path).into());
        }
        Some(ReadOutcome::Failed { reason, .. }) => {
            info.insert("markdown_error".to_owned(), reason.as_str().into());
        }
    }
    info.into()
}

fn info(thread: &ThreadId, name: &str, path: &str, size: u64) -> Map<String, Value> {
    let extension = name.rsplit_once('.').map(|(_, ending)| format!(".{ending}")).unwrap_or_default();
    let info = json!({
        "filename": name,
        "size": size,
        "path": path,
        "virtual_path": path,
        "artifact_url": artifact(thread, path),
        "extension": extension,
    });
    if let Value::Object(info) = info { info } else { Map::new() }
}

fn artifact(thread: &ThreadId, path: &str) -> String {
    format!("/api/threads/{thread}/artifacts{}", in_address(path))
}

/// Lists the uploads.
pub(super) async fn list(State(gateway): State<GatewayState>, Path(thread): Path<String>) -> Response {
    let thread = match thread::id(&thread) {
        Ok(thread) => thread,
        Err(refusal) => return *refusal,
    };
    let entry = |upload: &Upload| {
        let mut info = info(&thread, &upload.name, &upload.path, upload.size);
        let since = upload.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        info.insert("modified".to_owned(), since.as_secs_f64().into());
        Value::Object(info)
    };
    let listed = match gateway.0.shared.client.files(&thread).await {
        Ok(files) => files.uploads(LISTED).await,
        Err(error) => Err(error),
    };
    match listed {
        Ok(uploads) => {
            let files: Vec<Value> = uploads.iter().map(entry).collect();
            Json(json!({ "count": files.len(), "files": files })).into_response()
        }
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

/// Removes an upload, and the text that was made of it.
pub(super) async fn remove(
    State(gateway): State<GatewayState>,
    Path((thread, name)): Path<(String, String)>,
) -> Response {
    let thread = match thread::id(&thread) {
        Ok(thread) => thread,
        Err(refusal) => return *refusal,
    };
    match gateway.0.shared.client.remove_upload(&thread, &name).await {
        Ok(()) => Json(json!({ "success": true, "message": format!("Deleted {name}") })).into_response(),
        Err(pudu_client::base::SandboxError::Outside { .. }) => {
            refuse(StatusCode::BAD_REQUEST, "Invalid filename: it is a path")
        }
        Err(error) => refused(&error),
    }
}
