//! The HTTP server: `/bot<TOKEN>/<method>` in all formats, and `/file/bot<TOKEN>/<path>`.

use super::{
    core::{Core, refuse},
    error::{Answer, Refusal},
    files,
    methods::Work,
    params::Params,
    types::Upload,
};
use crate::stage::Reply;
use axum::{
    Router,
    body::to_bytes,
    extract::{DefaultBodyLimit, FromRequest, Multipart, Request, State},
    http::header,
    response::{IntoResponse, Response},
};
use percent_encoding::percent_decode_str;
use std::sync::Arc;

/// Maximum size of a body, in bytes: the largest file and its framing.
const BODY: usize = files::UPLOAD + 1024 * 1024;

/// Routes of the Bot API.
pub(crate) fn router(core: Arc<Core>) -> Router {
    Router::new().fallback(route).layer(DefaultBodyLimit::max(BODY)).with_state(core)
}

async fn route(State(core): State<Arc<Core>>, request: Request) -> Response {
    // Clients differ in their escaping: the colon of the token, the slash in a file's path.
    let path = percent_decode_str(request.uri().path()).decode_utf8_lossy().into_owned();
    if let Some((token, path)) = path.strip_prefix("/file/bot").and_then(|rest| rest.split_once('/')) {
        return download(&core, token, path).await;
    }
    let Some((token, method)) = path.strip_prefix("/bot").and_then(|rest| rest.split_once('/')) else {
        return refuse(&Refusal::new(404, "Not Found")).into_response();
    };
    if !core.look(|world| world.options.token == token) {
        return refuse(&Refusal::new(401, "Unauthorized")).into_response();
    }
    match read(request).await {
        Ok(params) => core.call(method, params).await.into_response(),
        Err(refusal) => refuse(&refusal).into_response(),
    }
}

/// Recorded as `download`.
async fn download(core: &Core, token: &str, path: &str) -> Response {
    if !core.look(|world| world.options.token == token) {
        return refuse(&Refusal::new(401, "Unauthorized")).into_response();
    }
    let mut params = Params::default();
    params.add_text("path", path);
    let reply = core.perform("download", Work::Now(files::locate), &params).await;
    match core.look(|world| files::at(world, path).map(|file| file.bytes.clone())) {
        Some(bytes) if matches!(reply, Reply::Json(200, _)) => Reply::Bytes(bytes).into_response(),
        _ => reply.into_response(),
    }
}

async fn read(request: Request) -> Answer<Params> {
    let mut params = Params::default();
    params.add_form(request.uri().query().unwrap_or_default().as_bytes());
    let content = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content = content.unwrap_or_default().to_ascii_lowercase();
    if content.starts_with("multipart/form-data") {
        read_parts(request, &mut params).await?;
        return Ok(params);
    }
    let body = to_bytes(request.into_body(), BODY).await.map_err(|_| files::too_large())?;
    if content.starts_with("application/json") && !body.is_empty() {
        params.add_json(&body)?;
    } else {
        params.add_form(&body);
    }
    Ok(params)
}

async fn read_parts(request: Request, params: &mut Params) -> Answer<()> {
    let broken = |_| Refusal::bad("can't parse multipart body");
    let mut parts = Multipart::from_request(request, &()).await.map_err(|_| Refusal::bad("no boundary"))?;
    while let Some(part) = parts.next_field().await.map_err(broken)? {
        let name = part.name().unwrap_or_default().to_owned();
        let file = part.file_name().map(str::to_owned);
        let mime = part.content_type().unwrap_or("application/octet-stream").to_owned();
        let bytes = part.bytes().await.map_err(|_| files::too_large())?;
        match file {
            Some(file) => params.add_file(&name, Upload { name: file, mime, bytes, photo: false }),
            None => params.add_text(&name, &String::from_utf8_lossy(&bytes)),
        }
    }
    Ok(())
}
