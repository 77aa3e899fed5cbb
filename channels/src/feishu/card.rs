//! Content of one message: as a card, or as a post or a text if cards are rejected.

use super::form::FeishuForm;
use crate::{
    Choice, FORM_ACTION,
    render::{Rich, feishu::card_markdown},
    reply::{MessageDraft, SIGN},
};
use serde_json::{Value, json};

/// Id of the element with streamed text.
pub(super) const ELEMENT: &str = "text";
/// Maximum size of a card, in bytes. The platform allows 30 KB, including additions of unknown size.
const MAX_CARD_BYTES: usize = 28 * 1024;
/// Maximum length of the preview in the list of chats, in characters.
const SUMMARY: usize = 80;

/// Content of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FeishuPage {
    /// The text as a card's Markdown; never empty.
    pub(super) markdown: String,
    /// The text without markup.
    pub(super) plain: String,
    /// Markdown and plain text for messages without buttons. They contain the text to type instead.
    words: (String, String),
    /// The buttons.
    pub(super) choices: Vec<Choice>,
    /// The form, in place of the button that opens it elsewhere.
    form: Option<FeishuForm>,
    /// Whether the page is final.
    pub(super) done: bool,
}

impl FeishuPage {
    pub(super) fn new(draft: &MessageDraft) -> Self {
        let (markdown, words) = (card_markdown(&draft.rich), draft.in_words());
        Self {
            markdown: if markdown.is_empty() { SIGN.to_owned() } else { markdown },
            plain: draft.rich.text.clone(),
            words: (card_markdown(&words), words.text),
            choices: draft.choices.clone(),
            form: FeishuForm::new(draft),
            done: draft.done,
        }
    }

    /// Returns the initial content of a card.
    pub(super) fn sign() -> Self {
        Self::new(&MessageDraft { rich: Rich::plain(SIGN), ..MessageDraft::default() })
    }

    /// Returns whether the markup makes the page too long for a card.
    pub(super) fn is_overfull(&self) -> bool {
        self.card(true).to_string().len() > MAX_CARD_BYTES
    }

    /// Returns the card. `update_multi` makes later changes possible.
    pub(super) fn card(&self, streaming: bool) -> Value {
        let mut elements = vec![json!({"tag": "markdown", "element_id": ELEMENT, "content": self.markdown})];
        let plain = |choice: &&Choice| choice.action != FORM_ACTION;
        let choices: Vec<&Choice> = self.choices.iter().filter(plain).collect();
        if !choices.is_empty() {
            elements.push(buttons(&choices));
        }
        elements.extend(self.form.as_ref().map(FeishuForm::element));
        let config = json!({
            "update_multi": true,
            "streaming_mode": streaming,
            "summary": {"content": self.summary()},
        });
        json!({"schema": "2.0", "config": config, "body": {"elements": elements}})
    }

    /// Returns the text that the list of chats shows.
    pub(super) fn summary(&self) -> String {
        let words: Vec<&str> = self.plain.split_whitespace().collect();
        // It is not documented whether the preview interprets tags, so the summary contains none.
        let words = words.join(" ").replace('<', "‹");
        let short: String = words.chars().take(SUMMARY).collect();
        if short.len() < words.len() { format!("{short}…") } else { short }
    }

    /// Returns the page as a post, which uses the Markdown of cards.
    pub(super) fn post(&self) -> Value {
        json!({"zh_cn": {"content": [[{"tag": "md", "text": self.words.0}]]}})
    }

    /// Returns the page as a text. Tags that would mention a user are broken up.
    pub(super) fn text(&self) -> Value {
        json!({"text": self.words.1.replace('<', "<\u{200b}")})
    }
}

fn buttons(choices: &[&Choice]) -> Value {
    let column = |(n, choice): (usize, &&Choice)| {
        let button = json!({
            "tag": "button",
            "element_id": format!("choice_{n}"),
            "text": {"tag": "plain_text", "content": choice.label},
            "type": "default",
            "behaviors": [{"type": "callback", "value": {"action": choice.action}}],
        });
        json!({"tag": "column", "width": "auto", "elements": [button]})
    };
    let columns: Vec<Value> = choices.iter().enumerate().map(column).collect();
    json!({"tag": "column_set", "flex_mode": "flow", "columns": columns})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::parse;

    fn page(text: &str, choices: &[(&str, &str)]) -> FeishuPage {
        let choice =
            |(label, action): &(&str, &str)| Choice { label: (*label).into(), action: (*action).into() };
        let choices = choices.iter().map(choice).collect();
        FeishuPage::new(&MessageDraft {
            rich: parse(text),
            choices,
            first: Some(1),
            ..MessageDraft::default()
        })
    }

    #[test]
    fn a_card_has_text_and_buttons_and_can_be_changed() {
        let card = page("**hi** <at id=all>", &[("Stop", "/stop")]).card(true);
        let button = json!({
            "tag": "button", "element_id": "choice_0", "text": {"tag": "plain_text", "content": "Stop"},
            "type": "default", "behaviors": [{"type": "callback", "value": {"action": "/stop"}}],
        });
        let expected = json!({
            "schema": "2.0",
            "config": {
                "update_multi": true, "streaming_mode": true, "summary": {"content": "hi ‹at id=all>"},
            },
            "body": {"elements": [
                {"tag": "markdown", "element_id": "text", "content": "**hi** &#60;at id=all&#62;"},
                {"tag": "column_set", "flex_mode": "flow", "columns": [
                    {"tag": "column", "width": "auto", "elements": [button]},
                ]},
            ]},
        });
        assert_eq!(card, expected);
    }

    #[test]
    fn posts_and_texts_list_the_commands_and_mention_no_user() {
        let page = page("pick <at id=all></at>", &[("One", "/one")]);
        assert_eq!(page.text()["text"], "pick <\u{200b}at id=all><\u{200b}/at>\n\n1. One (/one)");
        let post = "pick &#60;at id=all&#62;&#60;/at&#62;\n\n1. One (`/one`)";
        assert_eq!(page.post().pointer("/zh_cn/content/0/0/text"), Some(&json!(post)));
    }

    #[test]
    fn bytes_count_and_a_page_is_never_empty() {
        assert!(!page(&"鹿".repeat(6000), &[]).is_overfull());
        assert!(page(&"鹿".repeat(10_000), &[]).is_overfull());
        assert!(page(&"<".repeat(6000), &[]).is_overfull());
        assert_eq!(page("", &[]).markdown, SIGN);
    }
}
