//! Users: whose memory, files and limits something is. A user's id is the name of a folder, too.

use crate::digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A user without an id of their own: the one in the terminal, on the page and with the API's token.
const LOCAL: &str = "default";

/// Maximum length of an id, in characters: the names of folders have 255 at most.
const MAX_CHARS: usize = 128;
/// Length of the mark of an id that was changed.
const MARK_CHARS: usize = 16;

/// Names a user: a person on all their platforms, or a room. It is safe as the name of a folder, and never empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline)]
pub struct UserId(String);

/// An id of a user that is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the id of a user is empty")]
pub struct EmptyUserId;

impl UserId {
    /// Makes it of an id that may have any characters, by DeerFlow's rule: other characters than ASCII letters, digits,
    /// `-` and `_` become `-`, and then 16 hexadecimal digits of the id's SHA-256 keep different ids apart. So it is with a
    /// long id, which is cut.
    ///
    /// # Errors
    /// When the id is empty.
    pub fn from_raw(raw: &str) -> Result<Self, EmptyUserId> {
        if raw.is_empty() {
            return Err(EmptyUserId);
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if raw.chars().all(plain) && raw.len() <= MAX_CHARS {
            return Ok(Self(raw.to_owned()));
        }
        let begin = raw.chars().take(MAX_CHARS - 1 - MARK_CHARS);
        let mut name: String = begin.map(|c| if plain(c) { c } else { '-' }).collect();
        name.push('-');
        name.extend(digest(raw).chars().take(MARK_CHARS));
        Ok(Self(name))
    }

    /// Returns the user of everything local: of the terminal, the page and the API's token.
    #[must_use]
    pub fn local() -> Self {
        Self(LOCAL.to_owned())
    }

    /// Returns the user that a room is. Neither an account's name nor an id has a NUL, so no person is the same user.
    #[must_use]
    pub fn room(account: &str, chat: &str) -> Self {
        Self::from_raw(&format!("room\0{account}\0{chat}")).unwrap_or_default()
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for UserId {
    fn default() -> Self {
        Self::local()
    }
}

impl TryFrom<String> for UserId {
    type Error = EmptyUserId;

    fn try_from(raw: String) -> Result<Self, EmptyUserId> {
        Self::from_raw(&raw)
    }
}

impl From<UserId> for String {
    fn from(user: UserId) -> Self {
        user.0
    }
}

impl std::fmt::Display for UserId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id_from_raw(raw: &str) -> String {
        UserId::from_raw(raw).unwrap().to_string()
    }

    fn mark(raw: &str) -> String {
        digest(raw).chars().take(MARK_CHARS).collect()
    }

    #[test]
    fn a_safe_id_is_itself_and_another_one_gets_a_mark() {
        assert_eq!(id_from_raw("ou_7d8-A"), "ou_7d8-A");
        assert_eq!(id_from_raw("slack:U1"), format!("slack-U1-{}", mark("slack:U1")));
        assert_eq!(id_from_raw("../etc"), format!("---etc-{}", mark("../etc")));
        assert_eq!(id_from_raw("李"), format!("--{}", mark("李")));
        let long = id_from_raw(&"x".repeat(1000));
        assert_eq!((long.len(), long != id_from_raw(&"x".repeat(1001))), (MAX_CHARS, true));
        assert_eq!(UserId::from_raw(""), Err(EmptyUserId));
        assert!(serde_json::from_str::<UserId>("\"\"").is_err());
    }

    proptest! {
        #[test]
        fn an_id_is_always_a_plain_name_and_the_same_again(raw in ".{1,200}") {
            let name = id_from_raw(&raw);
            prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'));
            prop_assert_eq!(id_from_raw(&name), name);
        }
    }
}
