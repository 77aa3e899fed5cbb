//! Lenient parser for foreign JSON of providers, platforms, MCP servers and API clients.
//!
//! Lone surrogates, invalid UTF-8 and NUL become U+FFFD. `NaN` and `Infinity` become `null`. Raw control characters and
//! unknown escapes in texts are kept as characters. [`decode`] drops a field or list entry of the wrong type and
//! reports its path; everything else is kept. JSON that is truncated or nested deeper than 128 levels is refused.
//!
//! ```
//! use pudu_net::json;
//! let value = json::parse(br#"{"text": "cut \ud83d", "size": NaN}"#)?;
//! assert_eq!(value, serde_json::json!({"text": "cut \u{fffd}", "size": null}));
//!
//! #[derive(serde::Deserialize)]
//! struct Message { text: Option<String>, sizes: Vec<u32> }
//! let json::Decoded { value, dropped } = json::decode::<Message>(br#"{"text": ["odd"], "sizes": [1, "two", 3]}"#)?;
//! assert_eq!((value.text, value.sizes), (None, vec![1, 3]));
//! assert!(dropped.contains(&"text".to_owned()) && dropped.contains(&"sizes[1]".to_owned()));
//! # Ok::<(), serde_json::Error>(())
//! ```

mod pairs;
mod repair;
mod split;

pub use pairs::{PairJoiner, has_half};
pub use repair::repair;
pub use split::Splitter;

use memchr::memmem;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use serde_path_to_error::Segment;

/// Maximum number of fields and entries that [`decode`] drops. A document with more is refused.
const MAX_DROPPED: usize = 64;

/// A parsed value, and the dropped fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded<T> {
    /// The value.
    pub value: T,
    /// Paths of the dropped fields and entries, for a log. They contain no foreign values.
    pub dropped: Vec<String>,
}

/// Parses any JSON value.
///
/// # Errors
/// When the bytes are not JSON, or are nested too deeply.
pub fn parse(bytes: &[u8]) -> serde_json::Result<Value> {
    from_utf8(bytes).map_or_else(|| serde_json::from_str(&repair(bytes)), Ok)
}

/// Parses a type. A field or entry of the wrong type is dropped; if the type requires it, the object that contains it
/// is dropped instead.
///
/// # Errors
/// When the bytes are not JSON, are nested too deeply, or do not match the type.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<Decoded<T>> {
    match from_utf8(bytes) {
        Some(value) => Ok(Decoded { value, dropped: Vec::new() }),
        None => decode_value(parse(bytes)?),
    }
}

/// Converts a value to a type, like [`decode`].
///
/// # Errors
/// When the value does not match the type.
pub fn decode_value<T: DeserializeOwned>(mut value: Value) -> serde_json::Result<Decoded<T>> {
    let mut dropped = Vec::new();
    loop {
        let error = match serde_path_to_error::deserialize(&value) {
            Ok(value) => return Ok(Decoded { value, dropped }),
            Err(error) => error,
        };
        let path: Vec<Segment> = error.path().iter().cloned().collect();
        let Some(path) = remove(&mut value, &path).filter(|_| dropped.len() < MAX_DROPPED) else {
            return Err(error.into_inner());
        };
        dropped.push(path);
    }
}

/// Parses text that needs no repair, without a copy. `None` for text that may need repair or does not match the type.
pub fn decode_strictly<'de, T: Deserialize<'de>>(text: &'de str) -> Option<T> {
    let is_clean = memmem::find(text.as_bytes(), b"\\u0000").is_none();
    is_clean.then(|| serde_json::from_str(text).ok()).flatten()
}

fn from_utf8<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    decode_strictly(std::str::from_utf8(bytes).ok()?)
}

/// Removes the innermost value on a path and returns the path. `None` if only the whole document is left.
fn remove(root: &mut Value, path: &[Segment]) -> Option<String> {
    let is_step = |segment: &&Segment| matches!(segment, Segment::Seq { .. } | Segment::Map { .. });
    let steps: Vec<&Segment> = path.iter().take_while(is_step).collect();
    let (last, parents) = steps.split_last()?;
    let parent = parents.iter().try_fold(root, |at, step| match step {
        Segment::Seq { index } => at.get_mut(*index),
        Segment::Map { key } => at.get_mut(key),
        _ => None,
    })?;
    match (parent, last) {
        (Value::Array(list), Segment::Seq { index }) if *index < list.len() => drop(list.remove(*index)),
        (Value::Object(map), Segment::Map { key }) => drop(map.remove(key)?),
        _ => return None,
    }
    Some(describe(&steps))
}

fn describe(steps: &[&Segment]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Segment::Seq { index } => path.push_str(&format!("[{index}]")),
            Segment::Map { key } => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.extend(key.chars().filter(|c| !c.is_control()).take(60));
            }
            _ => {}
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Page {
        title: Option<String>,
        #[serde(default)]
        entries: Vec<PageEntry>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct PageEntry {
        name: String,
        size: Option<u64>,
    }

    fn entry(name: &str, size: Option<u64>) -> PageEntry {
        PageEntry { name: name.to_owned(), size }
    }

    #[test]
    fn an_unreadable_field_or_entry_affects_nothing_else() {
        let check = |text: &str, title: Option<&str>, entries: Vec<PageEntry>, dropped: &[&str]| {
            let page = Page { title: title.map(str::to_owned), entries };
            let decoded = decode::<Page>(text.as_bytes()).unwrap();
            assert_eq!(
                (decoded.value, decoded.dropped.iter().map(String::as_str).collect::<Vec<_>>()),
                (page, dropped.to_vec()),
                "{text}"
            );
        };
        check(
            r#"{"title": "a", "entries": [{"name": "b", "size": 1}]}"#,
            Some("a"),
            vec![entry("b", Some(1))],
            &[],
        );
        check(r#"{"title": 7, "entries": []}"#, None, vec![], &["title"]);
        check(r#"{"title": "a", "title": "b"}"#, Some("b"), vec![], &[]);
        check(
            r#"{"entries": [{"name": "a"}, null, {"size": 1}, {"name": "b", "size": -1}, {"name": "c"}]}"#,
            None,
            vec![entry("a", None), entry("b", None), entry("c", None)],
            &["entries[1]", "entries[1]", "entries[1].size"],
        );
        check(r#"{"title": "a", "entries": {"name": "b"}}"#, Some("a"), vec![], &["entries"]);
        check(r#"{"title": "\ud83d", "entries": 1}"#, Some("\u{fffd}"), vec![], &["entries"]);
        let many = format!(r#"{{"entries": [{}]}}"#, vec!["1"; MAX_DROPPED + 1].join(","));
        assert!(decode::<Page>(many.as_bytes()).is_err(), "a document with too many faults is refused");
        assert!(decode::<Page>(b"7").is_err());
    }

    #[test]
    fn depth_is_limited_and_truncation_is_an_error() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(100).as_bytes()).is_ok());
        for text in [nested(100_000), "[".repeat(100_000), r#"{"a": "#.repeat(50_000)] {
            assert!(parse(text.as_bytes()).is_err());
            assert!(decode::<Page>(text.as_bytes()).is_err());
        }
        for text in ["", "{", r#"{"a": "b"#, r#"{"a": "b\"#, r#"{"a": "b\ud83d"#, "nonsense", "\0"] {
            assert!(parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn valid_json_without_nul_is_read_unchanged(text in "[ -~\u{80}-\u{10ffff}]{0,20}", n in any::<i64>()) {
            let value = json!({ &text: [&text, n, {"inner": &text}] });
            for written in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                prop_assert_eq!(parse(written.as_bytes()).unwrap(), value.clone());
                prop_assert_eq!(serde_json::from_str::<Value>(&repair(written.as_bytes())).unwrap(), value.clone());
            }
        }

        #[test]
        fn any_bytes_are_parsed_or_refused_without_nul(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let in_text = [b"{\"a\":\"", &bytes[..], b"\"}"].concat();
            for bytes in [&bytes, &in_text] {
                let _ = decode::<Page>(bytes);
                crate::fuzzing::foreign_json(bytes);
            }
        }
    }
}
