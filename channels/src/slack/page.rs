//! Content of one Slack message: as mrkdwn in blocks, and as Markdown for a stream.

use super::facts::CAPABILITIES;
use crate::{
    Choice,
    render::{
        Rich, Style,
        slack::{escape, markdown, markdown_so_far, mrkdwn, settled},
    },
    reply::MessageDraft,
    split::{Limit, split},
};
use serde_json::{Value, json};

/// Action of the stop button. This button alone does not end a stream.
const STOP: &str = "/stop";
/// Maximum length of a text for `chat.update`, in characters, less a safety margin.
const TEXT: usize = 3900;
/// Maximum length of a section's text, in characters.
const SECTION: usize = 3000;
/// Maximum visible length of a section, in characters: for ordinary text, and for the worst case, in which every
/// character is escaped to five.
const SECTIONS: [usize; 2] = [2500, 580];
/// Maximum number of buttons under a message, and maximum length of a button's label and value, in characters.
const BUTTONS: usize = 25;
const LABEL: usize = 75;
const VALUE: usize = 2000;

/// Content of one message.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SlackPage {
    /// The text in mrkdwn.
    pub(super) text: String,
    /// The text without markup, in case Slack rejects the markup.
    pub(super) plain: String,
    /// The text in blocks, with the buttons; empty without buttons.
    pub(super) blocks: Vec<Value>,
    /// Only the buttons.
    pub(super) buttons: Vec<Value>,
    /// The complete text for a stream.
    pub(super) whole: String,
    /// The settled beginning of the text, which will not change any more.
    pub(super) so_far: String,
    /// The agent's current activity.
    pub(super) activity: String,
    /// Whether the page is final.
    pub(super) done: bool,
    /// Whether buttons have to be shown. A growing stream has no buttons.
    pub(super) asks: bool,
}

impl SlackPage {
    pub(super) fn new(draft: &MessageDraft) -> Self {
        let rich = &draft.rich;
        let buttons = buttons(&draft.choices);
        let text = mrkdwn(rich);
        let mut blocks = if buttons.is_empty() { Vec::new() } else { sections(rich, &text) };
        blocks.extend(buttons.clone());
        let (words, activity) = if draft.done { (rich.clone(), String::new()) } else { parted(draft) };
        let so_far = if draft.done { markdown(rich) } else { markdown_so_far(&settled(&words)) };
        let mut plain = String::new();
        escape(&rich.text, &mut plain);
        let asks = !draft.done && draft.choices.iter().any(|choice| choice.action != STOP);
        Self { text, plain, blocks, buttons, whole: markdown(rich), so_far, activity, done: draft.done, asks }
    }

    /// Returns whether the markup makes the page too long for an edit.
    pub(super) fn overfull(&self) -> bool {
        self.text.chars().count() > TEXT
    }
}

/// Separates the text from the agent's activity, which follows in italics.
fn parted(draft: &MessageDraft) -> (Rich, String) {
    let rich = &draft.rich;
    if draft.neutral {
        return (Rich::default(), rich.text.trim_start_matches(crate::reply::SIGN).trim().to_owned());
    }
    let last =
        rich.spans.last().filter(|span| span.style == Style::Italic && span.range.end == rich.text.len());
    let Some(span) = last.filter(|span| rich.part(0..span.range.start).ends_with("\n\n")) else {
        return (rich.clone(), String::new());
    };
    // A last paragraph of the answer in italics is mistaken for the activity; it is shown once more text follows.
    let words = rich.slice(0..rich.part(0..span.range.start).trim_end().len(), "");
    (words, rich.part(span.range.clone()).to_owned())
}

fn sections(rich: &Rich, text: &str) -> Vec<Value> {
    if text.chars().count() <= SECTION {
        return if text.is_empty() { Vec::new() } else { vec![section(text)] };
    }
    let cut =
        |max| -> Vec<String> { split(rich, Limit { max, ..CAPABILITIES.text }).iter().map(mrkdwn).collect() };
    let fits = |parts: &Vec<String>| parts.iter().all(|part| part.chars().count() <= SECTION);
    let parts = SECTIONS.into_iter().map(cut).find(fits).unwrap_or_default();
    parts.iter().map(|part| section(part)).collect()
}

/// Returns an expanded section. Slack would collapse a long one otherwise.
fn section(text: &str) -> Value {
    json!({"type": "section", "text": {"type": "mrkdwn", "text": text}, "expand": true})
}

fn buttons(choices: &[Choice]) -> Vec<Value> {
    let fits = |choice: &&Choice| {
        let fits = (1..=VALUE).contains(&choice.action.chars().count()) && !choice.label.trim().is_empty();
        if !fits {
            tracing::warn!(label = choice.label, "dropped button: Slack accepts 1 to 2000 characters");
        }
        fits
    };
    let button = |(n, choice): (usize, &Choice)| {
        let label: String = choice.label.chars().take(LABEL).collect();
        json!({
            "type": "button", "text": {"type": "plain_text", "text": label},
            "action_id": format!("{}_{n}", super::decode::ACTION), "value": choice.action,
        })
    };
    let elements: Vec<Value> = choices.iter().filter(fits).take(BUTTONS).enumerate().map(button).collect();
    if elements.is_empty() { Vec::new() } else { vec![json!({"type": "actions", "elements": elements})] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::parse;

    fn draft(text: &str, done: bool) -> MessageDraft {
        MessageDraft { rich: parse(text), done, ..MessageDraft::default() }
    }

    #[test]
    fn without_buttons_there_are_no_blocks() {
        let page = SlackPage::new(&draft("**hi** there", true));
        assert_eq!(
            (page.text.as_str(), page.whole.as_str(), page.blocks),
            ("*hi* there", "**hi** there", vec![])
        );
    }

    #[test]
    fn buttons_follow_the_text_and_invalid_ones_are_left_out() {
        let choice = |label: &str, action: &str| Choice { label: label.into(), action: action.into() };
        let choices = vec![choice("Stop", "/stop"), choice(" ", "x"), choice("Long", &"x".repeat(2001))];
        let page = SlackPage::new(&MessageDraft { choices, ..draft("hi", false) });
        let stop = json!({"type": "button", "text": {"type": "plain_text", "text": "Stop"}, "action_id": "pudu_0", "value": "/stop"});
        let section = json!({"type": "section", "text": {"type": "mrkdwn", "text": "hi"}, "expand": true});
        assert_eq!(page.blocks, [section, json!({"type": "actions", "elements": [stop]})]);
    }

    #[test]
    fn sections_stay_within_the_limit_despite_escapes() {
        for text in ["word ".repeat(690), "& ".repeat(1700), "<".repeat(3400)] {
            let choices = vec![Choice { label: "Stop".into(), action: "/stop".into() }];
            let page = SlackPage::new(&MessageDraft { choices, ..draft(&text, false) });
            let lengths: Vec<usize> = page
                .blocks
                .iter()
                .filter_map(|block| Some(block["text"]["text"].as_str()?.chars().count()))
                .collect();
            assert!(!lengths.is_empty() && lengths.iter().all(|length| *length <= SECTION), "{lengths:?}");
        }
    }

    #[test]
    fn a_stream_gets_the_text_and_the_status_gets_the_activity() {
        let page = SlackPage::new(&draft("Some words.\n\n*Searching the web*", false));
        assert_eq!((page.so_far.as_str(), page.activity.as_str()), ("Some words.", "Searching the web"));
        let neutral = MessageDraft { neutral: true, ..draft("⏳ *Thinking…*", false) };
        let page = SlackPage::new(&neutral);
        assert_eq!((page.so_far.as_str(), page.activity.as_str()), ("", "Thinking…"));
    }
}
