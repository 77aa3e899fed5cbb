//! Says what a call would do, so that what people approve is what they see.
//!
//! Every argument shows, whatever the others are: each value is cut for itself, at both ends, with the count of
//! what is left out. What would not show, or would show as something else, is written out.

use pudu_base::ToolCall;
use serde_json::Value;

/// So many characters of a command's beginning and end show.
const COMMAND: (usize, usize) = (500, 250);
/// So many of a text among the arguments.
const TEXT: (usize, usize) = (100, 40);
/// So many of all arguments together.
const ALL: (usize, usize) = (900, 300);
/// So many of what a tool says of a call.
const NOTE: (usize, usize) = (200, 40);
/// So many values of a list.
const LIST: usize = 20;
/// So many lists and objects in each other.
const DEPTH: usize = 6;

/// Says what a call would do; first what its tool says that it comes to.
pub(super) fn line(call: &ToolCall, script: Option<&str>, note: Option<&str>) -> String {
    let what = match script {
        Some(script) => cut(&shown(script), COMMAND),
        None => cut(&format!("{} {}", shown(&call.name), brief(&call.args, DEPTH)), ALL),
    };
    match note {
        Some(note) => format!("`{}: {what}`", cut(&shown(note), NOTE)),
        None => format!("`{what}`"),
    }
}

/// Returns a value in which every key shows and no text is long.
fn brief(value: &Value, depth: usize) -> Value {
    match value {
        Value::String(text) => Value::String(cut(&shown(text), TEXT)),
        Value::Array(_) | Value::Object(_) if depth == 0 => Value::String("…".to_owned()),
        Value::Array(values) => {
            let left = values.len().saturating_sub(LIST);
            let more = (left > 0).then(|| Value::String(format!("… {left} more …")));
            Value::Array(values.iter().take(LIST).map(|one| brief(one, depth - 1)).chain(more).collect())
        }
        Value::Object(map) => {
            let pair = |(key, one): (&String, &Value)| (cut(&shown(key), TEXT), brief(one, depth - 1));
            Value::Object(map.iter().map(pair).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Keeps both ends of a text that is long.
fn cut(text: &str, (head, tail): (usize, usize)) -> String {
    let long = text.chars().count();
    if long <= head + tail {
        return text.to_owned();
    }
    let first: String = text.chars().take(head).collect();
    let last: String = text.chars().skip(long - tail).collect();
    format!("{first} … {} characters left out … {last}", long - head - tail)
}

/// Returns a text in one line, in which everything shows: a line's end is no space, and nothing is without width.
fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.replace("\r\n", "\n").chars() {
        match c {
            '\n' => out.push('⏎'),
            '\t' => out.push('⇥'),
            // It would end the code that the line is shown as.
            '`' => out.push('ˋ'),
            c if c != ' ' && (c.is_control() || c.is_whitespace() || is_unseen(c)) => {
                out.push_str(&format!("<U+{:04X}>", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

/// Tells whether a character has no width or turns the text around it.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(tool: &str, args: Value, note: Option<&str>) -> String {
        let call = ToolCall { id: "c".into(), name: tool.into(), args, garbled: None };
        line(&call, call.args.get("command").and_then(Value::as_str), note)
    }

    #[test]
    fn a_long_argument_hides_no_other_and_what_a_call_comes_to_stands_first() {
        let args = json!({"soul": "x".repeat(9000), "tool_groups": ["bash"], "skills": [], "model": {"a": [1, null]}});
        let (head, tail) = ("x".repeat(100), "x".repeat(40));
        assert_eq!(
            of("update_agent", args, Some("more tools (bash)")),
            format!(
                "`more tools (bash): update_agent {{\"model\":{{\"a\":[1,null]}},\"skills\":[],\"soul\":\"{head} … 8860 characters left out … {tail}\",\"tool_groups\":[\"bash\"]}}`"
            )
        );
        let many = json!({"list": (0..30).collect::<Vec<_>>(), "z": "end"});
        let line = of("t", many, None);
        assert!(line.ends_with("18,19,\"… 10 more …\"],\"z\":\"end\"}`"), "{line}");
        let deep = (0..100).fold(json!("core"), |inner, _| json!([inner]));
        assert_eq!(of("t", deep, None), "`t [[[[[[\"…\"]]]]]]`");
        let keys: serde_json::Map<_, _> = (0..5000).map(|n| (format!("key{n}"), json!(n))).collect();
        assert!(of("t", Value::Object(keys), None).chars().count() < 1300);
    }

    #[test]
    fn of_a_long_command_both_ends_show() {
        let script = format!("echo {}; rm -rf ~/notes", "x".repeat(9000));
        let line = of("bash", json!({"command": script}), None);
        assert!(line.starts_with("`echo xxx") && line.ends_with("; rm -rf ~/notes`"), "{line}");
        assert!(line.contains(" … 8271 characters left out … ") && line.chars().count() < 800, "{line}");
    }

    #[test]
    fn what_would_not_show_or_would_show_as_something_else_is_written_out() {
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
            assert_eq!(of("bash", json!({"command": script}), None), expect);
            let as_value = of("t", json!({"k": script}), None);
            assert_eq!(as_value, format!("`t {{\"k\":\"{}\"}}`", expect.trim_matches('`')));
        }
    }
}
