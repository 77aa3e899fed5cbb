//! Errors of methods.

use super::types::ChatId;
use serde_json::{Map, Value, json};

/// A refusal in the platform's wording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    pub(crate) text: String,
    pub(crate) retry_after: Option<u64>,
    pub(crate) migrate_to: Option<ChatId>,
}

impl Refusal {
    pub(crate) fn new(code: u16, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), retry_after: None, migrate_to: None }
    }

    pub(crate) fn bad(what: impl std::fmt::Display) -> Self {
        Self::new(400, format!("Bad Request: {what}"))
    }

    pub(crate) fn forbidden(what: &str) -> Self {
        Self::new(403, format!("Forbidden: {what}"))
    }

    pub(crate) fn conflict(what: &str) -> Self {
        Self::new(409, format!("Conflict: {what}"))
    }

    pub(crate) fn too_many(seconds: u64) -> Self {
        let text = format!("Too Many Requests: retry after {seconds}");
        Self { retry_after: Some(seconds), ..Self::new(429, text) }
    }

    pub(crate) fn migrated(to: ChatId) -> Self {
        Self { migrate_to: Some(to), ..Self::bad("group chat was upgraded to a supergroup chat") }
    }

    pub(crate) fn body(&self) -> Value {
        let mut body = json!({"ok": false, "error_code": self.code, "description": self.text});
        let parameters: Map<String, Value> = [
            ("retry_after", self.retry_after.map(Value::from)),
            ("migrate_to_chat_id", self.migrate_to.map(|chat| chat.0.into())),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect();
        if !parameters.is_empty() {
            body["parameters"] = parameters.into();
        }
        body
    }
}

/// The result of a method.
pub(crate) type Answer<T = Value> = Result<T, Refusal>;
