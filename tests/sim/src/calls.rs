//! The record of the bot's calls and their responses.

use serde_json::{Map, Value};
use std::collections::{HashMap, VecDeque};
use tokio::time::Instant;

/// Maximum number of stored calls; the counters continue.
const KEPT: usize = 10_000;

/// One call of a method.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its number, from 1, over all methods.
    pub n: u64,
    /// Time of the call.
    pub at: Instant,
    /// The documented name of the method, whatever case the client used.
    pub method: String,
    /// Parameters. A file is recorded as its name and size.
    pub params: Map<String, Value>,
    /// Its outcome.
    pub outcome: Outcome,
}

/// Outcome of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The call is in progress.
    Running,
    /// The result that was sent.
    Answered(Value),
    /// The error that was sent.
    Refused(u16, String),
    /// The call took effect, but its response was made unreadable.
    Garbled,
    /// The connection was closed without a response.
    Cut {
        /// Whether the call took effect.
        done: bool,
    },
    /// The client closed the connection first.
    Abandoned,
}

/// The record.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    kept: VecDeque<Call>,
    total: u64,
    by_method: HashMap<String, u64>,
}

impl Calls {
    pub(crate) fn start(&mut self, method: &str, params: Map<String, Value>, at: Instant) -> Call {
        self.total += 1;
        *self.by_method.entry(method.to_owned()).or_default() += 1;
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        let call = Call { n: self.total, at, method: method.to_owned(), params, outcome: Outcome::Running };
        self.kept.push_back(call.clone());
        call
    }

    pub(crate) fn end(&mut self, n: u64, outcome: Outcome) {
        let first = self.kept.front().map_or(0, |call| call.n);
        let at = n.checked_sub(first).and_then(|at| usize::try_from(at).ok());
        if let Some(call) = at.and_then(|at| self.kept.get_mut(at)) {
            call.outcome = outcome;
        }
    }

    pub(crate) fn all(&self) -> impl DoubleEndedIterator<Item = &Call> {
        self.kept.iter()
    }

    pub(crate) fn count(&self, method: &str) -> u64 {
        self.by_method.get(method).copied().unwrap_or(0)
    }
}
