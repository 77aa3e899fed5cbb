//! Reduces tool schemas to the part of JSON Schema that a provider accepts. A provider refuses a whole request if one
//! schema has an unknown keyword, and tools of MCP servers may use any keyword.

use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The part of JSON Schema that a provider accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaForm {
    /// The whole schema.
    Full,
    /// Without references and uncommon keywords.
    Plain,
    /// The subset of OpenAPI 3.0, for Gemini: no `$ref`, `const`, lists of types, or unknown formats.
    OpenApi,
}

/// Maximum depth to which references are resolved, which ends recursive types.
const MAX_DEPTH: usize = 24;
/// Maximum number of parts in an expanded schema.
const MAX_PARTS: usize = 4_000;

/// Keywords that every provider accepts.
const PLAIN_WORDS: [&str; 20] = [
    "type",
    "description",
    "properties",
    "required",
    "items",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "allOf",
    "format",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
    "title",
    "additionalProperties",
];

/// Keywords of JSON Schema in Gemini's subset of OpenAPI.
const OPENAPI_WORDS: [&str; 15] = [
    "type",
    "description",
    "properties",
    "required",
    "items",
    "enum",
    "anyOf",
    "format",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "nullable",
    "title",
    "pattern",
];

/// Formats that providers with format checks accept.
const OPENAPI_FORMATS: [&str; 6] = ["int32", "int64", "float", "double", "enum", "date-time"];

impl SchemaForm {
    /// Returns a tool's schema in this form.
    pub(crate) fn reduce(self, schema: &Value) -> Cow<'_, Value> {
        if self == Self::Full {
            return Cow::Borrowed(schema);
        }
        let mut reducer = Reducer { form: self, root: schema, parts: 0 };
        let mut reduced = reducer.part(schema, 0);
        // Arguments are always an object.
        if let Value::Object(map) = &mut reduced {
            map.insert("type".to_owned(), json!("object"));
            if self == Self::Plain || map.contains_key("properties") {
                map.entry("properties").or_insert_with(|| json!({}));
            }
        }
        Cow::Owned(reduced)
    }
}

struct Reducer<'a> {
    form: SchemaForm,
    root: &'a Value,
    parts: usize,
}

impl Reducer<'_> {
    fn part(&mut self, schema: &Value, depth: usize) -> Value {
        self.parts += 1;
        // `true`, `false`, a schema that is too deep or too large, and a value that is not a schema all accept
        // anything.
        let (Value::Object(map), true) = (schema, depth < MAX_DEPTH && self.parts < MAX_PARTS) else {
            return self.anything();
        };
        let mut map = self.without_reference(map, depth);
        if self.form == SchemaForm::OpenApi {
            plain_type(&mut map);
            one_value(&mut map);
            alternatives(&mut map);
        }
        let words: &[&str] = if self.form == SchemaForm::OpenApi { &OPENAPI_WORDS } else { &PLAIN_WORDS };
        let mut reduced = Map::new();
        for (word, value) in map.iter().filter(|(word, _)| words.contains(&word.as_str())) {
            if let Some(value) = self.word(word, value, depth) {
                reduced.insert(word.clone(), value);
            }
        }
        if self.form == SchemaForm::OpenApi {
            complete(&mut reduced);
        }
        Value::Object(reduced)
    }

    fn anything(&self) -> Value {
        if self.form == SchemaForm::OpenApi { json!({"type": "string"}) } else { json!({}) }
    }

    /// Replaces a reference with its target. Sibling keywords take precedence.
    fn without_reference(&self, map: &Map<String, Value>, depth: usize) -> Map<String, Value> {
        let mut resolved = map.clone();
        for _ in depth..MAX_DEPTH {
            let Some(Value::String(reference)) = resolved.remove("$ref") else { break };
            let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            for (word, value) in target.and_then(Value::as_object).into_iter().flatten() {
                resolved.entry(word.clone()).or_insert_with(|| value.clone());
            }
        }
        resolved.remove("$ref");
        resolved
    }

    fn word(&mut self, word: &str, value: &Value, depth: usize) -> Option<Value> {
        match (word, value) {
            ("properties", Value::Object(map)) => {
                let parts = map.iter().map(|(name, part)| (name.clone(), self.part(part, depth + 1)));
                Some(Value::Object(parts.collect()))
            }
            ("items", Value::Array(parts)) => parts.first().map(|part| self.part(part, depth + 1)),
            ("additionalProperties", Value::Bool(_)) => Some(value.clone()),
            ("items" | "additionalProperties", part) => Some(self.part(part, depth + 1)),
            ("anyOf" | "oneOf" | "allOf", Value::Array(parts)) => {
                Some(parts.iter().map(|part| self.part(part, depth + 1)).collect())
            }
            ("format", Value::String(format)) => {
                let known = self.form != SchemaForm::OpenApi || OPENAPI_FORMATS.contains(&format.as_str());
                // schemars writes non-standard formats for Rust's numbers.
                (known && !format.starts_with("uint")).then(|| value.clone())
            }
            ("enum", Value::Array(values)) if self.form == SchemaForm::OpenApi => {
                Some(values.iter().filter(|value| !value.is_null()).map(text).collect())
            }
            _ => Some(value.clone()),
        }
    }
}

/// Reduces a list of types to one type, and records whether it may be null.
fn plain_type(map: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = map.get("type") else { return };
    let (nulls, others): (Vec<Value>, Vec<Value>) = types.iter().cloned().partition(|name| name == "null");
    if !nulls.is_empty() {
        map.insert("nullable".to_owned(), Value::Bool(true));
    }
    match <[Value; 1]>::try_from(others) {
        Ok([one]) => {
            map.insert("type".to_owned(), one);
        }
        Err(others) => {
            map.remove("type");
            if !others.is_empty() {
                let parts = others.into_iter().map(|name| json!({"type": name}));
                map.entry("anyOf").or_insert_with(|| parts.collect());
            }
        }
    }
}

/// Converts a constant to a list of one value.
fn one_value(map: &mut Map<String, Value>) {
    if let Some(value) = map.remove("const") {
        map.entry("type").or_insert_with(|| json!("string"));
        map.entry("enum").or_insert_with(|| json!([text(&value)]));
    }
    // Gemini accepts only strings in such a list.
    if let Some(values) = map.get("enum") {
        let is_text =
            values.as_array().is_some_and(|values| values.iter().all(|v| v.is_string() || v.is_null()));
        if !is_text && map.get("type").is_some_and(|name| name != "string") {
            map.remove("enum");
        }
    }
}

/// Expresses `oneOf` and `allOf` with supported keywords, and null as `nullable`.
fn alternatives(map: &mut Map<String, Value>) {
    if let Some(Value::Array(parts)) = map.remove("allOf") {
        for part in parts.iter().filter_map(Value::as_object) {
            for (word, value) in part {
                match (word.as_str(), map.get_mut(word), value) {
                    ("properties", Some(Value::Object(have)), Value::Object(more)) => {
                        have.extend(more.clone())
                    }
                    ("required", Some(Value::Array(have)), Value::Array(more)) => have.extend(more.clone()),
                    (_, None, _) => {
                        map.insert(word.clone(), value.clone());
                    }
                    _ => {}
                }
            }
        }
    }
    if let Some(parts) = map.remove("oneOf") {
        map.entry("anyOf").or_insert(parts);
    }
    let Some(Value::Array(parts)) = map.get_mut("anyOf") else { return };
    let before = parts.len();
    parts.retain(|part| part.get("type").is_none_or(|name| name != "null"));
    let (nullable, single) = (parts.len() < before, parts.len() == 1);
    let only = if single { parts.pop() } else { None };
    if nullable {
        map.insert("nullable".to_owned(), Value::Bool(true));
    }
    if let Some(Value::Object(part)) = only {
        map.remove("anyOf");
        for (word, value) in part {
            map.entry(word).or_insert(value);
        }
    }
}

/// Adds the required keywords: a type, and the items of a list.
fn complete(map: &mut Map<String, Value>) {
    let is_typed = map.contains_key("type") || map.contains_key("anyOf");
    if !is_typed {
        let name = if map.contains_key("properties") { "object" } else { "string" };
        map.insert("type".to_owned(), json!(name));
    }
    if map.get("type").is_some_and(|name| name == "array") {
        map.entry("items").or_insert_with(|| json!({"type": "string"}));
    }
    // A required property must be defined.
    let known: Vec<String> = map
        .get("properties")
        .and_then(Value::as_object)
        .map(|p| p.keys().cloned().collect())
        .unwrap_or_default();
    if let Some(Value::Array(required)) = map.get_mut("required") {
        required.retain(|name| name.as_str().is_some_and(|name| known.iter().any(|known| known == name)));
        if required.is_empty() {
            map.remove("required");
        }
    }
}

fn text(value: &Value) -> Value {
    match value {
        Value::String(_) => value.clone(),
        other => Value::String(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn foreign() -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$defs": {
                "Place": {"type": "object", "properties": {"x": {"type": "integer", "format": "uint32", "exclusiveMinimum": 0},
                    "next": {"$ref": "#/$defs/Place"}}, "required": ["x", "gone"], "additionalProperties": false},
            },
            "type": "object",
            "properties": {
                "at": {"$ref": "#/$defs/Place", "description": "where"},
                "kind": {"const": "walk"},
                "size": {"type": ["integer", "null"], "format": "uint"},
                "either": {"type": ["string", "integer"]},
                "list": {"type": "array", "uniqueItems": true, "prefixItems": [{"type": "string"}]},
                "maybe": {"anyOf": [{"type": "string", "format": "uri"}, {"type": "null"}]},
                "level": {"enum": [1, 2], "type": "integer"},
                "any": true
            },
            "required": ["at"],
            "additionalProperties": false,
            "unevaluatedProperties": false
        })
    }

    fn collect_keywords(schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Object(map) => {
                for (word, value) in map {
                    found.push(word.clone());
                    if word == "properties" {
                        value.as_object().unwrap().values().for_each(|part| collect_keywords(part, found));
                    } else {
                        collect_keywords(value, found);
                    }
                }
            }
            Value::Array(parts) => parts.iter().for_each(|part| collect_keywords(part, found)),
            _ => {}
        }
    }

    #[test]
    fn row_42_schemas_contain_only_accepted_keywords() {
        for (form, refused) in [
            (
                SchemaForm::Plain,
                &["$ref", "$defs", "$schema", "uniqueItems", "prefixItems", "unevaluatedProperties"][..],
            ),
            (
                SchemaForm::OpenApi,
                &[
                    "$ref",
                    "$defs",
                    "const",
                    "additionalProperties",
                    "uniqueItems",
                    "exclusiveMinimum",
                    "oneOf",
                    "allOf",
                ][..],
            ),
        ] {
            let foreign = foreign();
            let reduced = form.reduce(&foreign);
            let mut found = Vec::new();
            collect_keywords(&reduced, &mut found);
            for word in refused {
                assert!(!found.iter().any(|found| found == word), "{form:?}: {word} in {reduced}");
            }
            assert!(!reduced.to_string().contains("uint"), "{form:?}: {reduced}");
        }
    }

    #[test]
    fn the_openapi_subset_keeps_the_meaning() {
        let foreign = foreign();
        let reduced = SchemaForm::OpenApi.reduce(&foreign);
        let of = |name: &str| &reduced["properties"][name];
        assert_eq!(of("kind"), &json!({"type": "string", "enum": ["walk"]}));
        assert_eq!(of("size"), &json!({"type": "integer", "nullable": true}));
        assert_eq!(of("either"), &json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}));
        assert_eq!(of("maybe"), &json!({"type": "string", "nullable": true}));
        assert_eq!(of("list"), &json!({"type": "array", "items": {"type": "string"}}));
        assert_eq!(of("level"), &json!({"type": "integer"}));
        assert_eq!(of("at")["description"], "where");
        assert_eq!(of("at")["required"], json!(["x"]), "a missing property cannot be required");
        assert_eq!(of("at")["properties"]["x"], json!({"type": "integer"}));
        assert_eq!(reduced["required"], json!(["at"]));
    }

    #[test]
    fn a_full_schema_is_unchanged_and_an_empty_one_becomes_an_object() {
        let foreign = foreign();
        assert_eq!(SchemaForm::Full.reduce(&foreign).as_ref(), &foreign);
        assert_eq!(*SchemaForm::Plain.reduce(&json!({})), json!({"type": "object", "properties": {}}));
        assert_eq!(*SchemaForm::OpenApi.reduce(&json!({})), json!({"type": "object"}));
    }

    proptest! {
        #[test]
        fn arbitrary_schemas_are_reduced(text in "[a-z$/#\\[\\]{}\":, ]{0,60}") {
            let schema = serde_json::from_str(&text).unwrap_or(json!({"$ref": text, "items": [text], "anyOf": text}));
            for form in [SchemaForm::Plain, SchemaForm::OpenApi] {
                let _ = form.reduce(&schema);
            }
        }
    }
}
