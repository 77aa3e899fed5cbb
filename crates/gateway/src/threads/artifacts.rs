//! Files that the agent created or that users sent: files of a thread by path, and files inside skill archives.

use super::{owned::ThreadPath, thread};
use crate::{
    ApiError, Caller, GatewayState, Json, Query,
    http::file::{self, FileDisposition},
};
use axum::{
    extract::Path,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use pudu_base::{SandboxError, ThreadId};
use pudu_client::embed::Artifact;
use pudu_langgraph::artifact::{self, ArtifactError};
use pudu_sandbox::{OutputEdit, OutputEdited};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Maximum size of an edited file, in bytes.
const MAX_EDITED_BYTES: u64 = 2 * 1024 * 1024;
/// Maximum size of the body of an edit, in bytes. JSON needs more bytes for some characters.
pub(crate) const MAX_EDIT_BODY_BYTES: usize = 8 * 1024 * 1024;

/// How to send an artifact.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ArtifactQuery {
    /// Whether to send the file as a download.
    download: Option<bool>,
    /// Whether a page or image may run in a sandboxed frame of the page.
    preview: Option<bool>,
    /// Whether to send the text of a document as Markdown, instead of the document.
    text: Option<bool>,
}

impl ArtifactQuery {
    fn disposition(&self, headers: &HeaderMap) -> FileDisposition {
        // A browser that states the destination may show the file only in a frame.
        let framed = headers.get("sec-fetch-dest").is_none_or(|place| place == "iframe");
        match (self.download, self.preview) {
            (Some(true), _) => FileDisposition::Download,
            (_, Some(true)) if framed => FileDisposition::Framed,
            _ => FileDisposition::Inline,
        }
    }
}

/// Sends a file of a thread.
pub(crate) async fn get(
    gateway: GatewayState,
    Path((_, path)): Path<(String, String)>,
    Query(request): Query<ArtifactQuery>,
    ThreadPath(thread): ThreadPath,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if request.text == Some(true) {
        let text = gateway.client().artifact_text(&thread, &path).await?;
        return Ok(file::send_bytes(text.into_bytes(), "text.md", FileDisposition::Inline));
    }
    let show = request.disposition(&headers);
    let name = path.rsplit('/').next().unwrap_or_default();
    match gateway.client().open_artifact(&thread, &path).await? {
        Artifact::Member(bytes) => {
            let mut response = file::send_bytes(bytes, name, show);
            let cache_control = HeaderValue::from_static("private, max-age=300");
            response.headers_mut().insert(header::CACHE_CONTROL, cache_control);
            Ok(response)
        }
        Artifact::File(open, _) => file::send(&headers, open, name, show).await.map_err(|error| {
            tracing::warn!(%error, path, "failed to send artifact");
            ApiError::internal("the file could not be read")
        }),
    }
}

/// New text of a file.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ArtifactEdit {
    content: String,
    /// SHA-256 of the file that was read before editing.
    expected_sha256: String,
}

/// The overwritten file.
#[derive(Serialize, JsonSchema)]
pub(crate) struct EditedArtifact {
    path: String,
    sha256: String,
    /// Its size, in bytes.
    size: u64,
}

/// Overwrites a text file of the outputs, unless it has changed since it was read.
pub(crate) async fn put(
    gateway: GatewayState,
    caller: Caller,
    ThreadPath(thread): ThreadPath,
    Path((_, path)): Path<(String, String)>,
    Json(ArtifactEdit { content: text, expected_sha256 }): Json<ArtifactEdit>,
) -> Result<Json<EditedArtifact>, ApiError> {
    let path = artifact::path(&path)?;
    check_editable(&gateway, &caller, &thread).await?;
    let _kept = gateway.agent().keep_files().await;
    let files = gateway.agent().files(&thread).await?;
    let edit = OutputEdit { text, expected_sha256, max_bytes: MAX_EDITED_BYTES };
    match files.edit_output(&path, edit).await? {
        OutputEdited::Written { sha256, size } => Ok(Json(EditedArtifact { path, sha256, size })),
        OutputEdited::Stale => Err(ApiError::stale("the file has changed since it was read; read it again")),
        OutputEdited::NotText => Err(ApiError::wrong_type("only text in UTF-8 can be edited")),
        OutputEdited::TooLarge => Err(ApiError::too_large("a file of more than 2 MiB cannot be edited")),
    }
}

/// Refuses to change files while the agent is working on the thread, or for a caller who may not edit the thread.
async fn check_editable(gateway: &GatewayState, caller: &Caller, thread: &ThreadId) -> Result<(), ApiError> {
    let db = gateway.db();
    let owner = db.owner(thread).await?.filter(|owner| *owner == caller.user || caller.is_admin());
    if owner.is_none() {
        return Err(thread::not_found());
    }
    let has_turn = db.has_open_turn(&BTreeSet::from([thread.clone()])).await?;
    if has_turn || !gateway.runs().live_runs(thread).is_empty() {
        return Err(thread::in_flight());
    }
    Ok(())
}

impl From<ArtifactError> for ApiError {
    fn from(error: ArtifactError) -> Self {
        let status = match error {
            ArtifactError::Files(error) => return error.into(),
            ArtifactError::Traversal | ArtifactError::Hidden => StatusCode::FORBIDDEN,
            ArtifactError::Unknown => StatusCode::BAD_REQUEST,
            ArtifactError::LargeArchive => StatusCode::PAYLOAD_TOO_LARGE,
            ArtifactError::Archived(_) => StatusCode::NOT_FOUND,
            ArtifactError::NoDocument => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ArtifactError::Unreadable(_) => StatusCode::UNPROCESSABLE_ENTITY,
        };
        Self::new(status, error.to_string())
    }
}

impl From<SandboxError> for ApiError {
    fn from(error: SandboxError) -> Self {
        let status = match error {
            SandboxError::Missing { .. } => StatusCode::NOT_FOUND,
            SandboxError::Outside { .. } | SandboxError::ReadOnly { .. } => StatusCode::FORBIDDEN,
            SandboxError::Refused(_) | SandboxError::TooLarge { .. } => StatusCode::BAD_REQUEST,
            SandboxError::Io { .. } => {
                tracing::warn!(%error, "failed to open file of thread");
                return Self::internal("the file could not be read");
            }
        };
        Self::new(status, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Paths are checked before any file is opened.
        #[test]
        fn accepted_paths_are_in_the_outputs_or_the_uploads(
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
                let is_visible = folders.iter().any(|folder| path.starts_with(folder));
                prop_assert!(is_visible && !path.contains(['\0', '\\']), "{path:?}");
                prop_assert!(path.split('/').all(|part| !matches!(part, "." | "..")), "{path:?}");
                if let Some((archive, _)) = artifact::archived(&path) {
                    prop_assert!(path.starts_with(&archive) && archive.ends_with(".skill"), "{path:?}");
                }
            }
        }
    }
}
