//! The text of one Telegram message.

use super::api::TelegramText;
use crate::{
    Choice,
    render::telegram::{html, plain},
    reply::{MessageDraft, SIGN},
    split::Unit,
};
use pudu_texts::Language;

/// Maximum length of a button's action, in bytes.
const ACTION: usize = 64;
/// Placeholders for text. There are two, because only an edit that changes a message can identify it.
pub(super) const SIGNS: [&str; 2] = [SIGN, "⌛"];

/// Content of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TelegramPage {
    /// The text, as HTML.
    pub(super) text: TelegramText,
    /// The text without markup, in case Telegram cannot parse the markup.
    pub(super) plain: TelegramText,
    /// Whether the page contains none of the answer yet.
    pub(super) neutral: bool,
    /// Language of the placeholder phrase.
    language: Language,
}

impl TelegramPage {
    pub(super) fn new(draft: &MessageDraft) -> Self {
        let buttons = fitting(&draft.choices);
        let plain = TelegramText { body: plain(&draft.rich), html: false, buttons: buttons.clone() };
        Self {
            text: TelegramText { body: html(&draft.rich), html: true, buttons },
            plain,
            neutral: draft.neutral,
            language: draft.language,
        }
    }

    /// Returns the length that Telegram counts: the text without markup.
    pub(super) fn length(&self) -> usize {
        Unit::Utf16.len(&self.plain.body)
    }

    /// Returns the placeholder for this page. It contains a complete phrase, because users receive it as a
    /// notification.
    pub(super) fn sign(&self) -> Self {
        let body = format!("{SIGN} {}", self.language.thinking());
        let text = TelegramText { body, html: false, buttons: self.text.buttons.clone() };
        Self { plain: text.clone(), text, neutral: true, language: self.language }
    }
}

fn fitting(choices: &[Choice]) -> Vec<Choice> {
    let fits = |choice: &&Choice| {
        let fits = (1..=ACTION).contains(&choice.action.len()) && !choice.label.trim().is_empty();
        if !fits {
            tracing::warn!(label = choice.label, "dropped button: Telegram accepts 1 to 64 bytes");
        }
        fits
    };
    choices.iter().filter(fits).cloned().collect()
}

/// Returns one of the two placeholders.
pub(super) fn sign(which: usize) -> TelegramText {
    TelegramText { body: SIGNS.get(which).copied().unwrap_or_default().to_owned(), ..TelegramText::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::parse;

    #[test]
    fn a_button_that_telegram_would_refuse_is_left_out() {
        let stop = Choice { label: "Stop".into(), action: "/stop".into() };
        let long = Choice { label: "Long".into(), action: "x".repeat(65) };
        let draft = MessageDraft {
            rich: parse("**hi**"),
            choices: vec![stop.clone(), long],
            ..MessageDraft::default()
        };
        let page = TelegramPage::new(&draft);
        assert_eq!((page.text.body.as_str(), page.text.buttons), ("<b>hi</b>", vec![stop]));
    }

    #[test]
    fn a_page_without_markup_mentions_no_user() {
        let page = TelegramPage::new(&MessageDraft {
            rich: parse("**@ada_l** `@bob_b`"),
            ..MessageDraft::default()
        });
        assert_eq!(page.plain.body, "@\u{2060}ada_l @\u{2060}bob_b");
        assert_eq!(page.length(), 15);
    }
}
