//! What is kept of a reply so that a restart finds its messages again. Stored: a change must read the old.

use crate::ReplyHandle;
use serde::{Deserialize, Serialize};

/// The messages of a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The chat, if it has another id than when the reply began: a group became a supergroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) chat: Option<i64>,
    /// The messages that show the text, in order. At most the last one is only intended.
    #[serde(default)]
    pub(super) parts: Vec<Part>,
    /// The files, as in the final view.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<Sending>,
}

/// One message of the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Part {
    /// It was about to be sent: it may be there or not.
    Intended {
        /// When, in milliseconds since 1970.
        since: i64,
        /// The newest message that was known then: this one has a higher number.
        floor: i64,
    },
    /// It is there.
    Sent {
        /// The message.
        id: i64,
    },
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Sending {
    /// It has been tried so many times with unknown outcome.
    Tried {
        /// How many.
        times: u8,
    },
    /// It is there.
    Sent {
        /// The message.
        id: i64,
    },
    /// It will not be sent; the text says so.
    Failed {
        /// Why, for people.
        why: String,
    },
}

impl Record {
    /// Reads a handle. One that this version cannot read still tells which messages there are.
    pub(super) fn restore(handle: &ReplyHandle) -> Self {
        serde_json::from_value(handle.state.clone()).unwrap_or_else(|error| {
            tracing::warn!(%error, "the record of a reply cannot be read; its messages are taken up as they are");
            let ids = handle.messages.iter().filter_map(|id| id.parse().ok());
            Self { parts: ids.map(|id| Part::Sent { id }).collect(), ..Self::default() }
        })
    }

    /// Writes the handle.
    pub(super) fn handle(&self) -> Result<ReplyHandle, serde_json::Error> {
        let messages = self.ids().map(|id| id.to_string()).collect();
        Ok(ReplyHandle { state: serde_json::to_value(self)?, messages })
    }

    /// Returns the messages that are there.
    pub(super) fn ids(&self) -> impl Iterator<Item = i64> {
        let parts = self.parts.iter().filter_map(|part| match part {
            Part::Sent { id } => Some(*id),
            Part::Intended { .. } => None,
        });
        parts.chain(self.files.iter().filter_map(|file| match file {
            Sending::Sent { id } => Some(*id),
            Sending::Tried { .. } | Sending::Failed { .. } => None,
        }))
    }

    /// Returns a part's message, if it is there.
    pub(super) fn part(&self, n: usize) -> Option<i64> {
        match self.parts.get(n) {
            Some(Part::Sent { id }) => Some(*id),
            _ => None,
        }
    }

    /// Puts a part in its place; the parts before it are there.
    pub(super) fn set(&mut self, n: usize, part: Part) {
        self.parts.truncate(n);
        self.parts.push(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_record_is_stored_like_this() {
        let record = Record {
            chat: Some(-100),
            parts: vec![Part::Sent { id: 5 }, Part::Intended { since: 1, floor: 5 }],
            files: vec![
                Sending::Tried { times: 1 },
                Sending::Sent { id: 8 },
                Sending::Failed { why: "gone".into() },
            ],
        };
        let state = json!({
            "chat": -100,
            "parts": [{"sent": {"id": 5}}, {"intended": {"since": 1, "floor": 5}}],
            "files": [{"tried": {"times": 1}}, {"sent": {"id": 8}}, {"failed": {"why": "gone"}}],
        });
        let handle = ReplyHandle { state, messages: vec!["5".into(), "8".into()] };
        assert_eq!(record.handle().unwrap(), handle);
        assert_eq!(Record::restore(&handle), record);
    }

    #[test]
    fn the_messages_of_an_unreadable_record_are_not_lost() {
        let handle = ReplyHandle { state: json!("?"), messages: vec!["5".into(), "x".into()] };
        let parts = vec![Part::Sent { id: 5 }];
        assert_eq!(Record::restore(&handle), Record { parts, ..Record::default() });
    }
}
