//! Messages of users in the crash test, answers of the model, and the check of chats.

use crate::{house::House, scene::is_final};
use pudu_sim::{
    model::{Ask, Reply},
    platform::{Shown, Words},
};
use serde_json::json;
use std::time::{Duration, Instant};

/// Timeout to answer everything, on a busy machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(90);
/// A tool that needs approval.
pub const ASKED: &str = "glob";

/// The messages of one user and their expected answers.
pub struct Talk {
    pub chat: String,
    pub person: String,
    pub name: String,
    pub group: bool,
    pub said: Vec<Said>,
    /// Number of edits of answered messages.
    pub edits: usize,
}

/// One message and its answer.
pub struct Said {
    pub message: String,
    pub answer: Answer,
}

/// The expected answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// One message with this text.
    Words(String),
    /// Several messages with this text together.
    Pages(String),
    /// One message followed by this file.
    File(String, String),
    /// One message with this text and its approval, unless a kill interrupted the call.
    Approved(String),
}

/// Number of allowed duplicates, on platforms without a better guarantee.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Maximum copies of a message.
    pub copies: usize,
    /// Maximum copies of a file.
    pub files: usize,
}

/// Extra content besides the answers, within the bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extra {
    /// Number of duplicate messages.
    pub doubled: usize,
    /// Number of duplicate files.
    pub files: usize,
    /// Number of progress signs without an answer.
    pub signs: usize,
}

impl Talk {
    /// Parses the content of the chat as the answers to all messages, in order.
    pub fn read(&self, shown: &[Shown], bound: Bound) -> Result<Extra, String> {
        let mut extra = Extra::default();
        if let Some(stale) = shown.iter().find(|one| !is_final(one)) {
            return Err(format!("stale: {stale:?}"));
        }
        let words = shown.iter().map(|one| one.text.trim()).filter(|text| !text.is_empty());
        let (notices, mut left): (Vec<&str>, Vec<&str>) = words.partition(|text| text.starts_with('✏'));
        if notices.len() > self.edits * bound.copies {
            return Err(format!("{} notices of {} late edits", notices.len(), self.edits));
        }
        if bound.copies > 1 {
            let all = left.len();
            left.retain(|text| !text.starts_with('⏳'));
            extra.signs = all - left.len();
        }
        let mut left = left.into_iter().peekable();
        for said in &self.said {
            extra.doubled += said.answer.take(&mut left, bound.copies)?;
        }
        if let Some(more) = left.next() {
            return Err(format!("too much: {more:?}"));
        }
        for said in &self.said {
            let Answer::File(_, name) = &said.answer else { continue };
            let times = shown.iter().flat_map(|one| &one.files).filter(|(own, _)| own == name).count();
            let told = shown.iter().any(|one| one.text.contains(&format!("📎 {name}")));
            if times > bound.files || (times == 0 && !told) {
                return Err(format!("{name} is there {times} times"));
            }
            extra.files += times.saturating_sub(1);
        }
        Ok(extra)
    }

    /// Sends a new message.
    pub fn say(&mut self, house: &House, random: &mut fastrand::Rng, bound: Bound) {
        let (words, answer) = self.next(random, bound, limit(house.platform.name()));
        let (chat, person) = (self.chat.clone(), self.person.clone());
        let message = house.platform.write(&Words { chat, person, to_bot: true, ..words });
        self.said.push(Said { message, answer });
    }

    fn next(&self, random: &mut fastrand::Rng, bound: Bound, limit: usize) -> (Words, Answer) {
        let n = self.said.len();
        let whose = if self.group { format!("[{}] ", self.name) } else { String::new() };
        let words = |text: String| Words { text, ..Words::default() };
        let talk = |kind: &str| {
            let text = format!("{kind} {n} in chat {} and some more words", self.chat);
            (words(text.clone()), format!("echo: {whose}{text}"))
        };
        let echo = |kind: &str| {
            let (words, answer) = talk(kind);
            (words, Answer::Words(answer))
        };
        match random.u32(0..20) {
            0..=2 if n > 0 => {
                let (text, answer) = COMMANDS[random.usize(..COMMANDS.len())];
                let last = self.said.last().map(|said| &said.answer);
                // If messages may be duplicated, equal answers to two commands could not be distinguished.
                if bound.copies > 1 && last == Some(&Answer::Words(answer.to_owned())) {
                    return echo("say");
                }
                (words(text.to_owned()), Answer::Words(answer.to_owned()))
            }
            3..=5 => echo("note"),
            6..=7 => {
                let size = limit * 5 / 2 / PAGE.len();
                (words(format!("pages {n} of {size}")), Answer::Pages(pages(n, size)))
            }
            8..=9 if !self.group => {
                let files = vec![(format!("in-{n}.txt"), format!("{n}").into())];
                (Words { files, ..Words::default() }, Answer::Words(format!("got in-{n}.txt")))
            }
            10..=11 if !self.group => (
                words(format!("send {n}")),
                Answer::File(format!("sent out-{n}.txt"), format!("out-{n}.txt")),
            ),
            // Without buttons, a number decides.
            12..=13 if !self.group && bound.copies == 1 => {
                let (words, answer) = talk("approve");
                (words, Answer::Approved(answer))
            }
            _ => echo("say"),
        }
    }

    /// Decides a pending question, if any.
    pub fn decide(&self, house: &House) {
        for one in house.platform.shown(&self.chat) {
            if one.buttons.iter().any(|button| button == "Approve") {
                house.platform.press(&self.chat, &self.person, &one.id, "Approve");
            }
        }
    }
}

const COMMANDS: [(&str, &str); 3] = [
    ("/models sim", "This conversation now uses sim."),
    ("/mode queue", "Mode queue: a new message waits until I am done."),
    ("/agent lead", "lead_agent answers here from now on."),
];

impl Answer {
    /// Removes this answer from the front of the rest; returns the number of duplicate messages.
    fn take<'a>(
        &self,
        left: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
        copies: usize,
    ) -> Result<usize, String> {
        let (mut whole, mut doubled) = (String::new(), 0);
        loop {
            let Some(text) = left.next() else { return Err(format!("lost, or not there yet: {self:?}")) };
            for _ in 1..copies {
                doubled += usize::from(left.next_if_eq(&text).is_some());
            }
            whole = format!("{whole} {text}");
            match self.is_read(whole.trim()) {
                Some(true) => return Ok(doubled),
                Some(false) => {}
                None => return Err(format!("{:?} in place of {self:?}", whole.trim())),
            }
        }
    }

    /// Returns whether a text is this answer (`true`) or its beginning (`false`); `None` if neither.
    fn is_read(&self, words: &str) -> Option<bool> {
        match self {
            Self::Words(answer) => (words == answer).then_some(true),
            // It may mention that the file may not have been sent.
            Self::File(answer, name) => {
                let told = format!("{answer}\n\n📎 {name}");
                (words == answer || words.starts_with(&told)).then_some(true)
            }
            // A call during which the daemon died too often is not made, whatever the decision was.
            Self::Approved(answer) => {
                let approved = words.contains(answer) && words.contains(&format!("approved {ASKED}"));
                (approved || words == answer).then_some(true)
            }
            Self::Pages(answer) => {
                let mut all = answer.split_whitespace();
                words.split_whitespace().all(|word| all.next() == Some(word)).then(|| all.next().is_none())
            }
        }
    }
}

/// One word of an answer with several messages: all have the same length.
const PAGE: &str = "p00-00000 ";

fn pages(n: usize, size: usize) -> String {
    let words: Vec<String> = (0..size).map(|word| format!("p{:02}-{word:05}", n % 100)).collect();
    words.join(" ")
}

/// Approximate maximum length of a message; on Feishu, where it is large, two are enough.
fn limit(platform: &str) -> usize {
    match platform {
        "feishu" => 12_000,
        "discord" => 1_900,
        "dingtalk" => 2_800,
        _ => 4_000,
    }
}

/// A user: most in private, two in groups.
pub fn person(house: &House, n: usize) -> Talk {
    let name = format!("Person {n}");
    let person = house.platform.person(&name);
    let group = n < 2;
    let chat = match group {
        true => house.platform.group(&name, &[&person]),
        false => house.platform.private(&person),
    };
    Talk { chat, person, name, group, said: Vec::new(), edits: 0 }
}

/// Waits until everything is answered; questions are decided meanwhile.
pub async fn answered(house: &House, talks: &[Talk], what: &str, bound: Bound) {
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    for talk in talks {
        while let Err(why) = talk.read(&house.platform.shown(&talk.chat), bound) {
            let late = Instant::now() >= deadline;
            assert!(!late, "{what}, chat {}: {why}\n{:#?}", talk.chat, house.platform.shown(&talk.chat));
            talk.decide(house);
            // A press while the daemon is down is lost: it is repeated.
            let soon = Duration::from_secs(2);
            let read = house
                .platform
                .wait(&talk.chat, soon, |platform| talk.read(&platform.shown(&talk.chat), bound).ok());
            read.await.ok();
        }
    }
}

/// Returns the rules for the mix. The scripted model repeats an interrupted call as often as needed: it must not be
/// told that this is a loop.
pub fn mixed() -> String {
    format!(
        "approvals: {{tools: [{ASKED}]}}\nloop_detection: {{enabled: false}}\nbudgets: {{everybody: {{tokens_per_day: 1000000000}}}}\n"
    )
}

/// The model echoes each message; some words make it do something first.
pub fn script(house: &House) {
    house.model.otherwise(|ask| answer(ask).into());
}

fn answer(ask: &Ask) -> pudu_sim::model::Answer {
    let text = ask.last_user();
    let tools = ask.messages().iter().rev().take_while(|message| message["role"] != "user");
    let tools: Vec<String> = tools
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].to_string())
        .collect();
    // An interrupted call is repeated: it is harmless twice.
    let cut = ["a restart interrupted this call", "the process exited during each attempt at this call"];
    let done = tools.iter().filter(|result| !cut.iter().any(|cut| result.contains(cut))).count();
    let number = |word: &str| {
        let (_, rest) = text.split_once(word)?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<usize>().ok()
    };
    if let Some(n) = number("in-") {
        return Reply::text(&format!("got in-{n}.txt"));
    }
    if let Some((n, size)) = number("pages ").zip(number(" of ")) {
        let text = pages(n, size);
        return Reply::text(&text).words_per_chunk(size / 25 + 1).every(Duration::from_millis(20));
    }
    if let Some(n) = number("send ") {
        // A call that two kills interrupted is not made a third time: it is made differently.
        let slashes = "/".repeat(1 + (tools.len() - done).saturating_sub(1));
        let path = format!("/mnt/user-data/outputs{slashes}out-{n}.txt");
        return match done {
            0 => Reply::tool("write_file", &json!({"path": path, "content": format!("{n}")})),
            1 => Reply::tool("present_files", &json!({"filepaths": [path]})),
            _ => Reply::text(&format!("sent out-{n}.txt")),
        };
    }
    if text.contains("note ") && tools.is_empty() {
        let path = "/mnt/user-data/outputs/notes.txt";
        return Reply::tool(
            "write_file",
            &json!({"path": path, "content": format!("{text}\n"), "append": true}),
        );
    }
    if text.contains("approve ") && tools.is_empty() {
        return Reply::tool(ASKED, &json!({"pattern": "*", "path": "/mnt/user-data/outputs"}));
    }
    Reply::text(&format!("echo: {text}")).words_per_chunk(1).every(Duration::from_millis(15))
}
