//! The order of a reply's pieces: text, calls, and parts between them that only the provider can read, such as signed
//! thoughts. A thread stores text and calls separately, so the order records only the length of a text and the name of
//! a call; other parts are kept byte for byte. A reply that has been changed no longer matches its order and is sent
//! back without these parts.

use pudu_base::{Assistant, ProviderParts, ToolCall};
use serde_json::{Map, Value, json};

/// Key of the order in a message's parts.
const ORDER: &str = "order";

/// The order of a reply that is being decoded.
#[derive(Debug, Default)]
pub(crate) struct ReplyOrder {
    pieces: Vec<Value>,
    /// Whether the order contains anything that would otherwise be lost.
    is_needed: bool,
}

impl ReplyOrder {
    /// Adds text of `bytes` bytes, and the data that the provider expects back with it.
    pub(crate) fn add_text(&mut self, bytes: usize, extra: Option<Value>) {
        let last = self.pieces.last_mut().filter(|last| last.get("extra").is_none());
        match (extra, last.and_then(|last| last.get_mut("words"))) {
            (None, Some(before)) => *before = json!(before.as_u64().unwrap_or(0) + bytes as u64),
            (extra, _) => self.push(json!({"words": bytes}), extra),
        }
    }

    /// Adds a call, and the data that the provider expects back with it.
    pub(crate) fn call(&mut self, name: &str, extra: Option<Value>) {
        self.push(json!({"call": name}), extra);
    }

    /// Adds a part that is sent back unchanged.
    pub(crate) fn part(&mut self, part: Map<String, Value>) {
        self.is_needed = true;
        self.pieces.push(Value::Object(Map::from_iter([("part".to_owned(), Value::Object(part))])));
    }

    fn push(&mut self, mut piece: Value, extra: Option<Value>) {
        if let Some(extra) = extra {
            piece["extra"] = extra;
            self.is_needed = true;
        }
        self.pieces.push(piece);
    }

    /// Returns the parts to store in the message.
    pub(crate) fn into_parts(self, origin: String) -> Option<ProviderParts> {
        self.is_needed.then(|| ProviderParts { origin, parts: json!({ORDER: self.pieces}) })
    }
}

/// A piece of a reply that is sent back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum OrderedPiece<'a> {
    Words(&'a str, Option<&'a Value>),
    Call(&'a ToolCall, Option<&'a Value>),
    Part(&'a Value),
}

/// Returns a reply's pieces in their original order; `None` if its text or calls have changed since.
pub(crate) fn in_order<'a>(reply: &'a Assistant, parts: &'a Value) -> Option<Vec<OrderedPiece<'a>>> {
    let (mut words, mut calls) = (reply.text.as_str(), reply.calls.iter());
    let mut pieces = Vec::new();
    for piece in parts.get(ORDER)?.as_array()? {
        let extra = piece.get("extra");
        pieces.push(if let Some(part) = piece.get("part") {
            OrderedPiece::Part(part)
        } else if let Some(name) = piece.get("call") {
            OrderedPiece::Call(calls.next().filter(|call| *name == *call.name)?, extra)
        } else {
            let bytes = usize::try_from(piece.get("words")?.as_u64()?).ok()?;
            let (these, rest) = words.split_at_checked(bytes)?;
            words = rest;
            OrderedPiece::Words(these, extra)
        });
    }
    (words.is_empty() && calls.next().is_none()).then_some(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{call, reply};

    #[test]
    fn a_reply_is_sent_back_in_its_order_or_without_it() {
        let mut order = ReplyOrder::default();
        order.add_text(2, None);
        order.add_text(3, None);
        order.part(Map::from_iter([("type".to_owned(), json!("thinking"))]));
        order.add_text(0, Some(json!("s")));
        order.call("bash", None);
        let parts = order.into_parts("here".to_owned()).unwrap().parts;
        let bash = call("1", "bash", json!({}));
        let full = reply("Hallo", vec![bash.clone()]);
        assert_eq!(
            in_order(&full, &parts),
            Some(vec![
                OrderedPiece::Words("Hallo", None),
                OrderedPiece::Part(&json!({"type": "thinking"})),
                OrderedPiece::Words("", Some(&json!("s"))),
                OrderedPiece::Call(&bash, None),
            ])
        );
        for changed in [
            reply("Hallo", vec![]),
            reply("Hall", vec![bash.clone()]),
            reply("Hallo, you", vec![bash.clone()]),
            reply("Hallo", vec![call("1", "ls", json!({}))]),
            reply("Hallo", vec![bash.clone(), bash]),
            reply("Halläo", vec![]),
        ] {
            assert_eq!(in_order(&changed, &parts), None, "{changed:?}");
        }
        assert_eq!(in_order(&full, &json!({"calls": []})), None);
    }

    #[test]
    fn a_plain_reply_stores_no_order() {
        let mut order = ReplyOrder::default();
        order.add_text(5, None);
        order.call("bash", None);
        assert_eq!(order.into_parts("here".to_owned()), None);
    }
}
