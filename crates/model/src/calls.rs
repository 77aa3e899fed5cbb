//! Tool calls assembled from their pieces. Arguments are never guessed: a text that is no JSON object is kept as text
//! and never run.

use crate::wire::garbled;
use pudu_base::{Finish, ModelError, ToolCall};
use pudu_net::json;
use serde_json::{Map, Value};

/// Maximum number of parallel calls in a reply; more is a broken or hostile server.
const MAX_PARALLEL_CALLS: usize = 128;
/// Maximum size of the arguments of all calls, in bytes.
const MAX_ARGUMENT_BYTES: usize = 16 * 1024 * 1024;

/// A piece of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallPiece {
    /// The call's place among all, if the wire reports it.
    pub(crate) index: Option<u64>,
    /// Its id; empty if it is not in this piece.
    pub(crate) id: String,
    /// The tool's name; empty if it is not in this piece.
    pub(crate) name: String,
    /// More of the arguments' text.
    pub(crate) arguments: String,
    /// Whether the wire has not reported the end of the call, although it does so for each call.
    pub(crate) is_open: bool,
}

/// The calls of a reply as they come.
#[derive(Debug, Default)]
pub(crate) struct PartialCalls {
    calls: Vec<CallPiece>,
    bytes: usize,
}

impl PartialCalls {
    /// Takes a piece and returns the place of its call.
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

    /// Finds the call that a piece belongs to; `None` for a call that begins with it.
    fn place(&self, piece: &CallPiece) -> Option<usize> {
        let same_id = |call: &CallPiece| !piece.id.is_empty() && call.id == piece.id;
        let at = match piece.index {
            Some(_) => self.calls.iter().rposition(|call| call.index == piece.index),
            // Servers that give no index send each call whole, or its pieces in a row.
            None => self.calls.iter().rposition(same_id).or(self.calls.len().checked_sub(1)),
        }?;
        let call = self.calls.get(at)?;
        (!call.is_followed_by(piece)).then_some(at)
    }

    /// Replaces the arguments of a call whose end event has them whole.
    ///
    /// # Errors
    /// When the arguments are too large.
    pub(crate) fn set_arguments(&mut self, at: usize, arguments: String) -> Result<(), ModelError> {
        let Some(call) = self.calls.get_mut(at) else { return Ok(()) };
        self.bytes = self.bytes.saturating_sub(call.arguments.len()).saturating_add(arguments.len());
        call.arguments = arguments;
        self.check_size()
    }

    /// Gives a call the id and name that it began without.
    pub(crate) fn complete(&mut self, at: usize, id: &str, name: &str) {
        let Some(call) = self.calls.get_mut(at) else { return };
        for (known, told) in [(&mut call.id, id), (&mut call.name, name)] {
            if known.is_empty() {
                told.clone_into(known);
            }
        }
    }

    /// Finds the call that has this id: the one at this place if it has none yet.
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

    /// Takes the calls as they are at the end of a reply that finished so.
    pub(crate) fn take(&mut self, finish: Finish) -> Vec<ToolCall> {
        let last = self.calls.len().saturating_sub(1);
        let calls = std::mem::take(&mut self.calls).into_iter().enumerate();
        // Of a reply that was cut, only the last call can be unfinished.
        calls.map(|(at, call)| call.whole(at, finish == Finish::Length && at == last)).collect()
    }
}

impl CallPiece {
    /// Returns whether another call begins with a piece that has this one's place: gateways number all calls alike,
    /// and distinguish them by id. Some repeat name and id in each piece, and some make a new id for each.
    fn is_followed_by(&self, piece: &Self) -> bool {
        let named = !piece.name.is_empty();
        let other_id = !piece.id.is_empty() && !self.id.is_empty() && piece.id != self.id;
        let no_id = piece.index.is_none() && piece.id.is_empty();
        // The first piece often has no arguments yet: the same name then continues the call and begins no other.
        let goes_on = self.arguments.trim().is_empty() && piece.name == self.name;
        named && (other_id || no_id) && self.seems_whole() && !goes_on
    }

    /// Returns whether the arguments so far may be complete.
    fn seems_whole(&self) -> bool {
        arguments(&self.arguments).is_some()
    }

    fn grow(&mut self, piece: Self) {
        // Ids and names come whole, but some servers repeat them with every piece.
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

/// Reads arguments; `None` if they are no JSON object. A tool without arguments is called with nothing or `null`. Some
/// models write the whole object as a text.
fn arguments(text: &str) -> Option<Value> {
    match text.trim() {
        "" | "null" => Some(Value::Object(Map::new())),
        // So pieces are not read again and again from their beginning.
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
