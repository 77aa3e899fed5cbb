//! Recent messages of a group that the model reads beside a question: their source, how many, and how old.

use super::{
    super::{quantity::NumberUnit, raw::NodeValue, reader::Section},
    AccountPolicy,
};
use pudu_kit::clock::millis;
use std::time::Duration;

/// Source of the recent messages of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupHistory {
    /// The platform, which shows them to bots.
    Platform,
    /// The messages that pudu received, by topic.
    TopicBuffer,
    /// The messages that pudu received, by chat: the platform has no topics.
    ChatBuffer,
}

/// Recent messages of a group that the model reads beside a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupContext {
    /// Source of the messages.
    pub history: GroupHistory,
    /// Maximum number of messages; 0 for none.
    pub messages: usize,
    /// Maximum age of a message.
    pub age: Duration,
}

impl GroupContext {
    /// Reads nothing.
    pub const OFF: Self = Self { history: GroupHistory::Platform, messages: 0, age: Duration::ZERO };

    /// Returns whether pudu stores messages that do not address the bot.
    pub fn is_buffered(&self) -> bool {
        self.messages > 0 && self.history != GroupHistory::Platform
    }

    /// Returns the time of the oldest message that may be read, in milliseconds since 1970.
    pub fn oldest(&self, now: i64) -> i64 {
        now.saturating_sub(millis(self.age))
    }
}

/// Returns whether an account may want messages of groups. The limits themselves are read with the account's policy, which
/// changes without a new connection.
pub(super) fn is_wanted(section: &Section<'_>) -> bool {
    let messages = section.entry("context").and_then(|context| context.node.entry("messages"));
    messages.is_some_and(|messages| messages.node.value != NodeValue::Int(0))
}

/// Reads the limits of group context. The default is off for an account that is open to all, which has strangers in its
/// groups, and where pudu would have to store the messages.
pub(super) fn read(section: &Section<'_>, policy: &AccountPolicy, history: GroupHistory) -> GroupContext {
    let section = section.section("context");
    let messages = section.number("messages", 0..=200_u32);
    let messages = match history {
        GroupHistory::Platform => {
            let usual = if policy.admits_everybody() { 0 } else { 50 };
            messages.or_told(usual, "50; 0 where the account admits everybody")
        }
        GroupHistory::TopicBuffer | GroupHistory::ChatBuffer => messages.or(0),
    };
    let minutes = section.amount("minutes", NumberUnit::Minutes, 1..=10_080_u64).or(1440);
    GroupContext { history, messages: messages as usize, age: Duration::from_secs(minutes * 60) }
}
