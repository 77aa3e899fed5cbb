//! A parsed call: the parts of its path, its query, its JSON or its form.

use super::refusal::{Answer, Refusal};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A file of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) bytes: Bytes,
}

/// A call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ask {
    pub(crate) token: Option<String>,
    pub(crate) path: Vec<(&'static str, String)>,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) body: Map<String, Value>,
    pub(crate) files: BTreeMap<String, Part>,
}

impl Ask {
    /// Returns a part of the path, by its name in the route.
    pub(crate) fn id(&self, name: &str) -> &str {
        self.path.iter().find(|(known, _)| *known == name).map_or("", |(_, id)| id)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.body.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    pub(crate) fn need(&self, name: &str) -> Answer<&str> {
        self.text(name).ok_or_else(|| Refusal::field(&format!("{name} is required")))
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.body.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Returns the idempotency key.
    pub(crate) fn uuid(&self, longest: usize) -> Answer<Option<String>> {
        match self.text("uuid") {
            Some(uuid) if uuid.chars().count() > longest => {
                Err(Refusal::field(&format!("the max len of uuid is {longest}")))
            }
            uuid => Ok(uuid.map(str::to_owned)),
        }
    }

    /// Returns all parameters for the record, without secrets; a file is recorded as its name and size.
    pub(crate) fn record(&self) -> Map<String, Value> {
        let mut record = self.body.clone();
        record.extend(self.query.iter().map(|(name, value)| (name.clone(), json!(value))));
        record.extend(self.path.iter().map(|(name, id)| ((*name).to_owned(), json!(id))));
        let files = self.files.iter();
        record.extend(
            files.map(|(field, part)| (field.clone(), json!({"name": part.name, "size": part.bytes.len()}))),
        );
        for secret in ["app_secret", "AppSecret"] {
            if record.contains_key(secret) {
                record.insert(secret.to_owned(), "***".into());
            }
        }
        record
    }
}
