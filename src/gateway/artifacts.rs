//! Files that the agent made for people, and that they sent: files of a thread by their paths, and files
//! inside skill archives.

use super::{
    GatewayState,
    caller::Caller,
    errors::refuse,
    file::{self, FileDisposition},
    refusal::IN_FLIGHT,
    thread,
};
use crate::bus::STORE_TIMEOUT;
use crate::gateway::json::Json;
use axum::{
    extract::{Path, Query, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use pudu_client::{
    base::{SandboxError, ThreadId},
    documents::member,
    sandbox::{OutputEdit, OutputEdited},
    store::StoreError,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeSet;

/// Prefix of every artifact's path.
const ROOT: &str = "mnt/user-data/";
/// Folders below [`ROOT`] whose files are shown.
const SHOWN: [&str; 2] = ["outputs/", "uploads/"];
/// The ending of archives that are looked into.
const ARCHIVE: &str = ".skill/";
/// Maximum size of an archive that is looked into, in bytes.
const MAX_ARCHIVE_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum size of a file that is sent from an archive, in bytes.
const MAX_MEMBER_BYTES: u64 = 16 * 1024 * 1024;

/// Maximum size of a file that is edited, in bytes.
const MAX_EDITED_BYTES: u64 = 2 * 1024 * 1024;
/// Maximum size of the body of an edit, in bytes: JSON writes some characters with more of them.
pub(super) const MAX_EDIT_BODY_BYTES: usize = 8 * 1024 * 1024;

/// How an artifact is to come.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ArtifactQuery {
    #[serde(default)]
    download: String,
}

/// Sends a file of a thread.
pub(super) async fn get(
    State(gateway): State<GatewayState>,
    Path((thread, path)): Path<(String, String)>,
    Query(request): Query<ArtifactQuery>,
    headers: HeaderMap,
) -> Response {
    let thread = match thread::id(&thread) {
        Ok(thread) => thread,
        Err(refusal) => return *refusal,
    };
    let path = match agents(&path) {
        Ok(path) => path,
        Err(refusal) => return *refusal,
    };
    let show = match request.download.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => FileDisposition::Download,
        _ => FileDisposition::Inline,
    };
    let name = path.rsplit('/').next().unwrap_or_default();
    let sandbox = match gateway.0.shared.client.files(&thread).await {
        Ok(sandbox) => sandbox,
        Err(error) => return refused(&error),
    };
    if let Some((archive, inner)) = archived(&path) {
        return match sandbox.open(&archive).await {
            Ok((open, size)) => inside(open, size, inner, name, show).await,
            Err(error) => refused(&error),
        };
    }
    match sandbox.open(&path).await {
        Ok((open, _)) => file::send(&headers, open, name, show).await.unwrap_or_else(|error| {
            tracing::warn!(%error, path, "failed to send artifact");
            refuse(StatusCode::INTERNAL_SERVER_ERROR, "the file could not be read")
        }),
        Err(error) => refused(&error),
    }
}

/// New text of a file.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ArtifactEdit {
    content: String,
    /// SHA-256 of the file as the editor has read it.
    expected_sha256: String,
}

/// Writes a text file of the outputs anew, if nobody has changed it since it was read.
pub(super) async fn put(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path((thread, path)): Path<(String, String)>,
    Json(ArtifactEdit { content: text, expected_sha256 }): Json<ArtifactEdit>,
) -> Response {
    let thread = match thread::id(&thread) {
        Ok(thread) => thread,
        Err(refusal) => return *refusal,
    };
    let path = match agents(&path) {
        Ok(path) => path,
        Err(refusal) => return *refusal,
    };
    if let Some(refusal) = gateway.not_editable(&caller, &thread).await {
        return refusal;
    }
    let _kept = gateway.0.shared.client.keep_files().await;
    let files = match gateway.0.shared.client.files(&thread).await {
        Ok(files) => files,
        Err(error) => return refused(&error),
    };
    let edit = OutputEdit { text, expected_sha256, max_bytes: MAX_EDITED_BYTES };
    match files.edit_output(&path, edit).await {
        Ok(OutputEdited::Written { sha256, size }) => {
            Json(json!({ "path": path, "sha256": sha256, "size": size })).into_response()
        }
        Ok(OutputEdited::Stale) => {
            refuse(StatusCode::PRECONDITION_FAILED, "the file was changed since it was read; read it again")
        }
        Ok(OutputEdited::NotText) => {
            refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "only text in UTF-8 can be edited")
        }
        Ok(OutputEdited::TooLarge) => {
            refuse(StatusCode::PAYLOAD_TOO_LARGE, "a file of more than 2 MiB cannot be edited")
        }
        Err(error) => refused(&error),
    }
}

impl GatewayState {
    /// Refuses to have a thread's files changed by somebody whose thread it is not, and while the agent works on them.
    async fn not_editable(&self, caller: &Caller, thread: &ThreadId) -> Option<Response> {
        let db = self.0.shared.db.within(STORE_TIMEOUT);
        let looked = async {
            let owner = db.owner(thread).await?;
            Ok::<_, StoreError>((owner, db.has_open_turn(&BTreeSet::from([thread.clone()])).await?))
        };
        match looked.await {
            Ok((Some(owner), busy)) if owner == caller.user || caller.is_admin() => {
                let busy = busy || !self.0.shared.client.live_runs(thread).is_empty();
                busy.then(|| refuse(StatusCode::CONFLICT, IN_FLIGHT))
            }
            Ok(_) => Some(refuse(StatusCode::NOT_FOUND, "there is no such thread")),
            Err(error) => {
                tracing::error!(%error, "failed to look up thread");
                let detail = "the store does not answer just now; try again";
                Some(refuse(StatusCode::SERVICE_UNAVAILABLE, detail))
            }
        }
    }
}

/// Turns an address's path into the agent's, if it is one of those that are shown.
fn agents(path: &str) -> Result<String, Box<Response>> {
    let refused = |status, detail| Err(Box::new(refuse(status, detail)));
    let path = path.trim_start_matches('/');
    if path.contains(['\0', '\\']) || path.split('/').any(|part| matches!(part, ".." | ".")) {
        return refused(StatusCode::FORBIDDEN, "Access denied: path traversal detected");
    }
    let Some(inner) = path.strip_prefix(ROOT) else {
        return refused(StatusCode::BAD_REQUEST, "the path begins with mnt/user-data/");
    };
    if !SHOWN.iter().any(|folder| inner.starts_with(folder)) {
        return refused(StatusCode::FORBIDDEN, "Access denied: only outputs and uploads are shown");
    }
    Ok(format!("/{path}"))
}

/// An archive's path, and the path of a file inside it.
fn archived(path: &str) -> Option<(String, &str)> {
    let (archive, inner) = path.split_once(ARCHIVE)?;
    Some((format!("{archive}{}", ARCHIVE.trim_end_matches('/')), inner))
}

async fn inside(open: std::fs::File, size: u64, inner: &str, name: &str, show: FileDisposition) -> Response {
    if size > MAX_ARCHIVE_BYTES {
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, "the archive is too large to be looked into");
    }
    let wanted = inner.to_owned();
    let read = tokio::task::spawn_blocking(move || member(open, &wanted, MAX_MEMBER_BYTES)).await;
    match read {
        Ok(Ok(bytes)) => {
            let mut response = file::send_bytes(bytes, name, show);
            let kept = HeaderValue::from_static("private, max-age=300");
            response.headers_mut().insert(header::CACHE_CONTROL, kept);
            response
        }
        Ok(Err(error)) => {
            let detail = format!("the file cannot be had from the archive: {error}");
            refuse(StatusCode::NOT_FOUND, &detail)
        }
        Err(_) => refuse(StatusCode::INTERNAL_SERVER_ERROR, "the archive could not be read"),
    }
}

/// Maps a sandbox's refusal to an HTTP response.
pub(super) fn refused(error: &SandboxError) -> Response {
    let status = match error {
        SandboxError::Missing { .. } => StatusCode::NOT_FOUND,
        SandboxError::Outside { .. } | SandboxError::ReadOnly { .. } => StatusCode::FORBIDDEN,
        SandboxError::Refused(_) | SandboxError::TooLarge { .. } => StatusCode::BAD_REQUEST,
        SandboxError::Io { .. } => {
            tracing::warn!(%error, "failed to open file of thread");
            return refuse(StatusCode::INTERNAL_SERVER_ERROR, "the file could not be had");
        }
    };
    refuse(status, &error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Addresses are taken apart before any file is looked for.
        #[test]
        fn whatever_the_address_a_path_is_of_the_outputs_or_the_uploads(
            begin in prop_oneof![Just(""), Just("mnt/user-data/"), Just("mnt/user-data/outputs/"), Just("/")],
            pieces in proptest::collection::vec(
                prop_oneof![
                    4 => proptest::sample::select(vec![
                        "..", ".", "/", "", "mnt", "user-data", "outputs", "uploads", "workspace", "%2e%2e", "\0",
                        "\\", "x.skill", "ü",
                    ]).prop_map(str::to_owned),
                    1 => any::<String>(),
                ],
                0..8,
            ),
        ) {
            if let Ok(path) = agents(&format!("{begin}{}", pieces.join("/"))) {
                let shown = SHOWN.iter().any(|folder| path.starts_with(&format!("/{ROOT}{folder}")));
                prop_assert!(shown && !path.contains(['\0', '\\']), "{path:?}");
                prop_assert!(path.split('/').all(|part| !matches!(part, "." | "..")), "{path:?}");
                if let Some((archive, _)) = archived(&path) {
                    prop_assert!(path.starts_with(&archive) && archive.ends_with(".skill"), "{path:?}");
                }
            }
        }
    }
}
