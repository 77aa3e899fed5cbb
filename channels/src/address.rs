//! Address of a conversation on a platform.

use serde::{Deserialize, Serialize};

/// Address of a conversation: the bot, the chat, and a topic within the chat.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Address {
    /// Name of the bot: its key under `channels:`.
    pub account: String,
    /// The platform's id of the chat.
    pub chat: String,
    /// The platform's id of the topic or thread; `None` for the chat's own conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
}

impl Address {
    /// Returns the conversation's key, `account:chat[:topic]`. Colons within a part are escaped, so keys are unique.
    #[must_use]
    pub fn key(&self) -> String {
        let part = |text: &str| text.replace('%', "%25").replace(':', "%3A");
        let mut key = format!("{}:{}", part(&self.account), part(&self.chat));
        if let Some(topic) = &self.topic {
            key.push(':');
            key.push_str(&part(topic));
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn distinct_addresses_have_distinct_keys() {
        let key = |account: &str, chat: &str, topic: Option<&str>| {
            Address { account: account.into(), chat: chat.into(), topic: topic.map(Into::into) }.key()
        };
        assert_eq!(key("telegram", "-100", None), "telegram:-100");
        assert_eq!(key("telegram", "-100", Some("7")), "telegram:-100:7");
        assert_ne!(key("a", "b:c", None), key("a", "b", Some("c")));
        assert_ne!(key("a", "b%3Ac", None), key("a", "b:c", None));
    }
}
