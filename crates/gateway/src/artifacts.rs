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
use crate::{json::Json, query::Query};
use axum::{
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use pudu_client::{
    base::{SandboxError, ThreadId},
    embed::Artifact,
    sandbox::{OutputEdit, OutputEdited},
    store::StoreError,
    wire::artifact::{self, ArtifactError},
};
use pudu_dispatch::bus::STORE_TIMEOUT;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeSet;

/// Maximum size of a file that is edited, in bytes.
const MAX_EDITED_BYTES: u64 = 2 * 1024 * 1024;
/// Maximum size of the body of an edit, in bytes. JSON writes some characters with more bytes.
pub(super) const MAX_EDIT_BODY_BYTES: usize = 8 * 1024 * 1024;

/// How an artifact is to come.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ArtifactQuery {
    /// Whether the file comes as a download.
    download: Option<bool>,
    /// Whether a page or picture may run in a sandboxed frame of the page.
    preview: Option<bool>,
    /// Whether the text of a document comes instead of the document, as Markdown.
    text: Option<bool>,
}

impl ArtifactQuery {
    fn disposition(&self, headers: &HeaderMap) -> FileDisposition {
        // A browser that names where the file goes may show it in a frame only.
        let framed = headers.get("sec-fetch-dest").is_none_or(|place| place == "iframe");
        match (self.download, self.preview) {
            (Some(true), _) => FileDisposition::Download,
            (_, Some(true)) if framed => FileDisposition::Framed,
            _ => FileDisposition::Inline,
        }
    }
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
    if request.text == Some(true) {
        return match gateway.0.shared.client.artifact_text(&thread, &path).await {
            Ok(text) => file::send_bytes(text.into_bytes(), "text.md", FileDisposition::Inline),
            Err(error) => unshown(&error),
        };
    }
    let show = request.disposition(&headers);
    let name = path.rsplit('/').next().unwrap_or_default();
    match gateway.0.shared.client.open_artifact(&thread, &path).await {
        Ok(Artifact::Member(bytes)) => {
            let mut response = file::send_bytes(bytes, name, show);
            let kept = HeaderValue::from_static("private, max-age=300");
            response.headers_mut().insert(header::CACHE_CONTROL, kept);
            response
        }
        Ok(Artifact::File(open, _)) => file::send(&headers, open, name, show).await.unwrap_or_else(|error| {
            tracing::warn!(%error, path, "failed to send artifact");
            refuse(StatusCode::INTERNAL_SERVER_ERROR, "the file could not be read")
        }),
        Err(error) => unshown(&error),
    }
}

/// New text of a file.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ArtifactEdit {
    content: String,
    /// SHA-256 of the file as the editor has read it.
    expected_sha256: String,
}

/// Overwrites a text file of the outputs, unless it has changed since it was read.
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
    let path = match artifact::path(&path) {
        Ok(path) => path,
        Err(error) => return unshown(&error),
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
    /// Refuses to change a thread's files while the agent works on them, and for a caller who may not edit the thread.
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

/// Maps the reason why an artifact is not given to an HTTP response.
fn unshown(error: &ArtifactError) -> Response {
    let status = match error {
        ArtifactError::Files(error) => return refused(error),
        ArtifactError::Traversal | ArtifactError::Hidden => StatusCode::FORBIDDEN,
        ArtifactError::Unknown => StatusCode::BAD_REQUEST,
        ArtifactError::LargeArchive => StatusCode::PAYLOAD_TOO_LARGE,
        ArtifactError::Archived(_) => StatusCode::NOT_FOUND,
        ArtifactError::NoDocument => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ArtifactError::Unreadable(_) => StatusCode::UNPROCESSABLE_ENTITY,
    };
    refuse(status, &error.to_string())
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
            if let Ok(path) = artifact::path(&format!("{begin}{}", pieces.join("/"))) {
                let folders = ["/mnt/user-data/outputs/", "/mnt/user-data/uploads/"];
                let shown = folders.iter().any(|folder| path.starts_with(folder));
                prop_assert!(shown && !path.contains(['\0', '\\']), "{path:?}");
                prop_assert!(path.split('/').all(|part| !matches!(part, "." | "..")), "{path:?}");
                if let Some((archive, _)) = artifact::archived(&path) {
                    prop_assert!(path.starts_with(&archive) && archive.ends_with(".skill"), "{path:?}");
                }
            }
        }
    }
}
