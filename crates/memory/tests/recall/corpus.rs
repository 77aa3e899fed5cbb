//! Conversations of two people over months, generated from a seed: their messages, the facts that an extractor would
//! store, and questions with known evidence. They follow LoCoMo's design without its text.
//!
//! The questions do not repeat their evidence: they use other verbs, and a third of them another word for the thing.
//! Many messages only resemble evidence: the other person's events of the same kind, other events of the same
//! person, and small talk about the same things. Not every event becomes a fact, and some facts lack the answer.

use fastrand::Rng;

/// A kind of event, with its statements and questions. `{a}` is the speaker, `{b}` the listener, `{x}` the thing
/// and `{y}` the detail.
pub(crate) struct EventKind {
    pub(crate) turns: &'static [&'static str],
    pub(crate) facts: &'static [&'static str],
    /// Questions about one event, whose answer is `{y}`.
    pub(crate) asks: &'static [&'static str],
    /// A question about its time.
    pub(crate) when: &'static str,
    /// A question about all events of this kind of one person.
    pub(crate) all: &'static str,
    /// The name of the event in a question about two events.
    pub(crate) clause: &'static str,
    /// Small talk.
    pub(crate) noise: &'static [&'static str],
    /// Things, and another word for each.
    pub(crate) xs: &'static [(&'static str, &'static str)],
    pub(crate) ys: &'static [&'static str],
}

pub(crate) struct Language {
    pub(crate) names: &'static [(&'static str, &'static str)],
    pub(crate) kinds: &'static [EventKind],
    /// The first-person pronouns.
    pub(crate) me: &'static str,
    pub(crate) mine: &'static str,
    /// A question about two events.
    pub(crate) before: &'static str,
    pub(crate) chat: &'static [&'static str],
    /// Questions unrelated to any person.
    pub(crate) unrelated: &'static [&'static str],
    /// Unrelated questions in everyday words, many of which occur in the conversations.
    pub(crate) everyday: &'static [&'static str],
}

/// A message.
pub(crate) struct Turn {
    pub(crate) id: String,
    pub(crate) thread: String,
    pub(crate) author: &'static str,
    pub(crate) at: i64,
    pub(crate) text: String,
}

/// An extracted fact.
pub(crate) struct Fact {
    pub(crate) id: String,
    pub(crate) author: &'static str,
    pub(crate) at: i64,
    pub(crate) confidence: f64,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    Single,
    Multi,
    Time,
}

/// A question with its pieces of evidence, each as the ids of the turn and the facts that contain it.
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) hop: Hop,
    pub(crate) evidence: Vec<Vec<String>>,
}

#[derive(Default)]
pub(crate) struct Conversation {
    pub(crate) turns: Vec<Turn>,
    pub(crate) facts: Vec<Fact>,
    pub(crate) questions: Vec<Question>,
}

struct Happening {
    kind: usize,
    who: usize,
    x: usize,
    /// Ids of the entries with all details, and of those that only mention the event.
    full: Vec<String>,
    bare: Vec<String>,
}

const DAY: i64 = 24 * 60 * 60 * 1000;
const START: i64 = 1_767_225_600_000;
const SESSIONS: usize = 34;
const TURNS_IN_SESSION: usize = 24;

/// Generates the conversation with a number.
pub(crate) fn conversation(language: &Language, number: usize, seed: u64) -> Conversation {
    let rng = Rng::with_seed(seed ^ (number as u64) << 8);
    let pair = language.names[number % language.names.len()];
    let mut generator = Generator {
        language,
        rng,
        names: [pair.0, pair.1],
        result: Conversation::default(),
        events: Vec::new(),
    };
    for session in 0..SESSIONS {
        generator.session(number, session);
    }
    generator.ask();
    generator.result
}

struct Generator<'l> {
    language: &'l Language,
    rng: Rng,
    names: [&'static str; 2],
    result: Conversation,
    events: Vec<Happening>,
}

fn fill(text: &str, parts: [&str; 4]) -> String {
    ["{a}", "{b}", "{x}", "{y}"]
        .iter()
        .zip(parts)
        .fold(text.to_owned(), |text, (mark, part)| text.replace(mark, part))
}

impl Generator<'_> {
    fn pick(&mut self, list: &[&'static str]) -> &'static str {
        list[self.rng.usize(..list.len())]
    }

    fn session(&mut self, number: usize, session: usize) {
        let thread = format!("thread-{number}-{session}");
        let begun = START + session as i64 * 8 * DAY + self.rng.i64(0..5 * DAY);
        for place in 0..TURNS_IN_SESSION {
            let (who, at) = (place % 2, begun + place as i64 * 60_000);
            match self.rng.u32(0..100) {
                0..16 => self.event(who, at, &thread),
                16..42 => self.small_talk(who, at, &thread),
                _ => {
                    let text = self.pick(self.language.chat);
                    let text = fill(text, [self.names[who], self.names[1 - who], "", ""]);
                    self.add_turn(who, at, &thread, text);
                }
            }
        }
    }

    fn add_turn(&mut self, who: usize, at: i64, thread: &str, text: String) -> String {
        let id = format!("m{}", self.result.turns.len());
        let turn = Turn { id: id.clone(), thread: thread.to_owned(), author: self.names[who], at, text };
        self.result.turns.push(turn);
        id
    }

    fn add_fact(&mut self, who: usize, at: i64, text: String) -> String {
        let id = format!("fact_{:08x}", self.result.facts.len());
        let confidence = f64::from(self.rng.u32(50..100)) / 100.0;
        self.result.facts.push(Fact { id: id.clone(), author: self.names[who], at, confidence, text });
        id
    }

    /// Adds an event, at most once for each thing and person.
    fn event(&mut self, who: usize, at: i64, thread: &str) {
        let kind = self.rng.usize(..self.language.kinds.len());
        let event_kind = &self.language.kinds[kind];
        let (x, y) = (self.rng.usize(..event_kind.xs.len()), self.rng.usize(..event_kind.ys.len()));
        if self.events.iter().any(|event| (event.kind, event.who, event.x) == (kind, who, x)) {
            return self.small_talk(who, at, thread);
        }
        let parts = [self.names[who], self.names[1 - who], event_kind.xs[x].0, event_kind.ys[y]];
        let text = fill(self.pick(event_kind.turns), parts);
        let turn = self.add_turn(who, at, thread, text);
        let (mut full, mut bare) = (vec![turn.clone()], vec![turn]);
        match self.rng.u32(0..100) {
            0..70 => {
                let text = fill(self.pick(event_kind.facts), parts);
                let fact = self.add_fact(who, at, text);
                full.push(fact.clone());
                bare.push(fact);
            }
            // The fact lacks the detail.
            70..85 => {
                let text = format!("{}: {}", self.names[who], fill(event_kind.clause, parts));
                let fact = self.add_fact(who, at, text);
                bare.push(fact);
            }
            _ => {}
        }
        self.events.push(Happening { kind, who, x, full, bare });
    }

    fn small_talk(&mut self, who: usize, at: i64, thread: &str) {
        let kind = self.rng.usize(..self.language.kinds.len());
        let event_kind = &self.language.kinds[kind];
        let x = event_kind.xs[self.rng.usize(..event_kind.xs.len())].0;
        let text = fill(self.pick(event_kind.noise), [self.names[who], self.names[1 - who], x, ""]);
        if self.rng.u32(0..100) < 65 {
            let text = format!("{}: {text}", self.names[who]);
            self.add_fact(who, at, text);
        }
        self.add_turn(who, at, thread, text);
    }

    fn ask(&mut self) {
        for at in 0..self.events.len() {
            self.ask_about(at);
        }
        for kind in 0..self.language.kinds.len() {
            for who in 0..2 {
                self.ask_for_all(kind, who);
            }
        }
        for _ in 0..self.events.len() / 4 {
            self.ask_about_two();
        }
    }

    /// Returns the word for the thing; in a third of the questions, the other word.
    fn thing(&mut self, event: usize) -> &'static str {
        let Happening { kind, x, .. } = self.events[event];
        let (own, other) = self.language.kinds[kind].xs[x];
        if self.rng.u32(0..3) == 0 { other } else { own }
    }

    fn ask_about(&mut self, at: usize) {
        let (kind, who) = (self.events[at].kind, self.events[at].who);
        let event_kind = &self.language.kinds[kind];
        let parts = [self.names[who], self.names[1 - who], self.thing(at), ""];
        if self.rng.u32(0..100) < 70 {
            let text = fill(self.pick(event_kind.asks), parts);
            self.question(who, text, Hop::Single, vec![self.events[at].full.clone()]);
        }
        if self.rng.u32(0..100) < 40 {
            self.question(who, fill(event_kind.when, parts), Hop::Time, vec![self.events[at].bare.clone()]);
        }
    }

    fn ask_for_all(&mut self, kind: usize, who: usize) {
        let events = self.events.iter().filter(|event| (event.kind, event.who) == (kind, who));
        let evidence: Vec<_> = events.map(|event| event.bare.clone()).collect();
        if (2..=4).contains(&evidence.len()) {
            let text = fill(self.language.kinds[kind].all, [self.names[who], self.names[1 - who], "", ""]);
            self.question(who, text, Hop::Multi, evidence);
        }
    }

    fn ask_about_two(&mut self) {
        let (first, second) = (self.rng.usize(..self.events.len()), self.rng.usize(..self.events.len()));
        let (a, b) = (&self.events[first], &self.events[second]);
        if a.who != b.who || a.kind == b.kind {
            return;
        }
        let (who, evidence) = (a.who, vec![a.bare.clone(), b.bare.clone()]);
        let clauses = [a.kind, b.kind].map(|kind| self.language.kinds[kind].clause);
        let things = [self.thing(first), self.thing(second)];
        let [x, y] = [0, 1].map(|n| clauses[n].replace("{x}", things[n]));
        self.question(who, fill(self.language.before, [self.names[who], "", &x, &y]), Hop::Multi, evidence);
    }

    /// A quarter of the questions is asked in the first person, without the name.
    fn question(&mut self, who: usize, mut text: String, hop: Hop, evidence: Vec<Vec<String>>) {
        if self.rng.u32(0..4) == 0 {
            let name = self.names[who];
            text = text.replace(&format!("{name}'s"), self.language.mine).replace(name, self.language.me);
        }
        self.result.questions.push(Question { text, hop, evidence });
    }
}
