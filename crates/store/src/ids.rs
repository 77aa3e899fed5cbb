//! Ids of rows that refer to each other.

/// Identifies an item. Later items have higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InboxItemId(pub i64);

/// Identifies a turn. Chosen by the caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TurnId(pub String);
