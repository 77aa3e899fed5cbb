//! Formats of call IDs that providers accept. A thread may contain another provider's IDs.

use sha2::{Digest, Sha256};
use std::{borrow::Cow, fmt::Write};

/// Format of call IDs that a provider accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallIdForm {
    /// Up to 40 letters, digits, `_` and `-`.
    Plain,
    /// Nine letters and digits, for Mistral.
    Nine,
}

impl CallIdForm {
    /// Returns an ID in this format: the ID itself if it matches, otherwise one derived from it deterministically.
    pub(crate) fn form(self, id: &str) -> Cow<'_, str> {
        let (fits, chars) = match self {
            Self::Plain => {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
                ((1..=40).contains(&id.len()) && id.chars().all(is_plain), 24)
            }
            Self::Nine => (id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()), 9),
        };
        if fits {
            return Cow::Borrowed(id);
        }
        let mut made = String::new();
        for byte in Sha256::digest(id) {
            let _ = write!(made, "{byte:02x}");
        }
        made.truncate(chars);
        Cow::Owned(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_41_another_providers_id_is_converted_to_an_accepted_format() {
        for id in ["toolu_01A", "call_abc", "chatcmpl-tool-0123456789abcdef0123456789abcdef", "", "é"] {
            let nine = CallIdForm::Nine.form(id);
            assert!(nine.len() == 9 && nine.chars().all(|c| c.is_ascii_alphanumeric()), "{id:?}: {nine}");
            assert_eq!(nine, CallIdForm::Nine.form(id), "call and result still match");
        }
        assert_eq!(CallIdForm::Nine.form("D681PevKs"), "D681PevKs");
        assert_eq!(CallIdForm::Plain.form("toolu_01A"), "toolu_01A");
        assert_eq!(CallIdForm::Plain.form("functions.ls:0").len(), 24);
        assert_ne!(CallIdForm::Plain.form("functions.ls:0"), CallIdForm::Plain.form("functions.ls:1"));
    }
}
