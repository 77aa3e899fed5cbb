//! Ids of the rows that refer to each other.

/// The number of an item. Later items have higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InboxItemId(pub i64);

/// Names a turn. Chosen by the caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TurnId(pub String);
