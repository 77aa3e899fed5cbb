//! Recent messages of a group that the model reads beside a question: how many, and how old.

use super::{
    super::{quantity::NumberUnit, reader::Section},
    AccountPolicy,
};
use std::time::Duration;

/// Recent messages of a group that the model reads beside a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupContext {
    /// Maximum number of messages; 0 for none.
    pub(crate) messages: usize,
    /// Maximum age of a message.
    pub(crate) age: Duration,
}

impl GroupContext {
    /// Reads nothing.
    pub(crate) const OFF: Self = Self { messages: 0, age: Duration::ZERO };
}

/// Reads the limits of group context. An account that is open to all has strangers in its groups: its default is off.
pub(super) fn read(section: &Section<'_>, policy: &AccountPolicy) -> GroupContext {
    let section = section.section("context");
    let usual = if policy.admits_everybody() { 0 } else { 50 };
    let messages = section.number("messages", 0..=200_u32);
    let messages = messages.or_told(usual, "50; 0 where the account admits everybody");
    let minutes = section.amount("minutes", NumberUnit::Minutes, 1..=10_080_u64).or(1440);
    GroupContext { messages: messages as usize, age: Duration::from_secs(minutes * 60) }
}
