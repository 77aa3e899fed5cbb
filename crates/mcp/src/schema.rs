//! Repairs the schema of a tool's arguments. If a provider finds an invalid keyword in one schema, it rejects the whole
//! request with all tools of all servers. Each part therefore becomes valid JSON Schema or is omitted.

use pudu_base::digest;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Maximum depth of a schema. Deeper parts accept any value.
const MAX_DEPTH: usize = 24;
/// Maximum number of parts in a schema. Further parts accept any value.
const MAX_PARTS: usize = 4_000;
/// Maximum size of a schema, in bytes.
const MAX_BYTES: usize = 64 * 1024;
/// Maximum length of an argument's name, in characters: Anthropic's limit.
const MAX_KEY_CHARS: usize = 64;
/// The types of JSON Schema.
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
/// Names of these types in programming languages.
const TYPE_ALIASES: [(&str, &str); 14] = [
    ("str", "string"),
    ("text", "string"),
    ("date", "string"),
    ("datetime", "string"),
    ("int", "integer"),
    ("long", "integer"),
    ("float", "number"),
    ("double", "number"),
    ("decimal", "number"),
    ("bool", "boolean"),
    ("dict", "object"),
    ("map", "object"),
    ("list", "array"),
    ("tuple", "array"),
];
/// Keywords whose value is a schema.
const PARTS: [&str; 8] = [
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of schemas.
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keywords whose value is an object of schemas.
const MAPS: [&str; 4] = ["patternProperties", "$defs", "definitions", "dependentSchemas"];
/// Keywords whose value is a number.
const NUMBERS: [&str; 11] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
];
/// Keywords whose value is a string.
const TEXTS: [&str; 6] = ["title", "description", "format", "pattern", "$comment", "contentEncoding"];

/// A schema that providers accept.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ToolSchema {
    /// The schema, which describes an object of arguments.
    pub(crate) parameters: Value,
    /// Maps the model's name of an argument to the server's, if providers would reject the server's name.
    pub(crate) renamed: HashMap<String, String>,
    /// Descriptions of the changes, without duplicates.
    pub(crate) changes: BTreeSet<String>,
}

impl ToolSchema {
    /// Repairs a schema.
    ///
    /// # Errors
    /// When the schema is too large even without its descriptions.
    pub(crate) fn repair(schema: Map<String, Value>) -> Result<Self, String> {
        let mut repair = Repair { root: Value::Object(schema.clone()), parts: 0, schema: Self::default() };
        let schema = repair.outermost(schema);
        let mut parameters = repair.part(Value::Object(schema), 0);
        let mut repaired = repair.schema;
        if parameters.to_string().len() > MAX_BYTES {
            shorten(&mut parameters);
            repaired.changes.insert("its schema is large; its descriptions are left out".to_owned());
        }
        if parameters.to_string().len() > MAX_BYTES {
            return Err(format!("its schema is larger than {} KiB", MAX_BYTES / 1024));
        }
        repaired.parameters = parameters;
        Ok(repaired)
    }

    /// Restores the server's names in the arguments of a call.
    pub(crate) fn restore_names(&self, value: Value) -> Value {
        if self.renamed.is_empty() {
            return value;
        }
        match value {
            Value::Object(map) => map
                .into_iter()
                .map(|(key, value)| {
                    (self.renamed.get(&key).cloned().unwrap_or(key), self.restore_names(value))
                })
                .collect(),
            Value::Array(items) => items.into_iter().map(|item| self.restore_names(item)).collect(),
            value => value,
        }
    }
}

struct Repair {
    root: Value,
    parts: usize,
    schema: ToolSchema,
}

impl Repair {
    fn note(&mut self, change: impl Into<String>) {
        self.schema.changes.insert(change.into());
    }

    /// Ensures that the outermost schema describes an object.
    fn outermost(&mut self, mut schema: Map<String, Value>) -> Map<String, Value> {
        // The schema consists of the arguments by name, without `properties` around them.
        let is_argument = |value: &Value| value.get("type").is_some_and(Value::is_string);
        if !schema.is_empty() && !schema.contains_key("type") && schema.values().all(is_argument) {
            self.note("its schema has no `properties`");
            let properties = Value::Object(std::mem::take(&mut schema));
            schema.insert("properties".to_owned(), properties);
        }
        let is_object = match schema.get("type") {
            Some(Value::String(name)) => type_name(name) == Some("object"),
            Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
            _ => true,
        };
        if !is_object {
            self.note("its arguments are not described as an object; they may be anything");
            let description = schema.remove("description");
            schema = description.map(|text| ("description".to_owned(), text)).into_iter().collect();
        }
        schema.insert("type".to_owned(), json!("object"));
        schema.entry("properties").or_insert_with(|| json!({}));
        schema
    }

    /// Repairs a schema or one of its parts.
    fn part(&mut self, schema: Value, depth: usize) -> Value {
        self.parts += 1;
        if depth >= MAX_DEPTH || self.parts > MAX_PARTS {
            self.note("its schema is too deep or has too many parts; the rest may be anything");
            return json!({});
        }
        let mut schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(true) => return json!({}),
            Value::Bool(false) if depth > 0 => return json!(false),
            Value::String(name) if type_name(&name).is_some() => {
                self.note("found a type name where a schema was expected");
                return json!({ "type": type_name(&name) });
            }
            _ => {
                self.note("found another value where a schema was expected");
                return json!({});
            }
        };
        self.types(&mut schema);
        self.reference(&mut schema);
        self.properties(&mut schema, depth);
        self.items(&mut schema, depth);
        self.values(&mut schema);
        for word in PARTS {
            if let Some(value) = schema.remove(word) {
                let part = if value.is_boolean() { value } else { self.part(value, depth + 1) };
                schema.insert(word.to_owned(), part);
            }
        }
        for word in LISTS {
            match schema.remove(word) {
                Some(Value::Array(parts)) if !parts.is_empty() => {
                    let parts = parts.into_iter().map(|part| self.part(part, depth + 1)).collect();
                    schema.insert(word.to_owned(), parts);
                }
                Some(_) => self.note(format!("`{word}` is not a list of schemas")),
                None => {}
            }
        }
        for word in MAPS {
            match schema.remove(word) {
                Some(Value::Object(parts)) => {
                    let parts = parts.into_iter().map(|(name, part)| (name, self.part(part, depth + 1)));
                    let parts: Map<String, Value> = parts.collect();
                    schema.insert(word.to_owned(), Value::Object(parts));
                }
                Some(_) => self.note(format!("`{word}` is not an object of schemas")),
                None => {}
            }
        }
        Value::Object(schema)
    }

    fn types(&mut self, schema: &mut Map<String, Value>) {
        let Some(value) = schema.remove("type") else { return };
        let type_value = match &value {
            Value::String(name) => type_name(name).map(|name| json!(name)),
            Value::Array(names) => {
                let mut known: Vec<&str> = Vec::new();
                for name in names.iter().filter_map(|name| type_name(name.as_str()?)) {
                    if !known.contains(&name) {
                        known.push(name);
                    }
                }
                match known.as_slice() {
                    [] => None,
                    [one] => Some(json!(one)),
                    many => Some(json!(many)),
                }
            }
            _ => None,
        };
        if type_value.as_ref() != Some(&value) {
            self.note("`type` is not a JSON Schema type");
        }
        if let Some(type_value) = type_value {
            schema.insert("type".to_owned(), type_value);
        }
    }

    /// Drops a dangling reference.
    fn reference(&mut self, schema: &mut Map<String, Value>) {
        let Some(reference) = schema.get("$ref") else { return };
        let is_known = match reference.as_str() {
            Some("#") => true,
            Some(reference) => reference
                .strip_prefix('#')
                .is_some_and(|pointer| self.root.pointer(pointer).is_some_and(Value::is_object)),
            None => false,
        };
        if !is_known {
            schema.remove("$ref");
            self.note("`$ref` names no part of its schema");
        }
    }

    fn properties(&mut self, schema: &mut Map<String, Value>, depth: usize) {
        let properties = match schema.remove("properties") {
            None => None,
            Some(Value::Object(properties)) => Some(properties),
            Some(value) => {
                self.note("`properties` is not an object");
                Some(by_name(value))
            }
        };
        let mut required: Vec<Value> = match schema.remove("required") {
            None => Vec::new(),
            Some(Value::Array(names)) => names,
            Some(_) => {
                self.note("`required` is not a list of names");
                Vec::new()
            }
        };
        let Some(mut properties) = properties else {
            required.retain(Value::is_string);
            if !required.is_empty() {
                schema.insert("required".to_owned(), Value::Array(required));
            }
            return;
        };
        // The list of required names is nested one level too deep.
        if properties.get("required").is_some_and(Value::is_array)
            && let Some(Value::Array(names)) = properties.remove("required")
        {
            self.note("`required` is among its `properties`");
            required.extend(names);
        }
        let mut names = HashMap::new();
        let mut repaired = Map::new();
        for (name, mut part) in properties {
            // An earlier draft of JSON Schema marks each required argument.
            if let Some(marked) =
                part.as_object_mut().filter(|part| part.get("required").is_some_and(Value::is_boolean))
                && marked.remove("required") == Some(json!(true))
            {
                required.push(json!(name));
            }
            let key = if is_key(&name) { name.clone() } else { self.rename(&name) };
            let part = self.part(part, depth + 1);
            repaired.insert(key.clone(), part);
            names.insert(name, key);
        }
        let mut seen = HashSet::new();
        let before = required.len();
        let required: Vec<Value> = required
            .iter()
            .filter_map(|name| names.get(name.as_str()?))
            .filter(|name| seen.insert((*name).clone()))
            .map(|name| json!(name))
            .collect();
        if required.len() < before {
            self.note("`required` lists unknown properties");
        }
        if !required.is_empty() {
            schema.insert("required".to_owned(), Value::Array(required));
        }
        schema.insert("properties".to_owned(), Value::Object(repaired));
    }

    /// Returns a name that providers accept, and maps it to the argument's own name.
    fn rename(&mut self, name: &str) -> String {
        let plain = |c: char| if is_key_char(c) { c } else { '_' };
        let stem: String = name.chars().map(plain).take(MAX_KEY_CHARS - 9).collect();
        let key = format!("{}_{}", stem.trim_matches('_'), &digest(name).get(..8).unwrap_or_default());
        let key = key.trim_start_matches('_').to_owned();
        self.note("an argument has a name that providers refuse; the model gets another one");
        self.schema.renamed.insert(key.clone(), name.to_owned());
        key
    }

    fn items(&mut self, schema: &mut Map<String, Value>, depth: usize) {
        let is_list = schema.get("type").is_some_and(|name| name == "array");
        let items = match schema.remove("items") {
            None if is_list => json!({}),
            None => return,
            // One schema for each position, as in earlier drafts.
            Some(Value::Array(parts)) => {
                self.note("`items` is a list");
                let parts: Vec<Value> = parts.into_iter().map(|part| self.part(part, depth + 1)).collect();
                if parts.is_empty() { json!({}) } else { json!({ "anyOf": parts }) }
            }
            Some(part) => self.part(part, depth + 1),
        };
        schema.insert("items".to_owned(), items);
    }

    /// Repairs keywords whose value is not a schema.
    fn values(&mut self, schema: &mut Map<String, Value>) {
        for (exclusive, limit) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
            // In an earlier draft, a boolean accompanies the limit.
            if let Some(Value::Bool(is_exclusive)) = schema.get(exclusive).cloned() {
                schema.remove(exclusive);
                if let Some(value) = schema.remove(limit) {
                    let word = if is_exclusive { exclusive } else { limit };
                    schema.insert(word.to_owned(), value);
                }
            }
        }
        for word in NUMBERS {
            let Some(value) = schema.get(word).filter(|value| !value.is_number()) else { continue };
            let number = value.as_str().and_then(|text| serde_json::from_str::<Value>(text.trim()).ok());
            self.note(format!("`{word}` is not a number"));
            match number.filter(Value::is_number) {
                Some(number) => schema.insert(word.to_owned(), number),
                None => schema.remove(word),
            };
        }
        for word in TEXTS {
            let Some(value) = schema.get(word).filter(|value| !value.is_string()) else { continue };
            let text = value
                .as_array()
                .map(|lines| lines.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"));
            self.note(format!("`{word}` is not a string"));
            match text.filter(|text| !text.is_empty()) {
                Some(text) => schema.insert(word.to_owned(), json!(text)),
                None => schema.remove(word),
            };
        }
        if schema.get("enum").is_some_and(|values| values.as_array().is_none_or(Vec::is_empty)) {
            schema.remove("enum");
            self.note("`enum` is not a list of values");
        }
    }
}

/// Returns the JSON Schema type of a name.
fn type_name(name: &str) -> Option<&'static str> {
    let name = name.trim().to_ascii_lowercase();
    let known = TYPES.into_iter().find(|known| *known == name);
    known.or_else(|| TYPE_ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, known)| *known))
}

/// Converts a list of arguments that contain their names to an object by name.
fn by_name(list: Value) -> Map<String, Value> {
    let Value::Array(items) = list else { return Map::new() };
    let pairs = items.into_iter().filter_map(|mut item| match item.as_object_mut()?.remove("name")? {
        Value::String(name) => Some((name, item)),
        _ => None,
    });
    pairs.collect()
}

fn is_key(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_KEY_CHARS && name.chars().all(is_key_char)
}

fn is_key_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Drops keywords that only describe the schema.
fn shorten(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.retain(|word, value| {
                let explains =
                    ["description", "title", "examples", "default", "$comment"].contains(&word.as_str());
                !explains || value.is_object()
            });
            map.values_mut().for_each(shorten);
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
