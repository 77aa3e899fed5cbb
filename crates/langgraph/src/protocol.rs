//! LangGraph's protocol of event streams (version 2): its channels, the filter of a reader, and the sequence numbers of
//! a thread's events. `frames/protocol.rs` renders the events.

use super::{frame::Position, modes::Modes};
use pudu_base::{Seq, foreign};

/// Maximum number of channels in a filter.
const MAX_CHANNELS: usize = 256;
/// Maximum number of namespaces in a filter.
const MAX_NAMESPACES: usize = 1024;
/// Maximum length of an unknown channel in an error, in characters.
const MAX_SHOWN_CHARS: usize = 40;

/// A kind of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventChannel {
    /// The whole state, after each change.
    Values,
    /// The changes made by a node.
    Updates,
    /// Checkpoints, each before its state.
    Checkpoints,
    /// Messages of models, block by block.
    Messages,
    /// Calls of tools and their results.
    Tools,
    /// Progress that has a name of its own.
    Custom,
    /// Beginnings and ends of runs and of sub-agents.
    Lifecycle,
    /// Calls that wait for an approval.
    Input,
    /// Beginnings and ends of nodes.
    Tasks,
}

impl EventChannel {
    const ALL: [Self; 9] = [
        Self::Values,
        Self::Updates,
        Self::Checkpoints,
        Self::Messages,
        Self::Tools,
        Self::Custom,
        Self::Lifecycle,
        Self::Input,
        Self::Tasks,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Values => "values",
            Self::Updates => "updates",
            Self::Checkpoints => "checkpoints",
            Self::Messages => "messages",
            Self::Tools => "tools",
            Self::Custom => "custom",
            Self::Lifecycle => "lifecycle",
            Self::Input => "input",
            Self::Tasks => "tasks",
        }
    }

    /// Returns the method of the channel's events.
    #[must_use]
    pub fn method(self) -> &'static str {
        match self {
            Self::Input => "input.requested",
            other => other.name(),
        }
    }
}

/// The events that a reader wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    channels: Vec<EventChannel>,
    /// Names of custom events that are wanted without the others.
    names: Vec<String>,
    /// Namespaces with everything below them; all if there is none.
    namespaces: Vec<Vec<String>>,
    /// Maximum depth below a namespace.
    depth: Option<usize>,
}

impl EventFilter {
    /// Parses a filter.
    ///
    /// # Errors
    /// When a channel is unknown, there is none, or there are too many channels or namespaces.
    pub fn new(
        channels: &[String],
        namespaces: Vec<Vec<String>>,
        depth: Option<usize>,
    ) -> Result<Self, String> {
        if !(1..=MAX_CHANNELS).contains(&channels.len()) {
            return Err(format!("channels must be a list of 1 to {MAX_CHANNELS} channels"));
        }
        if namespaces.len() > MAX_NAMESPACES {
            return Err(format!("namespaces must be a list of at most {MAX_NAMESPACES} namespaces"));
        }
        let mut filter = Self { namespaces, depth, ..Self::default() };
        for wanted in channels {
            let known = EventChannel::ALL.into_iter().find(|channel| channel.name() == wanted);
            match (known, wanted.strip_prefix("custom:").filter(|name| !name.is_empty())) {
                (Some(channel), _) => filter.channels.push(channel),
                (None, Some(name)) => filter.names.push(name.to_owned()),
                (None, None) => {
                    let names = EventChannel::ALL.map(EventChannel::name).join(", ");
                    let wanted = foreign::line(wanted, MAX_SHOWN_CHARS);
                    return Err(format!(
                        "channels: unknown channel `{wanted}`; the channels are {names}, and custom:<name>"
                    ));
                }
            }
        }
        Ok(filter)
    }

    /// Returns whether any event of a channel may be wanted.
    pub(super) fn wants(&self, channel: EventChannel) -> bool {
        self.channels.contains(&channel) || (channel == EventChannel::Custom && !self.names.is_empty())
    }

    /// Returns the modes of a run's stream that the filter needs.
    #[must_use]
    pub fn modes(&self) -> Modes {
        Modes { values: self.wants(EventChannel::Values), ..Modes::default() }
    }

    /// Returns whether an event is wanted. `name` is that of a custom event.
    pub(super) fn matches(&self, channel: EventChannel, name: Option<&str>, namespace: &[&str]) -> bool {
        let is_named = || name.is_some_and(|name| self.names.iter().any(|wanted| wanted == name));
        let is_wanted = self.channels.contains(&channel) || (channel == EventChannel::Custom && is_named());
        is_wanted
            && (self.namespaces.is_empty()
                || self.namespaces.iter().any(|from| self.is_below(namespace, from)))
    }

    fn is_below(&self, namespace: &[&str], prefix: &[String]) -> bool {
        let is_prefix = prefix.len() <= namespace.len()
            && prefix.iter().zip(namespace).all(|(wanted, part)| {
                // A name without an id matches all namespaces of that name.
                part == wanted || part.split(':').next() == Some(wanted.as_str())
            });
        is_prefix && self.depth.is_none_or(|depth| namespace.len() - prefix.len() <= depth)
    }
}

/// Number of bits for the parts of a number: 53 in all, the whole numbers that JavaScript can represent.
const ROW_BITS: u32 = 23;
const EVENT_BITS: u32 = 21;
const FRAME_BITS: u32 = 9;
/// Greatest sequence number.
pub const MAX_NUMBER: u64 = (1 << (ROW_BITS + EVENT_BITS + FRAME_BITS)) - 1;
/// Number of the last frame of an event.
const LAST_FRAME: u64 = (1 << FRAME_BITS) - 1;
/// Event number of the first event after a restart.
const RESUMED: u64 = 1 << 19;
/// Event number of the end of a run.
const END: u64 = 1 << 20;
/// Event number of the beginning of a run that has not written a row yet: it comes after the end of the run before it.
const BEGIN: u64 = END + 1;
/// Event number of the end of a run that wrote no row.
const NO_ROW_END: u64 = (1 << EVENT_BITS) - 1;

/// Place of a run in the log of its thread, which determines the sequence numbers of its events. The numbers of a thread
/// increase, and are the same for every reader.
///
/// A number consists of a row, the event after it, and the frame of that event. Where a part has too many, several
/// events share a number. Readers may then get an event again, with the same id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunPlace {
    /// The thread's row before the run.
    pub base: Seq,
    /// The run's last row from before a restart, and the number of its first event after that; zero without a restart.
    pub resumed: (Seq, u64),
}

/// Where a reader of a thread continues in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continue {
    /// The reader has no event of the run.
    Begin,
    /// The reader has the events up to a position.
    After(Position),
}

impl RunPlace {
    /// Returns the sequence number of a frame.
    #[must_use]
    pub fn number(&self, position: Position) -> u64 {
        let Position { seq, event, left } = position;
        let row = if seq == 0 { self.base } else { seq };
        let (resumed, first) = self.resumed;
        let event = match seq {
            0 if position.is_end() => NO_ROW_END,
            0 => BEGIN + event.min(RESUMED),
            _ if position.is_end() => END,
            _ if first > 0 && seq == resumed && event >= first => RESUMED + (event - first).min(RESUMED - 1),
            _ => event.min(RESUMED - 1),
        };
        let frame = left.map_or(LAST_FRAME, |left| LAST_FRAME - (left as u64).min(LAST_FRAME));
        compose(row, event, frame)
    }

    /// Returns where a reader continues that has the events of the thread up to a number.
    #[must_use]
    pub fn after(&self, number: u64) -> Continue {
        let frame = number & LAST_FRAME;
        let event = (number >> FRAME_BITS) & ((1 << EVENT_BITS) - 1);
        let row = Seq::try_from(number >> (EVENT_BITS + FRAME_BITS)).unwrap_or(Seq::MAX);
        let left = (frame < LAST_FRAME).then(|| usize::try_from(LAST_FRAME - frame).unwrap_or(usize::MAX));
        let (resumed, first) = self.resumed;
        let position = match () {
            () if row < self.base || (row == self.base && !(BEGIN..NO_ROW_END).contains(&event)) => {
                return Continue::Begin;
            }
            () if row == self.base => Position { seq: 0, event: event - BEGIN, left },
            () if event == END => Position { left, ..Position::end(row) },
            // The numbers of two restarts without a row in between are the same: the reader gets all since the newest.
            () if event >= RESUMED && row == resumed && first > 0 => Position::after(row, first),
            () => Position { seq: row, event, left },
        };
        Continue::After(position)
    }
}

/// Returns the greatest number of the events up to a row: that of the end of a run that wrote it.
#[must_use]
pub fn number_at(row: Seq) -> u64 {
    compose(row, END, LAST_FRAME)
}

fn compose(row: Seq, event: u64, frame: u64) -> u64 {
    let row = row.max(0).unsigned_abs().min((1 << ROW_BITS) - 1);
    (row << (EVENT_BITS + FRAME_BITS)) | (event << FRAME_BITS) | frame
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(
        channels: &[&str],
        namespaces: &[&[&str]],
        depth: Option<usize>,
    ) -> Result<EventFilter, String> {
        let text = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        EventFilter::new(&text(channels), namespaces.iter().map(|namespace| text(namespace)).collect(), depth)
    }

    #[test]
    fn filters_select_channels_names_and_namespaces() {
        let check = |filter: &EventFilter, channel, name, namespace: &[&str], expect: bool| {
            assert_eq!(filter.matches(channel, name, namespace), expect, "{filter:?} {namespace:?}");
        };
        let all = filter(&["messages", "custom:a"], &[], Some(0)).unwrap();
        check(&all, EventChannel::Messages, None, &["tools:c"], true);
        check(&all, EventChannel::Values, None, &[], false);
        check(&all, EventChannel::Custom, Some("a"), &[], true);
        check(&all, EventChannel::Custom, Some("b"), &[], false);
        let root = filter(&["messages", "custom"], &[&[]], Some(0)).unwrap();
        check(&root, EventChannel::Messages, None, &[], true);
        check(&root, EventChannel::Messages, None, &["tools:c"], false);
        check(&root, EventChannel::Custom, Some("b"), &[], true);
        let of_tools = filter(&["messages"], &[&["tools"], &["other:1"]], None).unwrap();
        check(&of_tools, EventChannel::Messages, None, &["tools:c", "more:d"], true);
        check(&of_tools, EventChannel::Messages, None, &["other:2"], false);
        check(&of_tools, EventChannel::Messages, None, &[], false);
        assert!(
            root.wants(EventChannel::Custom)
                && all.wants(EventChannel::Custom)
                && !all.wants(EventChannel::Values)
        );
    }

    #[test]
    fn unknown_channels_are_refused() {
        for (wanted, message) in [
            (vec!["typo"], "channels: unknown channel `typo`; the channels are values, updates, "),
            (vec!["values", "custom:"], "channels: unknown channel `custom:`"),
            (vec![], "channels must be a list of 1 to 256 channels"),
            (vec!["values"; 257], "channels must be a list of 1 to 256 channels"),
        ] {
            let error = filter(&wanted, &[], None).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
        assert!(filter(&["values"], &vec![&[][..]; 1025], None).is_err());
    }

    #[test]
    fn numbers_increase_and_lead_back_to_their_positions() {
        let at = |seq, event, left| Position { seq, event, left };
        let place = RunPlace { base: 7, resumed: (9, 1_795_903_600_000) };
        let first = 1_795_903_600_000;
        let positions = [
            at(0, 0, None),
            at(0, 1, Some(2)),
            at(0, 1, None),
            at(8, 0, Some(3)),
            at(8, 0, None),
            at(8, 1, None),
            at(9, 300, None),
            at(9, first, None),
            at(9, first + 1, None),
            at(10, 0, None),
            at(10, u64::MAX, Some(1)),
            at(10, u64::MAX, None),
        ];
        let numbers = positions.map(|position| place.number(position));
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
        for (number, position) in numbers.into_iter().zip(positions) {
            let position =
                if position.event > first && position.seq == 9 { at(9, first, None) } else { position };
            assert_eq!(place.after(number), Continue::After(position), "{number}");
        }
        assert!(numbers[0] > number_at(7) && number_at(7) > number_at(6) && number_at(0) > 0);
        for before in [0, number_at(0), number_at(6), number_at(7)] {
            assert_eq!(place.after(before), Continue::Begin, "{before}");
        }
        assert_eq!(place.number(Position::end(10)), number_at(10));
        let highest = RunPlace::default().number(at(Seq::MAX, u64::MAX - 1, None));
        assert!(highest <= MAX_NUMBER && MAX_NUMBER == (1 << 53) - 1);
    }
}
