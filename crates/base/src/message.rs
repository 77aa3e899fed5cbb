//! The messages of a thread.

use crate::{CallId, MessageId, Outcome, Pointed, Question, SharedFile, TaskReport, Usage, UserId};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// One message of a thread. The system prompt is not a message: it is built for each request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// A person's message.
    Human(Human),
    /// The model's answer.
    Assistant(Assistant),
    /// A tool's result.
    Tool(ToolResult),
    /// A text from pudu itself to the model.
    Reminder(Reminder),
}

impl Message {
    /// Returns the message's id.
    #[must_use]
    pub fn id(&self) -> &MessageId {
        match self {
            Self::Human(m) => &m.id,
            Self::Assistant(m) => &m.id,
            Self::Tool(m) => &m.id,
            Self::Reminder(m) => &m.id,
        }
    }

    /// Returns the model's reply; `None` for other messages and for failures.
    #[must_use]
    pub fn reply(&self) -> Option<&Assistant> {
        match self {
            Self::Assistant(reply) => Some(reply).filter(|reply| reply.failure.is_none()),
            Self::Human(_) | Self::Tool(_) | Self::Reminder(_) => None,
        }
    }

    /// Returns whether the message is the failure of a run.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Assistant(reply) if reply.failure.is_some())
    }

    /// Returns the text that the message carries.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Human(m) => &m.text,
            Self::Assistant(m) => &m.text,
            Self::Tool(m) => &m.text,
            Self::Reminder(m) => &m.text,
        }
    }
}

/// A person's message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Human {
    /// Its id, derived from the inbound message, so that a redelivery replaces the message instead of repeating it.
    pub id: MessageId,
    /// The text, without mention tokens.
    pub text: String,
    /// The author's display name, in a thread that several people share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// The author's id on the platform. People can copy another person's name, but not their id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// When it was written, with the time zone, as text for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// pudu's notes on the message, one line each, such as files that could not be fetched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Instructions after the text, such as those of a skill that the text names. Never shown to people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guide: Option<String>,
    /// Files attached to the message or to the content that it points at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<SharedFile>,
    /// Other people's content that it points at, such as the message that it replies to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pointed: Vec<Pointed>,
    /// Memory recalled for it, only for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recalled: Option<MemoryNote>,
}

/// Memory of a user or a conversation, as written into a thread. A run for another user does not repeat it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryNote {
    /// The user or the conversation.
    pub user: UserId,
    /// The text.
    pub text: String,
    /// Ids of the facts that the text contains.
    pub ids: Vec<String>,
}

/// The model's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assistant {
    /// Its id.
    pub id: MessageId,
    /// The text for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The model's reasoning, for API clients, the page, and providers that want it back. No chat shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Parts that must be sent back to the model's provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_parts: Option<ProviderParts>,
    /// Tool calls that it requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// Why the reply ended.
    #[serde(default)]
    pub finish: Finish,
    /// The model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The cost of the call, if the provider reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Failure of the run, if the message reports one. Such a message contains no text from a model and is not sent to
    /// models; API clients read the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Box<Outcome>>,
}

impl Assistant {
    /// Creates the message that reports the failure of a run. A run has at most one.
    #[must_use]
    pub fn failed(id: MessageId, outcome: Outcome) -> Self {
        Self {
            id,
            text: String::new(),
            reasoning: None,
            provider_parts: None,
            calls: Vec::new(),
            finish: Finish::Partial,
            model: None,
            usage: None,
            failure: Some(Box::new(outcome)),
        }
    }
}

/// Parts of a reply that must be sent back to its provider unchanged, such as signed thoughts. Only the wire that
/// created them can read them, and only the same model of the same provider gets them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderParts {
    /// The wire, the provider's host and the model.
    pub origin: String,
    /// The parts, in the wire's own form.
    pub parts: Value,
}

/// Why a model's reply ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It is complete, or requests tool calls.
    #[default]
    Complete,
    /// The provider's output limit cut it.
    Length,
    /// The provider's content filter cut it.
    Filtered,
    /// The provider paused a long reply, which continues when it is sent back.
    Paused,
    /// The stream was stopped or broke off; the text is the part that arrived before.
    Partial,
}

impl Finish {
    /// Returns whether the reply is complete.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        *self == Self::Complete
    }
}

/// One request of the model to call a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Its id, which the result repeats.
    pub id: CallId,
    /// The tool's name.
    pub name: String,
    /// The arguments; `{}` when the model sent none.
    pub args: Value,
    /// The raw text of arguments that are not a JSON object. Such a call gets an error result and is never executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub garbled: Option<String>,
}

/// A tool's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Its id.
    pub id: MessageId,
    /// The call that it answers.
    pub call: CallId,
    /// The tool's name.
    pub tool: String,
    /// The text for the model.
    pub text: String,
    /// Whether the call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub error: bool,
    /// A question to people. It ends the run, and their answer begins the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// Images that the model sees with it. Older versions stored a single one.
    #[serde(default, alias = "image", deserialize_with = "images", skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// The approval decision on the call, if it needed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The approval decisions on calls that this call made itself, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// How the sub-agent ended, if one worked for the call. Older versions stored none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<TaskReport>>,
}

/// A text from pudu itself to the model, which people neither write nor see. It keeps its position, so that each
/// request begins like the previous one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reminder {
    /// Its id.
    pub id: MessageId,
    /// The text.
    pub text: String,
}

/// An image among the agent's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Its sandbox path.
    pub path: String,
    /// Its media type.
    pub mime: String,
}

/// Reads a list of images, or a single one.
fn images<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Image>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum StoredImages {
        One(Image),
        Many(Vec<Image>),
    }
    Ok(match StoredImages::deserialize(from)? {
        StoredImages::One(image) => vec![image],
        StoredImages::Many(images) => images,
    })
}

/// Decision on a call that needed approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// One-line description of the requested action.
    #[serde(rename = "wish")]
    pub request: String,
    /// Whether it was approved.
    pub approved: bool,
    /// Name of the person who decided; `None` if the deadline passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Whether no person was asked, because no possible approver would have seen the question.
    #[serde(rename = "unasked", default, skip_serializing_if = "std::ops::Not::not")]
    pub not_asked: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_single_image_stored_by_an_older_version_is_read() {
        let image = Image { path: "/mnt/a.png".into(), mime: "image/png".into() };
        for (key, value) in [("image", json!(image)), ("images", json!([image]))] {
            let stored = json!({"id": "m", "call": "c", "tool": "t", "text": "", key: value});
            let result: ToolResult = serde_json::from_value(stored).unwrap();
            assert_eq!(result.images, std::slice::from_ref(&image), "{key}");
        }
    }
}
