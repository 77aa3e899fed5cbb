//! The content of one Discord message.

use super::facts::CONTENT;
use crate::{Choice, render::discord::markdown, reply::MessageDraft};
use serde_json::{Value, json};

/// Maximum length of a button's action and of its label, in characters.
const ACTION: usize = 100;
const LABEL: usize = 80;
/// Maximum number of buttons in a row, and of rows.
const ROW: usize = 5;
const ROWS: usize = 5;
/// Message flag that suppresses link previews: a preview would reveal to a link's author that it was read.
const SUPPRESS_EMBEDS: u64 = 1 << 2;

/// Content of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DiscordPage {
    /// The text, as Discord's Markdown.
    pub(super) content: String,
    pub(super) buttons: Vec<Choice>,
}

impl DiscordPage {
    pub(super) fn new(draft: &MessageDraft) -> Self {
        Self { content: markdown(&draft.rich), buttons: fitting(&draft.choices) }
    }

    pub(super) fn overfull(&self) -> bool {
        self.content.chars().count() > CONTENT
    }

    /// Returns the fields of a message that shows this page and pings no user.
    pub(super) fn fields(&self) -> Value {
        let mut fields = quiet();
        fields["content"] = self.content.as_str().into();
        fields["components"] = self.rows();
        fields
    }

    fn rows(&self) -> Value {
        let button = |choice: &Choice| {
            json!({
                "type": 2, "style": style(choice), "custom_id": choice.action,
                "label": choice.label.chars().take(LABEL).collect::<String>(),
            })
        };
        let row = |choices: &[Choice]| json!({"type": 1, "components": choices.iter().map(button).collect::<Vec<_>>()});
        self.buttons.chunks(ROW).take(ROWS).map(row).collect()
    }
}

/// Returns the fields common to all of the bot's messages: no previews and no pings.
pub(super) fn quiet() -> Value {
    json!({"allowed_mentions": {"parse": [], "replied_user": false}, "flags": SUPPRESS_EMBEDS})
}

/// Returns the button style: gray, or red for choices that end something.
fn style(choice: &Choice) -> u8 {
    if choice.action == "/stop" { 4 } else { 2 }
}

/// Returns the buttons that Discord accepts: each with a label, and no duplicates.
fn fitting(choices: &[Choice]) -> Vec<Choice> {
    let mut fitting: Vec<Choice> = Vec::new();
    for choice in choices.iter().take(ROW * ROWS) {
        let fits = (1..=ACTION).contains(&choice.action.chars().count()) && !choice.label.trim().is_empty();
        if fits && !fitting.iter().any(|other| other.action == choice.action) {
            fitting.push(choice.clone());
        } else {
            tracing::warn!(label = choice.label, "dropped button: Discord does not accept it");
        }
    }
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::parse;

    #[test]
    fn a_page_becomes_these_fields() {
        let choice = |label: &str, action: &str| Choice { label: label.into(), action: action.into() };
        let long = choice("Long", &"x".repeat(101));
        let choices = vec![choice("Stop", "/stop"), long, choice("Again", "/stop"), choice(" ", "/new")];
        let page = DiscordPage::new(&MessageDraft {
            rich: parse("**hi** @everyone"),
            choices,
            ..MessageDraft::default()
        });
        let expected = json!({
            "content": "**hi** \\@everyone", "flags": 4,
            "allowed_mentions": {"parse": [], "replied_user": false},
            "components": [
                {"type": 1, "components": [{"type": 2, "style": 4, "custom_id": "/stop", "label": "Stop"}]},
            ],
        });
        assert_eq!(page.fields(), expected);
    }

    #[test]
    fn buttons_are_split_into_rows() {
        let choices =
            (0..30).map(|n| Choice { label: format!("{n}"), action: format!("/mode {n}") }).collect();
        let page =
            DiscordPage::new(&MessageDraft { rich: parse("choose"), choices, ..MessageDraft::default() });
        let rows = page.fields()["components"].as_array().unwrap().clone();
        let lengths: Vec<usize> =
            rows.iter().map(|row| row["components"].as_array().unwrap().len()).collect();
        assert_eq!(lengths, [5, 5, 5, 5, 5]);
    }

    #[test]
    fn escapes_count_towards_the_limit() {
        let page = |text: &str| {
            DiscordPage::new(&MessageDraft {
                rich: crate::render::Rich::plain(text),
                ..MessageDraft::default()
            })
        };
        assert!(!page(&"x".repeat(2000)).overfull());
        assert!(page(&"*".repeat(1001)).overfull());
    }
}
