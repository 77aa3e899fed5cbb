//! Parts of tool calls that a provider expects back, such as signatures. A part is matched to its call by name and
//! arguments, because the loop may drop calls and change their IDs.

use pudu_base::{Assistant, ToolCall};
use serde_json::{Value, json};

/// Key of the call parts within a message's parts.
pub(crate) const CALLS: &str = "calls";

/// Returns the stored form of a call's part.
pub(crate) fn call_part(call: &ToolCall, part: &Value) -> Value {
    json!({"name": call.name, "args": call.args, "part": part})
}

/// Returns the parts of a message if they come from this provider and model.
pub(crate) fn own_parts<'a>(message: &'a Assistant, origin: &str) -> Option<&'a Value> {
    message.provider_parts.as_ref().filter(|parts| parts.origin == origin).map(|parts| &parts.parts)
}

/// Returns the thoughts of a message if they come from this model. Other models' thoughts are only for display.
pub(crate) fn own_thoughts<'a>(message: &'a Assistant, model: &str) -> Option<&'a str> {
    // Older versions and other programs do not record the model.
    let is_own = message.model.as_deref().is_none_or(|name| name == model);
    message.reasoning.as_deref().filter(|_| is_own)
}

/// Iterator over the parts of a message's calls, in the calls' order.
pub(crate) struct CallParts<'a> {
    rest: &'a [Value],
}

impl<'a> CallParts<'a> {
    pub(crate) fn new(parts: Option<&'a Value>) -> Self {
        Self { rest: parts.and_then(|parts| parts.get(CALLS)?.as_array()).map_or(&[], Vec::as_slice) }
    }

    /// Returns the part of the next call.
    pub(crate) fn next_of(&mut self, call: &ToolCall) -> Option<&'a Value> {
        let is_same = |part: &Value| part["name"] == *call.name && part["args"] == call.args;
        let at = self.rest.iter().position(is_same)?;
        let (found, rest) = (self.rest.get(at)?.get("part"), self.rest.get(at + 1..)?);
        self.rest = rest;
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str) -> ToolCall {
        ToolCall { id: "any".into(), name: name.into(), args: json!({"a": name}), garbled: None }
    }

    #[test]
    fn a_part_is_matched_to_its_call_even_if_others_were_dropped() {
        let [one, two, three] = ["one", "two", "three"].map(call);
        let parts = json!({CALLS: [call_part(&one, &json!(1)), call_part(&three, &json!(3))]});
        let mut of = CallParts::new(Some(&parts));
        assert_eq!(
            [&one, &two, &three].map(|call| of.next_of(call).cloned()),
            [Some(json!(1)), None, Some(json!(3))]
        );
        assert_eq!(CallParts::new(Some(&parts)).next_of(&three), Some(&json!(3)));
        assert_eq!(CallParts::new(None).next_of(&one), None);
    }
}
