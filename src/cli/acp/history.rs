//! The messages of a thread, as an editor shows them when it loads a session.

use super::frames::{assistant_updates, tool_update};
use crate::cli::chat::api::{Api, ApiFailure};
use serde_json::{Value, json};

/// Number of messages that are read at once, and maximum number of pages.
const PAGE: (u32, usize) = (200, 10);

/// Returns the newest messages of a thread, oldest first.
pub(super) async fn messages(api: &Api, thread: &str) -> Result<Vec<Value>, ApiFailure> {
    let (mut pages, mut before) = (Vec::new(), String::new());
    for _ in 0..PAGE.1 {
        let path = format!("threads/{thread}/messages/page?limit={}{before}", PAGE.0);
        let mut page = api.get(&path).await?;
        let next = page["next_before_seq"].as_i64();
        if let Value::Array(rows) = page["data"].take() {
            pages.push(rows);
        }
        match next {
            Some(next) => before = format!("&before_seq={next}"),
            None => break,
        }
    }
    Ok(pages.into_iter().rev().flatten().map(|mut row| row["content"].take()).collect())
}

/// Returns the updates for a message.
pub(super) fn updates(message: &Value) -> Vec<Value> {
    match message["type"].as_str().unwrap_or_default() {
        "human" => {
            let text = text_of(&message["content"]);
            let chunk =
                json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } });
            if text.is_empty() { Vec::new() } else { vec![chunk] }
        }
        "ai" => assistant_updates(message, &text_of(&message["content"])),
        "tool" => tool_update(message),
        _ => Vec::new(),
    }
}

/// Returns the text of a message's content.
fn text_of(content: &Value) -> String {
    match content {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        text => text.as_str().unwrap_or_default().to_owned(),
    }
}
