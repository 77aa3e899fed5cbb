//! From a view to the messages that show it, still without any platform's markup.

use crate::{
    Choice, FinalView, ReplyView,
    render::{Rich, Style, parse},
    split::{Limit, split},
};

/// The longest activity that is shown, in characters.
const ACTIVITY: usize = 120;
/// Stands where words will be.
pub(crate) const SIGN: &str = "⏳";
/// A page is not cut into pieces smaller than this, in the limit's unit.
pub(super) const SMALLEST: usize = 64;

/// One message to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Draft {
    /// Its words.
    pub(crate) rich: Rich,
    /// The buttons under it.
    pub(crate) choices: Vec<Choice>,
    /// Whether it holds no words of the answer yet.
    pub(crate) neutral: bool,
    /// Whether it will not change any more: it is full, or the reply is finished.
    pub(crate) done: bool,
}

/// Returns the messages that show a growing reply: full ones stay as they are, the last one grows.
pub(super) fn growing(view: &ReplyView, limit: Limit) -> Vec<Draft> {
    let mut parts = split(&parse(&view.text), limit);
    let neutral = parts.is_empty();
    let mut last = parts.pop().unwrap_or_else(|| Rich::plain(SIGN));
    add_activity(&mut last, view.activity.as_deref(), if neutral { " " } else { "\n\n" }, limit);
    let last = Draft { rich: last, choices: view.choices.clone(), neutral, done: false };
    parts.into_iter().map(full).chain([last]).collect()
}

fn full(rich: Rich) -> Draft {
    Draft { rich, done: true, ..Draft::default() }
}

/// Adds what the agent does at the moment, in italics, if it fits.
fn add_activity(rich: &mut Rich, activity: Option<&str>, gap: &str, limit: Limit) {
    let words: Vec<&str> = activity.unwrap_or_default().split_whitespace().collect();
    let line: String = words.join(" ").chars().take(ACTIVITY).collect();
    let room = limit.max.saturating_sub(limit.unit.len(&rich.text));
    if line.is_empty() || limit.unit.len(gap) + limit.unit.len(&line) > room {
        return;
    }
    rich.text.push_str(gap);
    let start = rich.text.len();
    rich.text.push_str(&line);
    rich.mark(start, Style::Italic);
}

/// Returns the messages that show a finished reply, with a line for each note. No text at all makes none,
/// unless there is nothing else to see.
pub(super) fn finished(view: &FinalView, notes: &[String], limit: Limit) -> Vec<Draft> {
    let mut rich = parse(&view.text);
    for note in notes {
        let gap = if rich.text.is_empty() { "" } else { "\n\n" };
        rich.text.push_str(&format!("{gap}{note}"));
    }
    let mut parts = split(&rich, limit);
    if parts.is_empty() && (view.files.is_empty() || !view.choices.is_empty()) {
        parts.push(Rich::plain("(no text)"));
    }
    let mut drafts: Vec<Draft> = parts.into_iter().map(full).collect();
    if let Some(last) = drafts.last_mut() {
        last.choices.clone_from(&view.choices);
    }
    drafts
}

/// Cuts a message into pieces of at most `limit`; the last of them is what the whole was.
pub(super) fn halve(draft: Draft, limit: Limit) -> Vec<Draft> {
    let mut parts = split(&draft.rich, limit);
    let Some(last) = parts.pop() else { return vec![draft] };
    parts.into_iter().map(full).chain([Draft { rich: last, ..draft }]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OutFile, split::Unit};

    const LIMIT: Limit = Limit { unit: Unit::Utf16, max: 4096 };

    fn view(text: &str, activity: Option<&str>) -> ReplyView {
        ReplyView { text: text.into(), activity: activity.map(Into::into), choices: Vec::new() }
    }

    fn done(text: &str) -> FinalView {
        FinalView { text: text.into(), ..FinalView::default() }
    }

    fn texts(drafts: &[Draft]) -> Vec<(&str, bool)> {
        drafts.iter().map(|draft| (draft.rich.text.as_str(), draft.neutral)).collect()
    }

    #[test]
    fn a_growing_reply_shows_words_and_what_goes_on() {
        let cases = [
            (view("", None), "⏳", true),
            (view("", Some("searching\n the <web>")), "⏳ searching the <web>", true),
            (view("**hi**", None), "hi", false),
            (view("hi", Some("reading")), "hi\n\nreading", false),
        ];
        for (view, text, neutral) in cases {
            assert_eq!(texts(&growing(&view, LIMIT)), [(text, neutral)]);
        }
    }

    #[test]
    fn activity_makes_no_message_too_long() {
        let full = growing(&view(&"a".repeat(4090), Some("reading")), LIMIT);
        assert_eq!(texts(&full), [("a".repeat(4090).as_str(), false)]);
    }

    #[test]
    fn a_finished_reply_ends_with_its_notes_even_behind_open_code() {
        let file = || vec![OutFile { name: "a.zip".into(), path: "a.zip".into() }];
        let note = ["📎 a.zip: too large".to_owned()];
        let drafts = finished(&FinalView { files: file(), ..done("```\nx") }, &note, LIMIT);
        assert_eq!(texts(&drafts), [("x\n\n📎 a.zip: too large", false)]);
        assert_eq!(finished(&FinalView { files: file(), ..done(" ") }, &[], LIMIT), []);
        assert_eq!(texts(&finished(&done(""), &[], LIMIT)), [("(no text)", false)]);
    }

    #[test]
    fn buttons_stand_under_the_last_message_and_only_that_one_still_changes() {
        let stop = Choice { label: "Stop".into(), action: "/stop".into() };
        let text = "word ".repeat(1000);
        let shape = |drafts: Vec<Draft>| -> Vec<(usize, bool)> {
            drafts.iter().map(|draft| (draft.choices.len(), draft.done)).collect()
        };
        let choices = vec![stop];
        let growing = growing(&ReplyView { choices: choices.clone(), ..view(&text, None) }, LIMIT);
        assert_eq!(shape(growing), [(0, true), (1, false)]);
        let finished = finished(&FinalView { choices, ..done(&text) }, &[], LIMIT);
        assert_eq!(shape(finished), [(0, true), (1, true)]);
    }
}
