//! Messages that a reader of the protocol gets block by block.

use super::super::protocol::EventFilter;
use pudu_base::MessageId;
use serde_json::{Value, json};

/// The state of a reader of the protocol.
pub(super) struct ProtocolEvents {
    pub(super) filter: EventFilter,
    /// The messages that have begun and not ended.
    pub(super) growing: Vec<(MessageId, GrowingMessage)>,
    /// Time of the next events, in milliseconds since 1970; the current time if it is not known.
    pub(super) at: Option<i64>,
}

/// The blocks of a message.
#[derive(Default)]
pub(super) struct GrowingMessage {
    /// Number of blocks that have ended.
    pub(super) ended: usize,
    pub(super) open: Option<OpenBlock>,
}

/// A block of a message that still grows.
pub(super) struct OpenBlock {
    pub(super) kind: MessageBlockKind,
    pub(super) content: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageBlockKind {
    Text,
    Reasoning,
}

impl MessageBlockKind {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Reasoning => "reasoning",
        }
    }

    pub(super) fn block(self, content: &str) -> Value {
        json!({ "type": self.name(), self.name(): content })
    }

    pub(super) fn delta(self, more: &str) -> Value {
        json!({ "type": format!("{}-delta", self.name()), self.name(): more })
    }
}

impl ProtocolEvents {
    pub(super) fn new(filter: EventFilter) -> Self {
        Self { filter, growing: Vec::new(), at: None }
    }
}
