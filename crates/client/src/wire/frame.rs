//! One frame of a stream.

use crate::{base::Seq, net::scrub};
use serde_json::{Value, value::RawValue};
use std::{
    borrow::Cow,
    fmt::{Display, Formatter, Result},
};

/// Position of a reader in a run's stream: so many events behind a row of the thread's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The row; 0 before the run has written one.
    pub seq: Seq,
    /// Number of the event behind it.
    pub event: u64,
}

impl Position {
    /// Reads the id of a frame; `None` if it is none, as `-1`.
    #[must_use]
    pub fn read(id: &str) -> Option<Self> {
        let (seq, event) = id.split_once('-')?;
        Some(Self { seq: seq.parse().ok()?, event: event.parse().ok()? })
    }
}

impl Display for Position {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}-{}", self.seq, self.event)
    }
}

/// A frame of a run's stream. It is written as server-sent events are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its name, as `values`.
    pub name: &'static str,
    /// Its data, JSON without secrets.
    pub data: String,
    /// The position of a reader who has it; the last frame of a stream has none.
    pub id: Option<Position>,
}

impl Frame {
    /// Makes a frame of data that may have a secret in them which a tool has found.
    pub(super) fn of(name: &'static str, data: &Value, id: Position) -> Self {
        let data = data.to_string();
        let hidden = match scrub::hide_in_talk(&data) {
            Cow::Borrowed(_) => None,
            Cow::Owned(hidden) => Some(hidden),
        };
        Self { name, data: hidden.unwrap_or(data), id: Some(id) }
    }

    /// Makes a frame of values, in which secrets have been hidden as they were written.
    pub(super) fn of_values(values: Box<RawValue>, id: Position) -> Self {
        Self { name: "values", data: Box::<str>::from(values).into(), id: Some(id) }
    }

    /// Makes the last frame.
    pub(super) fn end() -> Self {
        Self { name: "end", data: "null".to_owned(), id: None }
    }
}

impl Display for Frame {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "event: {}\ndata: {}\n", self.name, self.data)?;
        match self.id {
            Some(id) => write!(f, "id: {id}\n\n"),
            None => f.write_str("\n"),
        }
    }
}
