//! What a client asked, kept whole so that a test can assert on it.

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
    /// When it came.
    pub at: Instant,
    /// The API that it came over.
    pub wire: Wire,
    /// The path of its address.
    pub path: String,
    /// What stands behind the question mark.
    pub query: String,
    /// Its headers, names in lower case; nothing is left out.
    pub headers: BTreeMap<String, String>,
    /// Its body.
    pub body: Value,
    /// The messages as the model takes them.
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

    /// The model asked for.
    #[must_use]
    pub fn model(&self) -> &str {
        match self.wire {
            Wire::Gemini => self.method().0,
            _ => self.body["model"].as_str().unwrap_or_default(),
        }
    }

    /// Gemini's model and method, which its path names.
    fn method(&self) -> (&str, &str) {
        let last = self.path.rsplit_once('/').map_or("", |(_, last)| last);
        last.split_once(':').unwrap_or((last, ""))
    }

    /// All messages in the form of chat completions, as the model takes them: a person's words without what stands before them, but with
    /// `[name]` where that says who speaks, and with the lines about files behind them, and what they point at under
    /// `pointed`; a result without the marks around what others wrote. Reminders of the day are left out. The
    /// very bytes are in `body`.
    #[must_use]
    pub fn messages(&self) -> &[Value] {
        &self.heard
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

    /// The content of others that the user's last message points at, in its marks.
    #[must_use]
    pub fn last_pointed(&self) -> &str {
        let found = self.messages().iter().rev().find(|message| message["role"] == "user");
        found.and_then(|message| message["pointed"].as_str()).unwrap_or_default()
    }

    /// The text of the last tool result.
    #[must_use]
    pub fn last_tool(&self) -> String {
        self.last("tool")
    }

    /// The names of the tools offered.
    #[must_use]
    pub fn tools(&self) -> Vec<&str> {
        self.tools.iter().map(String::as_str).collect()
    }

    /// Whether a stream was asked for.
    #[must_use]
    pub fn wants_stream(&self) -> bool {
        match self.wire {
            Wire::Gemini => self.method().1 == "streamGenerateContent",
            Wire::Ollama => self.body["stream"] != false,
            _ => self.body["stream"] == true,
        }
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

/// Whether a message only reminds the model of the day. A script is not to answer it because a test ran past midnight.
fn tells_day(message: &Value) -> bool {
    let words = text(&message["content"]);
    message["role"] == "user"
        && words.starts_with("<system-reminder>\nIt is now ")
        && words.ends_with("</system-reminder>")
        && words.matches("<system-reminder>").count() == 1
}

/// Reads what a message says of itself in its first lines, as the system prompt tells a model to.
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

/// Splits a message into what its author said and the marked content of others that it points at, which may be empty.
fn split_pointed(content: &str) -> (&str, &str) {
    match (content.find("\n\n<pointed_at "), content.rfind("</pointed_at>")) {
        (Some(start), Some(end)) => {
            let end = end + "</pointed_at>".len();
            (content.get(..start).unwrap_or_default(), content.get(start + 2..end).unwrap_or_default())
        }
        _ => (content, ""),
    }
}

/// Returns who speaks, the words, and what is said of files; `None` where no first line says anything.
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

/// Content is text, or parts of which some are text.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// Returns what stands between the marks around a result that others wrote; the line break before the last mark may
/// be the result's own.
fn unframed(told: &str) -> Option<&str> {
    let (head, rest) = told.strip_prefix("<tool_output ")?.split_once(">\n")?;
    let key = head.split_once("key=")?.1;
    let words = rest.strip_suffix(&format!("</tool_output key={key}>"))?;
    Some(words.strip_suffix('\n').unwrap_or(words))
}
