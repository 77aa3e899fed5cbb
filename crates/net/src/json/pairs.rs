//! Surrogate pairs that a sender split between two documents of a stream.
//!
//! A server that splits an answer by UTF-16 units sends `"…\ud83d"` in one document and `"\ude00…"` in the next. The
//! first document is held until the next one has a text at the same path, and then gets the whole character.

use super::repair::{joined, marked_half, repair_with_marks};
use serde_json::Value;
use std::collections::VecDeque;

/// Maximum number of held documents: heartbeats may come between the halves.
const MAX_WAITING: usize = 8;

/// Joins pairs that were split between documents. `K` is the kind of a document, which is passed on.
#[derive(Debug)]
pub struct PairJoiner<K> {
    /// The document that ends with a high surrogate, and those after it.
    waiting: VecDeque<(K, WaitingDocument)>,
}

impl<K> Default for PairJoiner<K> {
    fn default() -> Self {
        Self { waiting: VecDeque::new() }
    }
}

#[derive(Debug)]
enum WaitingDocument {
    Read(Value),
    /// Not JSON; passed on unchanged.
    Raw(String),
}

/// A step from a value to a nested one.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Entry(usize),
}

impl<K> PairJoiner<K> {
    /// Returns whether a document can skip this joiner: none is held, and this one has no lone surrogate.
    pub fn may_pass(&self, data: &str) -> bool {
        self.waiting.is_empty() && !has_half(data)
    }

    /// Adds the next document and returns the complete ones in order, without lone surrogates.
    pub fn push(&mut self, kind: K, data: &str) -> Vec<(K, String)> {
        let document = serde_json::from_str(&repair_with_marks(data))
            .map_or_else(|_| WaitingDocument::Raw(data.to_owned()), WaitingDocument::Read);
        self.waiting.push_back((kind, document));
        let mut done = Vec::new();
        while self.is_first_complete() {
            done.extend(self.waiting.pop_front().map(finished));
        }
        done
    }

    /// Returns the held documents at the end of the stream.
    pub fn end(&mut self) -> Vec<(K, String)> {
        self.waiting.drain(..).map(finished).collect()
    }

    /// Joins the first document with its low surrogate, if it has arrived, and returns whether it is complete.
    fn is_first_complete(&mut self) -> bool {
        let Some((_, WaitingDocument::Read(first))) = self.waiting.front_mut() else {
            return !self.waiting.is_empty();
        };
        let Some(place) = half_at_end(first) else { return true };
        let mut first = std::mem::take(first);
        let is_answered = self.waiting.iter_mut().skip(1).any(|(_, next)| {
            let WaitingDocument::Read(next) = next else { return false };
            let Some(Value::String(more)) = at(next, &place).filter(|more| **more != "") else {
                return false;
            };
            if let Some(Value::String(text)) = at(&mut first, &place) {
                join(text, more);
            }
            true
        });
        let has_waited = is_answered || self.waiting.len() > MAX_WAITING;
        if let Some((_, document)) = self.waiting.front_mut() {
            *document = WaitingDocument::Read(first);
        }
        has_waited
    }
}

/// Moves the low surrogate of the second text to the first, if they form a character.
fn join(text: &mut String, more: &mut String) {
    let (high, low) =
        (text.chars().next_back().and_then(marked_half), more.chars().next().and_then(marked_half));
    if let Some(whole) = high.zip(low).and_then(|(high, low)| joined(high, low)) {
        text.pop();
        text.push(whole);
        more.remove(0);
    }
}

fn finished<K>((kind, document): (K, WaitingDocument)) -> (K, String) {
    match document {
        WaitingDocument::Raw(text) => (kind, text),
        WaitingDocument::Read(value) => {
            // Marks are never escaped, and occur only in texts and names.
            let written = value.to_string();
            let readable = |c| if marked_half(c).is_some() { char::REPLACEMENT_CHARACTER } else { c };
            (kind, written.chars().map(readable).collect())
        }
    }
}

/// Finds the first text that ends with a high surrogate.
fn half_at_end(value: &Value) -> Option<Vec<Step>> {
    let is_high = |half: u32| half < 0xDC00;
    match value {
        Value::String(text) => {
            text.chars().next_back().and_then(marked_half).filter(|half| is_high(*half)).map(|_| Vec::new())
        }
        Value::Array(list) => list.iter().enumerate().find_map(|(index, value)| {
            let mut steps = half_at_end(value)?;
            steps.insert(0, Step::Entry(index));
            Some(steps)
        }),
        Value::Object(map) => map.iter().find_map(|(name, value)| {
            let mut steps = half_at_end(value)?;
            steps.insert(0, Step::Field(name.clone()));
            Some(steps)
        }),
        _ => None,
    }
}

fn at<'v>(value: &'v mut Value, place: &[Step]) -> Option<&'v mut Value> {
    place.iter().try_fold(value, |value, step| match step {
        Step::Field(name) => value.get_mut(name),
        Step::Entry(index) => value.get_mut(*index),
    })
}

/// Returns whether JSON text contains an escaped lone surrogate.
#[must_use]
pub fn has_half(text: &str) -> bool {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\\u") {
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        rest = after;
        // An even number of backslashes before it escape each other.
        let Some(unit) = unit(after).filter(|_| backslashes % 2 == 0) else { continue };
        if (0xD800..0xE000).contains(&unit) {
            let low = after.get(4..).and_then(unit_of_escape);
            if low.and_then(|low| joined(unit, low)).is_none() {
                return true;
            }
            rest = after.get(10..).unwrap_or_default();
        }
    }
    false
}

fn unit_of_escape(text: &str) -> Option<u32> {
    unit(text.strip_prefix("\\u")?)
}

fn unit(digits: &str) -> Option<u32> {
    let digits = digits.get(..4).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(documents: &[&str]) -> Vec<String> {
        let mut joiner = PairJoiner::default();
        let mut out: Vec<(usize, String)> = Vec::new();
        for (kind, data) in documents.iter().enumerate() {
            match joiner.may_pass(data) {
                true => out.push((kind, (*data).to_owned())),
                false => out.extend(joiner.push(kind, data)),
            }
        }
        out.extend(joiner.end());
        assert!(out.iter().map(|(kind, _)| *kind).eq(0..documents.len()), "each document, in order: {out:?}");
        out.into_iter().map(|(_, data)| data).collect()
    }

    #[test]
    fn a_split_pair_is_joined_only_at_its_own_path() {
        let check =
            |documents: &[&str], expect: &[&str]| assert_eq!(read(documents), expect, "{documents:?}");
        let (high, low) = (r#"{"t":"a\ud83d"}"#, r#"{"t":"\ude00b"}"#);
        check(&[high, low], &[r#"{"t":"a😀"}"#, r#"{"t":"b"}"#]);
        check(
            &[high, r#"{"type":"ping"}"#, "[DONE]", low],
            &[r#"{"t":"a😀"}"#, r#"{"type":"ping"}"#, "[DONE]", r#"{"t":"b"}"#],
        );
        check(&[high, r#"{"t":"b"}"#, low], &[r#"{"t":"a�"}"#, r#"{"t":"b"}"#, r#"{"t":"�b"}"#]);
        check(&[high, r#"{"x":"\ude00b"}"#], &[r#"{"t":"a�"}"#, r#"{"x":"�b"}"#]);
        check(&[high, high, low], &[r#"{"t":"a�"}"#, r#"{"t":"a😀"}"#, r#"{"t":"b"}"#]);
        check(&[high], &[r#"{"t":"a�"}"#]);
        check(&[low, r#"{"t":"c"}"#], &[r#"{"t":"�b"}"#, r#"{"t":"c"}"#]);
        check(&[high, r#"{"t":""}"#, low], &[r#"{"t":"a😀"}"#, r#"{"t":""}"#, r#"{"t":"b"}"#]);
        check(
            &[
                r#"{"c":[{"d":{"x":"\ud83d"}}]}"#,
                r#"{"c":[{"d":{"x":"\ude00\ud83d"}}]}"#,
                r#"{"c":[{"d":{"x":"\ude00"}}]}"#,
            ],
            &[r#"{"c":[{"d":{"x":"😀"}}]}"#, r#"{"c":[{"d":{"x":"😀"}}]}"#, r#"{"c":[{"d":{"x":""}}]}"#],
        );
        check(&[r#"{"t":"\ud83d\ude00"}"#], &[r#"{"t":"\ud83d\ude00"}"#]);
    }

    #[test]
    fn a_half_waits_for_a_bounded_number_of_documents() {
        let mut joiner = PairJoiner::default();
        let mut pushed = 0;
        assert!(joiner.push((), r#"{"t":"\ud83d"}"#).is_empty());
        while pushed <= MAX_WAITING {
            pushed += 1;
            let out = joiner.push((), "{}");
            if !out.is_empty() {
                assert_eq!((pushed, out.len()), (MAX_WAITING, MAX_WAITING + 1));
                return;
            }
        }
        panic!("the half waits forever");
    }

    #[test]
    fn a_lone_surrogate_is_found_but_no_pair_or_escaped_backslash() {
        for text in [r"\ud83d", r"\uDE00", r"a\ud83d\n", r"\\\ud83d", r"\ud83d\ude00\ud83d", r"\ud83d\u0041"]
        {
            assert!(has_half(text), "{text}");
        }
        for text in ["", r"\ud83d\ude00", r"\\ud83d", r"\u12", r"\uzzzz", r"\u00e9", "\\u", "\\ud83é"] {
            assert!(!has_half(text), "{text}");
        }
    }
}
