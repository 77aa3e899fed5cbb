//! Parameters of a call in any of five formats: query, JSON, form, multipart, or a mix.
//!
//! In a query or a form every value is text and structured ones are JSON inside of the text; so a number may be `"7"`
//! and a flag `"True"`. Names are case-sensitive.

use super::{
    error::{Answer, Refusal},
    types::Upload,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use url::form_urlencoded;

/// The parameters of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params {
    fields: Map<String, Value>,
    files: HashMap<String, Upload>,
}

impl Params {
    pub(crate) fn from_json(fields: Map<String, Value>) -> Self {
        Self { fields, files: HashMap::new() }
    }

    pub(crate) fn add_json(&mut self, body: &[u8]) -> Answer<()> {
        let fields: Map<String, Value> =
            serde_json::from_slice(body).map_err(|_| Refusal::bad("can't parse JSON object"))?;
        self.fields.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
        Ok(())
    }

    pub(crate) fn add_form(&mut self, form: &[u8]) {
        for (name, value) in form_urlencoded::parse(form) {
            self.add_text(&name, &value);
        }
    }

    pub(crate) fn add_text(&mut self, name: &str, value: &str) {
        self.fields.insert(name.to_owned(), value.into());
    }

    pub(crate) fn add_file(&mut self, name: &str, file: Upload) {
        self.files.insert(name.to_owned(), file);
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    pub(crate) fn int(&self, name: &str) -> Answer<Option<i64>> {
        let number = match self.fields.get(name) {
            None => return Ok(None),
            Some(Value::String(text)) if text.is_empty() => return Ok(None),
            Some(Value::String(text)) => text.parse().ok(),
            Some(value) => value.as_i64(),
        };
        number.map(Some).ok_or_else(|| Refusal::bad(format!("invalid {name} specified")))
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        match self.fields.get(name) {
            Some(Value::Bool(flag)) => *flag,
            Some(Value::String(text)) => {
                matches!(text.to_ascii_lowercase().as_str(), "true" | "1" | "yes" | "y")
            }
            Some(Value::Number(number)) => number.as_i64() == Some(1),
            _ => false,
        }
    }

    /// Returns a structured value, or `None` if it is missing.
    pub(crate) fn object<T: DeserializeOwned>(&self, name: &str) -> Answer<Option<T>> {
        let parsed = match self.fields.get(name) {
            None => return Ok(None),
            Some(Value::String(text)) if text.is_empty() => return Ok(None),
            Some(Value::String(text)) => serde_json::from_str(text),
            Some(value) => serde_json::from_value(value.clone()),
        };
        parsed.map(Some).map_err(|error| Refusal::bad(format!("can't parse {name}: {error}")))
    }

    /// Returns the file in a field, or the one that it references as `attach://name`.
    pub(crate) fn file(&self, name: &str) -> Option<&Upload> {
        let attached = self.text(name).and_then(|text| text.strip_prefix("attach://"));
        self.files.get(attached.unwrap_or(name))
    }

    /// Returns all parameters for the record; a file is recorded as its name and size.
    pub(crate) fn record(&self) -> Map<String, Value> {
        let mut record = self.fields.clone();
        for (name, file) in &self.files {
            record.insert(name.clone(), json!({"file": file.name, "bytes": file.bytes.len()}));
        }
        record
    }
}
