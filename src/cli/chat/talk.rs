//! State of a chat: which answers are new, which still grow, and whether one is awaited.

use pudu_channels::Choice;
use pudu_dispatch::local::{From, TranscriptChange, TranscriptLine};
use std::collections::VecDeque;

/// Action of the button that stops the run at work.
pub(super) const STOP: &str = "/stop";
/// So many lines are remembered; a room has no more.
const REMEMBERED: usize = 512;

/// State of a chat.
#[derive(Debug, Default)]
pub(super) struct ChatTranscript {
    begun: bool,
    /// Finished lines that are known: id and text.
    known: VecDeque<(String, String)>,
    open: Vec<TranscriptLine>,
    /// Lines that grow and answer somebody else.
    apart: Vec<TranscriptLine>,
    awaited: Awaited,
}

/// Whether an answer is awaited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Awaited {
    /// No.
    #[default]
    No,
    /// Yes: something was said while nothing was at work.
    Answer,
    /// Perhaps: what was said while an answer grew may have become part of it.
    FollowUp,
}

impl ChatTranscript {
    /// Hears a change and returns the lines of pudu's that are finished by it. The first transcript is the
    /// past: nothing in it is new.
    pub(super) fn hear(&mut self, change: TranscriptChange) -> Vec<TranscriptLine> {
        match change {
            TranscriptChange::Line(line) => self.line(line).into_iter().collect(),
            TranscriptChange::Transcript(lines) if !self.begun => {
                self.begun = true;
                for line in lines {
                    self.past(line);
                }
                Vec::new()
            }
            TranscriptChange::Transcript(lines) => self.again(lines),
        }
    }

    /// Returns whether the past is known.
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Sets the growing answers apart: they answer earlier messages, and are not reported any more.
    pub(super) fn set_apart(&mut self) {
        self.apart.append(&mut self.open);
    }

    /// Returns the answers that grow.
    pub(super) fn open(&self) -> &[TranscriptLine] {
        &self.open
    }

    /// Returns the newest growing answer that waits for a decision, and what can be chosen.
    pub(super) fn decision(&self) -> Option<(&TranscriptLine, Vec<Choice>)> {
        let chosen = |line: &TranscriptLine| -> Vec<Choice> {
            line.choices.iter().filter(|choice| choice.action != STOP).cloned().collect()
        };
        let mut waiting = self.open.iter().rev().map(|line| (line, chosen(line)));
        waiting.find(|(_, choices)| !choices.is_empty())
    }

    /// Returns whether an answer grows or is awaited.
    pub(super) fn busy(&self) -> bool {
        !self.open.is_empty() || self.awaited != Awaited::No
    }

    /// Something was said that wants an answer.
    pub(super) fn said(&mut self) {
        self.awaited = if self.idle() { Awaited::Answer } else { Awaited::FollowUp };
    }

    /// Returns whether a follow-up may have been answered already.
    pub(super) fn in_doubt(&self) -> bool {
        self.idle() && self.awaited == Awaited::FollowUp
    }

    fn idle(&self) -> bool {
        self.open.is_empty() && self.apart.is_empty()
    }

    /// Nothing is awaited any more.
    pub(super) fn settle(&mut self) {
        self.awaited = Awaited::No;
    }

    fn past(&mut self, line: TranscriptLine) {
        match (line.from, line.done) {
            (From::Pudu, false) => self.open.push(line),
            (From::Pudu, true) => self.remember(&line),
            (From::You, _) => {}
        }
    }

    /// Hears the transcript after a connection was lost. Only what follows the last thing that was said can
    /// be new; after a restart of the daemon known lines may have other ids.
    fn again(&mut self, lines: Vec<TranscriptLine>) -> Vec<TranscriptLine> {
        let newest = lines.iter().rposition(|line| line.from == From::You).map_or(0, |at| at + 1);
        self.open.retain(|open| lines.iter().any(|line| line.id == open.id));
        self.follow_apart(&lines);
        let fresh = |talk: &Self, at: usize, line: &TranscriptLine| {
            let growing = talk.open.iter().chain(&talk.apart).any(|open| open.id == line.id);
            let told = talk.known.iter().any(|(_, text)| *text == line.text);
            growing || !line.done || (at >= newest && !told)
        };
        let lines: Vec<TranscriptLine> = lines
            .into_iter()
            .enumerate()
            .filter(|(at, line)| fresh(self, *at, line))
            .map(|(_, line)| line)
            .collect();
        lines.into_iter().filter_map(|line| self.line(line)).collect()
    }

    /// Finds what was set apart in a transcript in which it may have another id; what is not there is gone.
    fn follow_apart(&mut self, lines: &[TranscriptLine]) {
        let known = &self.known;
        self.apart.retain_mut(|apart| {
            if lines.iter().any(|line| line.id == apart.id) {
                return true;
            }
            let heard =
                |line: &TranscriptLine| known.iter().any(|(id, text)| *id == line.id || *text == line.text);
            let goes_on = |line: &&TranscriptLine| {
                line.from == From::Pudu && line.text.starts_with(&apart.text) && !heard(line)
            };
            let found = lines.iter().find(goes_on);
            if let Some(line) = found {
                *apart = line.clone();
            }
            found.is_some()
        });
    }

    fn line(&mut self, line: TranscriptLine) -> Option<TranscriptLine> {
        if line.from == From::You || self.known.iter().any(|(id, _)| *id == line.id) {
            return None;
        }
        if let Some(at) = self.apart.iter().position(|apart| apart.id == line.id) {
            self.line_apart(at, line);
            return None;
        }
        let at = self.open.iter().position(|open| open.id == line.id);
        if at.is_none() {
            self.awaited = Awaited::No;
        }
        match (at, line.done) {
            (Some(at), true) => drop(self.open.remove(at)),
            (Some(at), false) => {
                if let Some(open) = self.open.get_mut(at) {
                    *open = line.clone();
                }
            }
            (None, true) => {}
            (None, false) => self.open.push(line.clone()),
        }
        if line.done {
            self.remember(&line);
        }
        line.done.then_some(line)
    }

    fn line_apart(&mut self, at: usize, line: TranscriptLine) {
        self.apart.swap_remove(at);
        match line.done {
            true => self.remember(&line),
            false => self.apart.push(line),
        }
    }

    fn remember(&mut self, line: &TranscriptLine) {
        if self.known.len() >= REMEMBERED {
            self.known.pop_front();
        }
        self.known.push_back((line.id.clone(), line.text.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pudu(id: &str, text: &str, done: bool) -> TranscriptLine {
        TranscriptLine::by_agent(id.into(), text, done)
    }

    fn you(text: &str) -> TranscriptLine {
        TranscriptLine::by_person(text.into(), text)
    }

    fn texts(lines: &[TranscriptLine]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn the_past_is_not_new_and_each_answer_is_new_once() {
        let mut talk = ChatTranscript::default();
        assert_eq!(talk.hear(TranscriptChange::Transcript(vec![you("q"), pudu("1", "old", true)])), []);
        talk.said();
        assert!(talk.busy());
        assert_eq!(talk.hear(TranscriptChange::Line(you("q2"))), []);
        assert_eq!(talk.hear(TranscriptChange::Line(pudu("2", "ne", false))), []);
        assert_eq!(texts(talk.open()), ["ne"]);
        assert_eq!(texts(&talk.hear(TranscriptChange::Line(pudu("2", "new", true)))), ["new"]);
        assert_eq!(talk.hear(TranscriptChange::Line(pudu("2", "new", true))), []);
        assert!(!talk.busy());
    }

    #[test]
    fn after_a_lost_connection_only_the_newest_answer_can_be_new() {
        let mut talk = ChatTranscript::default();
        talk.hear(TranscriptChange::Transcript(vec![]));
        talk.hear(TranscriptChange::Line(pudu("1", "first", true)));
        talk.said();
        talk.hear(TranscriptChange::Line(pudu("2", "sec", false)));
        let transcript = [you("q"), pudu("m1", "first", true), you("q2"), pudu("2", "second", true)];
        assert_eq!(texts(&talk.hear(TranscriptChange::Transcript(transcript.to_vec()))), ["second"]);
        assert!(!talk.busy());
        let cut = [you("q2"), pudu("3", "third", true), you("meanwhile")];
        talk.hear(TranscriptChange::Line(pudu("3", "thi", false)));
        assert_eq!(texts(&talk.hear(TranscriptChange::Transcript(cut.to_vec()))), ["third"]);
        let renamed = [you("q"), pudu("m1", "first", true), you("q2"), pudu("m2", "second", true)];
        assert_eq!(talk.hear(TranscriptChange::Transcript(renamed.to_vec())), []);
    }

    #[test]
    fn a_follow_up_may_become_part_of_the_answer_that_grows() {
        let mut talk = ChatTranscript::default();
        talk.hear(TranscriptChange::Transcript(vec![]));
        talk.hear(TranscriptChange::Line(pudu("1", "a", false)));
        talk.said();
        assert!(!talk.in_doubt());
        talk.hear(TranscriptChange::Line(pudu("1", "ab", true)));
        assert!(talk.busy() && talk.in_doubt());
        talk.settle();
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
        talk.hear(TranscriptChange::Transcript(vec![]));
        talk.hear(TranscriptChange::Line(with(&[STOP])));
        assert_eq!(talk.decision(), None);
        let asked = with(&["/approve k", "/deny k", STOP]);
        talk.hear(TranscriptChange::Line(asked.clone()));
        assert_eq!(talk.decision(), Some((&asked, vec![choice("/approve k"), choice("/deny k")])));
        talk.hear(TranscriptChange::Line(pudu("1", "✅ You approved it", true)));
        assert_eq!(talk.decision(), None);
    }

    #[test]
    fn what_is_set_apart_is_not_told_and_what_follows_it_is() {
        let mut talk = ChatTranscript::default();
        talk.hear(TranscriptChange::Transcript(vec![you("theirs"), pudu("1", "old", false)]));
        talk.set_apart();
        assert!(!talk.busy());
        talk.said();
        assert!(talk.busy() && !talk.in_doubt());
        assert_eq!(talk.hear(TranscriptChange::Line(pudu("1", "older", false))), []);
        assert_eq!(talk.hear(TranscriptChange::Line(pudu("1", "oldest", true))), []);
        assert!(talk.busy() && talk.in_doubt());
        assert_eq!(texts(&talk.hear(TranscriptChange::Line(pudu("2", "mine", true)))), ["mine"]);
        assert!(!talk.busy());
    }

    #[test]
    fn what_is_set_apart_stays_so_under_another_id() {
        let mut talk = ChatTranscript::default();
        talk.hear(TranscriptChange::Transcript(vec![you("theirs"), pudu("1", "old", false)]));
        talk.set_apart();
        talk.said();
        let transcript = [you("theirs"), pudu("m1", "old and done", true), you("q"), pudu("2", "mine", true)];
        assert_eq!(texts(&talk.hear(TranscriptChange::Transcript(transcript.to_vec()))), ["mine"]);
        assert!(!talk.busy());
    }
}
