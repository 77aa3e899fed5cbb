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

/// A piece of a call, as it arrives.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallPiece {
    /// Index of the call, if the wire reports it.
    pub(crate) index: Option<u64>,
    /// The call's ID; empty if this piece does not contain it.
    pub(crate) id: String,
    /// The tool's name; empty if this piece does not contain it.
    pub(crate) name: String,
    /// The next part of the arguments' text.
    pub(crate) arguments: String,
    /// Whether the call has not ended yet, on a wire that reports the end of each call.
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

    /// Finds the call that a piece belongs to; `None` if the piece begins a new call.
    fn place(&self, piece: &CallPiece) -> Option<usize> {
        let same_id = |call: &CallPiece| !piece.id.is_empty() && call.id == piece.id;
        let at = match piece.index {
            Some(_) => self.calls.iter().rposition(|call| call.index == piece.index),
            // Servers that send no indexes send each call complete, or its pieces consecutively.
            None => self.calls.iter().rposition(same_id).or(self.calls.len().checked_sub(1)),
        }?;
        let call = self.calls.get(at)?;
        (!call.is_followed_by(piece)).then_some(at)
    }

    /// Replaces the arguments of a call when its end event repeats them in full.
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
        for (known, new) in [(&mut call.id, id), (&mut call.name, name)] {
            if known.is_empty() {
                new.clone_into(known);
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
    /// Returns whether a piece with the same index begins another call. Some gateways give all calls the same index and
    /// distinguish them by ID; others repeat the name and ID in each piece, or send a new ID with each piece.
    fn is_followed_by(&self, piece: &Self) -> bool {
        let has_name = !piece.name.is_empty();
        let other_id = !piece.id.is_empty() && !self.id.is_empty() && piece.id != self.id;
        let no_id = piece.index.is_none() && piece.id.is_empty();
        // The first piece often has no arguments yet: a piece with the same name then continues the call.
        let continues = self.arguments.trim().is_empty() && piece.name == self.name;
        has_name && (other_id || no_id) && self.seems_whole() && !continues
    }

    /// Returns whether the arguments received so far may be complete.
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

/// Parses arguments; `None` if they are not a JSON object. Empty text and `null` mean no arguments. Some models
/// encode the whole object as a string.
fn arguments(text: &str) -> Option<Value> {
    match text.trim() {
        "" | "null" => Some(Value::Object(Map::new())),
        // Avoids parsing incomplete text again for each piece.
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
    fn replaced_arguments_have_the_same_size_limit_as_streamed_ones() {
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
