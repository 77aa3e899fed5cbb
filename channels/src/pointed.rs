//! Content that a message refers to: messages that it replies to, quotes, forwards or links to, and its cards, previews
//! and polls. The sender did not write this content, so it is never a command.

use crate::{attachment::Attachment, lenient::from_bytes};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum length of the text of one piece, in characters; longer text is truncated.
const MAX_TEXT_CHARS: usize = 20_000;
/// Maximum length of an author's name or an origin, in characters; longer ones are truncated.
const MAX_NAME_CHARS: usize = 200;
/// Maximum number of pieces of one message.
pub(crate) const MAX_PIECES: usize = 100;
/// Maximum number of files of one piece.
const MAX_FILES: usize = 20;

/// Relation of content to the message that refers to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PointedKind {
    /// The message being replied to.
    #[default]
    Reply,
    /// A part of a message that the sender marked.
    Quote,
    /// The message that opened the thread of this message.
    Opening,
    /// A forwarded message.
    Forward,
    /// A linked message.
    Link,
    /// Preview of a page.
    Embed,
    /// Card of an app.
    Card,
    /// A poll.
    Poll,
    /// A recent message of the same chat or thread.
    Recent,
}

impl PointedKind {
    /// Returns the name shown to the model.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reply => "reply",
            Self::Quote => "quote",
            Self::Opening => "opening",
            Self::Forward => "forward",
            Self::Link => "link",
            Self::Embed => "embed",
            Self::Card => "card",
            Self::Poll => "poll",
            Self::Recent => "recent",
        }
    }

    /// Returns whether the content is part of the message itself, rather than an earlier message in the chat.
    pub(crate) fn is_passed_on(self) -> bool {
        !matches!(self, Self::Reply | Self::Quote | Self::Opening | Self::Recent)
    }
}

/// One piece of content that a message refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointedAt {
    /// Relation to the message.
    pub kind: PointedKind,
    /// Name of the author, if the platform provides it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The author's stable id on the platform, for recent messages by users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author_id: Option<String>,
    /// Whether this bot wrote it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// Time of writing, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// Chat, page or app that it comes from, if different from the message's chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Attached files, not downloaded yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The platform's reference to content that the event does not contain.
    /// [`Channel::look_up`](crate::Channel::look_up) reads it once the sender has been granted access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Why it could not be read, as text for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl PointedAt {
    /// Returns a piece with a text. Text that is too long is cut.
    #[must_use]
    pub(crate) fn of_text(kind: PointedKind, text: &str) -> Self {
        Self { kind, text: clip(text.trim(), MAX_TEXT_CHARS), ..Self::default() }
    }

    /// Returns a piece that has yet to be read.
    #[must_use]
    pub(crate) fn unread(kind: PointedKind, reference: impl Into<String>) -> Self {
        Self { kind, reference: Some(reference.into()), ..Self::default() }
    }

    /// Returns a piece that cannot be read.
    #[must_use]
    pub(crate) fn unreadable(kind: PointedKind, problem: impl Into<String>) -> Self {
        Self { kind, problem: Some(problem.into()), ..Self::default() }
    }

    /// Sets the author.
    #[must_use]
    pub(crate) fn by(self, author: Option<&str>) -> Self {
        Self { author: trim_name(author), ..self }
    }

    /// Sets the chat, page or app that it comes from.
    #[must_use]
    pub(crate) fn from(self, origin: Option<&str>) -> Self {
        Self { origin: trim_name(origin), ..self }
    }

    /// Adds files.
    #[must_use]
    pub(crate) fn with_files(mut self, files: impl IntoIterator<Item = Attachment>) -> Self {
        self.attachments.extend(files);
        self.attachments.truncate(MAX_FILES);
        self
    }

    /// Returns whether the piece has no content.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { text, attachments, reference, problem, .. } = self;
        text.is_empty() && attachments.is_empty() && reference.is_none() && problem.is_none()
    }

    /// Returns the approximate size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let files = self.attachments.iter().map(|file| file.handle.len() + file.name.len());
        self.text.len() + files.sum::<usize>()
    }
}

fn trim_name(name: Option<&str>) -> Option<String> {
    let name = name.map(str::trim).filter(|name| !name.is_empty())?;
    Some(clip(name, MAX_NAME_CHARS))
}

fn clip(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.split_at(at).0),
        None => text.to_owned(),
    }
}

/// Maximum depth of a card, and maximum number of its texts.
const MAX_CARD_DEPTH: usize = 24;
const MAX_CARD_TEXTS: usize = 500;

/// Returns the text of a card, or of a message of unknown form: all strings under these keys, at any depth. A header
/// comes first, and the strings of one object are in the order of `keys`. A string may itself contain JSON.
pub(crate) fn card_words(card: &Value, keys: &[&str]) -> String {
    let mut found = Vec::new();
    collect(card, keys, MAX_CARD_DEPTH, &mut found);
    lines(found)
}

fn collect(json: &Value, keys: &[&str], depth: usize, found: &mut Vec<String>) {
    let Some(depth) = depth.checked_sub(1).filter(|_| found.len() < MAX_CARD_TEXTS) else { return };
    match json {
        Value::Array(list) => list.iter().for_each(|one| collect(one, keys, depth, found)),
        Value::Object(fields) => {
            for value in keys.iter().filter_map(|key| fields.get(*key)) {
                match (value, value.as_array()) {
                    (Value::String(text), _) if nested(text).is_none() => found.push(text.clone()),
                    (_, Some(list)) => {
                        found.extend(list.iter().filter_map(|one| one.as_str().map(str::to_owned)))
                    }
                    _ => {}
                }
            }
            let mut inner: Vec<(&String, &Value)> = fields.iter().collect();
            inner.sort_by_key(|(key, _)| (*key != "header", *key));
            for (_, value) in inner {
                let text = value.as_str().and_then(nested);
                collect(text.as_ref().unwrap_or(value), keys, depth, found);
            }
        }
        _ => {}
    }
}

/// Returns the JSON contained in a string.
fn nested(text: &str) -> Option<Value> {
    text.trim_start().starts_with(['{', '[']).then(|| from_bytes(text.as_bytes()).ok()).flatten()
}

/// Joins the lines that are not blank.
pub(crate) fn lines<T: AsRef<str>>(parts: impl IntoIterator<Item = T>) -> String {
    let mut joined = String::new();
    for part in parts {
        let part = part.as_ref().trim();
        if !part.is_empty() {
            joined.push_str(if joined.is_empty() { "" } else { "\n" });
            joined.push_str(part);
        }
    }
    joined
}
