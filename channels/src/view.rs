//! Views of a reply for people.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A reply that is still growing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyView {
    /// The words so far, Markdown, whole.
    pub text: String,
    /// Length of the lines below the assistant's own words at the end of `text`, in bytes: decisions, to-dos,
    /// sub-agents. They change while the words above them grow.
    pub below: usize,
    /// The agent's current activity, a few words of plain text.
    pub activity: Option<String>,
    /// Question that has to be decided before the reply continues.
    pub prompt: Option<Prompt>,
    /// Choices that may be clicked meanwhile, besides those that decide.
    pub choices: Vec<Choice>,
}

impl ReplyView {
    /// Returns all words, the question last, and all choices, those that decide first.
    #[must_use]
    pub fn whole(&self) -> (String, Vec<Choice>) {
        let Some(Prompt { text, choices }) = &self.prompt else {
            return (self.text.clone(), self.choices.clone());
        };
        let gap = if self.text.is_empty() { "" } else { "\n\n" };
        (format!("{}{gap}{text}", self.text), [choices.as_slice(), &self.choices].concat())
    }
}

/// A question that is decided by pressing. Where nothing can be pressed a number that the channel offers for
/// it counts as the press; no other words do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The question, Markdown.
    pub text: String,
    /// Choices that decide it. The actions name this very question.
    pub choices: Vec<Choice>,
}

/// A reply that will not change any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinalView {
    /// The words, Markdown, whole.
    pub text: String,
    /// Files to send with it, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<OutFile>,
    /// Choices that may be clicked now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// Whether the words list the choices already, each with the number that is its action.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub listed: bool,
    /// Whether the work failed, as the words say. Programs want to know; people read it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Whether it is worth nothing without its files, which are texts: a text that a platform does not take as a file
    /// is sent in messages, and where that is impossible too the reply is refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// Text that is new since the last view. It is sent alone where the messages that show the rest take no
    /// change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Title of the conversation, if it is new; empty for one that has none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// A choice to click. A click has the same meaning as typing `action`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Label of the button.
    pub label: String,
    /// Text that a click types, for example `/stop`. At most 64 bytes.
    pub action: String,
}

/// A file to send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutFile {
    /// The name that people see.
    pub name: String,
    /// Path on this machine.
    pub path: PathBuf,
}
