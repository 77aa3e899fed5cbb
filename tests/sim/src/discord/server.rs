//! The HTTP server: `/api/v10/…`, file URLs, and the gateway.

use super::{
    ask::Ask,
    core::{Core, refused},
    gateway::{self, Link},
    world::World,
};
use crate::{calls::Outcome, stage::Reply};
use axum::{
    Router,
    extract::{DefaultBodyLimit, Path, Query, Request, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{any, get},
};
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Arc};

/// Routes of the platform.
pub(crate) fn router(link: Link) -> Router {
    let core = Arc::clone(&link.core);
    let gateway = Router::new()
        .route("/gateway/", get(gateway::connect))
        .route("/gateway", get(gateway::connect))
        .route("/resume/", get(gateway::connect))
        .route("/resume", get(gateway::connect))
        .with_state(link);
    Router::new()
        .route("/api/v10/{*path}", any(call))
        .route("/attachments/{channel}/{id}/{name}", get(download))
        .layer(DefaultBodyLimit::disable())
        .with_state(core)
        .merge(gateway)
}

async fn call(State(core): State<Arc<Core>>, request: Request) -> Response {
    let path = request.uri().path().trim_start_matches("/api/v10/").to_owned();
    let reply = match Ask::read(&path, request).await {
        Ok(ask) => core.call(ask).await,
        Err(refusal) => core.run("unreadable", serde_json::Map::new(), async { refused(&refusal) }).await,
    };
    match reply {
        Reply::Headed(204, headers, _) => {
            let mut response = Reply::Headed(204, headers, Value::Null).into_response();
            *response.body_mut() = axum::body::Body::empty();
            response.headers_mut().remove(header::CONTENT_TYPE);
            response.headers_mut().remove(header::CONTENT_LENGTH);
            response
        }
        other => other.into_response(),
    }
}

/// Recorded as `download`. Files are open to anyone with a valid URL; a client that sends the bot's token has leaked
/// it.
async fn download(
    State(core): State<Arc<Core>>,
    Path((channel, id, name)): Path<(String, String, String)>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let params = json!({"channel": channel, "id": id, "name": name});
    let params = params.as_object().cloned().unwrap_or_default();
    let fresh = |world: &World| query.get("ex") == Some(&format!("{:08x}", world.link_age));
    let reply = core.run("download", params, async {
        if headers.contains_key(header::AUTHORIZATION) {
            core.act(|world| world.leaked = true);
        }
        let found = core.look(|world| world.uploads.get(&id).filter(|_| fresh(world)).cloned());
        match found {
            Some(file) => (Reply::Bytes(file.bytes), Outcome::Answered(Value::Null)),
            None => (Reply::Json(404, Value::Null), Outcome::Refused(404, "no longer available".to_owned())),
        }
    });
    match reply.await {
        Reply::Json(404, _) => {
            (StatusCode::NOT_FOUND, "This content is no longer available.").into_response()
        }
        other => other.into_response(),
    }
}
