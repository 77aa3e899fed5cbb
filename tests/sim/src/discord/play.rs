//! Discord-specific controls for scripts, in addition to those of all platforms.

use super::Discord;
use axum::{Json, Router, extract::State, routing::post};
use serde::Deserialize;
use serde_json::{Value, json};

/// Routes.
pub(crate) fn router(discord: Discord) -> Router {
    Router::new()
        .route("/sim/command", post(command))
        .route("/sim/gateway", post(gateway))
        .route("/sim/permission", post(permission))
        .route("/sim/pace", post(pace))
        .route("/sim/forget", post(forget))
        .with_state(discord)
}

#[derive(Deserialize)]
struct Command {
    chat: String,
    from: String,
    command: String,
    #[serde(default)]
    words: String,
}

async fn command(State(discord): State<Discord>, Json(asked): Json<Command>) -> Json<Value> {
    Json(json!({"done": discord.command(&asked.chat, &asked.from, &asked.command, &asked.words)}))
}

/// `{"say": "reconnect" | "invalid" | "invalid_resumable" | "silence" | "noise"}` or `{"close": 4004}`.
#[derive(Deserialize)]
struct Gateway {
    #[serde(default)]
    say: String,
    close: Option<u16>,
}

async fn gateway(State(discord): State<Discord>, Json(asked): Json<Gateway>) -> Json<Value> {
    match (asked.say.as_str(), asked.close) {
        (_, Some(code)) => discord.close(code),
        ("reconnect", _) => discord.ask_to_reconnect(),
        ("invalid", _) => discord.invalidate(false),
        ("invalid_resumable", _) => discord.invalidate(true),
        ("silence", _) => discord.silence(true),
        _ => discord.silence(false),
    }
    Json(json!({}))
}

#[derive(Deserialize)]
struct Permission {
    name: String,
    given: bool,
}

async fn permission(State(discord): State<Discord>, Json(asked): Json<Permission>) -> Json<Value> {
    discord.permission(&asked.name, asked.given);
    Json(json!({}))
}

#[derive(Deserialize)]
struct Pace {
    on: bool,
}

async fn pace(State(discord): State<Discord>, Json(asked): Json<Pace>) -> Json<Value> {
    discord.pace(asked.on);
    Json(json!({}))
}

async fn forget(State(discord): State<Discord>) -> Json<Value> {
    discord.forget_sessions();
    Json(json!({}))
}
