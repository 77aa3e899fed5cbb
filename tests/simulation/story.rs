//! The users of a simulation and their messages by the seed, and the script of the model.

use crate::world::with;
use pudu_sim::{
    Model, Telegram,
    model::{Answer, Ask, Reply},
    telegram::{ChatId, MessageId, UserId},
};
use serde_json::json;
use std::{collections::VecDeque, time::Duration};
use tokio::time::sleep;

/// The users and their plans.
pub struct Story {
    pub talks: Vec<Talk>,
    plan: VecDeque<(Duration, Deed)>,
    /// Time at which the faults end.
    evening: Duration,
}

/// A user in a private chat.
pub struct Talk {
    pub chat: ChatId,
    pub person: UserId,
    /// Number of scheduled tasks whose answers this chat gets.
    pub scheduled: usize,
    pub said: Vec<Said>,
}

/// A message of a user.
pub struct Said {
    pub id: MessageId,
    pub text: String,
}

/// An action of a user, or of the platform.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// A message that the model answers, with this first word.
    Say(usize, &'static str),
    /// A slash command.
    Command(usize, &'static str),
    /// The platform repeats the last message of a chat.
    Redeliver(usize),
}

/// Time within which users write, in milliseconds.
const DAY: u64 = 40_000;
/// Time that passes after the last deed before the faults end, in milliseconds.
const EVENING: u64 = 20_000;

impl Story {
    /// Plans a story by the seed of this thread's simulation.
    pub fn plan() -> Self {
        let telegram = with(|world| world.telegram.clone());
        let talk = |n: usize| {
            let person = telegram.add_person(&format!("Person {n}"), None);
            Talk { chat: telegram.private(person), person, scheduled: 0, said: Vec::new() }
        };
        let random = &mut with(|world| world.random.fork());
        let talks: Vec<Talk> = (0..random.usize(1..5)).map(talk).collect();
        let deeds = |whose| -> Vec<_> {
            let count = random.u32(1..7);
            (0..count).map(|_| (Duration::from_millis(random.u64(0..DAY)), deed(whose, random))).collect()
        };
        let mut plan: Vec<_> = (0..talks.len()).flat_map(deeds).collect();
        plan.sort_by_key(|(at, _)| *at);
        let evening = Duration::from_millis(DAY + random.u64(0..EVENING));
        Self { talks, plan: plan.into(), evening }
    }

    /// Lives through the rest of the story.
    pub async fn go_on(&mut self) {
        while let Some((at, deed)) = self.plan.front().copied() {
            sleep(at.saturating_sub(with(|world| world.elapsed()))).await;
            self.plan.pop_front();
            self.act(deed);
        }
        sleep(self.evening.saturating_sub(with(|world| world.elapsed()))).await;
    }

    fn act(&mut self, deed: Deed) {
        with(|world| world.note(format!("{deed:?}")));
        let telegram = with(|world| world.telegram.clone());
        match deed {
            Deed::Say(whose, word) => {
                let talk = &mut self.talks[whose];
                let name = format!("t{whose}-{}", talk.said.len());
                talk.say(&telegram, format!("{word} {name}"));
            }
            Deed::Command(whose, command) => self.talks[whose].say(&telegram, command.to_owned()),
            Deed::Redeliver(whose) => {
                let talk = &self.talks[whose];
                // The platform keeps the order of updates that it has not delivered yet.
                let is_late = telegram.look(|view| view.waiting() > 0);
                let last = talk.said.last().filter(|_| !is_late);
                let last = last.and_then(|said| telegram.update_of(talk.chat, said.id));
                if last.is_some_and(|update| telegram.redeliver(update)) {
                    with(|world| world.faults.count("redelivery"));
                }
            }
        }
    }
}

impl Talk {
    fn say(&mut self, telegram: &Telegram, text: String) {
        let id = telegram.say(self.chat, self.person, &text).unwrap();
        self.said.push(Said { id, text });
    }
}

fn deed(whose: usize, random: &mut fastrand::Rng) -> Deed {
    match random.u32(0..100) {
        0..55 => Deed::Say(whose, "say"),
        55..75 => Deed::Say(whose, "note"),
        75..80 => Deed::Command(whose, "/new"),
        80..86 => Deed::Command(whose, "/stop"),
        86..92 => Deed::Command(whose, "/mode queue"),
        _ => Deed::Redeliver(whose),
    }
}

/// Makes the model answer.
pub fn script(model: &Model) {
    model.otherwise(|ask| answer(ask).into());
}

/// The model repeats the names of the messages that it has not answered.
fn answer(ask: &Ask) -> Answer {
    let mut open = Vec::new();
    for message in ask.messages() {
        match message["role"].as_str() {
            Some("user") => open.extend(names(message["content"].as_str().unwrap_or_default())),
            Some("assistant") if message["tool_calls"].is_null() => open.clear(),
            _ => {}
        }
    }
    let text = ask.last_user();
    if text.starts_with("note") && ask.last_role() == "user" {
        let path = "/mnt/user-data/outputs/notes.txt";
        let note = json!({"path": path, "content": format!("{text}\n"), "append": true});
        return Reply::tool("write_file", &note);
    }
    let words = format!("re {} and some more words to stream", open.join(" "));
    Reply::text(&words).words_per_chunk(1).every(Duration::from_millis(30))
}

/// Returns the names of messages in a text.
pub fn names(text: &str) -> Vec<String> {
    let is_name = |word: &&str| {
        let rest = word.strip_prefix('t').and_then(|rest| rest.split_once('-'));
        rest.is_some_and(|(chat, n)| chat.parse::<u32>().is_ok() && n.parse::<u32>().is_ok())
    };
    text.split_whitespace().filter(is_name).map(str::to_owned).collect()
}

/// Prints the chats.
pub fn transcript(telegram: &Telegram) -> String {
    telegram.look(|view| view.to_string())
}
