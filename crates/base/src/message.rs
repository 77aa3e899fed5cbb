//! The messages of a thread.

use crate::{CallId, MessageId, Outcome, Pointed, SharedFile, TaskReport, Usage, UserId};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// One message of a thread. The system prompt is not one: it is made for each request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// A person's message.
    Human(Human),
    /// The model's answer.
    Assistant(Assistant),
    /// A tool's result.
    Tool(ToolResult),
    /// Words of pudu itself to the model.
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

    /// Returns the model's reply; `None` for another message and for a failure.
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
    /// Its id; derived from the inbound message, so that a redelivery replaces and never repeats it.
    pub id: MessageId,
    /// The words, mention tokens removed.
    pub text: String,
    /// The author's display name, in a thread that several people share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// The platform's id of that person. People can take another's name, but not another's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// When it was said, with the time zone, in words for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Remarks of pudu on the message, a line each, such as files that could not be fetched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Instructions below the words, such as those of a skill that they ask for. Never shown to people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guide: Option<String>,
    /// Files that came with the message, or with the content that it points at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<SharedFile>,
    /// Content of others that it points at, such as the message that it answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pointed: Vec<Pointed>,
    /// Memory that belongs to it, for the model alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recalled: Option<MemoryNote>,
}

/// Memory of a user or a room, as written into a thread. A run for another user does not repeat it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryNote {
    /// The user or the room.
    pub user: UserId,
    /// The text.
    pub text: String,
    /// Marks of all that is in it.
    pub ids: Vec<String>,
}

/// The model's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assistant {
    /// Its id.
    pub id: MessageId,
    /// The words for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The model's reasoning, for API clients, the page, and providers that want it back. No chat shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Parts that the model's provider wants back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_parts: Option<ProviderParts>,
    /// Tools that it wants called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// Why it stopped.
    #[serde(default)]
    pub finish: Finish,
    /// Which model spoke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The cost of the call, if the provider reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Failure of the run, if the message reports one. It has no words of a model, and no model reads it; clients of the API
    /// read the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Box<Outcome>>,
}

impl Assistant {
    /// Makes the message that reports the failure of a run. A run has one at most.
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

/// Parts of a reply that its provider wants back unchanged, such as signed thoughts. Only the wire that made them
/// can read them, and only the same model of the same provider gets them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderParts {
    /// Names the wire, the provider's host and the model.
    pub origin: String,
    /// The parts, in the wire's own form.
    pub parts: Value,
}

/// Why a model stopped talking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It had said all, or wants tools.
    #[default]
    Complete,
    /// The provider's output limit cut it.
    Length,
    /// The provider's content filter cut it.
    Filtered,
    /// The provider paused a long reply, which continues when it is sent back.
    Paused,
    /// The stream was stopped or broke; the text is the part received by then.
    Partial,
}

impl Finish {
    /// Returns whether nothing was cut.
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
    /// The raw text of arguments that were no JSON object; such a call is answered, never run.
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
    /// The question to people that it asks: the run ends here, and their answer begins the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// Images that the model sees with it; older versions stored one.
    #[serde(default, alias = "image", deserialize_with = "images", skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// The decision whether the call was made, if it needed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The decisions about calls that this one made itself, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// How the sub-agent ended, if one worked for the call; older versions stored none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<TaskReport>>,
}

/// Words of pudu itself to the model, which no person said and no person sees. They stay at their first place, so
/// that each request begins like the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reminder {
    /// Its id.
    pub id: MessageId,
    /// The words.
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

/// Reads images, or the only one.
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

/// Something that people are asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The question, in Markdown, without the options.
    pub text: String,
    /// Answers to choose from; none if the answer is free.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// Decision about a call that needed approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The requested action, in a line.
    #[serde(rename = "wish")]
    pub request: String,
    /// Whether it was approved.
    pub approved: bool,
    /// The name of the approver; `None` if time ran out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Whether no person was asked, because none of those who may decide would have seen the question.
    #[serde(rename = "unasked", default, skip_serializing_if = "std::ops::Not::not")]
    pub not_asked: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_only_image_of_a_result_that_an_older_version_stored_is_read() {
        let image = Image { path: "/mnt/a.png".into(), mime: "image/png".into() };
        for (key, value) in [("image", json!(image)), ("images", json!([image]))] {
            let stored = json!({"id": "m", "call": "c", "tool": "t", "text": "", key: value});
            let result: ToolResult = serde_json::from_value(stored).unwrap();
            assert_eq!(result.images, std::slice::from_ref(&image), "{key}");
        }
    }
}
