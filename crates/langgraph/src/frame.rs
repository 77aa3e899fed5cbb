//! One frame of a stream.

use pudu_base::Seq;
use pudu_net::scrub;
use serde_json::{Value, value::RawValue};
use std::{
    borrow::Cow,
    fmt::{Display, Formatter, Result},
};

/// Event number of the end of a run, greater than all others.
const END: u64 = u64::MAX;

/// Position of a reader in a run's stream: an event, counted from a row of the thread's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The row; 0 before the run has written one.
    pub seq: Seq,
    /// Number of the event, counted from the row.
    pub event: u64,
    /// Number of the event's frames that the reader lacks. They are counted from the last one, because text from before
    /// a restart is sent in fewer frames. 0 after a gap whose state has not been sent yet.
    pub left: Option<usize>,
}

impl Position {
    /// Returns the position of a reader that has all frames of an event.
    #[must_use]
    pub fn after(seq: Seq, event: u64) -> Self {
        Self { seq, event, left: None }
    }

    /// Returns the position after the end of a run.
    #[must_use]
    pub fn end(seq: Seq) -> Self {
        Self::after(seq, END)
    }

    /// Returns whether the position is after the end of the run.
    #[must_use]
    pub fn is_end(self) -> bool {
        self.event == END
    }

    /// Returns the sort key of the event, even if the reader lacks some of its frames.
    #[must_use]
    pub fn order(self) -> (Seq, u64) {
        (self.seq, self.event)
    }

    /// Parses the id of a frame; `None` if it is invalid, such as `-1`.
    #[must_use]
    pub fn read(id: &str) -> Option<Self> {
        let mut parts = id.splitn(3, '-');
        let (seq, event) = (parts.next()?.parse().ok()?, parts.next()?);
        let event = if event == "end" { END } else { event.parse().ok()? };
        let left = parts.next().map(str::parse).transpose().ok()?;
        Some(Self { seq, event, left })
    }
}

impl Display for Position {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.event {
            END => write!(f, "{}-end", self.seq)?,
            event => write!(f, "{}-{event}", self.seq)?,
        }
        self.left.map_or(Ok(()), |left| write!(f, "-{left}"))
    }
}

/// A frame of a run's stream, written as a server-sent event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its name, such as `values`.
    pub name: &'static str,
    /// Its data: JSON without secrets.
    pub data: String,
    /// The position of a reader after this frame; the last frame of a stream has none.
    pub id: Option<Position>,
    /// The id of an event of the protocol that is the same wherever the event was read, in place of its position.
    pub event_id: Option<String>,
}

impl Frame {
    /// Creates a frame whose data may contain a secret found by a tool.
    pub(super) fn redacted(name: &'static str, data: &Value, id: Position) -> Self {
        let data = data.to_string();
        let hidden = match scrub::hide_in_talk(&data) {
            Cow::Borrowed(_) => None,
            Cow::Owned(hidden) => Some(hidden),
        };
        Self { name, data: hidden.unwrap_or(data), id: Some(id), event_id: None }
    }

    /// Creates a frame from values whose secrets are already hidden.
    pub(super) fn of_values(values: Box<RawValue>, id: Position) -> Self {
        Self { name: "values", data: Box::<str>::from(values).into(), id: Some(id), event_id: None }
    }

    /// Creates the place of a frame that its reader does not want. It counts, so that the positions of the other frames
    /// do not depend on its filter.
    pub(super) fn unwanted(id: Position) -> Self {
        Self { name: "", data: String::new(), id: Some(id), event_id: None }
    }

    /// Returns whether the frame is sent.
    pub(super) fn is_wanted(&self) -> bool {
        !self.name.is_empty()
    }

    /// Creates the last frame.
    pub(super) fn end() -> Self {
        Self { name: "end", data: "null".to_owned(), id: None, event_id: None }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_ids_round_trip() {
        for (id, expect) in [
            ("12-0", Some(Position::after(12, 0))),
            ("0-7", Some(Position::after(0, 7))),
            ("12-3-2", Some(Position { left: Some(2), ..Position::after(12, 3) })),
            ("12-0-0", Some(Position { left: Some(0), ..Position::after(12, 0) })),
            ("12-end", Some(Position::end(12))),
            ("12-end-1", Some(Position { left: Some(1), ..Position::end(12) })),
        ] {
            assert_eq!(Position::read(id), expect);
            assert_eq!(expect.map(|position| position.to_string()).as_deref(), Some(id));
        }
        for wrong in ["-1", "", "7", "a-1", "1-a", "1-2-a", "1-2-3-4", "1--1"] {
            assert_eq!(Position::read(wrong), None, "{wrong}");
        }
    }
}
