//! Files on their way out, always as a download: what an agent made is never shown as a page of ours.

use super::Gateway;
use crate::clock;
use axum::{
    body::Body,
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use tokio_util::io::ReaderStream;

/// Sends the file that a signed link opens.
pub(super) async fn linked(State(gateway): State<Gateway>, Path(token): Path<String>) -> Response {
    let shared = &gateway.0.shared;
    let gone =
        || (StatusCode::NOT_FOUND, "this link does not open a file, or not any more\n").into_response();
    let Some(opened) = shared.links.read(&token, clock::now()) else { return gone() };
    let Ok(path) = shared.client.sandbox(&opened.thread).locate(&opened.path).await else { return gone() };
    let name = opened.path.rsplit('/').next().unwrap_or_default();
    download(&path, name).await.unwrap_or_else(gone)
}

/// Sends a file as a download; `None` if it is not there.
pub(super) async fn download(path: &std::path::Path, name: &str) -> Option<Response> {
    let open = tokio::fs::File::open(path).await.ok()?;
    let size = open.metadata().await.ok()?.len();
    let name: String = name.bytes().map(percent).collect();
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, size.to_string()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename*=UTF-8''{name}")),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::CONTENT_SECURITY_POLICY, "sandbox".to_owned()),
        (header::CACHE_CONTROL, "private, no-store".to_owned()),
    ];
    Some((headers, Body::from_stream(ReaderStream::new(open))).into_response())
}

fn percent(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}
