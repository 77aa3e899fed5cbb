//! The HTTP server: parses a call, finds its route, records it, and upgrades the long connection.

use super::{
    Core,
    ask::{Ask, Part},
    files,
    refusal::{Answer, Refusal, answer},
    routes, socket,
};
use crate::stage::Reply;
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{DefaultBodyLimit, FromRequest, Multipart, Request},
    http::header,
    response::{IntoResponse, Response},
};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Maximum size of a body, in bytes: more than the largest file, to test one that is too large.
const BODY: usize = files::FILE + 4 * 1024 * 1024;

/// Routes of the platform.
pub(crate) fn router(core: Arc<Core>, end: CancellationToken) -> Router {
    let serve = move |request: Request| serve(Arc::clone(&core), end.clone(), request);
    Router::new().fallback(serve).layer(DefaultBodyLimit::max(BODY))
}

async fn serve(core: Arc<Core>, end: CancellationToken, request: Request) -> Response {
    let path = percent_decode_str(request.uri().path()).decode_utf8_lossy().into_owned();
    let query = request.uri().query().unwrap_or_default().as_bytes();
    let query = url::form_urlencoded::parse(query).into_owned();
    if path == "/ws/v2" {
        return socket::connect(core, end, query.collect(), request).await;
    }
    let mut ask = Ask { query: query.collect(), ..Ask::default() };
    let bearer = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    ask.token = bearer.and_then(|value| value.strip_prefix("Bearer ")).map(str::to_owned);
    let verb = request.method().as_str().to_owned();
    match read(request, &mut ask).await {
        Ok(()) => call(&core, &verb, &path, ask).await.into_response(),
        Err(refusal) => refusal.answer().0.into_response(),
    }
}

/// Executes a call, or fails it as planned. Unknown calls are recorded too.
pub(crate) async fn call(core: &Core, verb: &str, path: &str, mut ask: Ask) -> Reply {
    let Some((route, ids)) = routes::find(verb, path) else {
        let record = Map::from_iter([("call".to_owned(), json!(format!("{verb} {path}")))]);
        let unknown = Refusal { status: 404, ..Refusal::new(404, "404 page not found") };
        return core.run("unknown", record, async { answer(Err(unknown)) }).await;
    };
    ask.path = ids;
    let record = ask.record();
    core.run(route.name, record, async { answer(core.act(|world| routes::perform(world, &route, &ask))) })
        .await
}

async fn read(request: Request<Body>, ask: &mut Ask) -> Answer<()> {
    let content = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if content.is_some_and(|content| content.starts_with("multipart/form-data")) {
        return read_form(request, ask).await;
    }
    let body = to_bytes(request.into_body(), BODY).await;
    let body = body.map_err(|_| Refusal { status: 413, ..Refusal::new(413, "request body too large") })?;
    if body.is_empty() {
        return Ok(());
    }
    let json: Value =
        serde_json::from_slice(&body).map_err(|_| Refusal::new(9499, "Bad Request: invalid json"))?;
    // Clients send `null` for omitted fields.
    let Value::Object(mut fields) = json else { return Ok(()) };
    fields.retain(|_, value| !value.is_null());
    ask.body = fields;
    Ok(())
}

async fn read_form(request: Request<Body>, ask: &mut Ask) -> Answer<()> {
    let broken = |_| Refusal::new(234_001, "Invalid request param: broken form");
    let form = Multipart::from_request(request, &()).await;
    let mut form = form.map_err(|_| Refusal::new(234_001, "Invalid request param: no boundary"))?;
    while let Some(field) = form.next_field().await.map_err(broken)? {
        let name = field.name().unwrap_or_default().to_owned();
        // The platform's own client names a part `file` or `image` without a file name.
        let unnamed = matches!(name.as_str(), "file" | "image").then(|| name.clone());
        let file = field.file_name().map(str::to_owned).or(unnamed);
        let bytes = field.bytes().await.map_err(broken)?;
        match file {
            Some(file) => {
                ask.files.insert(name, Part { name: file, bytes });
            }
            None => {
                ask.body.insert(name, String::from_utf8_lossy(&bytes).into_owned().into());
            }
        }
    }
    Ok(())
}
