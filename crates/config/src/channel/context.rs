//! Recent group messages added to a question as context: their source, maximum number and maximum age.

use super::{
    super::{quantity::NumberUnit, raw::NodeValue, reader::Section},
    AccountPolicy,
};
use pudu_kit::clock::millis;
use std::time::Duration;

/// Source of the recent messages of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupHistory {
    /// Fetched from the platform.
    Platform,
    /// Messages that pudu received and stored, by topic.
    TopicBuffer,
    /// Messages that pudu received and stored, by chat, because the platform has no topics.
    ChatBuffer,
}

/// Recent group messages added to a question as context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupContext {
    /// Source of the messages.
    pub history: GroupHistory,
    /// Maximum number of messages; 0 disables them.
    pub messages: usize,
    /// Maximum age of a message.
    pub age: Duration,
}

impl GroupContext {
    /// Disables group context.
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

/// Returns whether a bot may need messages of groups. The limits themselves belong to the bot's policy, which changes
/// without a reconnection.
pub(super) fn is_wanted(section: &Section<'_>) -> bool {
    let messages = section.entry("context").and_then(|context| context.node.entry("messages"));
    messages.is_some_and(|messages| messages.node.value != NodeValue::Int(0))
}

/// Reads the limits of group context. It is off by default if the bot is open to everyone, because strangers may be in
/// its groups, or if pudu would have to store the messages.
pub(super) fn read(section: &Section<'_>, policy: &AccountPolicy, history: GroupHistory) -> GroupContext {
    let is_shown = history == GroupHistory::Platform;
    let section = section.section("context").about(match is_shown {
        true => "Recent group messages added to a question as context, attributed to their senders.",
        false => {
            "Recent group messages added to a question as context, attributed to their senders. To provide it, pudu stores \
             the messages it receives that do not address the bot; see docs/channels/pointed-at.md."
        }
    });
    let (default, default_text) = match is_shown && !policy.admits_everybody() {
        true => (50, "50; 0 if everyone is admitted"),
        false => (0, if is_shown { "50; 0 if everyone is admitted" } else { "0" }),
    };
    settings! { section =>
        /// Maximum number of messages; 0 stores and reads none.
        messages = number(0..=200).eg("50").or_described(default, default_text);
        /// Maximum age of a message, in minutes. Older ones are deleted.
        age as "minutes" = span(NumberUnit::Minutes, 1..=10_080).or(Duration::from_secs(1440 * 60));
    }
    GroupContext { history, messages, age }
}
