//! Error messages about invalid values: serde's errors without Rust types, and without text values, which may be
//! passwords.

use serde_json::Value;

/// Returns the message about an error at a path in a document; `.` is the whole document.
pub(crate) fn describe(path: &str, error: &str) -> String {
    let (words, place) = (reword(error), path.trim_end_matches('.'));
    // If the key is unknown, the message already names it.
    let unknown = error.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
    let place = match unknown.and_then(|key| place.strip_suffix(key)) {
        Some(above) => above.trim_end_matches('.'),
        None => place,
    };
    if place.is_empty() { words } else { format!("{place}: {words}") }
}

/// Returns the kind of a value, without the value itself, which may be a secret.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Returns whether a value is empty and has no effect: clients send some keys in any case.
pub(crate) fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        _ => false,
    }
}

fn reword(error: &str) -> String {
    if let Some(wrong) = error.strip_prefix("invalid type: ").or(error.strip_prefix("invalid value: "))
        && let Some((got, expected)) = wrong.rsplit_once(", expected ")
    {
        return format!("expected {}, got {}", expected_words(expected), got_words(got));
    }
    if let Some(key) = error.strip_prefix("missing field ") {
        return format!("{key} is missing");
    }
    if let Some(key) = error.strip_prefix("duplicate field ") {
        return format!("{key} is a duplicate key");
    }
    match error.strip_prefix("unknown field ").and_then(|rest| rest.split_once(", ")) {
        Some((key, rest)) => format!("unknown key {key}: {rest}"),
        None => match error.strip_prefix("unknown variant ").and_then(|rest| rest.split_once(", ")) {
            Some((_, expected)) => expected.to_owned(),
            None => error.to_owned(),
        },
    }
}

fn expected_words(expected: &str) -> &str {
    match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number from 0",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a string" | "string" | "a borrowed string" => "text",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        other if other.starts_with("struct ") => "an object",
        other if other.starts_with("enum ") => "one of the allowed values",
        other => other,
    }
}

fn got_words(got: &str) -> &str {
    let quoted = got.split('`').nth(1);
    match got.split(' ').next().unwrap_or_default() {
        "string" | "character" => "text",
        "map" => "an object",
        "sequence" => "a list",
        "unit" | "Option" => "null",
        "integer" | "floating" | "boolean" => quoted.unwrap_or(got),
        _ => got,
    }
}
