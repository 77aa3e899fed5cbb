//! Events in the platform's format. Everything is optional: an invalid part is ignored, and never affects other parts.

use super::content::Mention;
use crate::lenient::payloads;
use serde_json::Value;

payloads! {
    /// An event.
    #[serde(default)]
    pub(super) struct EventEnvelope {
        exact header: EventHeader,
        exact event: Value,
        /// `url_verification` while a webhook is being set up.
        #[serde(rename = "type")]
        exact kind: String,
        exact challenge: String,
        /// The verification token of events without a header.
        exact token: String,
    }

    #[serde(default)]
    pub(super) struct EventHeader {
        exact event_id: String,
        exact event_type: String,
        exact token: String,
    }

    /// A message was written.
    #[serde(default)]
    pub(super) struct Received {
        sender: EventSender,
        exact message: FeishuMessage,
    }

    pub(super) struct EventSender {
        sender_id: Ids,
        sender_type: String,
    }

    pub(super) struct Ids {
        open_id: Option<String>,
    }

    pub(super) struct FeishuMessage {
        message_id: String,
        root_id: Option<String>,
        parent_id: Option<String>,
        thread_id: Option<String>,
        create_time: Option<Value>,
        chat_id: String,
        chat_type: String,
        message_type: String,
        content: String,
        mentions: Vec<Mention>,
    }

    /// A message was recalled.
    #[serde(default)]
    pub(super) struct Recalled {
        exact message_id: String,
        exact chat_id: String,
    }

    /// A button was pressed.
    #[serde(default)]
    pub(super) struct CardPress {
        exact operator: Ids,
        exact action: CardAction,
        exact context: CardContext,
    }

    #[serde(default)]
    pub(super) struct CardAction {
        exact value: Value,
        /// The answers, if the button submits a form.
        form_value: Value,
    }

    #[serde(default)]
    pub(super) struct CardContext {
        exact open_message_id: String,
        exact open_chat_id: String,
    }
}

impl EventEnvelope {
    /// Returns the verification token.
    pub(super) fn token(&self) -> &str {
        if self.header.token.is_empty() { &self.token } else { &self.header.token }
    }

    /// Decodes the event.
    pub(super) fn decode(&self) -> FeishuEvent {
        let event = self.event.clone();
        let decoded = match self.header.event_type.as_str() {
            "im.message.receive_v1" => serde_json::from_value(event).map(FeishuEvent::Message),
            "im.message.recalled_v1" => serde_json::from_value(event).map(FeishuEvent::Recall),
            "card.action.trigger" => serde_json::from_value(event).map(FeishuEvent::Press),
            _ => Ok(FeishuEvent::Other),
        };
        decoded.unwrap_or_else(|error| {
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
    /// Returns the event's chat.
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

impl CardAction {
    /// Returns the button's action.
    pub(super) fn action(&self) -> Option<&str> {
        self.value.get("action").and_then(Value::as_str).filter(|action| !action.is_empty())
    }
}

/// Reads a time in milliseconds, sent as text or as a number.
pub(super) fn millis(time: Option<&Value>) -> Option<i64> {
    match time? {
        Value::String(text) => text.parse().ok(),
        other => other.as_i64(),
    }
}
