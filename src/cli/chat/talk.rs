//! State of a conversation: finished answers, growing answers, and the number of expected answers.

use super::wire::{LineSpeaker, TranscriptLine};
use pudu_channels::Choice;
use std::collections::VecDeque;

/// Action of the button that stops the current run.
pub(super) const STOP: &str = "/stop";
/// Maximum number of finished lines that are remembered.
const REMEMBERED: usize = 512;

/// State of a conversation.
#[derive(Debug, Default)]
pub(super) struct ChatTranscript {
    begun: bool,
    /// Ids of finished lines.
    finished: VecDeque<String>,
    open: Vec<TranscriptLine>,
    /// Ids of growing lines that answer earlier messages.
    apart: Vec<String>,
    /// Number of messages whose answer has not begun.
    awaited: usize,
}

impl ChatTranscript {
    /// Adds the existing lines, which are not reported as new.
    pub(super) fn begin(&mut self, lines: Vec<TranscriptLine>) {
        self.begun = true;
        for line in lines {
            if line.done {
                self.finished.push_back(line.id);
            } else {
                self.open.push(line);
            }
        }
    }

    /// Adds a line. Returns it if it is new and finished.
    pub(super) fn take(&mut self, line: TranscriptLine) -> Option<TranscriptLine> {
        if line.from == LineSpeaker::You || self.finished.contains(&line.id) {
            return None;
        }
        let is_apart = self.apart.contains(&line.id);
        let at = self.open.iter().position(|open| open.id == line.id);
        match at.and_then(|at| self.open.get_mut(at)) {
            Some(open) => *open = line.clone(),
            None if is_apart => {}
            None => {
                self.awaited = self.awaited.saturating_sub(1);
                self.open.push(line.clone());
            }
        }
        if !line.done {
            return None;
        }
        self.open.retain(|open| open.id != line.id);
        self.apart.retain(|apart| *apart != line.id);
        if self.finished.len() >= REMEMBERED {
            self.finished.pop_front();
        }
        self.finished.push_back(line.id.clone());
        (!is_apart).then_some(line)
    }

    /// Returns whether the existing lines are known.
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Sets the growing answers apart: they answer earlier messages, and are no longer reported.
    pub(super) fn set_apart(&mut self) {
        self.apart.extend(self.open.drain(..).map(|line| line.id));
    }

    /// Returns the growing answers, oldest first.
    pub(super) fn open(&self) -> &[TranscriptLine] {
        &self.open
    }

    /// Returns the newest growing answer with a pending decision, and the choices.
    pub(super) fn decision(&self) -> Option<(&TranscriptLine, Vec<Choice>)> {
        let chosen = |line: &TranscriptLine| -> Vec<Choice> {
            line.choices.iter().filter(|choice| choice.action != STOP).cloned().collect()
        };
        let mut waiting = self.open.iter().rev().map(|line| (line, chosen(line)));
        waiting.find(|(_, choices)| !choices.is_empty())
    }

    /// Returns whether an answer is growing or expected.
    pub(super) fn busy(&self) -> bool {
        !self.open.is_empty() || self.awaited > 0
    }

    /// Counts a message whose answer is expected.
    pub(super) fn expect_answer(&mut self) {
        self.awaited += 1;
    }

    /// Removes the count of a message that gets no answer.
    pub(super) fn cancel_answer(&mut self) {
        self.awaited = self.awaited.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pudu(id: &str, text: &str, done: bool) -> TranscriptLine {
        TranscriptLine::by_agent(id, text, done)
    }

    fn text(line: Option<TranscriptLine>) -> Option<String> {
        line.map(|line| line.text)
    }

    #[test]
    fn the_past_is_not_new_and_each_answer_is_new_once() {
        let mut talk = ChatTranscript::default();
        talk.begin(vec![TranscriptLine::by_person("q", "q"), pudu("1", "old", true)]);
        talk.expect_answer();
        assert!(talk.busy());
        assert_eq!(talk.take(TranscriptLine::by_person("q2", "q2")), None);
        assert_eq!(talk.take(pudu("2", "ne", false)), None);
        assert_eq!(talk.open()[0].text, "ne");
        assert_eq!(text(talk.take(pudu("2", "new", true))), Some("new".to_owned()));
        assert_eq!(talk.take(pudu("2", "new", true)), None);
        assert!(!talk.busy());
    }

    #[test]
    fn each_message_has_an_answer_of_its_own() {
        let mut talk = ChatTranscript::default();
        talk.begin(vec![]);
        talk.expect_answer();
        talk.take(pudu("1", "", false));
        talk.expect_answer();
        talk.take(pudu("2", "", false));
        assert_eq!(text(talk.take(pudu("1", "one", true))), Some("one".to_owned()));
        assert!(talk.busy());
        assert_eq!(text(talk.take(pudu("2", "two", true))), Some("two".to_owned()));
        assert!(!talk.busy());
        talk.expect_answer();
        talk.cancel_answer();
        assert!(!talk.busy());
    }

    #[test]
    fn a_growing_answer_with_more_than_stop_below_it_waits_for_a_decision() {
        let choice = |action: &str| Choice { label: action.to_owned(), action: action.to_owned() };
        let with = |actions: &[&str]| {
            let mut line = pudu("1", "May I?", false);
            line.choices = actions.iter().map(|action| choice(action)).collect();
            line
        };
        let mut talk = ChatTranscript::default();
        talk.begin(vec![]);
        talk.take(with(&[STOP]));
        assert_eq!(talk.decision(), None);
        let expected = with(&["/approve k", "/deny k", STOP]);
        talk.take(expected.clone());
        assert_eq!(talk.decision(), Some((&expected, vec![choice("/approve k"), choice("/deny k")])));
        talk.take(pudu("1", "✅ You approved it", true));
        assert_eq!(talk.decision(), None);
    }

    #[test]
    fn an_answer_that_is_set_apart_is_not_reported_and_the_next_one_is() {
        let mut talk = ChatTranscript::default();
        talk.begin(vec![TranscriptLine::by_person("q", "theirs"), pudu("1", "old", false)]);
        talk.set_apart();
        assert!(!talk.busy());
        talk.expect_answer();
        assert_eq!(talk.take(pudu("1", "older", false)), None);
        assert_eq!(talk.take(pudu("1", "oldest", true)), None);
        assert!(talk.busy());
        assert_eq!(text(talk.take(pudu("2", "mine", true))), Some("mine".to_owned()));
        assert!(!talk.busy());
    }
}
