//! Session webhooks, which answer one message for a while.

use super::{
    error::{Answer, Refusal},
    server::Ask,
    world::{Body, World},
};
use serde_json::{Value, json};
use tokio::time::Instant;

/// Maximum size of a message's body, in bytes.
const MAX_TEXT_BYTES: usize = 20_000;

/// Answers a post to a session webhook.
pub(crate) fn send(world: &mut World, ask: &Ask) -> Answer {
    let key = ask.query.get("session").cloned().unwrap_or_default();
    let session = world.sessions.get(&key).filter(|session| session.until > Instant::now());
    let chat = session.ok_or_else(|| Refusal::errcode(300_001, "session is not exist"))?.chat.clone();
    let shown = body(ask)?;
    let id = format!("session-{}", world.fresh());
    world.show(&chat, &id, shown, pings(&ask.body))?;
    Ok(json!({"errcode": 0, "errmsg": "ok"}))
}

fn body(ask: &Ask) -> Answer<Body> {
    let field = |of: &str, name: &str| match ask.body.get(of).and_then(|part| part[name].as_str()) {
        Some(text) if text.len() > MAX_TEXT_BYTES => Err(Refusal::errcode(460_101, "message too long")),
        Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
        _ => Err(Refusal::errcode(40035, &format!("{of}.{name} is missing"))),
    };
    match ask.text("msgtype") {
        "text" => Ok(Body::Text(field("text", "content")?)),
        "markdown" => {
            field("markdown", "title")?;
            Ok(Body::Markdown(field("markdown", "text")?))
        }
        _ => Err(Refusal::errcode(400_105, "unsupported msgtype")),
    }
}

fn pings(body: &serde_json::Map<String, Value>) -> bool {
    let at = body.get("at").cloned().unwrap_or_default();
    let named = |name: &str| at[name].as_array().is_some_and(|all| !all.is_empty());
    at["isAtAll"] == true || named("atUserIds") || named("atMobiles")
}
