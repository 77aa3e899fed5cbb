//! Memory: conversations to learn from, merges of two users' memory, and the recall index.

pub(crate) mod learning;
pub(crate) mod merge;
pub(crate) mod recall;
