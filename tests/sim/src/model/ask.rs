//! A client's request, stored completely so that a test can check it.

use super::{
    Wire,
    asked::{self, Asked},
};
use axum::http::Uri;
use serde_json::Value;
use std::collections::BTreeMap;
use tokio::time::Instant;

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Time of the request.
    pub at: Instant,
    /// Its API.
    pub wire: Wire,
    /// Path of its URL.
    pub path: String,
    /// Query of its URL.
    pub query: String,
    /// All its headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Its body.
    pub body: Value,
    /// The messages as understood by the model.
    heard: Vec<Value>,
    /// The names of the tools.
    tools: Vec<String>,
}

impl Ask {
    /// Keeps a request.
    pub(crate) fn new(wire: Wire, uri: &Uri, headers: BTreeMap<String, String>, body: Value) -> Self {
        let Asked { messages, tools } = asked::read(wire, &body);
        Self {
            at: Instant::now(),
            wire,
            path: uri.path().to_owned(),
            query: uri.query().unwrap_or_default().to_owned(),
            headers,
            body,
            heard: messages.iter().filter(|message| !tells_day(message)).map(heard).collect(),
            tools,
        }
    }

    /// Returns the requested model.
    #[must_use]
    pub fn model(&self) -> &str {
        match self.wire {
            Wire::Gemini => self.method().0,
            _ => self.body["model"].as_str().unwrap_or_default(),
        }
    }

    /// Returns Gemini's model and method, from its path.
    fn method(&self) -> (&str, &str) {
        let last = self.path.rsplit_once('/').map_or("", |(_, last)| last);
        last.split_once(':').unwrap_or((last, ""))
    }

    /// Returns all messages in the format of chat completions, as understood by the model: a user's text without its
    /// prefix, but with the speaker as `[name]` and the lines about files after it, and referenced content under
    /// `pointed`; a result without the markers around foreign text. Reminders of the day are omitted. The original
    /// bytes are in `body`.
    #[must_use]
    pub fn messages(&self) -> &[Value] {
        &self.heard
    }

    /// Returns the role of the last message.
    #[must_use]
    pub fn last_role(&self) -> &str {
        self.messages().last().and_then(|message| message["role"].as_str()).unwrap_or_default()
    }

    /// Returns the text of the user's last message.
    #[must_use]
    pub fn last_user(&self) -> String {
        self.last("user")
    }

    /// Returns the marked content that the user's last message refers to.
    #[must_use]
    pub fn last_pointed(&self) -> &str {
        let found = self.messages().iter().rev().find(|message| message["role"] == "user");
        found.and_then(|message| message["pointed"].as_str()).unwrap_or_default()
    }

    /// Returns the text of the last tool result.
    #[must_use]
    pub fn last_tool(&self) -> String {
        self.last("tool")
    }

    /// Returns the names of the offered tools.
    #[must_use]
    pub fn tools(&self) -> Vec<&str> {
        self.tools.iter().map(String::as_str).collect()
    }

    /// Returns whether a stream was requested.
    #[must_use]
    pub fn wants_stream(&self) -> bool {
        match self.wire {
            Wire::Gemini => self.method().1 == "streamGenerateContent",
            Wire::Ollama => self.body["stream"] != false,
            _ => self.body["stream"] == true,
        }
    }

    /// Returns whether the stream should end with the usage.
    #[must_use]
    pub fn wants_usage(&self) -> bool {
        self.body["stream_options"]["include_usage"] == true
    }

    fn last(&self, role: &str) -> String {
        let found = self.messages().iter().rev().find(|message| message["role"] == role);
        found.map(|message| text(&message["content"])).unwrap_or_default()
    }
}

/// Returns whether a message only contains the date. A script must not answer it because a test ran past midnight.
fn tells_day(message: &Value) -> bool {
    let words = text(&message["content"]);
    message["role"] == "user"
        && words.starts_with("<system-reminder>\nIt is now ")
        && words.ends_with("</system-reminder>")
        && words.matches("<system-reminder>").count() == 1
}

/// Parses the metadata in a message's first lines, as described in the system prompt.
fn heard(message: &Value) -> Value {
    let mut heard = message.clone();
    if let (Some("user"), Some(content)) = (message["role"].as_str(), message["content"].as_str()) {
        let (own, pointed) = split_pointed(content);
        if let Some(words) = read(own) {
            heard["content"] = words.into();
            if !pointed.is_empty() {
                heard["pointed"] = pointed.into();
            }
        }
    }
    if let (Some("tool"), Some(words)) =
        (message["role"].as_str(), message["content"].as_str().and_then(unframed))
    {
        heard["content"] = words.into();
    }
    heard
}

/// Splits a message into its author's text and the marked content that it refers to, which may be empty.
fn split_pointed(content: &str) -> (&str, &str) {
    match (content.find("\n\n<pointed_at "), content.rfind("</pointed_at>")) {
        (Some(start), Some(end)) => {
            let end = end + "</pointed_at>".len();
            (content.get(..start).unwrap_or_default(), content.get(start + 2..end).unwrap_or_default())
        }
        _ => (content, ""),
    }
}

/// Returns the speaker, the text, and the lines about files; `None` without metadata.
fn read(content: &str) -> Option<String> {
    let (before, words) = content.split_once("\n\n").unwrap_or((content, ""));
    let (first, about) = before.split_once('\n').unwrap_or((before, ""));
    let head: Value = serde_json::from_str(first).ok().filter(|head: &Value| head.is_object())?;
    let mut text = match head["from"]["name"].as_str() {
        Some(name) => {
            let lines = words.lines().map(|line| line.strip_prefix("> ").unwrap_or(line));
            format!("[{name}] {}", lines.collect::<Vec<_>>().join("\n"))
        }
        None => words.to_owned(),
    };
    if !about.is_empty() {
        text = format!("{text}\n{about}");
    }
    Some(text)
}

/// Returns the text of content, which is a text or a list of parts.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// Returns the text between the markers of a foreign result; the line break before the last marker may belong to the
/// result.
fn unframed(told: &str) -> Option<&str> {
    let (head, rest) = told.strip_prefix("<tool_output ")?.split_once(">\n")?;
    let key = head.split_once("key=")?.1;
    let words = rest.strip_suffix(&format!("</tool_output key={key}>"))?;
    Some(words.strip_suffix('\n').unwrap_or(words))
}
