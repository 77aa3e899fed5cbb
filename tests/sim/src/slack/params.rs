//! Parameters of a call: query, form or JSON. In a query or a form every value is text, and structured ones are JSON
//! inside of the text.

use super::error::{Answer, Refusal};
use serde_json::{Map, Value};
use url::form_urlencoded;

/// The parameters of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params {
    fields: Map<String, Value>,
    /// Whether some were JSON, which methods that read do not accept.
    pub(crate) json: bool,
}

impl Params {
    pub(crate) fn add_json(&mut self, body: &[u8]) -> Answer<()> {
        let fields: Map<String, Value> =
            serde_json::from_slice(body).map_err(|_| Refusal::new("json_not_object"))?;
        self.json = true;
        self.fields.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
        Ok(())
    }

    pub(crate) fn add_form(&mut self, form: &[u8]) {
        for (name, value) in form_urlencoded::parse(form) {
            self.fields.insert(name.into_owned(), value.into_owned().into());
        }
    }

    pub(crate) fn from_record(fields: Map<String, Value>) -> Self {
        Self { fields, json: true }
    }

    /// Removes the token, so that it is not recorded.
    pub(crate) fn take_token(&mut self) -> Option<String> {
        self.fields.remove("token")?.as_str().map(str::to_owned)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    pub(crate) fn need(&self, name: &str) -> Answer<&str> {
        let missing = || Refusal::argument("invalid_arguments", &format!("missing required field: {name}"));
        self.text(name).ok_or_else(missing)
    }

    pub(crate) fn int(&self, name: &str) -> Option<u64> {
        let value = self.fields.get(name)?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        match self.fields.get(name)? {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) => Some(matches!(text.to_ascii_lowercase().as_str(), "true" | "1")),
            Value::Number(number) => Some(number.as_i64() == Some(1)),
            _ => None,
        }
    }

    /// Returns a structured value, or `None` if it is missing.
    pub(crate) fn object(&self, name: &str) -> Answer<Option<Value>> {
        match self.fields.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => serde_json::from_str(text)
                .map(Some)
                .map_err(|_| Refusal::argument("invalid_arguments", &format!("must be valid JSON: {name}"))),
            Some(value) => Ok(Some(value.clone())),
        }
    }

    pub(crate) fn list(&self, name: &str) -> Answer<Vec<Value>> {
        match self.object(name)? {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) => Ok(list),
            Some(_) => Err(Refusal::argument("invalid_arguments", &format!("must be an array: {name}"))),
        }
    }

    /// Returns all parameters for the record.
    pub(crate) fn record(&self) -> Map<String, Value> {
        self.fields.clone()
    }
}
