//! `reasoning_details`: signed or encrypted thoughts that gateways send in pieces and expect back in full.

use crate::wire::garbled;
use pudu_base::ModelError;
use serde_json::{Map, Value};

/// Field of a message with the details, in both directions.
pub(in crate::chat) const FIELD: &str = "reasoning_details";
/// Maximum number of stored parts. A part may arrive in one piece per token.
const MAX_DETAILS: usize = 10_000;
/// Maximum size of the parts, in bytes.
const MAX_DETAIL_BYTES: usize = 16 * 1024 * 1024;
/// Fields that arrive in pieces.
const TEXTS: [&str; 3] = ["text", "summary", "data"];

/// The parts received so far.
#[derive(Debug, Default)]
pub(super) struct ReasoningDetails {
    parts: Vec<Map<String, Value>>,
    bytes: usize,
}

impl ReasoningDetails {
    /// Appends a piece to the newest part if its index and type match, otherwise adds it as a new part. Returns the
    /// piece's readable thoughts.
    pub(super) fn push(&mut self, piece: Value) -> Result<String, ModelError> {
        let Value::Object(piece) = piece else { return Ok(String::new()) };
        let readable = ["text", "summary"].into_iter().find_map(|name| piece.get(name)?.as_str());
        let readable = readable.unwrap_or_default().to_owned();
        let size = |value: &Value| value.as_str().map_or_else(|| value.to_string().len(), str::len);
        self.bytes += piece.values().map(size).sum::<usize>();
        match self.parts.last_mut().filter(|part| is_same(part, &piece)) {
            Some(part) => grow(part, piece),
            None => self.parts.push(piece),
        }
        if self.parts.len() > MAX_DETAILS || self.bytes > MAX_DETAIL_BYTES {
            return Err(garbled("too many parts of thoughts, or too large ones"));
        }
        Ok(readable)
    }

    pub(super) fn whole(self) -> Option<Value> {
        (!self.parts.is_empty()).then(|| self.parts.into_iter().map(Value::Object).collect())
    }
}

fn is_same(part: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    let field =
        |name: &str| (part.get(name).unwrap_or(&Value::Null), piece.get(name).unwrap_or(&Value::Null));
    let (index, of) = field("index");
    let (id, other) = field("id");
    // A signed part is complete.
    let is_signed = part.get("signature").is_some_and(|signature| !signature.is_null());
    field("type").0 == field("type").1 && index == of && !is_signed && (id.is_null() || other.is_null() || id == other)
        // Encrypted parts arrive complete; without an index, two parts cannot be distinguished.
        && !(index.is_null() && part.contains_key("data"))
}

fn grow(part: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (name, value) in piece {
        match (part.get_mut(&name), value) {
            (Some(Value::String(text)), Value::String(more)) if TEXTS.contains(&name.as_str()) => {
                text.push_str(&more)
            }
            (_, Value::Null) => {}
            (_, value) => {
                part.insert(name, value);
            }
        }
    }
}
