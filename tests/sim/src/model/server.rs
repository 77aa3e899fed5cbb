//! The HTTP side: chat completions and the list of models.

use super::{
    Answer, Ask, At, End, Refusal, Reply, RetryAfter,
    script::{Shared, Stops, Turn},
    stream::{self, Flow},
    wire::{self, Writer},
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
use std::{
    future::pending,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::time::{Instant, sleep};

/// The largest request that is read.
const BODY: usize = 64 * 1024 * 1024;

/// The routes of the API.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(complete))
        .route("/v1/models", get(|| async { Json(wire::models()) }))
        .with_state(shared)
}

async fn complete(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let headers = plain(request.headers());
    let body = to_bytes(request.into_body(), BODY).await.unwrap_or_default();
    let Ok(body) = serde_json::from_slice(&body) else {
        return refuse(&Reply::status(400).message("the body is no JSON"));
    };
    let ask = Ask::new(Instant::now(), headers, body);
    if ask.messages().is_empty() {
        return refuse(&Reply::status(400).message("'messages' must be a non-empty array"));
    }
    let (mut turn, reply, mut stops) = shared.begin(ask);
    if stream::pass(&mut stops, At::Start, &turn.exchange).await == Then::Cut {
        turn.ends(End::Broken);
        return http::cut();
    }
    respond(turn, reply, stops).await
}

/// All headers as text; a name that comes twice has both values.
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
    match reply {
        Reply::Answer(answer) => {
            sleep(answer.first_delay).await;
            if turn.exchange.ask.wants_stream() {
                return streamed(turn, stops, &answer);
            }
            whole(turn, stops, &answer).await
        }
        Reply::Refusal(refusal) => {
            turn.ends(End::Whole);
            refuse(&refusal)
        }
        Reply::Silence => pending().await,
        Reply::Cut => {
            turn.ends(End::Broken);
            http::cut()
        }
    }
}

fn streamed(turn: Turn, stops: Stops, answer: &Answer) -> Response {
    let writer = writer(&turn);
    let flow = Flow::new(turn, stops, answer, writer);
    let head =
        [(header::CONTENT_TYPE, "text/event-stream; charset=utf-8"), (header::CACHE_CONTROL, "no-cache")];
    (head, Body::from_stream(flow.into_stream())).into_response()
}

async fn whole(mut turn: Turn, mut stops: Stops, answer: &Answer) -> Response {
    let chunks = u32::try_from(answer.chunks.len()).unwrap_or(u32::MAX);
    sleep(answer.chunk_delay * chunks).await;
    if stream::pass(&mut stops, At::End, &turn.exchange).await == Then::Cut {
        turn.ends(End::Broken);
        return http::cut();
    }
    turn.first();
    turn.ends(End::Whole);
    Json(writer(&turn).whole(answer, wire::usage(&turn.exchange.ask, answer))).into_response()
}

fn writer(turn: &Turn) -> Writer {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let created = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    Writer::new(turn.exchange.n, created, &turn.exchange.ask)
}

fn refuse(refusal: &Refusal) -> Response {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = Json(wire::error(refusal.status, &refusal.message));
    match refusal.retry_after {
        None => (status, body).into_response(),
        Some(RetryAfter::Seconds(wait)) => {
            (status, [("retry-after", wait.to_string())], body).into_response()
        }
        Some(RetryAfter::Millis(wait)) => {
            (status, [("retry-after-ms", wait.to_string())], body).into_response()
        }
    }
}
