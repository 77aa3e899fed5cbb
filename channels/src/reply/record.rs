//! Record of a reply, for finding its messages after a restart. Stored: later versions must still read this format.

use super::messages::{MessageRef, SendIntent};
use crate::ReplyHandle;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// The messages of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReplyRecord<S, M> {
    /// The messages of the text, in order. Only the last one may be unsent.
    #[serde(default = "Vec::new")]
    pub(super) parts: Vec<RecordPart<S, M>>,
    /// The files, as in the final view.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<Sending>,
    /// The question asked as text.
    #[serde(default, skip_serializing_if = "PromptRecord::is_nothing")]
    pub(super) asked: PromptRecord,
    /// Index of the part that is a separate note, because the messages before it could not be edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) noted: Option<usize>,
    /// The platform's own state of the reply as a whole.
    #[serde(rename = "memo", default, skip_serializing_if = "Value::is_null")]
    pub(super) platform_state: Value,
}

/// One message of the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordPart<S, M> {
    /// The message was about to be sent, and may or may not have been.
    Intended(SendIntent<M>),
    Sent(S),
}

/// A question asked as text and answered by number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PromptRecord {
    /// Number of the first choice. If nothing is asked, the minimum for the next question.
    pub(super) first: usize,
    /// Actions of the choices; empty if nothing is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) actions: Vec<String>,
    /// Index of the first part with the question, if the question has separate messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<usize>,
}

impl PromptRecord {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Sending {
    /// The file is unsent, or was sent with an unknown outcome.
    Tried {
        /// Number of attempts.
        times: u8,
        /// The key under which it is sent.
        #[serde(default)]
        key: String,
        /// Start of the last attempt, in milliseconds since 1970; 0 in older records.
        #[serde(default, skip_serializing_if = "is_zero")]
        since: i64,
    },
    Sent {
        /// The message; empty if the platform provides no id.
        id: Id,
    },
    /// The file will not be sent; the text says so.
    Failed {
        /// The reason, for users.
        why: String,
    },
}

/// Id of a message. Older records contain numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Id {
    Text(String),
    Number(i64),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "required by serde")]
fn is_zero(time: &i64) -> bool {
    *time == 0
}

impl Id {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
        }
    }
}

impl<S, M> Default for ReplyRecord<S, M> {
    fn default() -> Self {
        Self {
            parts: Vec::new(),
            files: Vec::new(),
            asked: PromptRecord::default(),
            noted: None,
            platform_state: Value::Null,
        }
    }
}

impl<S: MessageRef, M: Clone + Serialize + DeserializeOwned> ReplyRecord<S, M> {
    /// Reads a handle. If this version cannot read it, the ids of the messages are still used.
    pub(super) fn restore(handle: &ReplyHandle, upgrade: impl FnOnce(Value) -> Value) -> Self {
        serde_json::from_value(upgrade(handle.state.clone())).unwrap_or_else(|error| {
            tracing::warn!(%error, "failed to read record of reply; using only its message ids");
            let parts =
                handle.messages.iter().filter_map(|id| S::from_id(id)).map(RecordPart::Sent).collect();
            Self { parts, ..Self::default() }
        })
    }

    /// Serializes the record as a handle.
    pub(super) fn handle(&self) -> Result<ReplyHandle, serde_json::Error> {
        Ok(ReplyHandle { state: serde_json::to_value(self)?, messages: self.ids().collect() })
    }

    /// Returns the ids of the sent messages.
    pub(super) fn ids(&self) -> impl Iterator<Item = String> {
        let parts = self.parts.iter().filter_map(|part| match part {
            RecordPart::Sent(sent) => Some(sent.id()),
            RecordPart::Intended(_) => None,
        });
        let files = self.files.iter().filter_map(|file| match file {
            Sending::Sent { id } => Some(id.text()),
            Sending::Tried { .. } | Sending::Failed { .. } => None,
        });
        parts.chain(files).filter(|id| !id.is_empty())
    }

    /// Returns a part's message, if it was sent.
    pub(super) fn part(&self, n: usize) -> Option<&S> {
        match self.parts.get(n) {
            Some(RecordPart::Sent(sent)) => Some(sent),
            _ => None,
        }
    }

    /// Returns the intent of a part that may or may not have been sent.
    pub(super) fn intended(&self, n: usize) -> Option<&SendIntent<M>> {
        match self.parts.get(n) {
            Some(RecordPart::Intended(intent)) => Some(intent),
            _ => None,
        }
    }

    /// Sets a part and drops all later ones. All earlier parts exist.
    pub(super) fn set(&mut self, n: usize, part: RecordPart<S, M>) {
        self.parts.truncate(n);
        self.parts.push(part);
    }
}

/// Returns 32 random letters and digits.
pub(super) fn fresh_key() -> String {
    std::iter::repeat_with(fastrand::alphanumeric).take(32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct CardRecord {
        id: String,
        #[serde(default)]
        page: u32,
    }

    impl MessageRef for CardRecord {
        fn id(&self) -> String {
            self.id.clone()
        }

        fn from_id(id: &str) -> Option<Self> {
            id.starts_with('m').then(|| Self { id: id.to_owned(), page: 0 })
        }
    }

    #[test]
    fn the_format_of_records_is_stable() {
        let intent = SendIntent { n: 0, again: false, key: "k1".into(), since: 1, dedup_key: 5 };
        let record: ReplyRecord<CardRecord, i64> = ReplyRecord {
            parts: vec![
                RecordPart::Sent(CardRecord { id: "m5".into(), page: 2 }),
                RecordPart::Intended(intent),
            ],
            files: vec![
                Sending::Tried { times: 1, key: "k2".into(), since: 7 },
                Sending::Sent { id: Id::Text("m8".into()) },
                Sending::Failed { why: "gone".into() },
            ],
            asked: PromptRecord { first: 3, actions: vec!["/approve k".into()], at: Some(1) },
            noted: Some(2),
            platform_state: json!({"chat": -100}),
        };
        let state = json!({
            "parts": [{"sent": {"id": "m5", "page": 2}}, {"intended": {"key": "k1", "since": 1, "mark": 5}}],
            "files": [{"tried": {"times": 1, "key": "k2", "since": 7}}, {"sent": {"id": "m8"}}, {"failed": {"why": "gone"}}],
            "asked": {"first": 3, "actions": ["/approve k"], "at": 1},
            "noted": 2,
            "memo": {"chat": -100},
        });
        let handle = ReplyHandle { state, messages: vec!["m5".into(), "m8".into()] };
        assert_eq!(record.handle().unwrap(), handle);
        assert_eq!(ReplyRecord::restore(&handle, |state| state), record);
    }

    #[test]
    fn the_messages_of_an_unreadable_record_are_not_lost() {
        let handle = ReplyHandle { state: json!("?"), messages: vec!["m5".into(), "x".into()] };
        let parts = vec![RecordPart::Sent(CardRecord { id: "m5".into(), page: 0 })];
        assert_eq!(
            ReplyRecord::<CardRecord, i64>::restore(&handle, |state| state),
            ReplyRecord { parts, ..ReplyRecord::default() }
        );
    }
}
