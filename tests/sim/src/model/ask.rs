//! What a client asked, kept whole so that a test can assert on it.

use serde_json::Value;
use std::collections::BTreeMap;
use tokio::time::Instant;

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// When it came.
    pub at: Instant,
    /// Its headers, names in lower case; nothing is left out.
    pub headers: BTreeMap<String, String>,
    /// Its body.
    pub body: Value,
}

impl Ask {
    /// The model asked for.
    #[must_use]
    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    /// All messages.
    #[must_use]
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// The role of the last message.
    #[must_use]
    pub fn last_role(&self) -> &str {
        self.messages().last().and_then(|message| message["role"].as_str()).unwrap_or_default()
    }

    /// The text of the user's last message.
    #[must_use]
    pub fn last_user(&self) -> String {
        self.last("user")
    }

    /// The text of the last tool result.
    #[must_use]
    pub fn last_tool(&self) -> String {
        self.last("tool")
    }

    /// The names of the tools offered.
    #[must_use]
    pub fn tools(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().into_iter().flatten();
        tools.filter_map(|tool| tool["function"]["name"].as_str()).collect()
    }

    /// Whether a stream was asked for.
    #[must_use]
    pub fn wants_stream(&self) -> bool {
        self.body["stream"] == true
    }

    /// Whether the stream shall end with the usage.
    #[must_use]
    pub fn wants_usage(&self) -> bool {
        self.body["stream_options"]["include_usage"] == true
    }

    fn last(&self, role: &str) -> String {
        let found = self.messages().iter().rev().find(|message| message["role"] == role);
        found.map(|message| text(&message["content"])).unwrap_or_default()
    }
}

/// Content is text, or parts of which some are text.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}
