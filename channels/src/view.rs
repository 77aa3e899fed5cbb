//! What a person is to see of a reply.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A reply that is still growing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyView {
    /// The words so far, Markdown, whole.
    pub text: String,
    /// What the agent does at the moment, a few words of plain text.
    pub activity: Option<String>,
    /// What may be clicked meanwhile.
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
    /// What may be clicked now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// Whether the work failed, as the words say. Programs want to know; people read it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

/// Something to click. Clicking it means what typing `action` would mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// What the button says.
    pub label: String,
    /// What is typed by clicking it, for example `/stop`. At most 64 bytes.
    pub action: String,
}

/// A file to send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutFile {
    /// The name that people see.
    pub name: String,
    /// Where it is on this machine.
    pub path: PathBuf,
}
