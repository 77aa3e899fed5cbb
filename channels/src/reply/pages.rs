//! Converts a view to the messages that show it, without any platform's markup.

use crate::{
    Choice, FORM_ACTION, FinalView, Prompt, QuestionForm, ReplyView,
    render::{Rich, Style, parse_within},
    split::{Limit, split},
};
use pudu_texts::Language;

/// Maximum length of the shown activity, in characters.
const ACTIVITY: usize = 120;
/// Placeholder for text.
pub(crate) const SIGN: &str = "⏳";
/// Minimum size of the pieces that a page is cut into, in the limit's unit.
pub(super) const SMALLEST: usize = 64;

/// Draft of one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MessageDraft {
    /// Language of texts that pudu adds.
    pub(crate) language: Language,
    /// The text.
    pub(crate) rich: Rich,
    /// The choices.
    pub(crate) choices: Vec<Choice>,
    /// The form that one of the choices opens.
    pub(crate) form: Option<QuestionForm>,
    /// Number of leading choices that decide a question.
    pub(crate) asks: usize,
    /// Number of the first choice, if choices are made by number.
    pub(crate) first: Option<usize>,
    /// Whether the text already lists the choices with their numbers.
    pub(crate) listed: bool,
    /// Whether the draft contains none of the answer yet.
    pub(crate) neutral: bool,
    /// Whether the draft is final: the message is full, or the reply is finished.
    pub(crate) done: bool,
}

impl MessageDraft {
    /// Returns the text for a message without buttons, followed by the choices. A question is decided only by number;
    /// other choices can also be typed.
    pub(crate) fn in_words(&self) -> Rich {
        let mut rich = self.rich.clone();
        let (asks, others) = self.choices.split_at_checked(self.asks).unwrap_or((&[], &self.choices));
        let gap = |rich: &Rich, n: usize| match n {
            _ if rich.text.is_empty() => "",
            0 => "\n\n",
            _ => "\n",
        };
        if let Some(first) = self.first.filter(|_| !asks.is_empty()) {
            for (n, choice) in asks.iter().enumerate() {
                let gap = gap(&rich, n);
                rich.text.push_str(&format!("{gap}{} = {}", first + n, choice.label));
            }
            rich.text.push_str(&format!("\n{}", self.language.answer_by_number()));
        }
        if self.listed {
            let gap = gap(&rich, 0);
            rich.text.push_str(&format!("{gap}{}", self.language.answer_by_number()));
            return rich;
        }
        // A form needs its widgets; in words, the text lists its fields.
        let others = others.iter().filter(|choice| choice.action != FORM_ACTION);
        for (n, choice) in others.enumerate() {
            if let Some(first) = self.first.filter(|_| asks.is_empty() && choice.label == choice.action) {
                let gap = gap(&rich, n);
                rich.text.push_str(&format!("{gap}{}. {}", first + n, choice.label));
                continue;
            }
            let numbered = self.first.filter(|_| asks.is_empty());
            let (before, after) = match numbered {
                Some(first) => (format!("{}. {} (", first + n, choice.label), ")"),
                None => (format!("{}: ", choice.label), ""),
            };
            let gap = gap(&rich, n);
            rich.text.push_str(&format!("{gap}{before}"));
            let start = rich.text.len();
            rich.text.push_str(&choice.action);
            rich.mark(start, Style::Code);
            rich.text.push_str(after);
        }
        rich
    }
}

/// Returns the messages of a growing reply. Full messages stay unchanged; the last one grows.
pub(super) fn growing(view: &ReplyView, first: Option<usize>, limit: Limit) -> Vec<MessageDraft> {
    let (text, choices) = view.whole();
    let asks = view.prompt.as_ref().map_or(0, |ask| ask.choices.len());
    let mut parts = split(&parse_within(&text, limit.columns), limit);
    let neutral = parts.is_empty();
    let mut last = parts.pop().unwrap_or_else(|| Rich::plain(SIGN));
    add_activity(&mut last, view.activity.as_deref(), if neutral { " " } else { "\n\n" }, limit);
    let (language, done) = (Language::default(), false);
    let last =
        MessageDraft { language, rich: last, choices, asks, first, neutral, done, ..MessageDraft::default() };
    parts.into_iter().map(full).chain([last]).collect()
}

/// Returns the messages of a question, for a reply that cannot be edited.
pub(super) fn question(ask: &Prompt, others: &[Choice], first: usize, limit: Limit) -> Vec<MessageDraft> {
    let parts = split(&parse_within(&ask.text, limit.columns), limit);
    let mut drafts: Vec<MessageDraft> = parts.into_iter().map(full).collect();
    if let Some(last) = drafts.last_mut() {
        last.choices = [ask.choices.as_slice(), others].concat();
        (last.asks, last.first) = (ask.choices.len(), Some(first));
    }
    drafts
}

fn full(rich: Rich) -> MessageDraft {
    MessageDraft { rich, done: true, ..MessageDraft::default() }
}

/// Adds the agent's current activity, in italics, if it fits.
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

/// Returns the messages of a finished reply, with a line for each note. Without text there is no message, unless there
/// are no files or there are choices.
pub(super) fn finished(
    view: &FinalView,
    notes: &[String],
    first: Option<usize>,
    limit: Limit,
    language: Language,
) -> Vec<MessageDraft> {
    let mut rich = parse_within(&view.text, limit.columns);
    for note in notes {
        let gap = if rich.text.is_empty() { "" } else { "\n\n" };
        rich.text.push_str(&format!("{gap}{note}"));
    }
    let mut parts = split(&rich, limit);
    if parts.is_empty() && (view.files.is_empty() || !view.choices.is_empty()) {
        parts.push(Rich::plain(language.no_text()));
    }
    let mut drafts: Vec<MessageDraft> = parts.into_iter().map(full).collect();
    if let Some(last) = drafts.last_mut() {
        last.choices.clone_from(&view.choices);
        last.form.clone_from(&view.form);
        (last.first, last.listed) = (first, view.listed);
    }
    drafts
}

/// Splits a message into pieces of at most `limit`. The last piece keeps the message's other fields.
pub(super) fn halve(draft: MessageDraft, limit: Limit) -> Vec<MessageDraft> {
    let mut parts = split(&draft.rich, limit);
    let Some(last) = parts.pop() else { return vec![draft] };
    parts.into_iter().map(full).chain([MessageDraft { rich: last, ..draft }]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OutFile, split::Unit};

    const EN: Language = Language::English;
    const LIMIT: Limit = Limit { unit: Unit::Utf16, max: 4096, columns: 60 };

    fn view(text: &str, activity: Option<&str>) -> ReplyView {
        ReplyView { text: text.into(), activity: activity.map(Into::into), ..ReplyView::default() }
    }

    fn done(text: &str) -> FinalView {
        FinalView { text: text.into(), ..FinalView::default() }
    }

    fn texts(drafts: &[MessageDraft]) -> Vec<(&str, bool)> {
        drafts.iter().map(|draft| (draft.rich.text.as_str(), draft.neutral)).collect()
    }

    #[test]
    fn a_growing_reply_shows_text_and_activity() {
        let cases = [
            (view("", None), "⏳", true),
            (view("", Some("searching\n the <web>")), "⏳ searching the <web>", true),
            (view("**hi**", None), "hi", false),
            (view("hi", Some("reading")), "hi\n\nreading", false),
        ];
        for (view, text, neutral) in cases {
            assert_eq!(texts(&growing(&view, None, LIMIT)), [(text, neutral)]);
        }
    }

    #[test]
    fn activity_makes_no_message_too_long() {
        let full = growing(&view(&"a".repeat(4090), Some("reading")), None, LIMIT);
        assert_eq!(texts(&full), [("a".repeat(4090).as_str(), false)]);
    }

    #[test]
    fn notes_follow_the_text_even_after_an_unclosed_code_block() {
        let file = || vec![OutFile { name: "a.zip".into(), path: "a.zip".into() }];
        let note = ["📎 a.zip: too large".to_owned()];
        let drafts = finished(&FinalView { files: file(), ..done("```\nx") }, &note, None, LIMIT, EN);
        assert_eq!(texts(&drafts), [("x\n\n📎 a.zip: too large", false)]);
        assert_eq!(finished(&FinalView { files: file(), ..done(" ") }, &[], None, LIMIT, EN), []);
        assert_eq!(texts(&finished(&done(""), &[], None, LIMIT, EN)), [("(no text)", false)]);
    }

    #[test]
    fn buttons_are_on_the_last_message_which_alone_still_changes() {
        let stop = Choice { label: "Stop".into(), action: "/stop".into() };
        let text = "word ".repeat(1000);
        let shape = |drafts: Vec<MessageDraft>| -> Vec<(usize, bool)> {
            drafts.iter().map(|draft| (draft.choices.len(), draft.done)).collect()
        };
        let choices = vec![stop];
        let growing = growing(&ReplyView { choices: choices.clone(), ..view(&text, None) }, None, LIMIT);
        assert_eq!(shape(growing), [(0, true), (1, false)]);
        let finished = finished(&FinalView { choices, ..done(&text) }, &[], None, LIMIT, EN);
        assert_eq!(shape(finished), [(0, true), (1, true)]);
    }

    #[test]
    fn without_buttons_the_text_lists_what_to_type() {
        let choice = |label: &str, action: &str| Choice { label: label.into(), action: action.into() };
        let choices = vec![choice("Approve", "/approve k"), choice("Deny", "/deny k")];
        let ask = Prompt { text: "May I?".into(), choices };
        let stop = vec![choice("Stop", "/stop")];
        let words = |drafts: Vec<MessageDraft>| drafts.last().map(|last| last.in_words().text).unwrap();
        let choices_text = "3 = Approve\n4 = Deny\nAnswer with just the number.\n\nStop: /stop";
        assert_eq!(words(question(&ask, &stop, 3, LIMIT)), format!("May I?\n\n{choices_text}"));
        let chinese = question(&ask, &[], 3, LIMIT).into_iter();
        let chinese = chinese.map(|draft| MessageDraft { language: Language::Chinese, ..draft });
        assert_eq!(words(chinese.collect()), "May I?\n\n3 = Approve\n4 = Deny\n直接回复数字即可。");
        let view =
            ReplyView { prompt: Some(ask), choices: stop.clone(), ..view("so far", Some("Waiting…")) };
        assert_eq!(
            words(growing(&view, Some(3), LIMIT)),
            format!("so far\n\nMay I?\n\nWaiting…\n\n{choices_text}")
        );
        assert!(!words(growing(&view, None, LIMIT)).contains("Approve"), "a choice without a number");
        let stopped = FinalView { choices: stop, ..done("yes") };
        assert_eq!(words(finished(&stopped, &[], Some(1), LIMIT, EN)), "yes\n\n1. Stop (/stop)");
        assert_eq!(words(finished(&stopped, &[], None, LIMIT, EN)), "yes\n\nStop: /stop");
        let options = FinalView { choices: vec![choice("Asia", "Asia")], ..done("Where?") };
        assert_eq!(words(finished(&options, &[], Some(1), LIMIT, EN)), "Where?\n\n1. Asia");
        let long =
            FinalView { choices: vec![choice("1", "1")], listed: true, ..done("Where?\n\n1. Far away") };
        for first in [Some(1), None] {
            let choices_text = words(finished(&long, &[], first, LIMIT, EN));
            assert_eq!(choices_text, "Where?\n\n1. Far away\n\nAnswer with just the number.");
        }
    }
}
