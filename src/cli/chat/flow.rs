//! Splits a growing answer into a part that is printed permanently and a part that may still change.
//!
//! Complete blocks are printed once and scroll away; only the last, unfinished block is redrawn.

use super::{markdown::settled, wire::TranscriptLine};
use std::collections::HashMap;

/// The growing answers, with the printed part of each.
#[derive(Debug, Default)]
pub(super) struct Flow {
    printed: HashMap<String, String>,
}

/// Output for an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AnswerStep {
    /// Markdown to print permanently.
    pub(super) print: String,
    /// Markdown to show below it temporarily.
    pub(super) tail: String,
}

impl Flow {
    /// Processes the newest view of an answer. A text that does not continue the printed part is printed again in full.
    pub(super) fn step(&mut self, line: &TranscriptLine) -> AnswerStep {
        let before = self.printed.get(&line.id).map_or("", String::as_str);
        let before = if line.text.starts_with(before) { before.len() } else { 0 };
        let own = line.text.get(..line.text.len().saturating_sub(line.below)).unwrap_or(&line.text);
        let end = if line.done { line.text.len() } else { settled(own).max(before) };
        let part = |from: usize, to: usize| line.text.get(from..to).unwrap_or_default();
        let step =
            AnswerStep { print: part(before, end).to_owned(), tail: part(end, line.text.len()).to_owned() };
        if line.done {
            self.printed.remove(&line.id);
        } else {
            self.printed.insert(line.id.clone(), part(0, end).to_owned());
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, text: &str, done: bool) -> TranscriptLine {
        TranscriptLine::by_agent(id, text, done)
    }

    fn step(print: &str, tail: &str) -> AnswerStep {
        AnswerStep { print: print.into(), tail: tail.into() }
    }

    #[test]
    fn each_block_is_printed_once() {
        let mut flow = Flow::default();
        assert_eq!(flow.step(&line("1", "one", false)), step("", "one"));
        assert_eq!(flow.step(&line("1", "one\n\ntwo\n", false)), step("one\n\n", "two\n"));
        assert_eq!(flow.step(&line("1", "one\n\ntwo\nmore", false)), step("", "two\nmore"));
        assert_eq!(flow.step(&line("1", "one\n\ntwo\nmore!", true)), step("two\nmore!", ""));
        assert_eq!(flow.step(&line("2", "next", true)), step("next", ""));
    }

    #[test]
    fn an_answer_above_a_list_that_changes_is_printed_once() {
        let mut flow = Flow::default();
        let mut printed = String::new();
        let words = "one two\n\nthree four\n\nfive six";
        for (at, _) in words.char_indices().skip(1) {
            let (own, list) = (words.get(..at).unwrap(), format!("\n\n▶️ step {at}\n▫️ next"));
            let text = format!("{own}{list}");
            let mut grown = line("1", &text, false);
            grown.below = list.len();
            let step = flow.step(&grown);
            assert!(step.tail.ends_with(&list), "{step:?}");
            printed += &step.print;
        }
        printed += &flow.step(&line("1", words, true)).print;
        assert_eq!(printed, words);
    }

    #[test]
    fn an_answer_that_begins_anew_is_printed_anew() {
        let mut flow = Flow::default();
        flow.step(&line("1", "one\n\ntwo\n", false));
        assert_eq!(flow.step(&line("1", "other", true)), step("other", ""));
    }
}
