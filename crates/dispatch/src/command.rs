//! Slash commands as typed.

use pudu_channels::InboundKind;

/// A slash command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlashCommand {
    /// Its name, in lower case and without the slash. It may be unknown.
    pub name: String,
    /// The text after the name.
    pub argument: Option<String>,
}

impl SlashCommand {
    /// Parses a command: a slash at the very beginning, followed by a plain word. `/mnt/x`, `//help` and ` /new` are
    /// ordinary messages.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let name = word.strip_prefix('/')?.to_lowercase();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(plain) {
            return None;
        }
        let argument = Some(rest.trim()).filter(|rest| !rest.is_empty()).map(str::to_owned);
        Some(Self { name, argument })
    }

    /// Parses the command of an event. An edit may have turned a message into one.
    pub(super) fn from_event(kind: &InboundKind) -> Option<Self> {
        match kind {
            InboundKind::Message { text, .. } | InboundKind::Edit { text } => Self::parse(text),
            InboundKind::Press { action } => Self::parse(action),
            InboundKind::Submit { .. } | InboundKind::Recall | InboundKind::Scheduled { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_word_after_the_first_slash_is_a_command() {
        let check = |text: &str, name: &str, argument: Option<&str>| {
            let command = SlashCommand { name: name.into(), argument: argument.map(str::to_owned) };
            assert_eq!(SlashCommand::parse(text), Some(command), "{text:?}");
        };
        check("/new", "new", None);
        check("/HELP now", "help", Some("now"));
        check("/models  gpt-5 ", "models", Some("gpt-5"));
        check("/mode\nsteer", "mode", Some("steer"));
        check("/agent new poet", "agent", Some("new poet"));
        check("/data-analysis x", "data-analysis", Some("x"));
        for typed in ["", "/", "//help", " /new", "/mnt/path", "new", "/é", "/a.b"] {
            assert_eq!(SlashCommand::parse(typed), None, "{typed:?}");
        }
    }
}
