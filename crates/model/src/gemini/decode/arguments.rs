//! Call arguments that arrive in pieces, each with its JSON path.

use super::chunk::{FunctionCallPart, PartialArgument};
use crate::wire::garbled;
use pudu_base::ModelError;
use serde_json::{Map, Value};

/// Maximum size of a call's arguments, in bytes.
const MAX_ARGUMENT_BYTES: usize = 16 * 1024 * 1024;
/// Maximum list index; a larger one is an error or an attack.
const MAX_INDEX: usize = 10_000;
/// Maximum number of steps in a path.
const MAX_STEPS: usize = 64;

/// A call whose arguments are arriving.
#[derive(Debug)]
pub(super) struct StreamedCall {
    pub(super) name: String,
    pub(super) id: Option<String>,
    pub(super) signature: Option<String>,
    pub(super) args: Value,
    bytes: usize,
    /// Whether a piece could not be inserted into the arguments.
    is_lost: bool,
}

impl Default for StreamedCall {
    fn default() -> Self {
        let args = Value::Object(Map::new());
        Self { name: String::new(), id: None, signature: None, args, bytes: 0, is_lost: false }
    }
}

/// A step of a path, from a value to a nested one.
#[derive(Debug, PartialEq)]
enum PathStep<'a> {
    Field(&'a str),
    Item(usize),
}

impl StreamedCall {
    /// Returns whether `call` begins another call: its name or ID differs, or it is complete.
    pub(super) fn is_followed_by(&self, call: &FunctionCallPart) -> bool {
        let other_id = call.id.is_some() && self.id.is_some() && call.id != self.id;
        let other_name = call.name.as_ref().is_some_and(|name| !name.is_empty() && *name != self.name);
        let has_args = call.args.as_ref().and_then(Value::as_object).is_some_and(|args| !args.is_empty());
        other_id || other_name || (has_args && !call.is_piece())
    }

    /// Adds a piece.
    ///
    /// # Errors
    /// When the arguments are too large.
    pub(super) fn grow(
        &mut self,
        call: FunctionCallPart,
        signature: Option<String>,
    ) -> Result<(), ModelError> {
        if let Some(name) = call.name.filter(|name| !name.is_empty()) {
            self.name = name;
        }
        self.id = call.id.or(self.id.take());
        self.signature = signature.or(self.signature.take());
        if let Some(Value::Object(args)) = call.args {
            merge(&mut self.args, args);
        }
        for piece in call.partial_args.into_iter().flatten() {
            self.bytes += piece.string_value.as_ref().map_or(8, String::len);
            self.is_lost |= self.put(piece).is_none();
        }
        if self.bytes > MAX_ARGUMENT_BYTES { Err(garbled("too large arguments")) } else { Ok(()) }
    }

    /// Returns whether all pieces were inserted and the name is known.
    pub(super) fn is_readable(&self) -> bool {
        !self.is_lost && !self.name.is_empty()
    }

    fn put(&mut self, piece: PartialArgument) -> Option<()> {
        let steps = steps(piece.json_path.as_deref()?)?;
        let slot = place(&mut self.args, &steps)?;
        let value = piece.number_value.or(piece.bool_value.map(Value::Bool));
        match (piece.string_value, slot) {
            (Some(more), Value::String(text)) => text.push_str(&more),
            (Some(text), slot) => *slot = Value::String(text),
            (None, slot) => *slot = value.unwrap_or_default(),
        }
        Some(())
    }
}

fn merge(into: &mut Value, from: Map<String, Value>) {
    if let Value::Object(map) = into {
        map.extend(from);
    }
}

/// Parses a path such as `$.places[0].name` or `$['a b']`. Returns `None` for other syntax and for the root itself.
fn steps(path: &str) -> Option<Vec<PathStep<'_>>> {
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let (step, tail) = if let Some(inner) = rest.strip_prefix('[') {
            bracket(inner)?
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let (name, tail) = name.split_at_checked(name.find(['.', '[']).unwrap_or(name.len()))?;
            (Some(name).filter(|name| !name.is_empty()).map(PathStep::Field)?, tail)
        };
        steps.push(step);
        rest = tail;
    }
    (1..=MAX_STEPS).contains(&steps.len()).then_some(steps)
}

/// Parses the text after a bracket: an index, or a quoted name.
fn bracket(inner: &str) -> Option<(PathStep<'_>, &str)> {
    for quote in ["'", "\""] {
        if let Some(quoted) = inner.strip_prefix(quote) {
            let (name, tail) = quoted.split_once(quote)?;
            return Some((PathStep::Field(name), tail.strip_prefix(']')?));
        }
    }
    let (number, tail) = inner.split_once(']')?;
    Some((PathStep::Item(number.parse().ok().filter(|at| *at <= MAX_INDEX)?), tail))
}

/// Finds a value, and creates the path to it if necessary. Returns `None` if a value of another type is in the way.
fn place<'v>(root: &'v mut Value, steps: &[PathStep<'_>]) -> Option<&'v mut Value> {
    let mut at = root;
    for step in steps {
        at = match step {
            PathStep::Field(name) => {
                let map = match at {
                    Value::Null => {
                        *at = Value::Object(Map::new());
                        at.as_object_mut()?
                    }
                    other => other.as_object_mut()?,
                };
                map.entry(*name).or_insert(Value::Null)
            }
            PathStep::Item(item) => {
                let list = match at {
                    Value::Null => {
                        *at = Value::Array(Vec::new());
                        at.as_array_mut()?
                    }
                    other => other.as_array_mut()?,
                };
                if list.len() <= *item {
                    list.resize(item + 1, Value::Null);
                }
                list.get_mut(*item)?
            }
        };
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_parsed_or_refused() {
        use PathStep::{Field, Item};
        for (path, expect) in [
            ("$.a", Some(vec![Field("a")])),
            ("$.a.b[2].c", Some(vec![Field("a"), Field("b"), Item(2), Field("c")])),
            ("$['a b'][\"c\"]", Some(vec![Field("a b"), Field("c")])),
            ("a", Some(vec![Field("a")])),
            ("$", None),
            ("$..a", None),
            ("$.a[*]", None),
            ("$.a[99999999]", None),
            ("$.a['b", None),
        ] {
            assert_eq!(steps(path), expect, "{path}");
        }
    }
}
