//! A room: the transcript of one local chat, and its readers.

use crate::input;
use pudu_channels::{Choice, OutFile};
use pudu_client::base::{Message, ThreadState};
use serde::{Deserialize, Serialize};
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::broadcast;

/// Maximum number of lines that a room keeps.
const LINES: usize = 400;
/// Maximum number of changes that a reader may fall behind before it gets the whole transcript again.
const BEHIND: usize = 64;

/// One line of a transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptLine {
    /// Its id: a line with the same id replaces the older one.
    pub id: String,
    /// The speaker.
    pub from: From,
    /// The words, Markdown.
    pub text: String,
    /// Length of the lines below the agent's own words at the end of `text`, in bytes. They change while it grows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub below: usize,
    /// The agent's current activity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// Choices that may be clicked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// Files that came with it, by name. Their paths on this machine are not shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Whether it will not change any more.
    pub done: bool,
    /// Whether the work failed, as the words say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Whether a message that waits was seen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub seen: bool,
    /// Title of the conversation, if it is new; empty for one that has none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Changes of files by the work, as unified diffs behind the name of each file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff: String,
    #[serde(skip)]
    pub(super) paths: Vec<OutFile>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The speaker of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum From {
    /// The person.
    You,
    /// The agent.
    #[default]
    Pudu,
}

impl TranscriptLine {
    /// Makes a person's line.
    pub fn by_person(id: String, text: &str) -> Self {
        Self { id, from: From::You, text: text.to_owned(), done: true, ..Self::default() }
    }

    /// Makes a line of the agent's.
    pub fn by_agent(id: String, text: &str, done: bool) -> Self {
        Self { id, text: text.to_owned(), done, ..Self::default() }
    }
}

/// A room.
#[derive(Debug)]
pub struct LocalRoom {
    lines: Mutex<Vec<TranscriptLine>>,
    changes: broadcast::Sender<TranscriptLine>,
    seeded: AtomicBool,
}

impl Default for LocalRoom {
    fn default() -> Self {
        Self {
            lines: Mutex::default(),
            changes: broadcast::Sender::new(BEHIND),
            seeded: AtomicBool::new(false),
        }
    }
}

/// A reader's view of the room.
#[derive(Debug)]
pub struct TranscriptReader {
    /// The transcript so far.
    pub lines: Vec<TranscriptLine>,
    /// Changes from then on.
    pub changes: broadcast::Receiver<TranscriptLine>,
}

impl LocalRoom {
    /// Adds a line, or replaces the one with its id.
    pub fn put(&self, line: TranscriptLine) {
        let mut lines = self.lines();
        match lines.iter_mut().find(|other| other.id == line.id) {
            Some(other) => *other = line.clone(),
            None => lines.push(line.clone()),
        }
        let surplus = lines.len().saturating_sub(LINES);
        lines.drain(..surplus);
        // Sent while locked, so that a new reader neither misses it nor gets it twice. There may be no reader.
        self.changes.send(line).ok();
    }

    /// Marks a message as seen.
    pub(super) fn seen(&self, id: &str) {
        let line = self.lines().iter().find(|line| line.id == id).cloned();
        if let Some(line) = line {
            self.put(TranscriptLine { seen: true, ..line });
        }
    }

    /// Returns whether the room still has to load its past. Only the first call returns true.
    pub fn needs_past(&self) -> bool {
        !self.seeded.swap(true, Ordering::SeqCst)
    }

    /// Puts the messages of a thread before the lines of the room. The answers that resumed replies show are below
    /// their questions, and no line occurs twice. The newest line has the thread's title.
    pub fn remember(&self, state: &ThreadState, title: Option<String>) {
        let mut past = past(state);
        let mut lines = self.lines();
        past.retain(|line| !lines.iter().any(|other| other.id == line.id));
        forget_said(&mut past, &lines);
        let leading = lines.iter().take_while(|line| line.from == From::Pudu).count();
        let shown: Vec<_> = lines.drain(..leading).collect();
        lines.splice(0..0, weave(past, shown));
        if let Some(last) = lines.last_mut().filter(|last| last.title.is_none()) {
            last.title = title;
        }
    }

    /// Reads from now on.
    pub fn follow(&self) -> TranscriptReader {
        let lines = self.lines();
        TranscriptReader { changes: self.changes.subscribe(), lines: lines.clone() }
    }

    /// Returns a file of a line.
    pub fn file(&self, line: &str, index: usize) -> Option<OutFile> {
        self.lines().iter().find(|other| other.id == line)?.paths.get(index).cloned()
    }

    /// Returns whether the room has a reader.
    pub(super) fn read(&self) -> bool {
        self.changes.receiver_count() > 0
    }

    fn lines(&self) -> std::sync::MutexGuard<'_, Vec<TranscriptLine>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the messages of a thread as lines.
fn past(state: &ThreadState) -> Vec<TranscriptLine> {
    let line = |message: &Arc<Message>| match &**message {
        Message::Human(human) => Some(TranscriptLine::by_person(human.id.to_string(), &human.text)),
        Message::Assistant(reply) if !reply.text.trim().is_empty() => {
            Some(TranscriptLine::by_agent(reply.id.to_string(), &reply.text, true))
        }
        Message::Assistant(_) | Message::Tool(_) | Message::Reminder(_) => None,
    };
    state.messages.values().filter_map(line).collect()
}

/// Takes messages of the room out of the past, where the thread has them under another id.
fn forget_said(past: &mut Vec<TranscriptLine>, lines: &[TranscriptLine]) {
    for said in lines.iter().rev().filter(|line| line.from == From::You) {
        let asked = past.iter().rposition(|line| line.from == From::You);
        if let Some(at) = asked.filter(|at| past.get(*at).is_some_and(|line| is_said(&said.text, &line.text)))
        {
            past.truncate(at);
        }
    }
}

/// Returns whether a thread has these words for a message: of a goal only the words behind the command.
fn is_said(said: &str, text: &str) -> bool {
    said == text || input::goal_of(said).is_some_and(|objective| objective == text)
}

/// Questions, and the answers to them.
#[derive(Default)]
struct TranscriptExchange {
    questions: Vec<TranscriptLine>,
    answers: Vec<TranscriptLine>,
}

impl TranscriptExchange {
    /// Whether a reply of the room shows these answers: it grows still, or has their words.
    fn is_shown_by(&self, reply: &TranscriptLine) -> bool {
        !reply.done || self.answers.iter().any(|answer| reply.text.contains(answer.text.trim()))
    }
}

fn exchanges(past: Vec<TranscriptLine>) -> Vec<TranscriptExchange> {
    let mut exchanges: Vec<TranscriptExchange> = Vec::new();
    for line in past {
        let begins = exchanges.last().is_none_or(|last| line.from == From::You && !last.answers.is_empty());
        if begins {
            exchanges.push(TranscriptExchange::default());
        }
        let Some(last) = exchanges.last_mut() else { continue };
        match line.from {
            From::You => last.questions.push(line),
            From::Pudu => last.answers.push(line),
        }
    }
    exchanges
}

/// Puts replies of the room in the place of the answers that they show, from the newest on; a reply that shows none,
/// such as a command's answer, keeps its place among the others.
fn weave(past: Vec<TranscriptLine>, shown: Vec<TranscriptLine>) -> Vec<TranscriptLine> {
    let mut exchanges = exchanges(past);
    let mut woven: Vec<Vec<TranscriptLine>> = Vec::new();
    for reply in shown.into_iter().rev() {
        let answered = |exchange: &TranscriptExchange| !reply.done || !exchange.answers.is_empty();
        let at = exchanges.iter().rposition(answered);
        if let Some(at) = at.filter(|at| exchanges.get(*at).is_some_and(|found| found.is_shown_by(&reply))) {
            // Those behind it wait for their answers.
            let waiting = exchanges.split_off(at + 1);
            woven.extend(waiting.into_iter().rev().map(|exchange| exchange.questions));
            woven.push(vec![reply]);
            woven.extend(exchanges.pop().map(|exchange| exchange.questions));
        } else {
            woven.push(vec![reply]);
        }
    }
    let rest = exchanges.into_iter().flat_map(|exchange| [exchange.questions, exchange.answers]);
    rest.chain(woven.into_iter().rev()).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_client::base::{Assistant, Finish, Human, Message, Update};
    use std::sync::Arc;

    fn bot(id: &str, text: &str, done: bool) -> TranscriptLine {
        TranscriptLine::by_agent(id.into(), text, done)
    }

    #[test]
    fn a_line_with_a_known_id_replaces_and_readers_hear_of_it() {
        let room = LocalRoom::default();
        room.put(TranscriptLine::by_person("1".into(), "hi"));
        let mut reading = room.follow();
        room.put(bot("2", "Hel", false));
        room.put(bot("2", "Hello", true));
        assert_eq!(reading.lines, [TranscriptLine::by_person("1".into(), "hi")]);
        assert_eq!(reading.changes.try_recv().unwrap().text, "Hel");
        assert_eq!(reading.changes.try_recv().unwrap().text, "Hello");
        assert_eq!(
            room.follow().lines,
            [TranscriptLine::by_person("1".into(), "hi"), bot("2", "Hello", true)]
        );
    }

    fn asked(text: &str) -> Message {
        Message::Human(Human::new(format!("in-{text}"), text))
    }

    fn answered(text: &str) -> Message {
        Message::Assistant(Assistant {
            id: format!("a-{text}").into(),
            text: text.into(),
            reasoning: None,
            provider_parts: None,
            calls: vec![],
            finish: Finish::Complete,
            model: None,
            usage: None,
            failure: None,
        })
    }

    #[test]
    fn the_past_comes_first_and_nothing_twice() {
        let you = |text: &str| TranscriptLine::by_person(format!("room-{text}"), text);
        let check = |past: &[Message], here: &[TranscriptLine], expect: &[&str]| {
            let state = ThreadState::fold(past.iter().map(|m| Update::Message(Arc::new(m.clone()))));
            let room = LocalRoom::default();
            here.iter().for_each(|line| room.put(line.clone()));
            room.remember(&state, None);
            let texts: Vec<String> = room.follow().lines.into_iter().map(|line| line.text).collect();
            assert_eq!(texts, expect, "{here:?}");
        };
        let past = [asked("q"), answered("a"), asked("q2"), answered("a2")];
        check(&past, &[], &["q", "a", "q2", "a2"]);
        // An answer that a restart cut continues, or is delivered again.
        check(&past, &[bot("turn", "a", false)], &["q", "a", "q2", "a"]);
        check(&past, &[bot("turn", "a2", true)], &["q", "a", "q2", "a2"]);
        // A restart cut one answer, and another message waited.
        check(&past, &[bot("t1", "a", true), bot("t2", "a2", true)], &["q", "a", "q2", "a2"]);
        check(&past[..3], &[bot("t1", "a", true), bot("t2", "", false)], &["q", "a", "q2", ""]);
        check(&past[..3], &[bot("t1", "a", true)], &["q", "a", "q2"]);
        check(
            &past,
            &[bot("t1", "a", true), bot("x", "y", true), bot("t2", "a2", true)],
            &["q", "a", "y", "q2", "a2"],
        );
        // A message was sent before the room was followed.
        check(&past, &[you("q2"), bot("turn", "a2", true)], &["q", "a", "q2", "a2"]);
        check(&past, &[bot("old", "a", true), you("q2"), bot("turn", "a2", true)], &["q", "a", "q2", "a2"]);
        check(&past, &[you("q3")], &["q", "a", "q2", "a2", "q3"]);
        let goal = [asked("q"), answered("a"), asked("go on"), answered("a2")];
        check(&goal, &[you("/goal  go on"), bot("turn", "a2", true)], &["q", "a", "/goal  go on", "a2"]);
        // Answers of commands are not in the thread.
        check(&past, &[you("/x"), bot("x", "y", true)], &["q", "a", "q2", "a2", "/x", "y"]);
        check(&past, &[bot("x", "y", true)], &["q", "a", "q2", "a2", "y"]);
    }

    #[test]
    fn a_room_is_bounded() {
        let room = LocalRoom::default();
        for n in 0..LINES + 5 {
            room.put(bot(&n.to_string(), "", true));
        }
        let lines = room.follow().lines;
        assert_eq!((lines.len(), lines[0].id.as_str()), (LINES, "5"));
    }
}
