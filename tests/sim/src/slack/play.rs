//! Slack-specific controls for scripts, in addition to those of all platforms.

use super::Slack;
use axum::{Json, Router, extract::State, routing::post};
use serde::Deserialize;
use serde_json::{Value, json};

/// Routes.
pub(crate) fn router(slack: Slack) -> Router {
    Router::new()
        .route("/sim/command", post(command))
        .route("/sim/disconnect", post(disconnect))
        .route("/sim/post_events", post(post_events))
        .route("/sim/scope", post(scope))
        .with_state(slack)
}

#[derive(Deserialize)]
struct Command {
    chat: String,
    from: String,
    command: String,
    #[serde(default)]
    words: String,
}

async fn command(State(slack): State<Slack>, Json(asked): Json<Command>) -> Json<Value> {
    Json(json!({"done": slack.command(&asked.chat, &asked.from, &asked.command, &asked.words)}))
}

#[derive(Deserialize)]
struct Disconnect {
    reason: String,
}

async fn disconnect(State(slack): State<Slack>, Json(asked): Json<Disconnect>) -> Json<Value> {
    slack.disconnect(&asked.reason);
    Json(json!({}))
}

#[derive(Deserialize)]
struct Post {
    url: Option<String>,
}

async fn post_events(State(slack): State<Slack>, Json(asked): Json<Post>) -> Json<Value> {
    slack.core.act(|world| world.events_url = asked.url);
    Json(json!({}))
}

#[derive(Deserialize)]
struct Scope {
    scope: String,
    given: bool,
}

async fn scope(State(slack): State<Slack>, Json(asked): Json<Scope>) -> Json<Value> {
    slack.scope(&asked.scope, asked.given);
    Json(json!({}))
}
