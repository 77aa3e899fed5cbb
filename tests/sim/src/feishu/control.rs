//! Feishu-specific controls for scripts, under `/sim/feishu/`.

use super::{Chunks, Feishu, Order, Said};
use axum::{
    Json, Router,
    extract::State,
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// Routes.
pub(crate) fn router(feishu: Feishu) -> Router {
    Router::new()
        .route("/sim/feishu/say", post(say))
        .route("/sim/feishu/event", post(event))
        .route("/sim/feishu/topics", post(topics))
        .route("/sim/feishu/scope", post(scope))
        .route("/sim/feishu/revoke", post(revoke))
        .route("/sim/feishu/chunks", post(chunks))
        .route("/sim/feishu/ping", post(ping))
        .route("/sim/feishu/expire", post(expire))
        .route("/sim/feishu/webhook", post(webhook))
        .route("/sim/feishu/state", get(state))
        .with_state(feishu)
}

#[derive(Deserialize)]
struct Sentence {
    chat: String,
    from: String,
    #[serde(default)]
    kind: String,
    content: Value,
    #[serde(default)]
    mentions: Vec<(String, String, String)>,
    answers: Option<String>,
    #[serde(default)]
    thread: bool,
    #[serde(default)]
    bot: bool,
    #[serde(default)]
    bundle: Vec<(String, String, Value)>,
}

async fn say(State(feishu): State<Feishu>, Json(asked): Json<Sentence>) -> Json<Value> {
    let Sentence { chat, from, kind, content, mentions, answers, thread, bot, bundle } = asked;
    let said = Said { chat, person: from, kind, content, mentions, answers, thread, bot, age: 0, bundle };
    Json(json!({"message": feishu.say(&said)}))
}

#[derive(Deserialize)]
struct Told {
    kind: String,
    event: Value,
}

async fn event(State(feishu): State<Feishu>, Json(asked): Json<Told>) -> Json<Value> {
    Json(json!({"event": feishu.event(&asked.kind, &asked.event)}))
}

#[derive(Deserialize)]
struct Group {
    title: String,
    members: Vec<String>,
}

async fn topics(State(feishu): State<Feishu>, Json(asked): Json<Group>) -> Json<Value> {
    let members: Vec<&str> = asked.members.iter().map(String::as_str).collect();
    Json(json!({"chat": feishu.topics(&asked.title, &members)}))
}

#[derive(Deserialize)]
struct Scope {
    scope: String,
    #[serde(default)]
    given: bool,
}

async fn scope(State(feishu): State<Feishu>, Json(asked): Json<Scope>) -> Json<Value> {
    if asked.given {
        feishu.give_scope(&asked.scope)
    } else {
        feishu.take_scope(&asked.scope)
    }
    Json(json!({}))
}

#[derive(Deserialize)]
struct Code {
    code: i64,
}

async fn revoke(State(feishu): State<Feishu>, Json(asked): Json<Code>) -> Json<Value> {
    feishu.revoke_tokens(asked.code);
    Json(json!({}))
}

#[derive(Deserialize)]
struct Cut {
    size: usize,
    #[serde(default)]
    order: String,
    #[serde(default)]
    lose: usize,
    #[serde(default)]
    mixed: bool,
}

async fn chunks(State(feishu): State<Feishu>, Json(asked): Json<Cut>) -> Json<Value> {
    let order = match asked.order.as_str() {
        "reversed" => Order::Reversed,
        "shuffled" => Order::Shuffled,
        _ => Order::Straight,
    };
    feishu.chunks(Chunks { size: asked.size, order, lose: asked.lose, mixed: asked.mixed });
    Json(json!({}))
}

#[derive(Deserialize)]
struct Seconds {
    seconds: i64,
}

async fn ping(State(feishu): State<Feishu>, Json(asked): Json<Seconds>) -> Json<Value> {
    feishu.ping_interval(asked.seconds);
    Json(json!({}))
}

async fn expire(State(feishu): State<Feishu>) -> Json<Value> {
    feishu.expire_streams();
    Json(json!({}))
}

#[derive(Deserialize)]
struct Hook {
    url: Option<String>,
}

async fn webhook(State(feishu): State<Feishu>, Json(asked): Json<Hook>) -> Json<Value> {
    feishu.webhook(asked.url);
    Json(json!({}))
}

async fn state(State(feishu): State<Feishu>) -> Json<Value> {
    let presses: Vec<Value> =
        feishu.presses().into_iter().map(|press| json!([press.value, press.answer])).collect();
    Json(json!({
        "bot": feishu.bot(), "connections": feishu.connections(), "waiting": feishu.waiting(),
        "pings": feishu.pings(), "violations": feishu.violations(), "presses": presses,
    }))
}
