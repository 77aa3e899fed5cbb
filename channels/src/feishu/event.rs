//! Events in the platform's format. Everything is optional: an unreadable part is ignored, and never affects other
//! parts.

use super::content::Mention;
use crate::lenient::{each, lenient};
use serde::Deserialize;
use serde_json::Value;

/// An event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EventEnvelope {
    pub(super) header: EventHeader,
    event: Value,
    /// `url_verification` of a webhook that is being set up.
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) challenge: String,
    /// The verification token where there is no header.
    token: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EventHeader {
    pub(super) event_id: String,
    pub(super) event_type: String,
    token: String,
}

impl EventEnvelope {
    /// Returns the verification token.
    pub(super) fn token(&self) -> &str {
        if self.header.token.is_empty() { &self.token } else { &self.header.token }
    }

    /// Reads the event.
    pub(super) fn decode(&self) -> FeishuEvent {
        let event = self.event.clone();
        let told = match self.header.event_type.as_str() {
            "im.message.receive_v1" => serde_json::from_value(event).map(FeishuEvent::Message),
            "im.message.recalled_v1" => serde_json::from_value(event).map(FeishuEvent::Recall),
            "card.action.trigger" => serde_json::from_value(event).map(FeishuEvent::Press),
            _ => Ok(FeishuEvent::Other),
        };
        told.unwrap_or_else(|error| {
            tracing::warn!(kind = self.header.event_type, %error, "dropped event: decode error");
            FeishuEvent::Other
        })
    }
}

/// A decoded event.
#[derive(Clone, Debug)]
pub(super) enum FeishuEvent {
    Message(Received),
    Recall(Recalled),
    Press(CardPress),
    /// An event that does not concern the bot.
    Other,
}

impl FeishuEvent {
    /// Returns the chat that it is of.
    pub(super) fn chat(&self) -> Option<&str> {
        let chat = match self {
            Self::Message(received) => &received.message.chat_id,
            Self::Recall(recalled) => &recalled.chat_id,
            Self::Press(pressed) => &pressed.context.open_chat_id,
            Self::Other => return None,
        };
        Some(chat).filter(|chat| !chat.is_empty()).map(String::as_str)
    }
}

/// A message was written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Received {
    #[serde(deserialize_with = "lenient")]
    pub(super) sender: EventSender,
    pub(super) message: FeishuMessage,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EventSender {
    #[serde(deserialize_with = "lenient")]
    pub(super) sender_id: Ids,
    #[serde(deserialize_with = "lenient")]
    pub(super) sender_type: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Ids {
    #[serde(deserialize_with = "lenient")]
    pub(super) open_id: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FeishuMessage {
    #[serde(deserialize_with = "lenient")]
    pub(super) message_id: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) root_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) parent_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) thread_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) create_time: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub(super) chat_id: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) chat_type: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) message_type: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) content: String,
    #[serde(deserialize_with = "each")]
    pub(super) mentions: Vec<Mention>,
}

/// A message was recalled.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Recalled {
    pub(super) message_id: String,
    pub(super) chat_id: String,
}

/// A button was pressed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CardPress {
    pub(super) operator: Ids,
    pub(super) action: CardAction,
    pub(super) context: CardContext,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CardAction {
    value: Value,
}

impl CardAction {
    /// Returns the button's action.
    pub(super) fn action(&self) -> Option<&str> {
        self.value.get("action").and_then(Value::as_str).filter(|action| !action.is_empty())
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CardContext {
    pub(super) open_message_id: String,
    pub(super) open_chat_id: String,
}

/// Reads a time in milliseconds, as text or number.
pub(super) fn millis(time: Option<&Value>) -> Option<i64> {
    match time? {
        Value::String(text) => text.parse().ok(),
        other => other.as_i64(),
    }
}
