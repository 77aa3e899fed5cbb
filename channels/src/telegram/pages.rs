//! From a view to the texts of Telegram messages.

use super::api::Text;
use crate::{
    Choice, ReplyView,
    render::{Rich, Style, parse, telegram::html},
    split::{Limit, Unit, split},
};

/// What a message holds, counted after the markup is taken out.
const LIMIT: Limit = Limit { unit: Unit::Utf16, max: 4096 };
/// The longest activity that is shown, in characters.
const ACTIVITY: usize = 120;
/// The most that Telegram takes as a button's action, in bytes.
const ACTION: usize = 64;
/// Stands where words will be. There are two, because a message can only be told from another by an edit
/// that changes it.
pub(super) const SIGNS: [&str; 2] = ["⏳", "⌛"];

/// The text of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// As HTML.
    pub(super) text: Text,
    /// The same without markup, should Telegram not understand it.
    pub(super) plain: Text,
    /// Whether it holds no words of the answer yet.
    pub(super) neutral: bool,
}

impl Page {
    fn new(rich: &Rich) -> Self {
        let plain = Text { body: rich.text.clone(), ..Text::default() };
        Self { text: Text { body: html(rich), html: true, ..Text::default() }, plain, neutral: false }
    }

    /// Makes the page that holds the place of this one.
    pub(super) fn sign(&self) -> Self {
        let text = Text { buttons: self.text.buttons.clone(), ..sign(0) };
        Self { plain: text.clone(), text, neutral: true }
    }

    fn with(mut self, choices: &[Choice]) -> Self {
        let fits = |choice: &&Choice| {
            let fits = (1..=ACTION).contains(&choice.action.len()) && !choice.label.trim().is_empty();
            if !fits {
                tracing::warn!(label = choice.label, "a button is left out: Telegram takes 1 to 64 bytes");
            }
            fits
        };
        let buttons: Vec<Choice> = choices.iter().filter(fits).cloned().collect();
        self.plain.buttons.clone_from(&buttons);
        self.text.buttons = buttons;
        self
    }
}

/// Returns one of the two working signs.
pub(super) fn sign(which: usize) -> Text {
    Text { body: SIGNS.get(which).copied().unwrap_or_default().to_owned(), ..Text::default() }
}

/// Returns the messages that show a growing reply: full ones stay as they are, the last one grows.
pub(super) fn growing(view: &ReplyView) -> Vec<Page> {
    let mut parts = split(&parse(&view.text), LIMIT);
    let neutral = parts.is_empty();
    let mut last = parts.pop().unwrap_or_else(|| Rich::plain(SIGNS[0]));
    add_activity(&mut last, view.activity.as_deref(), if neutral { " " } else { "\n\n" });
    let mut pages: Vec<Page> = parts.iter().map(Page::new).collect();
    pages.push(Page { neutral, ..Page::new(&last) }.with(&view.choices));
    pages
}

/// Adds what the agent does at the moment, in italics, if it fits.
fn add_activity(rich: &mut Rich, activity: Option<&str>, gap: &str) {
    let words: Vec<&str> = activity.unwrap_or_default().split_whitespace().collect();
    let line: String = words.join(" ").chars().take(ACTIVITY).collect();
    let room = LIMIT.max - LIMIT.unit.len(&rich.text);
    if line.is_empty() || LIMIT.unit.len(gap) + LIMIT.unit.len(&line) > room {
        return;
    }
    rich.text.push_str(gap);
    let start = rich.text.len();
    rich.text.push_str(&line);
    rich.mark(start, Style::Italic);
}

/// Returns the messages that show a finished reply, with a line for each note. No text at all makes none,
/// unless there is nothing else to see.
pub(super) fn finished(text: &str, notes: &[String], choices: &[Choice], has_files: bool) -> Vec<Page> {
    let mut rich = parse(text);
    for note in notes {
        let gap = if rich.text.is_empty() { "" } else { "\n\n" };
        rich.text.push_str(&format!("{gap}{note}"));
    }
    let mut parts = split(&rich, LIMIT);
    if parts.is_empty() && !(has_files && choices.is_empty()) {
        parts.push(Rich::plain("(no text)"));
    }
    let last = parts.pop().map(|last| Page::new(&last).with(choices));
    parts.iter().map(Page::new).chain(last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(text: &str, activity: Option<&str>) -> ReplyView {
        ReplyView { text: text.into(), activity: activity.map(Into::into), choices: Vec::new() }
    }

    fn bodies(pages: &[Page]) -> Vec<(&str, bool)> {
        pages.iter().map(|page| (page.text.body.as_str(), page.neutral)).collect()
    }

    #[test]
    fn a_growing_reply_shows_words_and_what_goes_on() {
        let cases = [
            (view("", None), "⏳", true),
            (view("", Some("searching\n the <web>")), "⏳ <i>searching the &lt;web&gt;</i>", true),
            (view("**hi**", None), "<b>hi</b>", false),
            (view("hi", Some("reading")), "hi\n\n<i>reading</i>", false),
        ];
        for (view, body, neutral) in cases {
            assert_eq!(bodies(&growing(&view)), [(body, neutral)]);
        }
    }

    #[test]
    fn activity_makes_no_message_too_long() {
        let full = growing(&view(&"a".repeat(4090), Some("reading")));
        assert_eq!(bodies(&full), [("a".repeat(4090).as_str(), false)]);
    }

    #[test]
    fn a_finished_reply_ends_with_its_notes_even_behind_open_code() {
        let pages = finished("```\nx", &["📎 a.zip: too large".to_owned()], &[], true);
        assert_eq!(bodies(&pages), [("<pre>x</pre>\n\n📎 a.zip: too large", false)]);
        assert_eq!(finished(" ", &[], &[], true), []);
        assert_eq!(bodies(&finished("", &[], &[], false)), [("(no text)", false)]);
    }

    #[test]
    fn buttons_stand_under_the_last_message_only() {
        let stop = Choice { label: "Stop".into(), action: "/stop".into() };
        let long = Choice { label: "Long".into(), action: "x".repeat(65) };
        let pages = finished(&"word ".repeat(1000), &[], &[stop.clone(), long], false);
        let buttons: Vec<_> = pages.iter().map(|page| page.text.buttons.clone()).collect();
        assert_eq!(buttons, [vec![], vec![stop]]);
    }
}
