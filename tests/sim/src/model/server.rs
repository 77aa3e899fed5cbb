//! The HTTP server: the five APIs and the lists of models.

use super::{
    Answer, Ask, At, End, Refusal, Reply, RetryAfter, Wire, asked, errors,
    script::{Shared, Stops, Turn},
    stream::{self, Flow},
    wire::{self, Said, Writer},
};
use crate::{gate::Then, http};
use axum::{
    Json, Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use std::{
    future::pending,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::time::sleep;

/// Maximum size of a request, in bytes.
const BODY: usize = 64 * 1024 * 1024;

/// Routes of the APIs.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let on = |wire: Wire| post(move |state, request| serve(wire, state, request));
    Router::new()
        .route("/v1/chat/completions", on(Wire::Chat))
        .route("/v1/responses", on(Wire::Responses))
        .route("/v1/messages", on(Wire::Messages))
        .route("/v1beta/models/{call}", on(Wire::Gemini))
        .route("/v1/models/{call}", on(Wire::Gemini))
        .route("/api/chat", on(Wire::Ollama))
        .route("/v1/models", get(models))
        .route("/v1beta/models", get(|| async { Json(gemini_models()) }))
        .route("/", get(|| async { "Ollama is running" }))
        .route("/api/version", get(|| async { Json(json!({"version": "0.40.12"})) }))
        .route("/api/tags", get(|| async { Json(json!({"models": NAMES.map(ollama_model)})) }))
        .route("/api/show", post(show))
        .with_state(shared)
}

/// Listed models; any other is accepted too.
const NAMES: [&str; 2] = ["sim-1", "sim-2"];

/// Three providers share the path of their list; the headers show whose client it is.
async fn models(headers: HeaderMap) -> Json<Value> {
    if headers.contains_key("x-goog-api-key") {
        return Json(gemini_models());
    }
    if !headers.contains_key("anthropic-version") {
        return Json(wire::models());
    }
    let model =
        |id| json!({"type": "model", "id": id, "display_name": id, "created_at": "2026-01-01T00:00:00Z"});
    let list =
        json!({"data": NAMES.map(model), "has_more": false, "first_id": NAMES[0], "last_id": NAMES[1]});
    Json(list)
}

fn gemini_models() -> Value {
    let model = |id| {
        json!({
            "name": format!("models/{id}"), "version": "1", "displayName": id, "inputTokenLimit": 1_048_576,
            "outputTokenLimit": 65_536, "supportedGenerationMethods": ["generateContent", "countTokens"],
        })
    };
    json!({"models": NAMES.map(model)})
}

fn ollama_model(name: &str) -> Value {
    json!({
        "name": name, "model": name, "modified_at": "2026-11-01T00:00:00Z", "size": 1_000_000_000,
        "digest": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "details": details(),
    })
}

fn details() -> Value {
    json!({
        "parent_model": "", "format": "gguf", "family": "sim", "families": ["sim"], "parameter_size": "1B",
        "quantization_level": "Q4_K_M",
    })
}

async fn show(Json(asked): Json<Value>) -> Response {
    let name = asked["model"].as_str().unwrap_or_default();
    if !NAMES.contains(&name) {
        let told = json!({"error": format!("model '{name}' not found")});
        return (StatusCode::NOT_FOUND, Json(told)).into_response();
    }
    let told = json!({
        "modelfile": "", "parameters": "", "template": "", "details": details(),
        "model_info": {"general.architecture": "sim", "sim.context_length": 32_768},
        "capabilities": ["completion", "tools", "thinking", "vision"], "modified_at": "2026-11-01T00:00:00Z",
    });
    Json(told).into_response()
}

async fn serve(wire: Wire, State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, BODY).await.unwrap_or_default();
    let Ok(body) = serde_json::from_slice(&body) else {
        return refuse(wire, &Reply::status(400).message("the body is no JSON"));
    };
    let ask = Ask::new(wire, &head.uri, plain(&head.headers), body);
    if let Err(refusal) = asked::check(&ask) {
        shared.act(|script| script.refused.push(format!("{wire:?}: {}", refusal.message)));
        return refuse(wire, &refusal);
    }
    let (mut turn, reply, mut stops) = shared.begin(ask);
    if stream::pass(&mut stops, At::Start, &turn.exchange).await == Then::Cut {
        turn.ends(End::Broken);
        return http::cut();
    }
    respond(turn, reply, stops).await
}

/// Returns all headers as text; repeated headers are joined.
fn plain(headers: &HeaderMap) -> std::collections::BTreeMap<String, String> {
    let mut plain = std::collections::BTreeMap::<String, String>::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        let kept = plain.entry(name.as_str().to_owned()).or_default();
        *kept = if kept.is_empty() { value.into_owned() } else { format!("{kept}, {value}") };
    }
    plain
}

async fn respond(mut turn: Turn, reply: Reply, stops: Stops) -> Response {
    let wire = turn.exchange.ask.wire;
    match reply {
        Reply::Answer(answer) => {
            sleep(answer.first_delay).await;
            if turn.exchange.ask.wants_stream() {
                return streamed(wire, turn, stops, answer);
            }
            whole(wire, turn, stops, answer).await
        }
        Reply::Refusal(refusal) => {
            turn.ends(End::Whole);
            refuse(wire, &refusal.of(wire))
        }
        Reply::Silence => pending().await,
        Reply::Cut => {
            turn.ends(End::Broken);
            http::cut()
        }
    }
}

fn streamed(wire: Wire, turn: Turn, stops: Stops, answer: Answer) -> Response {
    let (trouble, delay) = (answer.trouble.clone(), answer.chunk_delay);
    let writer = writer(&turn, answer);
    let flow = Flow::new(turn, stops, writer, trouble, delay);
    let head = [(header::CONTENT_TYPE, wire.stream_type()), (header::CACHE_CONTROL, "no-cache")];
    (head, Body::from_stream(flow.into_stream())).into_response()
}

async fn whole(wire: Wire, mut turn: Turn, mut stops: Stops, answer: Answer) -> Response {
    let chunks = u32::try_from(answer.chunks.len()).unwrap_or(u32::MAX);
    sleep(answer.chunk_delay * chunks).await;
    if stream::pass(&mut stops, At::End, &turn.exchange).await == Then::Cut {
        turn.ends(End::Broken);
        return http::cut();
    }
    turn.first();
    turn.ends(End::Whole);
    let body = writer(&turn, answer).whole();
    // Ollama has no error for an unreadable call.
    let status = if wire == Wire::Ollama && body["error"].is_string() {
        StatusCode::INTERNAL_SERVER_ERROR
    } else {
        StatusCode::OK
    };
    (status, Json(body)).into_response()
}

fn writer(turn: &Turn, answer: Answer) -> Box<dyn Writer> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let created = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    let Turn { exchange, .. } = turn;
    exchange.ask.wire.writer(Said::new(exchange.n, created, Arc::clone(&exchange.ask), answer))
}

fn refuse(wire: Wire, refusal: &Refusal) -> Response {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = errors::body(wire, refusal);
    let id = body["request_id"].as_str().and_then(|id| id.parse().ok());
    let mut response = (status, Json(body)).into_response();
    if let Some(id) = id {
        response.headers_mut().insert("request-id", id);
    }
    // Google sends it in the body.
    let wait = match refusal.retry_after.filter(|_| wire != Wire::Gemini) {
        None => return response,
        Some(RetryAfter::Seconds(wait)) => ("retry-after", wait),
        Some(RetryAfter::Millis(wait)) => ("retry-after-ms", wait),
    };
    response.headers_mut().insert(wait.0, wait.1.into());
    response
}
