//! Users, the owners of memory, files and limits. A user's id is also the name of a folder.

use crate::digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Id of the local user, which the terminal, the page and the API token use.
const LOCAL: &str = "default";

/// Maximum length of an id, in characters. File systems limit names to 255 bytes.
const MAX_CHARS: usize = 128;
/// Length of the digest appended to a converted id, in characters.
const MARK_CHARS: usize = 16;

/// Names a user: a person on all their platforms, or a group chat. It is a safe folder name and never empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline)]
pub struct UserId(String);

/// Error for an empty user id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the id of a user is empty")]
pub struct EmptyUserId;

impl UserId {
    /// Converts an arbitrary id, following DeerFlow's rule: characters other than ASCII letters, digits, `-` and `_`
    /// become `-`, and 16 hexadecimal digits of the id's SHA-256 are appended to keep different ids apart. Ids that are
    /// too long are truncated and also get the digest.
    ///
    /// # Errors
    /// If the id is empty.
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

    /// Returns the local user, which the terminal, the page and the API token use.
    #[must_use]
    pub fn local() -> Self {
        Self(LOCAL.to_owned())
    }

    /// Returns the user that represents a group chat. Bot names and platform ids never contain a NUL, so this id never
    /// equals a person's.
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
    fn a_safe_id_is_kept_and_any_other_gets_a_digest() {
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
        fn an_id_is_always_a_plain_name_and_stable(raw in ".{1,200}") {
            let name = id_from_raw(&raw);
            prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'));
            prop_assert_eq!(id_from_raw(&name), name);
        }
    }
}
