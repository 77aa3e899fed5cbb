//! Describes the effect of a call, so that users see the action that they approve: in one line, and in full where the
//! line leaves something out.
//!
//! The line shows every argument, however long the others are: each value is cut separately, at both ends, with the
//! number of omitted characters. Characters that are invisible or ambiguous are escaped.

use pudu_base::{ToolCall, foreign};
use serde_json::Value;

/// Numbers of characters shown from the beginning and the end of a command.
const COMMAND: (usize, usize) = (500, 250);
/// Numbers of characters shown from the beginning and the end of a string argument.
const TEXT: (usize, usize) = (100, 40);
/// Numbers of characters shown from the beginning and the end of all arguments together.
const ALL: (usize, usize) = (900, 300);
/// Numbers of characters shown from the beginning and the end of a tool's note on a call.
const NOTE: (usize, usize) = (200, 40);
/// Maximum number of list items shown.
const LIST: usize = 20;
/// Maximum nesting depth shown.
const DEPTH: usize = 6;

/// Returns the line that describes a call, beginning with the tool's own note.
pub(super) fn line(call: &ToolCall, script: Option<&str>, note: Option<&str>) -> String {
    let what = match script {
        Some(script) => cut(&escape_invisible(script), COMMAND),
        None => cut(&format!("{} {}", escape_invisible(&call.name), brief(&call.args, DEPTH)), ALL),
    };
    match note {
        Some(note) => format!("`{}: {what}`", cut(&escape_invisible(note), NOTE)),
        None => format!("`{what}`"),
    }
}

/// Returns the full call, line by line; `None` if the line for users is complete. Each line of a multi-line text has a
/// marker, so that none passes for another argument.
pub(super) fn whole(call: &ToolCall, script: Option<&str>) -> Option<String> {
    let is_cut = match script {
        Some(script) => is_longer(&escape_invisible(script), COMMAND),
        None => is_cut(&call.args, DEPTH) || is_longer(&format!("{} {}", call.name, call.args), ALL),
    };
    let args = || match &call.args {
        Value::Object(map) => map.iter().map(|(key, value)| argument(key, value)).collect::<String>(),
        other => argument("arguments", other),
    };
    is_cut.then(|| match script {
        Some(script) => lines(script, ""),
        None => format!("{}\n{}", escape_invisible(&call.name), args()),
    })
}

fn argument(key: &str, value: &Value) -> String {
    let key = escape_invisible(key);
    match value {
        Value::String(text) if text.contains('\n') => format!("{key}:\n{}\n", lines(text, "  | ")),
        Value::String(text) => format!("{key}: {}\n", escape_invisible(text)),
        other => {
            let written = serde_json::to_string_pretty(other).unwrap_or_default();
            format!("{key}:\n{}\n", lines(&written, "  "))
        }
    }
}

fn lines(text: &str, sign: &str) -> String {
    let text = text.replace("\r\n", "\n");
    text.split('\n').map(|line| format!("{sign}{}", escape_invisible(line))).collect::<Vec<_>>().join("\n")
}

/// Returns whether [`brief`] leaves something out.
fn is_cut(value: &Value, depth: usize) -> bool {
    match value {
        Value::String(text) => is_longer(&escape_invisible(text), TEXT),
        Value::Array(_) | Value::Object(_) if depth == 0 => true,
        Value::Array(values) => values.len() > LIST || values.iter().any(|one| is_cut(one, depth - 1)),
        Value::Object(map) => {
            map.iter().any(|(key, one)| is_longer(&escape_invisible(key), TEXT) || is_cut(one, depth - 1))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn is_longer(text: &str, (head, tail): (usize, usize)) -> bool {
    text.chars().count() > head + tail
}

/// Returns a value that shows every key but no long text.
fn brief(value: &Value, depth: usize) -> Value {
    match value {
        Value::String(text) => Value::String(cut(&escape_invisible(text), TEXT)),
        Value::Array(_) | Value::Object(_) if depth == 0 => Value::String("…".to_owned()),
        Value::Array(values) => {
            let left = values.len().saturating_sub(LIST);
            let more = (left > 0).then(|| Value::String(format!("… {left} more …")));
            Value::Array(values.iter().take(LIST).map(|one| brief(one, depth - 1)).chain(more).collect())
        }
        Value::Object(map) => {
            let pair =
                |(key, one): (&String, &Value)| (cut(&escape_invisible(key), TEXT), brief(one, depth - 1));
            Value::Object(map.iter().map(pair).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Shortens a long text to its two ends.
fn cut(text: &str, (head, tail): (usize, usize)) -> String {
    let long = text.chars().count();
    if long <= head + tail {
        return text.to_owned();
    }
    let first: String = text.chars().take(head).collect();
    let last: String = text.chars().skip(long - tail).collect();
    format!("{first} … {} characters left out … {last}", long - head - tail)
}

/// Returns a text as one line in which everything is visible: line breaks and zero-width characters are escaped.
fn escape_invisible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.replace("\r\n", "\n").chars() {
        match c {
            '\n' => out.push('⏎'),
            '\t' => out.push('⇥'),
            // A backtick would end the inline code around the line.
            '`' => out.push('ˋ'),
            c if c != ' ' && (c.is_whitespace() || foreign::is_invisible(c)) => {
                out.push_str(&format!("<U+{:04X}>", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line_for(tool: &str, args: Value, note: Option<&str>) -> String {
        let call = ToolCall { id: "c".into(), name: tool.into(), args, garbled: None };
        line(&call, call.args.get("command").and_then(Value::as_str), note)
    }

    #[test]
    fn a_long_argument_hides_no_other_and_the_note_comes_first() {
        let args = json!({"soul": "x".repeat(9000), "tool_groups": ["bash"], "skills": [], "model": {"a": [1, null]}});
        let (head, tail) = ("x".repeat(100), "x".repeat(40));
        assert_eq!(
            line_for("update_agent", args, Some("more tools (bash)")),
            format!(
                "`more tools (bash): update_agent {{\"model\":{{\"a\":[1,null]}},\"skills\":[],\"soul\":\"{head} … 8860 characters left out … {tail}\",\"tool_groups\":[\"bash\"]}}`"
            )
        );
        let many = json!({"list": (0..30).collect::<Vec<_>>(), "z": "end"});
        let line = line_for("t", many, None);
        assert!(line.ends_with("18,19,\"… 10 more …\"],\"z\":\"end\"}`"), "{line}");
        let deep = (0..100).fold(json!("core"), |inner, _| json!([inner]));
        assert_eq!(line_for("t", deep, None), "`t [[[[[[\"…\"]]]]]]`");
        let keys: serde_json::Map<_, _> = (0..5000).map(|n| (format!("key{n}"), json!(n))).collect();
        assert!(line_for("t", Value::Object(keys), None).chars().count() < 1300);
    }

    #[test]
    fn both_ends_of_a_long_command_are_shown() {
        let script = format!("echo {}; rm -rf ~/notes", "x".repeat(9000));
        let line = line_for("bash", json!({"command": script}), None);
        assert!(line.starts_with("`echo xxx") && line.ends_with("; rm -rf ~/notes`"), "{line}");
        assert!(line.contains(" … 8271 characters left out … ") && line.chars().count() < 800, "{line}");
    }

    #[test]
    fn parts_omitted_from_the_line_can_be_read_in_full() {
        let all = |tool: &str, args: Value| {
            let call = ToolCall { id: "c".into(), name: tool.into(), args, garbled: None };
            whole(&call, call.args.get("command").and_then(Value::as_str))
        };
        assert_eq!(all("bash", json!({"command": "ls"})), None);
        assert_eq!(all("t", json!({"a": 1, "b": "x".repeat(140)})), None);
        let script = format!("echo {}\nrm\u{200b} -rf ~", "x".repeat(800));
        let expect = format!("echo {}\nrm<U+200B> -rf ~", "x".repeat(800));
        assert_eq!(all("bash", json!({"command": script})), Some(expect));
        let long = "y".repeat(200);
        let args =
            json!({"content": format!("{long}\npath: /safe"), "list": [1, {"a": 2}], "path": "/danger"});
        let expect = format!(
            "write_file\ncontent:\n  | {long}\n  | path: /safe\nlist:\n  [\n    1,\n    {{\n      \"a\": 2\n    }}\n  ]\npath: /danger\n"
        );
        assert_eq!(all("write_file", args), Some(expect));
    }

    #[test]
    fn invisible_and_ambiguous_characters_are_escaped() {
        for (script, expect) in [
            ("ls # note\nrm -rf ~", "`ls # note⏎rm -rf ~`"),
            ("ls\r\n\tcat", "`ls⏎⇥cat`"),
            ("ls\rcat", "`ls<U+000D>cat`"),
            ("echo `id`", "`echo ˋidˋ`"),
            (
                "a\u{200b}b\u{202e}c\u{1b}[2Kd\u{a0}e\u{e0041}",
                "`a<U+200B>b<U+202E>c<U+001B>[2Kd<U+00A0>e<U+E0041>`",
            ),
            ("ü 你 é", "`ü 你 é`"),
        ] {
            assert_eq!(line_for("bash", json!({"command": script}), None), expect);
            let as_value = line_for("t", json!({"k": script}), None);
            assert_eq!(as_value, format!("`t {{\"k\":\"{}\"}}`", expect.trim_matches('`')));
        }
    }
}
