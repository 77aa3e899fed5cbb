//! The HTTP server: `/api/<method>`, URLs for uploads and downloads, and the connections.

use super::{
    core::{Core, refused},
    error::Refusal,
    files,
    params::Params,
    socket::{self, Link},
    world::World,
};
use crate::{calls::Outcome, stage::Reply};
use axum::{
    Router,
    body::{Bytes, to_bytes},
    extract::{DefaultBodyLimit, FromRequest, Multipart, Path, Request, State},
    http::{HeaderMap, header},
    response::{Html, IntoResponse, Response},
    routing::{any, get, post},
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Maximum size of a call's body, and of an upload here, in bytes.
const BODY: usize = 64 * 1024 * 1024;

/// Routes of the platform.
pub(crate) fn router(link: Link) -> Router {
    let core = Arc::clone(&link.core);
    let sockets = Router::new().route("/link/", get(socket::link)).with_state(link);
    Router::new()
        .route("/api/{method}", any(call))
        .route("/upload/v1/{id}", post(upload))
        .route("/files-pri/{file}/download/{name}", get(download))
        .route("/files-pri/{file}/{name}", get(private))
        .route("/response/{id}", post(respond))
        .layer(DefaultBodyLimit::max(BODY))
        .with_state(core)
        .merge(sockets)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

async fn call(State(core): State<Arc<Core>>, Path(method): Path<String>, request: Request) -> Response {
    let token = bearer(request.headers()).map(str::to_owned);
    let mut params = Params::default();
    params.add_form(request.uri().query().unwrap_or_default().as_bytes());
    let content = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content = content.unwrap_or_default().to_ascii_lowercase();
    let Ok(body) = to_bytes(request.into_body(), BODY).await else {
        return refused(&Refusal { status: 413, ..Refusal::new("request_too_large") }).0.into_response();
    };
    if content.starts_with("application/json") && !body.is_empty() {
        if let Err(refusal) = params.add_json(&body) {
            return refused(&refusal).0.into_response();
        }
    } else if content.starts_with("application/x-www-form-urlencoded") {
        params.add_form(&body);
    }
    let token = token.or_else(|| params.take_token());
    core.call(&method, token.as_deref(), params).await.into_response()
}

/// Recorded as `upload`. Accepts the raw bytes, or a form with one part.
async fn upload(State(core): State<Arc<Core>>, Path(id): Path<String>, request: Request) -> Response {
    let bytes = file_of(request).await.unwrap_or_default();
    let params = json!({"id": id, "bytes": bytes.len()}).as_object().cloned().unwrap_or_default();
    let reply = core.run("upload", params, async {
        match core.act(|world| files::receive(world, &id, bytes)) {
            Ok(value) => (Reply::Json(200, value.clone()), Outcome::Answered(value)),
            Err(refusal) => refused(&refusal),
        }
    });
    reply.await.into_response()
}

async fn file_of(request: Request) -> Option<Bytes> {
    let content = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if content.is_some_and(|content| content.starts_with("multipart/form-data")) {
        let mut parts = Multipart::from_request(request, &()).await.ok()?;
        return parts.next_field().await.ok()??.bytes().await.ok();
    }
    to_bytes(request.into_body(), BODY).await.ok()
}

async fn private(state: State<Arc<Core>>, path: Path<(String, String)>, headers: HeaderMap) -> Response {
    download(state, path, headers).await
}

/// Recorded as `download`. Without a valid token the response is a login page.
async fn download(
    State(core): State<Arc<Core>>,
    Path((file, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let token = bearer(&headers).map(str::to_owned);
    let id = file.rsplit('-').next().unwrap_or_default().to_owned();
    let mut params = Map::new();
    params.insert("file".to_owned(), id.as_str().into());
    params.insert("name".to_owned(), name.into());
    let let_in = |world: &World| {
        token.as_ref() == Some(&world.options.bot_token) && world.scopes.contains("files:read")
    };
    let reply = core.run("download", params, async {
        if !core.look(let_in) {
            return (Reply::Json(200, "login".into()), Outcome::Refused(200, "login page".to_owned()));
        }
        match core.look(|world| world.files.get(&id).map(|file| file.bytes.clone())) {
            Some(bytes) => (Reply::Bytes(bytes), Outcome::Answered(Value::Null)),
            None => refused(&Refusal { status: 404, ..Refusal::new("file_not_found") }),
        }
    });
    match reply.await {
        Reply::Json(200, _) => {
            Html("<!DOCTYPE html><html><title>Slack - sign in</title></html>").into_response()
        }
        other => other.into_response(),
    }
}

/// Later responses to a command or a click, recorded as `response_url`.
async fn respond(State(core): State<Arc<Core>>, Path(_): Path<String>, body: Bytes) -> Response {
    let params = serde_json::from_slice(&body).unwrap_or_default();
    let reply = core.run("response_url", params, async {
        (Reply::Json(200, json!({"ok": true})), Outcome::Answered(Value::Null))
    });
    reply.await.into_response()
}
