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
    let is_shown = history == GroupHistory::Platform;
    let section = section.section("context").about(match is_shown {
        true => "Recent messages of a group that the model reads beside a question, marked as foreign.",
        false => {
            "Recent messages of a group that the model reads beside a question, marked as foreign. For this pudu stores \
             the messages that do not address the bot, as far as it receives them: see docs/channels/pointed-at.md."
        }
    });
    let (usual, told) = match is_shown && !policy.admits_everybody() {
        true => (50, "50; 0 where the account admits everybody"),
        false => (0, if is_shown { "50; 0 where the account admits everybody" } else { "0" }),
    };
    settings! { section =>
        /// Maximum number of messages; 0 stores and reads none.
        messages = number(0..=200).eg("50").or_told(usual, told);
        /// Maximum age of a message, in minutes. Older ones are deleted.
        age as "minutes" = span(NumberUnit::Minutes, 1..=10_080).or(Duration::from_secs(1440 * 60));
    }
    GroupContext { history, messages, age }
}
