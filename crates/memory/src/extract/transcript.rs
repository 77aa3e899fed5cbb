//! The part of a conversation that a model may read: people's own words, and the answers to them as context.
//!
//! Deliberately absent: prompts, tools' output, reminders, injected memory, and other people's words.

use super::{
    own::{CUT, evidence, own_words},
    signals::{Signals, signals},
    statements::{is_retraction, statements},
};
use crate::{fact::FactOrigin, text::escape};
use pudu_store::recall_words;
use std::collections::HashSet;

/// Maximum length of a turn, in characters, as in DeerFlow. A longer turn keeps half of the limit at each end.
const MAX_TURN_CHARS: usize = 1_000;
const TRUNCATED: &str = "...[truncated]...";
/// Number of latest turns that are searched for signals, as in DeerFlow.
const SIGNAL_TURNS: usize = 6;
/// Whole messages that contain nothing to remember, as in DeerFlow.
const ACKNOWLEDGEMENTS: [&str; 19] = [
    "嗯",
    "ok",
    "okay",
    "好的",
    "谢谢",
    "感谢",
    "多谢",
    "对",
    "是的",
    "收到",
    "明白",
    "了解",
    "知道了",
    "got it",
    "thanks",
    "thank you",
    "cheers",
    "👍",
    "好",
];

/// A person in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The platform's id.
    pub id: String,
    /// Their name.
    pub name: Option<String>,
    /// Whether the memory belongs to them. In a room's memory this is true of every person.
    pub is_self: bool,
}

/// The speaker of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaidBy {
    /// A person.
    Person(Person),
    /// The agent, with a finished answer and not tool calls.
    Assistant,
}

/// One turn of a conversation. Callers pass no prompts and no tool output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptTurn {
    /// The speaker.
    pub by: SaidBy,
    /// The text.
    pub text: String,
    /// Its message's id.
    pub message: Option<String>,
    /// Whether it is not displayed in the conversation: reminders, injected context.
    pub hidden: bool,
    /// Whether it is a person's answer to the agent's question, which counts even if it is hidden.
    pub answers_question: bool,
    /// Whether it is another author's text, forwarded by the person.
    pub forwarded: bool,
}

/// A person's words that can support a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnLine {
    /// The sentences in which they state something.
    pub(super) statements: Vec<String>,
    /// The statements as one text, normalized for comparison.
    pub(super) evidence: String,
    /// All of the person's own words, normalized for comparison.
    pub(super) whole: String,
    /// The recall words of the statements.
    pub(super) stated: HashSet<String>,
    /// The recall words of the whole message, including questions and requests.
    pub(super) spoken: HashSet<String>,
    pub(super) origin: FactOrigin,
}

impl OwnLine {
    /// Creates a line from a message. The model reads only `parts`.
    fn new(text: &str, parts: &[String], origin: FactOrigin) -> Self {
        let mut statements = statements(text);
        statements.retain(|said| parts.iter().any(|part| evidence(part).contains(&evidence(said))));
        let whole = statements.join(" ");
        let stated = recall_words(&whole.replace(CUT, " "));
        Self {
            evidence: evidence(&whole),
            whole: evidence(text),
            stated,
            spoken: recall_words(&parts.concat()),
            statements,
            origin,
        }
    }
}

/// The part of a conversation that a model may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    text: String,
    own: Vec<OwnLine>,
    signals: Signals,
}

impl Transcript {
    /// Builds the transcript from turns. Returns `None` if people wrote no words of their own or got no answer, because
    /// there is then nothing to learn.
    #[must_use]
    pub fn from_turns(turns: &[TranscriptTurn]) -> Option<Self> {
        let usable = kept(turns);
        let is_answered = usable.iter().any(|(turn, _)| turn.by == SaidBy::Assistant);
        let people: Vec<&Person> = usable.iter().filter_map(|(turn, _)| person(turn)).collect();
        if people.is_empty() || !is_answered {
            return None;
        }
        let is_room = people.iter().any(|person| person.id != people[0].id);
        let mut transcript = Self { text: String::new(), own: Vec::new(), signals: Signals::new() };
        let first_for_signals = usable.len().saturating_sub(SIGNAL_TURNS);
        for (index, (turn, text)) in usable.iter().enumerate() {
            let parts = shortened(text);
            let shown = escape(&parts.join(TRUNCATED));
            transcript.text.push_str(&format!("{}: {shown}\n\n", label(turn, is_room)));
            let Some(person) = person(turn) else { continue };
            push_line(&mut transcript.own, OwnLine::new(text, &parts, origin(turn, person)), text);
            if index >= first_for_signals {
                transcript.signals.extend(signals(text));
            }
        }
        transcript.text.truncate(transcript.text.trim_end().len());
        Some(transcript)
    }

    /// Returns the text for the model.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the signals of people's latest messages.
    #[must_use]
    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    /// Whether a person states something apart from questions and tasks.
    #[must_use]
    pub fn has_statement(&self) -> bool {
        self.own.iter().flat_map(|line| &line.statements).any(|said| !said.replace(CUT, "").trim().is_empty())
    }

    pub(super) fn own(&self) -> &[OwnLine] {
        &self.own
    }
}

/// Returns people's own lines among turns, whether or not they were answered.
pub(super) fn own_lines(turns: &[TranscriptTurn]) -> Vec<OwnLine> {
    let usable = kept(turns);
    let mut own = Vec::new();
    for (turn, text) in &usable {
        let Some(person) = person(turn) else { continue };
        push_line(&mut own, OwnLine::new(text, &shortened(text), origin(turn, person)), text);
    }
    own
}

/// Adds a line. A retraction empties the same person's previous line.
fn push_line(own: &mut Vec<OwnLine>, line: OwnLine, text: &str) {
    if is_retraction(text) {
        let before = own.iter_mut().rev().find(|before| before.origin.author == line.origin.author);
        if let Some(before) = before {
            before.statements.clear();
            before.evidence.clear();
            before.stated.clear();
        }
    }
    own.push(line);
}

/// Keeps people's own words and the answers to them. A turn without own words is dropped with its answers.
fn kept(turns: &[TranscriptTurn]) -> Vec<(&TranscriptTurn, String)> {
    let mut usable = Vec::new();
    let mut has_statement = false;
    for turn in turns {
        match &turn.by {
            _ if turn.hidden && !(turn.answers_question && turn.by != SaidBy::Assistant) => {}
            SaidBy::Person(person) => {
                let own =
                    if person.is_self && !turn.forwarded { own_words(&turn.text) } else { String::new() };
                has_statement = !own.is_empty() && !is_acknowledgement(&own);
                if has_statement {
                    usable.push((turn, own));
                }
            }
            SaidBy::Assistant if has_statement && !turn.text.trim().is_empty() => {
                usable.push((turn, turn.text.trim().to_owned()));
            }
            SaidBy::Assistant => {}
        }
    }
    usable
}

fn person(turn: &TranscriptTurn) -> Option<&Person> {
    match &turn.by {
        SaidBy::Person(person) => Some(person),
        SaidBy::Assistant => None,
    }
}

fn label(turn: &TranscriptTurn, is_room: bool) -> String {
    match person(turn) {
        None => "Assistant".to_owned(),
        Some(Person { name: Some(name), .. }) if is_room => format!("User ({})", escape(name)),
        Some(_) => "User".to_owned(),
    }
}

fn origin(turn: &TranscriptTurn, person: &Person) -> FactOrigin {
    FactOrigin {
        author: Some(person.id.clone()),
        author_name: person.name.clone(),
        message: turn.message.clone(),
        quote: None,
    }
}

fn is_acknowledgement(text: &str) -> bool {
    let text = text.trim().trim_end_matches(|c: char| c.is_ascii_punctuation() || "。！？~～…，".contains(c));
    ACKNOWLEDGEMENTS.contains(&text.to_lowercase().as_str())
}

/// Returns the whole text, or its two ends if it is too long.
fn shortened(text: &str) -> Vec<String> {
    let length = text.chars().count();
    if length <= MAX_TURN_CHARS {
        return vec![text.to_owned()];
    }
    let half = MAX_TURN_CHARS / 2;
    vec![text.chars().take(half).collect(), text.chars().skip(length - half).collect()]
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn me(text: &str) -> TranscriptTurn {
        by("U1", true, text)
    }

    pub(crate) fn by(id: &str, is_self: bool, text: &str) -> TranscriptTurn {
        let person = Person { id: id.to_owned(), name: Some(format!("Name of {id}")), is_self };
        TranscriptTurn {
            by: SaidBy::Person(person),
            text: text.to_owned(),
            message: Some("m1".to_owned()),
            hidden: false,
            answers_question: false,
            forwarded: false,
        }
    }

    pub(crate) fn bot(text: &str) -> TranscriptTurn {
        TranscriptTurn { by: SaidBy::Assistant, message: None, ..me(text) }
    }

    fn check(turns: &[TranscriptTurn], expect: Option<&str>) {
        assert_eq!(Transcript::from_turns(turns).as_ref().map(Transcript::text), expect, "{turns:?}");
    }

    #[test]
    fn only_own_words_and_answers_to_them_are_read() {
        check(&[], None);
        check(&[me("I like tea")], None);
        check(&[bot("Hello")], None);
        check(
            &[me("I like <tea>"), bot("Fine & good")],
            Some("User: I like &lt;tea&gt;\n\nAssistant: Fine &amp; good"),
        );
        let two = [me("I like tea"), bot("Fine"), me("谢谢！"), bot("You are welcome"), me("Thanks!!")];
        check(&two, Some("User: I like tea\n\nAssistant: Fine"));
        check(
            &[me("<uploaded_files>x</uploaded_files>"), bot("A file that says …"), me("a"), bot("b")],
            Some("User: a\n\nAssistant: b"),
        );
        check(
            &[by("U2", false, "I like tea"), bot("Fine"), me("a"), bot("b")],
            Some("User: a\n\nAssistant: b"),
        );
        let hidden = |answers_question| TranscriptTurn { hidden: true, answers_question, ..me("Use Rust") };
        check(&[hidden(false), bot("Fine")], None);
        check(&[hidden(true), bot("Fine")], Some("User: Use Rust\n\nAssistant: Fine"));
        check(
            &[TranscriptTurn { hidden: true, answers_question: true, ..bot("a") }, me("x"), bot("b")],
            Some("User: x\n\nAssistant: b"),
        );
        check(&[TranscriptTurn { forwarded: true, ..me("I live in Rome") }, bot("Fine")], None);
    }

    #[test]
    fn a_later_message_retracts_the_previous_one() {
        for (later, expect) in
            [("haha just kidding", 0), ("开玩笑的", 0), ("and I like tea", 1), ("act as a guide", 1)]
        {
            let turns = [me("I own a castle"), bot("Wow"), me(later), bot("ok")];
            let transcript = Transcript::from_turns(&turns).unwrap();
            assert_eq!(transcript.own()[0].statements.len(), expect, "{later}");
        }
        let room =
            [by("U1", true, "I own a castle"), by("U2", true, "I like milk"), by("U1", true, "just kidding")];
        let stated: Vec<usize> = own_lines(&room).iter().map(|line| line.statements.len()).collect();
        assert_eq!(stated, [0, 1, 0], "another person's message is in between");
    }

    #[test]
    fn a_room_names_its_people_and_long_turns_keep_their_ends() {
        let room = [by("U1", true, "I like tea"), by("U2", true, "I like milk"), bot("Fine")];
        check(
            &room,
            Some("User (Name of U1): I like tea\n\nUser (Name of U2): I like milk\n\nAssistant: Fine"),
        );
        let long = format!("{}{}{}", "a".repeat(500), "b".repeat(9), "c".repeat(500));
        let transcript = Transcript::from_turns(&[me(&long), bot("x")]).unwrap();
        assert_eq!(
            transcript.text(),
            format!("User: {}{TRUNCATED}{}\n\nAssistant: x", "a".repeat(500), "c".repeat(500))
        );
        assert_eq!(transcript.own()[0].statements.len(), 0, "text that was cut is not evidence");
    }
}
