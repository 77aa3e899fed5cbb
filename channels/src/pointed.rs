//! Content that a message points at: messages that it answers, quotes, forwards or links to, and cards, previews and
//! polls that come with it. The sender did not write it, so it is never a command.

use crate::{attachment::Attachment, lenient::from_bytes};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum length of the text of one piece, in characters; the rest is cut.
const MAX_TEXT_CHARS: usize = 20_000;
/// Maximum length of an author's name or an origin, in characters.
const MAX_NAME_CHARS: usize = 200;
/// Maximum number of pieces of one message.
pub(crate) const MAX_PIECES: usize = 100;
/// Maximum number of files of one piece.
const MAX_FILES: usize = 20;

/// Relation of content to the message that points at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PointedKind {
    /// The message that it answers.
    #[default]
    Reply,
    /// A part of a message that the sender marked.
    Quote,
    /// The message that opened the thread of this message.
    Opening,
    /// A message that was passed on.
    Forward,
    /// A message that it links to.
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
    /// Returns the name that the model reads.
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

    /// Returns whether the content is part of the message itself, and not of a message that it answers.
    pub(crate) fn is_passed_on(self) -> bool {
        !matches!(self, Self::Reply | Self::Quote | Self::Opening | Self::Recent)
    }
}

/// One piece of content that a message points at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointedAt {
    /// Relation to the message.
    pub kind: PointedKind,
    /// Name of the author, where the platform gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The author's stable id on the platform, where a recent message names a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author_id: Option<String>,
    /// Whether this bot wrote it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// Time of writing, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// Chat, page or app that it comes from, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Its files; not fetched yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The platform's reference of content that the event does not contain. [`Channel::look_up`](crate::Channel::look_up)
    /// reads it once the sender has been let in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Why it could not be read, in words for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl PointedAt {
    /// Returns a piece with a text, which is cut if it is too long.
    #[must_use]
    pub(crate) fn of_text(kind: PointedKind, text: &str) -> Self {
        Self { kind, text: clip(text.trim(), MAX_TEXT_CHARS), ..Self::default() }
    }

    /// Returns a piece that is still to be read.
    #[must_use]
    pub(crate) fn unread(kind: PointedKind, reference: impl Into<String>) -> Self {
        Self { kind, reference: Some(reference.into()), ..Self::default() }
    }

    /// Returns a piece that cannot be read.
    #[must_use]
    pub(crate) fn unreadable(kind: PointedKind, problem: impl Into<String>) -> Self {
        Self { kind, problem: Some(problem.into()), ..Self::default() }
    }

    /// Names the author.
    #[must_use]
    pub(crate) fn by(self, author: Option<&str>) -> Self {
        Self { author: trim_name(author), ..self }
    }

    /// Names the chat, page or app that it comes from.
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

    /// Returns whether it has no content.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { text, attachments, reference, problem, .. } = self;
        text.is_empty() && attachments.is_empty() && reference.is_none() && problem.is_none()
    }

    /// Returns about how many bytes it has.
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

/// Returns the words of a card or of a message of an unknown form: the texts under these keys, wherever they are, those
/// of one object in the order of the keys, and a header before all else. A text may hold JSON itself.
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

/// Returns the JSON that a text holds.
fn nested(text: &str) -> Option<Value> {
    text.trim_start().starts_with(['{', '[']).then(|| from_bytes(text.as_bytes()).ok()).flatten()
}

/// Joins the lines that say something.
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
