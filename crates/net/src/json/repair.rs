//! Repairs of JSON text.

use memchr::{memchr, memmem};
use std::{borrow::Cow, fmt::Write, iter::Peekable, str::Chars};

/// Replacement for a character that cannot be kept.
const UNREADABLE: char = char::REPLACEMENT_CHARACTER;
/// First of the 2,048 private-use characters that replace lone surrogates until their other half arrives.
const FIRST_MARK: u32 = 0x10_F800;
/// The surrogates, which are invalid alone.
const SURROGATES: std::ops::RangeInclusive<u32> = 0xD800..=0xDFFF;

/// Returns the text of foreign JSON with all repairs described in the parent module. Other bytes stay invalid.
#[must_use]
pub fn repair(bytes: &[u8]) -> Cow<'_, str> {
    let text = to_utf8(bytes);
    match needs_repair(&text) {
        true => Cow::Owned(Repairer::new(&text, false).run()),
        false => text,
    }
}

/// Returns the repaired text, with a mark in place of each lone surrogate.
pub(super) fn repair_with_marks(text: &str) -> String {
    Repairer::new(text, true).run()
}

/// Returns the surrogate that a mark replaces.
pub(super) fn marked_half(mark: char) -> Option<u32> {
    u32::from(mark)
        .checked_sub(FIRST_MARK)
        .map(|n| n + SURROGATES.start())
        .filter(|half| SURROGATES.contains(half))
}

/// Returns the character of a surrogate pair.
pub(super) fn joined(high: u32, low: u32) -> Option<char> {
    let is_pair = (0xD800..0xDC00).contains(&high) && (0xDC00..0xE000).contains(&low);
    is_pair.then(|| char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00))).flatten()
}

/// Decodes UTF-8. Surrogates that were encoded as characters become JSON escapes.
fn to_utf8(bytes: &[u8]) -> Cow<'_, str> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(String::from_utf8_lossy(&with_escapes(bytes)).into_owned()),
    };
    match text.strip_prefix('\u{feff}') {
        Some(rest) => Cow::Owned(rest.to_owned()),
        None => text,
    }
}

fn with_escapes(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, tail)) = rest.split_first() {
        match rest {
            [0xED, second @ 0xA0..=0xBF, third @ 0x80..=0xBF, tail @ ..] => {
                let half = 0xD000 | (u32::from(second & 0x3F) << 6) | u32::from(third & 0x3F);
                out.extend_from_slice(format!("\\u{half:04x}").as_bytes());
                rest = tail;
            }
            _ => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    out
}

/// Returns whether a text may not be valid JSON without NUL. Every request and response is searched, so each part is a
/// vectorized search of the compiler or `memchr`.
fn needs_repair(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().fold(false, |found, byte| found | (*byte < 0x20))
        || has_invalid_escape(bytes)
        || ["NaN", "Infinity"].iter().any(|word| memmem::find(bytes, word.as_bytes()).is_some())
}

/// Returns whether a text has an escape that is invalid in JSON, or an escaped NUL or lone surrogate.
fn has_invalid_escape(mut bytes: &[u8]) -> bool {
    while let Some(at) = memchr(b'\\', bytes) {
        bytes = match bytes.get(at + 1..) {
            Some([b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', rest @ ..]) => rest,
            Some([b'u', rest @ ..]) if is_plain_unit(rest) => rest,
            _ => return true,
        };
    }
    false
}

/// Returns whether the digits after `\u` are a character other than NUL.
fn is_plain_unit(digits: &[u8]) -> bool {
    let unit = hex_unit(digits.iter().copied().map(char::from));
    unit.is_some_and(|unit| unit != 0 && !SURROGATES.contains(&unit))
}

struct Repairer<'a> {
    chars: Peekable<Chars<'a>>,
    out: String,
    /// Whether lone surrogates become marks.
    marks: bool,
}

impl<'a> Repairer<'a> {
    fn new(text: &'a str, marks: bool) -> Self {
        Self { chars: text.chars().peekable(), out: String::with_capacity(text.len() + 16), marks }
    }

    fn run(mut self) -> String {
        while let Some(c) = self.chars.next() {
            match c {
                '"' => self.string(),
                // C programs may send the terminator of a string.
                '\0' => self.out.push(' '),
                'N' | 'I' | '-' => self.number_word(c),
                c => self.out.push(c),
            }
        }
        self.out
    }

    /// Reads `NaN`, `Infinity` and `-Infinity`, which Python writes but JSON does not allow.
    fn number_word(&mut self, first: char) {
        let rest = self.chars.clone().take_while(char::is_ascii_alphabetic).take(10).collect::<String>();
        match (first, rest.as_str()) {
            ('N', "aN") | ('I', "nfinity") | ('-', "Infinity") => {
                self.out.push_str("null");
                self.chars.by_ref().take(rest.len()).for_each(drop);
            }
            _ => self.out.push(first),
        }
    }

    fn string(&mut self) {
        self.out.push('"');
        while let Some(c) = self.chars.next() {
            match c {
                '"' => return self.out.push('"'),
                '\\' => self.escape(),
                '\0' => self.out.push(UNREADABLE),
                c if c < ' ' => self.escaped(u32::from(c)),
                c => self.character(c),
            }
        }
    }

    /// Writes a character of a text. A foreign mark character is replaced, because it would be taken for a surrogate.
    fn character(&mut self, c: char) {
        self.out.push(if self.marks && marked_half(c).is_some() { UNREADABLE } else { c });
    }

    fn escape(&mut self) {
        match self.chars.next() {
            Some('u') => self.unicode(),
            Some(c @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't')) => self.out.extend(['\\', c]),
            Some('\'') => self.out.push('\''),
            // The backslash was meant literally.
            Some(c) if c >= ' ' => self.out.extend(['\\', '\\', c]),
            Some(c) => {
                self.out.push_str("\\\\");
                self.escaped(u32::from(c));
            }
            None => self.out.push('\\'),
        }
    }

    fn unicode(&mut self) {
        let Some(unit) = hex_unit(self.chars.clone()) else { return self.out.push_str("\\\\u") };
        self.skip(4);
        if !SURROGATES.contains(&unit) {
            return self.escaped(unit);
        }
        match self.next_unit().and_then(|low| joined(unit, low)) {
            Some(whole) => {
                self.skip(6);
                self.character(whole);
            }
            None if self.marks => self.out.extend(char::from_u32(FIRST_MARK + unit - SURROGATES.start())),
            None => self.out.push(UNREADABLE),
        }
    }

    /// Returns the code unit of the next escape.
    fn next_unit(&self) -> Option<u32> {
        let mut ahead = self.chars.clone();
        (ahead.next() == Some('\\') && ahead.next() == Some('u')).then(|| hex_unit(ahead)).flatten()
    }

    fn skip(&mut self, chars: usize) {
        self.chars.by_ref().take(chars).for_each(drop);
    }

    /// Writes a code unit as an escape, or NUL as its replacement.
    fn escaped(&mut self, unit: u32) {
        match unit {
            0 => self.out.push(UNREADABLE),
            // Writing to a String cannot fail.
            unit => drop(write!(self.out, "\\u{unit:04x}")),
        }
    }
}

/// Parses the next four characters as a hexadecimal number.
fn hex_unit(mut digits: impl Iterator<Item = char>) -> Option<u32> {
    (0..4).try_fold(0, |unit, _| Some(unit * 16 + digits.next()?.to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn each_fault_is_repaired_and_nothing_else_changes() {
        let check = |bytes: &[u8], expect: Value| {
            let text = repair(bytes);
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expect, "{text}");
        };
        check(br#"["\ud83d\ude00"]"#, json!(["😀"]));
        check(
            br#"["a\ud83d", "\ude00b", "\ud83d\ud83d\ude00", "\ude00\ud83d"]"#,
            json!(["a\u{fffd}", "\u{fffd}b", "\u{fffd}😀", "\u{fffd}\u{fffd}"]),
        );
        check(br#"["\uD83D\n", "\ud83dA"]"#, json!(["\u{fffd}\n", "\u{fffd}A"]));
        check(br#"["\\ud83d", "\\\ud83d"]"#, json!(["\\ud83d", "\\\u{fffd}"]));
        check(b"[\"a\\u0000b\", \"a\0b\"]\0\0", json!(["a\u{fffd}b", "a\u{fffd}b"]));
        check(br#"["\\u0000", "\u0001"]"#, json!(["\\u0000", "\u{1}"]));
        check(b"[\"a\nb\tc\x01\"]", json!(["a\nb\tc\u{1}"]));
        check(
            br#"["it\'s", "C:\Users", "\x41", "\u12", "\uzzzz"]"#,
            json!(["it's", "C:\\Users", "\\x41", "\\u12", "\\uzzzz"]),
        );
        check(b"\xEF\xBB\xBF[\"\xff\"]", json!(["\u{fffd}"]));
        check(b"[\"\xED\xA0\xBD\xED\xB8\x80\", \"\xED\xA0\xBD\"]", json!(["😀", "\u{fffd}"]));
        check(
            b"[NaN, -Infinity, Infinity, -1, \"NaN\", \"-Infinity\"]",
            json!([null, null, null, -1, "NaN", "-Infinity"]),
        );
        check(r#"{"ключ": "現\ud99c"}"#.as_bytes(), json!({"ключ": "現\u{fffd}"}));
        for broken in ["[NaNny]", "[Infinit]", "{'a': 1}"] {
            assert!(serde_json::from_str::<Value>(&repair(broken.as_bytes())).is_err(), "{broken}");
        }
    }

    #[test]
    fn text_that_needs_no_repair_is_not_copied() {
        for text in [r#"{"a": "现 😀"}"#, r#"["\n\t\r\b\f\"\\\/", "\u0001\u00e9\uFFFD", "\\u0000"]"#] {
            assert!(matches!(repair(text.as_bytes()), Cow::Borrowed(_)), "{text}");
        }
        for text in
            [r#"["\u0000"]"#, r#"["\ud83d\ude00"]"#, r#"["\'"]"#, r#"["\u+123"]"#, r#"["\u12"#, "[\"\\"]
        {
            assert!(matches!(repair(text.as_bytes()), Cow::Owned(_)), "{text}");
        }
    }
}
