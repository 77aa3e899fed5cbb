//! JSON stored as text.

use crate::{Result, StoreError};
use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, Serializer};
use std::io::{self, Write};

/// Serializes a value. NUL becomes U+FFFD, because PostgreSQL cannot parse JSON with an escaped NUL.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String> {
    let rejected = |error: &dyn std::fmt::Display| StoreError::Rejected(error.to_string());
    let mut bytes = Vec::with_capacity(256);
    value
        .serialize(&mut Serializer::with_formatter(&mut bytes, WithoutNul))
        .map_err(|error| rejected(&error))?;
    String::from_utf8(bytes).map_err(|error| rejected(&error))
}

struct WithoutNul;

impl Formatter for WithoutNul {
    fn write_char_escape<W: ?Sized + Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        match escape {
            CharEscape::AsciiControl(0) => writer.write_all("\u{fffd}".as_bytes()),
            escape => CompactFormatter.write_char_escape(writer, escape),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn nul_is_replaced_and_the_rest_is_plain_json() {
        let value = json!({"a\u{0}": "b\u{0}c\n\u{1}", "d": ["\\u0000", "\"", null, 1.5, {"e": true}]});
        let text = to_json(&value).unwrap();
        let expect =
            json!({"a\u{fffd}": "b\u{fffd}c\n\u{1}", "d": ["\\u0000", "\"", null, 1.5, {"e": true}]});
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expect);
        assert_eq!(to_json(&expect).unwrap(), expect.to_string());
    }
}
