//! The forms of call ids that providers take. A thread may hold ids that another provider made.

use sha2::{Digest, Sha256};
use std::{borrow::Cow, fmt::Write};

/// The form of call ids that a provider takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallIdForm {
    /// Up to 40 letters, digits, `_` and `-`.
    Plain,
    /// Nine letters and digits, as Mistral wants them.
    Nine,
}

impl CallIdForm {
    /// Returns an id in this form: the id itself if it has it, else one that is made from it, always the same.
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
    fn row_41_an_id_of_another_provider_gets_the_form_that_this_one_takes() {
        for id in ["toolu_01A", "call_abc", "chatcmpl-tool-0123456789abcdef0123456789abcdef", "", "é"] {
            let nine = CallIdForm::Nine.form(id);
            assert!(nine.len() == 9 && nine.chars().all(|c| c.is_ascii_alphanumeric()), "{id:?}: {nine}");
            assert_eq!(nine, CallIdForm::Nine.form(id), "call and result still belong together");
        }
        assert_eq!(CallIdForm::Nine.form("D681PevKs"), "D681PevKs");
        assert_eq!(CallIdForm::Plain.form("toolu_01A"), "toolu_01A");
        assert_eq!(CallIdForm::Plain.form("functions.ls:0").len(), 24);
        assert_ne!(CallIdForm::Plain.form("functions.ls:0"), CallIdForm::Plain.form("functions.ls:1"));
    }
}
