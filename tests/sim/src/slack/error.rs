//! Errors of methods: HTTP 200 with `ok: false`, and 429 for too many calls.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A refusal, by its documented name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) error: String,
    pub(crate) status: u16,
    pub(crate) retry_after: Option<u64>,
    pub(crate) more: Map<String, Value>,
}

impl Refusal {
    pub(crate) fn new(error: &str) -> Self {
        Self { error: error.to_owned(), status: 200, retry_after: None, more: Map::new() }
    }

    /// Adds the platform's description of the invalid argument.
    pub(crate) fn argument(error: &str, why: &str) -> Self {
        let mut refusal = Self::new(error);
        let messages = json!({"messages": [format!("[ERROR] {why}")]});
        refusal.more.insert("response_metadata".to_owned(), messages);
        refusal
    }

    pub(crate) fn scope(needed: &str, provided: &BTreeSet<String>) -> Self {
        let mut refusal = Self::new("missing_scope");
        let provided: Vec<&str> = provided.iter().map(String::as_str).collect();
        refusal.more.insert("needed".to_owned(), needed.into());
        refusal.more.insert("provided".to_owned(), provided.join(",").into());
        refusal
    }

    pub(crate) fn too_many(seconds: u64) -> Self {
        Self { status: 429, retry_after: Some(seconds), ..Self::new("ratelimited") }
    }

    pub(crate) fn body(&self) -> Value {
        let mut body = self.more.clone();
        body.insert("ok".to_owned(), false.into());
        body.insert("error".to_owned(), self.error.as_str().into());
        body.into()
    }
}

/// The result of a method.
pub(crate) type Answer<T = Value> = Result<T, Refusal>;
