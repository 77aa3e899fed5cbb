//! JSON that is stored as text.

use crate::{Result, StoreError};
use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, Serializer};
use std::io::{self, Write};

/// Writes a value. A NUL becomes U+FFFD: as an escape it would fail wherever PostgreSQL takes the JSON apart.
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
    fn a_nul_is_replaced_and_all_else_is_json_as_ever() {
        let value = json!({"a\u{0}": "b\u{0}c\n\u{1}", "d": ["\\u0000", "\"", null, 1.5, {"e": true}]});
        let text = to_json(&value).unwrap();
        let expect =
            json!({"a\u{fffd}": "b\u{fffd}c\n\u{1}", "d": ["\\u0000", "\"", null, 1.5, {"e": true}]});
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expect);
        assert_eq!(to_json(&expect).unwrap(), expect.to_string());
    }
}
