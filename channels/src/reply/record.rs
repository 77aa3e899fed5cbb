//! Record of a reply by which a restart finds its messages again. Stored: a change must read the old.

use super::messages::{MessageRef, SendIntent};
use crate::ReplyHandle;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// The messages of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReplyRecord<S, M> {
    /// The messages that show the text, in order. At most the last one is only intended.
    #[serde(default = "Vec::new")]
    pub(super) parts: Vec<RecordPart<S, M>>,
    /// The files, as in the final view.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<Sending>,
    /// The question asked in words.
    #[serde(default, skip_serializing_if = "PromptRecord::is_nothing")]
    pub(super) asked: PromptRecord,
    /// Which part is a note that the messages before it did not take.
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
    /// It was about to be sent: it may be there or not.
    Intended(SendIntent<M>),
    /// It is there.
    Sent(S),
}

/// A question asked in words and decided by number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PromptRecord {
    /// The number of the first choice; where nothing is asked, the least for the next question.
    pub(super) first: usize,
    /// Actions of the choices; empty if nothing is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) actions: Vec<String>,
    /// The first part that shows the question in separate messages, where the growing message cannot show it.
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
    /// It has been tried with unknown outcome.
    Tried {
        /// How many.
        times: u8,
        /// The key under which it is sent.
        #[serde(default)]
        key: String,
        /// When the last try was begun, in milliseconds since 1970; 0 in older records.
        #[serde(default, skip_serializing_if = "is_zero")]
        since: i64,
    },
    /// It is there.
    Sent {
        /// The message; empty where the platform gives none.
        id: Id,
    },
    /// It will not be sent; the text says so.
    Failed {
        /// Why, for people.
        why: String,
    },
}

/// A message's id; older records have numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Id {
    Text(String),
    Number(i64),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
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
    /// Reads a handle. One that this version cannot read still contains the ids of the messages.
    pub(super) fn restore(handle: &ReplyHandle, upgrade: impl FnOnce(Value) -> Value) -> Self {
        serde_json::from_value(upgrade(handle.state.clone())).unwrap_or_else(|error| {
            tracing::warn!(%error, "failed to read record of reply; taking up its messages as they are");
            let parts =
                handle.messages.iter().filter_map(|id| S::from_id(id)).map(RecordPart::Sent).collect();
            Self { parts, ..Self::default() }
        })
    }

    /// Writes the handle.
    pub(super) fn handle(&self) -> Result<ReplyHandle, serde_json::Error> {
        Ok(ReplyHandle { state: serde_json::to_value(self)?, messages: self.ids().collect() })
    }

    /// Returns the messages that are there.
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

    /// Returns a part's message, if it is there.
    pub(super) fn part(&self, n: usize) -> Option<&S> {
        match self.parts.get(n) {
            Some(RecordPart::Sent(sent)) => Some(sent),
            _ => None,
        }
    }

    /// Returns a part that may be there or not.
    pub(super) fn intended(&self, n: usize) -> Option<&SendIntent<M>> {
        match self.parts.get(n) {
            Some(RecordPart::Intended(intent)) => Some(intent),
            _ => None,
        }
    }

    /// Puts a part in its place; the parts before it are there.
    pub(super) fn set(&mut self, n: usize, part: RecordPart<S, M>) {
        self.parts.truncate(n);
        self.parts.push(part);
    }
}

/// Makes 32 letters and digits by chance.
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
    fn the_record_is_stored_like_this() {
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
