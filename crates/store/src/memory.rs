//! Memory: conversations to learn from, merges of two users' memory, and the index of recall.

pub(crate) mod learning;
pub(crate) mod merge;
pub(crate) mod recall;
