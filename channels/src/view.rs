//! Views of a reply for users.

use pudu_base::FormField;
use pudu_texts::Language;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// An unfinished reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyView {
    /// The complete text so far, in Markdown.
    pub text: String,
    /// Length of the lines at the end of `text` that follow the assistant's own text, in bytes: decisions, to-dos,
    /// sub-agents. They change while the text above them grows.
    pub below: usize,
    /// The agent's current activity, as a few words of plain text.
    pub activity: Option<String>,
    /// Question that has to be answered before the reply continues.
    pub prompt: Option<Prompt>,
    /// Choices available while the reply grows, besides those of the question.
    pub choices: Vec<Choice>,
}

impl ReplyView {
    /// Returns the text followed by the question, and all choices, those of the question first.
    #[must_use]
    pub fn whole(&self) -> (String, Vec<Choice>) {
        let Some(Prompt { text, choices }) = &self.prompt else {
            return (self.text.clone(), self.choices.clone());
        };
        let gap = if self.text.is_empty() { "" } else { "\n\n" };
        (format!("{}{gap}{text}", self.text), [choices.as_slice(), &self.choices].concat())
    }
}

/// A question that is answered by a button. Without buttons, a number offered by the channel counts as the press; no
/// other text does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The question, in Markdown.
    pub text: String,
    /// Choices that answer it. Their actions identify this question.
    pub choices: Vec<Choice>,
}

/// A finished reply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinalView {
    /// The complete text, in Markdown.
    pub text: String,
    /// Files to send with it, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<OutFile>,
    /// Choices available now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// The form that the text lists. One of the choices opens it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<QuestionForm>,
    /// Whether the text already lists the choices, each with the number that is its action.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub listed: bool,
    /// Whether the run failed. Only for programs: users read it in the text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Whether the files, which are texts, are essential to the reply. If the platform refuses such a file, its text is
    /// sent as messages instead; if that is impossible too, the reply is refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// Text that is new since the last view. It is sent separately if the existing messages cannot be edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Title of the conversation; `None` if it has not changed. Empty for a new conversation, which has no title yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// A form, as stored with the reply that asks it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionForm {
    /// The question, in Markdown.
    pub text: String,
    /// The fields.
    pub fields: Vec<FormField>,
}

/// Result of a request to open a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormAccess {
    /// The sender may answer the form.
    Open(Box<OpenForm>),
    /// The sender may not, or the form is over. The text describes the reason for them.
    Refused(String),
}

/// A form that the sender of an event may answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenForm {
    /// The form.
    pub form: QuestionForm,
    /// The sender's language.
    pub language: Language,
}

/// Action of the choice that opens the form of its message.
pub const FORM_ACTION: &str = "/form";

/// A button. Pressing it is equivalent to typing `action`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Label of the button.
    pub label: String,
    /// Text that the button types, for example `/stop`. At most 64 bytes.
    pub action: String,
}

/// A file to send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutFile {
    /// Display name.
    pub name: String,
    /// Path on this machine.
    pub path: PathBuf,
}
