//! Content of one message on Slack: as mrkdwn in blocks, and as the Markdown of a stream.

use crate::{
    Choice,
    render::{
        Rich, Style,
        slack::{escape, markdown, markdown_so_far, mrkdwn, settled},
    },
    reply::MessageDraft,
    split::{Limit, Unit, split},
};
use serde_json::{Value, json};

/// Size of one message.
pub(super) const LIMIT: Limit = Limit { unit: Unit::Chars, max: 3500, columns: 64 };
/// Action of the stop button, which alone is no reason to end an answer's stream.
const STOP: &str = "/stop";
/// Characters of a text that `chat.update` takes, less some for safety.
const TEXT: usize = 3900;
/// Characters of a section's text.
const SECTION: usize = 3000;
/// Maximum visible length of a section: the first for ordinary text, the second for one that is nothing but signs which
/// are escaped, with five characters each.
const SECTIONS: [usize; 2] = [2500, 580];
/// Buttons under a message, and characters on one and in its value.
const BUTTONS: usize = 25;
const LABEL: usize = 75;
const VALUE: usize = 2000;

/// Content of one message.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SlackPage {
    /// The words in mrkdwn.
    pub(super) text: String,
    /// The words without any marks, should Slack not take the others.
    pub(super) plain: String,
    /// The words in blocks, with the buttons; none where there are no buttons.
    pub(super) blocks: Vec<Value>,
    /// The buttons alone.
    pub(super) buttons: Vec<Value>,
    /// The whole words for a stream.
    pub(super) whole: String,
    /// The beginning of the words that will surely stay.
    pub(super) so_far: String,
    /// The agent's current activity.
    pub(super) activity: String,
    /// Whether it will not change any more.
    pub(super) done: bool,
    /// Whether there has to be something to press: streams have no buttons while they grow.
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

    /// Returns whether the marks make it too long for a change.
    pub(super) fn overfull(&self) -> bool {
        self.text.chars().count() > TEXT
    }
}

/// Separates the words from the agent's activity, which is below them in italics.
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
    // A last paragraph of the answer that is in italics is mistaken for the activity, and shown with later text.
    let words = rich.slice(0..rich.part(0..span.range.start).trim_end().len(), "");
    (words, rich.part(span.range.clone()).to_owned())
}

fn sections(rich: &Rich, text: &str) -> Vec<Value> {
    if text.chars().count() <= SECTION {
        return if text.is_empty() { Vec::new() } else { vec![section(text)] };
    }
    let cut = |max| -> Vec<String> { split(rich, Limit { max, ..LIMIT }).iter().map(mrkdwn).collect() };
    let fits = |parts: &Vec<String>| parts.iter().all(|part| part.chars().count() <= SECTION);
    let parts = SECTIONS.into_iter().map(cut).find(fits).unwrap_or_default();
    parts.iter().map(|part| section(part)).collect()
}

/// Expanded: Slack folds a longer one otherwise.
fn section(text: &str) -> Value {
    json!({"type": "section", "text": {"type": "mrkdwn", "text": text}, "expand": true})
}

fn buttons(choices: &[Choice]) -> Vec<Value> {
    let fits = |choice: &&Choice| {
        let fits = (1..=VALUE).contains(&choice.action.chars().count()) && !choice.label.trim().is_empty();
        if !fits {
            tracing::warn!(label = choice.label, "dropped button: Slack takes 1 to 2000 characters");
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
    fn buttons_stand_below_the_words_and_one_that_slack_refuses_is_left_out() {
        let choice = |label: &str, action: &str| Choice { label: label.into(), action: action.into() };
        let choices = vec![choice("Stop", "/stop"), choice(" ", "x"), choice("Long", &"x".repeat(2001))];
        let page = SlackPage::new(&MessageDraft { choices, ..draft("hi", false) });
        let stop = json!({"type": "button", "text": {"type": "plain_text", "text": "Stop"}, "action_id": "pudu_0", "value": "/stop"});
        let section = json!({"type": "section", "text": {"type": "mrkdwn", "text": "hi"}, "expand": true});
        assert_eq!(page.blocks, [section, json!({"type": "actions", "elements": [stop]})]);
    }

    #[test]
    fn a_section_holds_what_slack_takes_whatever_is_escaped() {
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
    fn a_stream_gets_the_words_and_the_status_what_is_done() {
        let page = SlackPage::new(&draft("Some words.\n\n*Searching the web*", false));
        assert_eq!((page.so_far.as_str(), page.activity.as_str()), ("Some words.", "Searching the web"));
        let neutral = MessageDraft { neutral: true, ..draft("⏳ *Thinking…*", false) };
        let page = SlackPage::new(&neutral);
        assert_eq!((page.so_far.as_str(), page.activity.as_str()), ("", "Thinking…"));
    }
}
