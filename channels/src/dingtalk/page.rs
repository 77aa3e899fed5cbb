//! Content of one message, as a card and as an ordinary message.

use crate::{
    Choice,
    render::dingtalk::markdown,
    reply::{MessageDraft, SIGN},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Maximum length of a title, in characters. The list of chats shows the title of a message.
const TITLE: usize = 40;
/// Maximum length of a text, in bytes. DingTalk accepts about 20 KB for the whole request.
const MAX_TEXT_BYTES: usize = 16_000;

/// Content of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DingTalkPage {
    /// The text, as Markdown.
    pub(super) text: String,
    /// The text for messages without buttons. It names the text to type instead.
    pub(super) words: String,
    /// The first words, without markup.
    pub(super) title: String,
    /// The buttons.
    pub(super) choices: Vec<Choice>,
    /// Whether the page is final.
    pub(super) done: bool,
    /// Whether the page contains none of the answer yet.
    pub(super) neutral: bool,
    /// Whether the page asks a question that blocks the run until it is answered.
    pub(super) asks: bool,
}

impl DingTalkPage {
    pub(super) fn new(draft: &MessageDraft) -> Self {
        let first = draft.rich.text.lines().find(|line| !line.trim().is_empty()).unwrap_or(SIGN);
        Self {
            text: markdown(&draft.rich),
            words: markdown(&draft.in_words()),
            title: first.trim().chars().take(TITLE).collect(),
            choices: draft.choices.iter().filter(|choice| !choice.label.trim().is_empty()).cloned().collect(),
            done: draft.done,
            neutral: draft.neutral,
            asks: draft.asks > 0,
        }
    }

    pub(super) fn is_overfull(&self) -> bool {
        self.words.len() > MAX_TEXT_BYTES
    }

    /// Returns the text of an ordinary message. The message cannot change, so a page without the answer becomes a
    /// placeholder.
    pub(super) fn message(&self) -> String {
        if self.done || self.neutral { self.words.clone() } else { SIGN.to_owned() }
    }

    /// Returns the buttons as the value of a card's variable.
    pub(super) fn buttons(&self) -> String {
        let button = |choice: &Choice| json!({"text": choice.label, "id": choice.action, "color": "gray", "request": true});
        Value::Array(self.choices.iter().map(button).collect()).to_string()
    }
}

/// Returns a short digest of some text.
pub(super) fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().take(16).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::parse;

    #[test]
    fn a_message_without_buttons_lists_the_commands_to_type() {
        let choice = |label: &str, action: &str| Choice { label: label.into(), action: action.into() };
        let choices = vec![choice("Try again", "/retry"), choice("Stop", "/stop")];
        let draft = MessageDraft {
            rich: parse("**It** failed\nbadly"),
            choices,
            done: true,
            first: Some(1),
            ..MessageDraft::default()
        };
        let page = DingTalkPage::new(&draft);
        assert_eq!(page.message(), "**It** failed  \nbadly\n\n1. Try again (`/retry`)  \n2. Stop (`/stop`)");
        assert_eq!(page.title, "It failed");
        let growing = DingTalkPage::new(&MessageDraft { done: false, ..draft });
        assert_eq!(growing.message(), SIGN);
        let stop = vec![choice("Stop", "/stop")];
        let sign = MessageDraft {
            rich: parse("⏳ Thinking…"),
            neutral: true,
            choices: stop,
            ..MessageDraft::default()
        };
        assert_eq!(DingTalkPage::new(&sign).message(), "⏳ Thinking…\n\nStop: `/stop`");
        let buttons: Value = serde_json::from_str(&page.buttons()).unwrap();
        assert_eq!((&buttons[1]["text"], &buttons[1]["id"]), (&json!("Stop"), &json!("/stop")));
    }
}
