//! Parses calls that an engine such as Huawei's MindIE writes into its text: `<tool_call>` tags around
//! `<function=NAME>` and `<parameter=KEY>` blocks, or around a JSON object with `name` and `arguments`.
//!
//! Only replies of providers whose dialect has such calls are parsed this way. For other providers, such tags are
//! ordinary text.

use crate::wire::garbled;
use pudu_base::{Finish, ModelError, ToolCall};
use pudu_net::json;
use serde_json::{Map, Value};

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";
/// Maximum size of the calls, in bytes.
const MAX_CALL_BYTES: usize = 16 * 1024 * 1024;

/// Splits text into words and calls while it arrives.
#[derive(Debug, Default)]
pub(super) struct TextCalls {
    /// Text that may belong to a call.
    held: String,
}

impl TextCalls {
    /// Adds text and returns the words that certainly do not belong to a call.
    ///
    /// # Errors
    /// When the calls are too large.
    pub(super) fn push(&mut self, text: &str) -> Result<Option<String>, ModelError> {
        self.held.push_str(text);
        if self.held.len() > MAX_CALL_BYTES {
            return Err(garbled("the calls are too large"));
        }
        if self.held.starts_with(OPEN) {
            return Ok(None);
        }
        let certain = match self.held.find(OPEN) {
            Some(at) => at,
            None => self.held.len() - open_at_end(&self.held),
        };
        let held = self.held.split_off(certain);
        let words = std::mem::replace(&mut self.held, held);
        Ok((!words.is_empty()).then_some(words))
    }

    /// Ends the text and returns the remaining words and the calls.
    pub(super) fn end(self, finish: Finish) -> (Option<String>, Vec<ToolCall>) {
        let mut calls = Vec::new();
        let mut words = String::new();
        let mut rest = self.held.as_str();
        while let Some((before, inside)) = rest.split_once(OPEN) {
            words.push_str(before);
            let (call, after) = inside.split_once(CLOSE).unwrap_or((inside, ""));
            let is_closed = inside.contains(CLOSE) || finish != Finish::Length;
            calls.push(read(call, calls.len(), is_closed));
            rest = after;
        }
        words.push_str(rest);
        ((!words.trim().is_empty()).then_some(words), calls)
    }
}

fn open_at_end(text: &str) -> usize {
    (1..OPEN.len())
        .rev()
        .find(|length| OPEN.get(..*length).is_some_and(|part| text.ends_with(part)))
        .unwrap_or(0)
}

fn read(text: &str, at: usize, is_closed: bool) -> ToolCall {
    let found = json_call(text).or_else(|| block_call(text)).filter(|_| is_closed);
    let garbled = found.is_none().then(|| text.trim().to_owned());
    let (name, args) = found.unwrap_or_else(|| ("unknown_tool".to_owned(), Map::new()));
    ToolCall { id: format!("call-{at}").into(), name, args: Value::Object(args), garbled }
}

/// Parses `{"name": …, "arguments": {…}}`.
fn json_call(text: &str) -> Option<(String, Map<String, Value>)> {
    let call = json::parse(text.trim().as_bytes()).ok()?;
    let args = call.get("arguments").or(call.get("parameters"))?.as_object()?.clone();
    Some((call.get("name")?.as_str()?.to_owned(), args))
}

/// Parses `<function=NAME><parameter=KEY>value</parameter>…</function>`.
fn block_call(text: &str) -> Option<(String, Map<String, Value>)> {
    let (name, mut rest) = text.split_once("<function=")?.1.split_once('>')?;
    let mut args = Map::new();
    while let Some((key, after)) = rest.split_once("<parameter=").and_then(|(_, tail)| tail.split_once('>')) {
        let (value, after) = after.split_once("</parameter>")?;
        args.insert(key.trim().to_owned(), plain(value));
        rest = after;
    }
    Some((name.trim().to_owned(), args))
}

/// Parses a parameter: as JSON if it is a valid JSON value other than a string, otherwise as text.
fn plain(value: &str) -> Value {
    let value = value.strip_prefix('\n').unwrap_or(value);
    let value = value.strip_suffix('\n').unwrap_or(value);
    match json::parse(value.trim().as_bytes()) {
        Ok(Value::String(_)) | Err(_) => Value::String(value.to_owned()),
        Ok(other) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn calls_are_separated_from_words_for_any_chunking() {
        let text = "I look.\n<tool_call>\n<function=read_file>\n<parameter=path>\n/mnt/a b\n</parameter>\n\
                    <parameter=lines>3</parameter>\n</function>\n</tool_call><tool_call>{\"name\": \"ls\", \"arguments\": {}}</tool_call>";
        for size in 1..=text.len() {
            let (mut calls, mut words) = (TextCalls::default(), String::new());
            for piece in text.as_bytes().chunks(size) {
                words.extend(calls.push(std::str::from_utf8(piece).unwrap()).unwrap());
            }
            let (rest, calls) = calls.end(Finish::Complete);
            assert_eq!((words.as_str(), rest), ("I look.\n", None));
            let calls_seen: Vec<_> =
                calls.into_iter().map(|call| (call.name, call.args, call.garbled)).collect();
            let first = ("read_file".to_owned(), json!({"path": "/mnt/a b", "lines": 3}), None);
            assert_eq!(calls_seen, [first, ("ls".to_owned(), json!({}), None)]);
        }
    }

    #[test]
    fn endless_calls_are_refused_while_they_arrive() {
        let mut calls = TextCalls::default();
        calls.push(OPEN).unwrap();
        assert!(calls.push(&"x".repeat(MAX_CALL_BYTES)).is_err());
    }

    #[test]
    fn a_truncated_call_is_garbled_and_words_are_kept() {
        let end = |text: &str| {
            let mut calls = TextCalls::default();
            let words = calls.push(text).unwrap();
            let (rest, calls) = calls.end(Finish::Length);
            (
                words.unwrap_or_default() + &rest.unwrap_or_default(),
                calls.iter().map(|c| c.garbled.is_some()).collect(),
            )
        };
        let is = |words: &str, garbled: Vec<bool>| (words.to_owned(), garbled);
        assert_eq!(end("a <tool_call><function=ls>"), is("a ", vec![true]));
        assert_eq!(end("a <tool"), is("a <tool", vec![]));
        assert_eq!(end("a <tool_call>hm</tool_call> b"), is("a  b", vec![true]));
    }
}
