//! Coerces a tool's arguments to its JSON Schema: a model may wrongly quote a number, a list or a whole object.
//! Applied in one place before a tool is called, to built-in and MCP tools alike.
//!
//! A value that fits its schema stays unchanged: a string that looks like a number stays a string where the schema
//! accepts one.

use serde_json::{Map, Number, Value};
use std::cell::Cell;

/// Maximum depth to which schemas and values are followed.
const MAX_DEPTH: usize = 32;
/// Maximum number of steps for one call: the alternatives of an external schema may multiply.
const MAX_STEPS: u32 = 20_000;

/// Changes arguments to fit a schema if their meaning is clear. The tool rejects other mismatches.
pub(crate) fn coerce(args: &mut Value, schema: &Value) {
    if let Some(Value::Object(object)) = args.as_str().and_then(parsed) {
        *args = Value::Object(object);
    }
    Coercion { root: schema, steps: Cell::new(0) }.value(args, schema, 0);
}

struct Coercion<'a> {
    root: &'a Value,
    steps: Cell<u32>,
}

impl<'a> Coercion<'a> {
    fn value(&self, value: &mut Value, schema: &'a Value, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let Some(schema) = self.branch(value, schema, depth) else { return };
        if !self.accepts(value, schema)
            && let Some(changed) = self.converted(value, schema, depth)
        {
            *value = changed;
        }
        match value {
            Value::Object(object) => self.fields(object, schema, depth),
            Value::Array(list) => {
                if let Some(items) = schema.get("items") {
                    list.iter_mut().for_each(|item| self.value(item, items, depth + 1));
                }
            }
            _ => {}
        }
    }

    fn fields(&self, object: &mut Map<String, Value>, schema: &'a Value, depth: usize) {
        let parts = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
        for part in std::iter::once(schema).chain(parts.filter_map(|part| self.resolved(part))) {
            let Some(properties) = part.get("properties").and_then(Value::as_object) else { continue };
            for (name, property) in properties {
                let Some(field) = object.get_mut(name) else { continue };
                self.value(field, property, depth + 1);
                // Some models write every optional argument, as `null` or an empty string where they have no value.
                let is_blank = field.is_null() || field.as_str().is_some_and(|text| text.trim().is_empty());
                if is_blank && !is_required(part, name) && !self.takes(field, property, depth + 1) {
                    object.remove(name);
                }
            }
        }
        if let Some(others) = schema.get("additionalProperties").filter(|others| others.is_object()) {
            let declared = |name: &String| schema["properties"].get(name).is_some();
            for (_, field) in object.iter_mut().filter(|(name, _)| !declared(name)) {
                self.value(field, others, depth + 1);
            }
        }
    }

    /// Returns the alternative of a schema that a value belongs to: one that it fits, or else the first one that it can
    /// be converted to.
    fn branch(&self, value: &Value, schema: &'a Value, depth: usize) -> Option<&'a Value> {
        let schema = self.resolved(schema)?;
        let alternatives = ["anyOf", "oneOf"].into_iter().find_map(|key| schema.get(key)?.as_array());
        let Some(alternatives) = alternatives.filter(|_| depth < MAX_DEPTH) else { return Some(schema) };
        let branches = || alternatives.iter().filter_map(|one| self.branch(value, one, depth + 1));
        branches()
            .find(|one| self.accepts(value, one))
            .or_else(|| branches().find(|one| self.converted(value, one, depth + 1).is_some()))
    }

    fn takes(&self, value: &Value, schema: &'a Value, depth: usize) -> bool {
        self.branch(value, schema, depth).is_some_and(|branch| self.accepts(value, branch))
    }

    /// Follows references within the schema. Returns `None` for a dangling one, and after too many steps.
    fn resolved(&self, mut schema: &'a Value) -> Option<&'a Value> {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > MAX_STEPS {
            return None;
        }
        for _ in 0..MAX_DEPTH {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { return Some(schema) };
            schema = self.root.pointer(reference.strip_prefix('#')?)?;
        }
        None
    }

    /// Returns whether a value has an allowed type and is among the schema's enumerated values.
    fn accepts(&self, value: &Value, schema: &Value) -> bool {
        let types = types(schema);
        let has_type = types.is_empty() || types.iter().any(|name| is_of_type(value, name));
        let listed = schema.get("enum").and_then(Value::as_array);
        has_type && listed.is_none_or(|listed| listed.contains(value))
    }

    fn converted(&self, value: &Value, schema: &'a Value, depth: usize) -> Option<Value> {
        let types = types(schema);
        if let Some(listed) = schema.get("enum").and_then(Value::as_array) {
            return spelt_like(value, listed);
        }
        let text = value.as_str().map(str::trim);
        let found = types.iter().find_map(|name| match (*name, value, text) {
            ("boolean", _, Some(text)) => match text.to_ascii_lowercase().as_str() {
                "true" => Some(Value::Bool(true)),
                "false" => Some(Value::Bool(false)),
                _ => None,
            },
            ("integer", Value::Number(number), _) => whole(number),
            ("integer", _, Some(text)) => parsed(text)?.as_number().and_then(whole),
            ("number", _, Some(text)) => parsed(text).filter(Value::is_number),
            ("array", _, Some(text)) => parsed(text).filter(Value::is_array),
            ("object", _, Some(text)) => parsed(text).filter(Value::is_object),
            ("null", _, Some("null" | "None")) => Some(Value::Null),
            ("string", Value::Number(_) | Value::Bool(_) | Value::Object(_) | Value::Array(_), _) => {
                Some(Value::String(value.to_string()))
            }
            _ => None,
        });
        found.or_else(|| self.listed(value, schema, &types, depth))
    }

    /// Returns a list of one item, if the schema requires a list and the value fits an item.
    fn listed(&self, value: &Value, schema: &'a Value, types: &[&str], depth: usize) -> Option<Value> {
        let items = schema.get("items").filter(|_| types.contains(&"array"))?;
        let is_blank = value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty());
        (!is_blank && self.takes(value, items, depth + 1)).then(|| Value::Array(vec![value.clone()]))
    }
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|required| required.iter().any(|one| one == name))
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ if schema.get("properties").is_some() => vec!["object"],
        _ => Vec::new(),
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

/// Returns the listed value that matches a value except for spelling; `None` if several match.
fn spelt_like(value: &Value, listed: &[Value]) -> Option<Value> {
    let spelling = |value: &Value| match value {
        Value::String(text) => text.trim().to_lowercase(),
        other => other.to_string(),
    };
    let mut alike = listed.iter().filter(|one| spelling(one) == spelling(value));
    alike.next().filter(|_| alike.next().is_none()).cloned()
}

/// Converts a number without a fraction to an integer.
fn whole(number: &Number) -> Option<Value> {
    if number.is_i64() || number.is_u64() {
        return Some(Value::Number(number.clone()));
    }
    // Beyond 2^53 a float is no longer exact.
    let float =
        number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0)?;
    format!("{float:.0}").parse::<i64>().ok().map(Value::from)
}

fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: &Value, args: &Value, expect: &Value) {
        let mut found = args.clone();
        coerce(&mut found, schema);
        assert_eq!(&found, expect, "{args} by {schema}");
        let mut again = found.clone();
        coerce(&mut again, schema);
        assert_eq!(again, found, "a repetition changes nothing");
    }

    fn check_field(property: &Value, cases: &[(Value, Value)]) {
        let schema = json!({"type": "object", "properties": {"a": property}, "required": ["a"]});
        for (value, expect) in cases {
            check(&schema, &json!({"a": value}), &json!({"a": expect}));
        }
    }

    #[test]
    fn a_value_is_converted_to_the_type_in_its_schema() {
        check_field(
            &json!({"type": "integer"}),
            &[
                (json!("2"), json!(2)),
                (json!(" -7 "), json!(-7)),
                (json!("2.0"), json!(2)),
                (json!(3.0), json!(3)),
                (json!(3.5), json!(3.5)),
                (json!("two"), json!("two")),
                (json!(1e300), json!(1e300)),
                (json!("18446744073709551615"), json!(18_446_744_073_709_551_615_u64)),
            ],
        );
        check_field(
            &json!({"type": "number"}),
            &[(json!("2.5"), json!(2.5)), (json!(2), json!(2)), (json!("x"), json!("x"))],
        );
        check_field(
            &json!({"type": "boolean"}),
            &[
                (json!("true"), json!(true)),
                (json!("False"), json!(false)),
                (json!("yes"), json!("yes")),
                (json!(1), json!(1)),
            ],
        );
        check_field(
            &json!({"type": "string"}),
            &[
                (json!("5"), json!("5")),
                (json!("true"), json!("true")),
                (json!("[1]"), json!("[1]")),
                (json!(5), json!("5")),
                (json!(true), json!("true")),
                (json!({"k": 1}), json!("{\"k\":1}")),
            ],
        );
        check_field(
            &json!({"type": "array", "items": {"type": "string"}}),
            &[
                (json!("[\"x\",\"y\"]"), json!(["x", "y"])),
                (json!("x"), json!(["x"])),
                (json!(["x", 1]), json!(["x", "1"])),
                (json!(""), json!("")),
            ],
        );
        check_field(
            &json!({"type": "array", "items": {"type": "integer"}}),
            &[(json!("[\"1\", 2]"), json!([1, 2])), (json!(["1"]), json!([1]))],
        );
        check_field(
            &json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
            &[(json!("{\"n\":\"1\"}"), json!({"n": 1}))],
        );
        check_field(
            &json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            &[(json!({"x": "1"}), json!({"x": 1}))],
        );
        check_field(
            &json!({"type": ["integer", "null"]}),
            &[(json!("4"), json!(4)), (json!("null"), json!(null)), (Value::Null, Value::Null)],
        );
        check_field(
            &json!({"enum": ["High", "low"]}),
            &[(json!("high"), json!("High")), (json!(" LOW "), json!("low")), (json!("mid"), json!("mid"))],
        );
        check_field(&json!({"enum": [1, 2]}), &[(json!("1"), json!(1))]);
        check_field(&json!({}), &[(json!("5"), json!("5"))]);
        check_field(&json!(true), &[(json!("5"), json!("5"))]);
    }

    #[test]
    fn references_and_alternatives_are_followed() {
        let schema = json!({
            "$defs": {
                "Todo": {"type": "object", "properties": {"content": {"type": "string"}, "n": {"type": "integer"}}, "required": ["content"]},
                "Loop": {"$ref": "#/$defs/Loop"},
            },
            "type": "object",
            "properties": {
                "todos": {"type": "array", "items": {"$ref": "#/$defs/Todo"}},
                "one": {"anyOf": [{"$ref": "#/$defs/Todo"}, {"type": "null"}]},
                "either": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
                "loop": {"$ref": "#/$defs/Loop"},
                "away": {"$ref": "https://example.org/schema"},
            },
        });
        check(
            &schema,
            &json!({"todos": "[{\"content\": 1, \"n\": \"2\"}]"}),
            &json!({"todos": [{"content": "1", "n": 2}]}),
        );
        check(&schema, &json!({"one": "{\"content\": \"a\"}"}), &json!({"one": {"content": "a"}}));
        check(&schema, &json!({"either": "7"}), &json!({"either": "7"}));
        check(&schema, &json!({"loop": "1", "away": "2"}), &json!({"loop": "1", "away": "2"}));
        check(&schema, &json!("{\"either\": 7}"), &json!({"either": 7}));
    }

    #[test]
    fn optional_arguments_without_a_value_are_removed() {
        let schema = json!({"type": "object", "required": ["need"], "properties": {
            "need": {"type": "integer"}, "n": {"type": "integer"}, "s": {"type": "string"}, "maybe": {"type": ["string", "null"]}}});
        check(
            &schema,
            &json!({"need": null, "n": null, "s": null, "maybe": null, "other": null}),
            &json!({"need": null, "maybe": null, "other": null}),
        );
        check(&schema, &json!({"need": "1", "n": "", "s": ""}), &json!({"need": 1, "s": ""}));
    }

    #[test]
    fn deep_and_recursive_schemas_terminate() {
        let mut value = json!("1");
        let mut schema = json!({"type": "integer"});
        for _ in 0..100 {
            value = json!({ "a": value });
            schema = json!({"type": "object", "properties": {"a": schema}});
        }
        coerce(&mut value, &schema);
        let recursive = json!({"$defs": {"T": {"anyOf": [{"$ref": "#/$defs/T"}, {"$ref": "#/$defs/T"}]}},
            "type": "object", "properties": {"a": {"$ref": "#/$defs/T"}}});
        coerce(&mut json!({"a": "1"}), &recursive);
    }
}
