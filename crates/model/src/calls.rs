//! Assembles tool calls from their pieces. Arguments are never guessed: text that is not a JSON object is kept as text
//! and never executed.

use crate::wire::garbled;
use pudu_base::{Finish, ModelError, ToolCall};
use pudu_net::json;
use serde_json::{Map, Value};

/// Maximum number of parallel calls in a reply; more indicates a broken or hostile server.
const MAX_PARALLEL_CALLS: usize = 128;
/// Maximum size of the arguments of all calls, in bytes.
const MAX_ARGUMENT_BYTES: usize = 16 * 1024 * 1024;

/// A piece of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallPiece {
    /// Index of the call, if the wire reports it.
    pub(crate) index: Option<u64>,
    /// Its id; empty if it is not in this piece.
    pub(crate) id: String,
    /// The tool's name; empty if it is not in this piece.
    pub(crate) name: String,
    /// More text of the arguments.
    pub(crate) arguments: String,
    /// Whether the end of the call is still missing, on a wire that reports it for each call.
    pub(crate) is_open: bool,
}

/// The calls of a reply, assembled while it arrives.
#[derive(Debug, Default)]
pub(crate) struct PartialCalls {
    calls: Vec<CallPiece>,
    bytes: usize,
}

impl PartialCalls {
    /// Adds a piece and returns the index of its call.
    ///
    /// # Errors
    /// When there are too many calls, or their arguments are too large.
    pub(crate) fn push(&mut self, piece: CallPiece) -> Result<usize, ModelError> {
        self.bytes = self.bytes.saturating_add(piece.arguments.len());
        let at = self.place(&piece);
        let at = at.unwrap_or(self.calls.len());
        if at == self.calls.len() {
            self.calls.push(piece);
        } else if let Some(call) = self.calls.get_mut(at) {
            call.grow(piece);
        }
        self.check_size()?;
        Ok(at)
    }

    fn check_size(&self) -> Result<(), ModelError> {
        if self.calls.len() > MAX_PARALLEL_CALLS || self.bytes > MAX_ARGUMENT_BYTES {
            return Err(garbled("too many or too large tool calls"));
        }
        Ok(())
    }

    /// Finds the call that a piece belongs to; `None` if it begins another call.
    fn place(&self, piece: &CallPiece) -> Option<usize> {
        let same_id = |call: &CallPiece| !piece.id.is_empty() && call.id == piece.id;
        let at = match piece.index {
            Some(_) => self.calls.iter().rposition(|call| call.index == piece.index),
            // Servers without indexes send each call complete, or its pieces consecutively.
            None => self.calls.iter().rposition(same_id).or(self.calls.len().checked_sub(1)),
        }?;
        let call = self.calls.get(at)?;
        (!call.is_followed_by(piece)).then_some(at)
    }

    /// Replaces the arguments of a call whose end event repeats them all.
    ///
    /// # Errors
    /// When the arguments are too large.
    pub(crate) fn set_arguments(&mut self, at: usize, arguments: String) -> Result<(), ModelError> {
        let Some(call) = self.calls.get_mut(at) else { return Ok(()) };
        self.bytes = self.bytes.saturating_sub(call.arguments.len()).saturating_add(arguments.len());
        call.arguments = arguments;
        self.check_size()
    }

    /// Sets the ID and name of a call that began without them.
    pub(crate) fn complete(&mut self, at: usize, id: &str, name: &str) {
        let Some(call) = self.calls.get_mut(at) else { return };
        for (known, told) in [(&mut call.id, id), (&mut call.name, name)] {
            if known.is_empty() {
                told.clone_into(known);
            }
        }
    }

    /// Finds the call with this ID, or the one at this index if it has no ID yet.
    pub(crate) fn find(&self, id: &str, at: Option<usize>) -> Option<usize> {
        let here =
            at.filter(|at| self.calls.get(*at).is_some_and(|call| call.id.is_empty() || call.id == id));
        here.or_else(|| self.calls.iter().position(|call| !id.is_empty() && call.id == id))
    }

    /// Marks a call as complete, as reported by the wire.
    pub(crate) fn close(&mut self, at: usize) {
        if let Some(call) = self.calls.get_mut(at) {
            call.is_open = false;
        }
    }

    /// Returns the calls at the end of a reply with this finish reason.
    pub(crate) fn take(&mut self, finish: Finish) -> Vec<ToolCall> {
        let last = self.calls.len().saturating_sub(1);
        let calls = std::mem::take(&mut self.calls).into_iter().enumerate();
        // In a truncated reply, only the last call can be incomplete.
        calls.map(|(at, call)| call.whole(at, finish == Finish::Length && at == last)).collect()
    }
}

impl CallPiece {
    /// Returns whether a piece with the same index begins another call: some gateways give all calls one index and
    /// distinguish them by ID. Others repeat name and ID in each piece, or send a new ID in each.
    fn is_followed_by(&self, piece: &Self) -> bool {
        let named = !piece.name.is_empty();
        let other_id = !piece.id.is_empty() && !self.id.is_empty() && piece.id != self.id;
        let no_id = piece.index.is_none() && piece.id.is_empty();
        // The first piece often has no arguments yet: a piece with the same name then continues the call.
        let goes_on = self.arguments.trim().is_empty() && piece.name == self.name;
        named && (other_id || no_id) && self.seems_whole() && !goes_on
    }

    /// Returns whether the arguments so far may be complete.
    fn seems_whole(&self) -> bool {
        arguments(&self.arguments).is_some()
    }

    fn grow(&mut self, piece: Self) {
        // IDs and names arrive complete, but some servers repeat them in every piece.
        if self.id.is_empty() {
            self.id = piece.id;
        }
        if !piece.name.is_empty() {
            self.name = piece.name;
        }
        self.arguments.push_str(&piece.arguments);
    }

    fn whole(self, at: usize, cut: bool) -> ToolCall {
        let text = self.arguments.trim();
        let args = arguments(text).filter(|_| !((cut || self.is_open) && text.is_empty()));
        ToolCall {
            id: if self.id.is_empty() { format!("call-{at}").into() } else { self.id.into() },
            name: if self.name.is_empty() { "unknown_tool".to_owned() } else { self.name },
            garbled: args.is_none().then(|| text.to_owned()),
            args: args.unwrap_or_else(|| Value::Object(Map::new())),
        }
    }
}

/// Parses arguments; `None` if they are not a JSON object. A call without arguments has an empty text or `null`. Some
/// models encode the whole object as a string.
fn arguments(text: &str) -> Option<Value> {
    match text.trim() {
        "" | "null" => Some(Value::Object(Map::new())),
        // Avoids parsing an incomplete text again for each piece.
        text if !text.ends_with(['}', '"']) => None,
        text => match json::parse(text.as_bytes()).ok()? {
            Value::String(inner) => json::parse(inner.as_bytes()).ok().filter(Value::is_object),
            value => Some(value).filter(Value::is_object),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_replace_others_are_bounded_like_those_that_come_in_pieces() {
        let mut calls = PartialCalls::default();
        let large = || "x".repeat(MAX_ARGUMENT_BYTES / 2);
        for index in 0..2 {
            let at = calls.push(CallPiece { index: Some(index), ..CallPiece::default() }).unwrap();
            calls.set_arguments(at, large()).unwrap();
            calls.set_arguments(at, large()).unwrap();
        }
        assert!(calls.set_arguments(0, large() + "x").is_err());
    }
}
