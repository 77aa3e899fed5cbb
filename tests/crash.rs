//! The daemon is killed at every named write, before and after every kind of send, and at random moments;
//! each time it starts again. In the end every accepted message has exactly one final answer, nothing
//! half-written stays behind, and no finished tool was called twice. The same on every platform.
//!
//! `PUDU_CRASH_KILLS` sets how often (default: each named point once on Telegram, some of them elsewhere),
//! `PUDU_CRASH_SEED` repeats a run.

use crate::{
    house::{House, SOON},
    platforms,
    scenarios::is_final,
};
use pudu_client::store::crash;
use pudu_sim::{
    Fault, Platform, Then, When,
    model::Reply,
    platform::{Shown, Words},
};
use rustix::process::{Signal, kill_process};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

/// So many people talk to the bot.
const CHATS: usize = 10;
/// So many deaths at named points where not each of them has its own.
const SOME: usize = 12;

/// How the daemon dies.
#[derive(Clone, Debug)]
enum Death {
    /// At the nth passing of a named point in its own code.
    Point(String, u32),
    /// Around the nth call of a method, before or after the platform acted on it.
    Send(&'static str, u64, When),
    /// After so long.
    Moment(Duration),
}

/// What one person said and what the bot was to answer.
struct Talk {
    chat: String,
    person: String,
    name: String,
    group: bool,
    said: Vec<Said>,
}

/// One message and the one answer to it.
struct Said {
    message: String,
    answer: String,
}

/// Makes a test for each platform.
macro_rules! crash_tests {
    ($($platform:ident)+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $platform() {
            a_killed_daemon_answers_everything_exactly_once(platforms::$platform().await).await;
        })+
    };
}

crash_tests!(telegram feishu dingtalk slack discord);

async fn a_killed_daemon_answers_everything_exactly_once(platform: Arc<dyn Platform>) {
    let seed = number("PUDU_CRASH_SEED").unwrap_or_else(|| fastrand::u64(..));
    let mut random = fastrand::Rng::with_seed(seed);
    let sends = platform.sends();
    let mut deaths = every_death(sends, &mut random);
    if platform.name() != "telegram" {
        let point = |death: &Death| matches!(death, Death::Point(..));
        random.shuffle(&mut deaths);
        let (points, others): (Vec<_>, Vec<_>) = deaths.into_iter().partition(point);
        deaths = points.into_iter().take(SOME).chain(others).collect();
    }
    let kills = number("PUDU_CRASH_KILLS").map_or(deaths.len(), |kills| usize::try_from(kills).unwrap());
    while deaths.len() < kills {
        deaths.push(some_death(sends, &mut random));
    }
    random.shuffle(&mut deaths);
    deaths.truncate(kills);
    let mut house = House::elsewhere(platform.clone()).await;
    script(&house);
    let mut talks = people(&house);
    let mut count = Count::default();
    if !platform.hears() {
        meet(&mut house, &mut talks, &mut random, seed).await;
    }
    for (round, death) in deaths.into_iter().enumerate() {
        speak(&house, &mut talks, &mut random);
        die(&mut house, &death, &mut count).await;
        redeliver(&house, &talks, &mut random, &mut count);
        if round % 8 == 7 {
            settle(&mut house, &talks, seed).await;
        }
    }
    settle(&mut house, &talks, seed).await;
    let said: usize = talks.iter().map(|talk| talk.said.len()).sum();
    println!(
        "crash test on {}: seed {seed}, {} kills ({} at named points, {} around sends, {} at random moments), \
         {} starts died early, {said} messages, {} redeliveries: 0 lost, 0 double, 0 stale",
        platform.name(),
        count.total(),
        count.points,
        count.sends,
        count.moments,
        count.early,
        count.redeliveries,
    );
    println!("named points at which it did not die: {}", count.missed());
}

/// Everybody talks to the bot once while it lives: where nobody keeps events for it, it has to know the chats
/// in whose history it looks later.
async fn meet(house: &mut House, talks: &mut [Talk], random: &mut fastrand::Rng, seed: u64) {
    house.start();
    let hears = house.platform.wait(&talks[0].chat, SOON, |platform| platform.hears().then_some(()));
    hears.await.unwrap_or_else(|timeout| panic!("{timeout}"));
    speak(house, talks, random);
    for talk in talks.iter() {
        let answered = house
            .platform
            .wait(&talk.chat, SOON, |platform| is_answered(talk, &platform.shown(&talk.chat)).then_some(()));
        answered.await.unwrap_or_else(|timeout| panic!("seed {seed}: {timeout}"));
    }
    house.kill();
}

#[derive(Default)]
struct Count {
    points: u32,
    sends: u32,
    moments: u32,
    early: u32,
    redeliveries: u32,
    reached: BTreeSet<String>,
}

impl Count {
    fn at(&mut self, death: &Death) {
        self.points += 1;
        if let Death::Point(name, _) = death {
            self.reached.insert(name.clone());
        }
    }

    fn missed(&self) -> String {
        let missed = crash::POINTS.iter().filter(|point| !self.reached.contains(**point));
        missed.copied().collect::<Vec<_>>().join(", ")
    }

    fn total(&self) -> u32 {
        self.points + self.sends + self.moments
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Each named point, and each kind of send from both sides, once.
fn every_death(sends: &[&'static str], random: &mut fastrand::Rng) -> Vec<Death> {
    // Nobody pairs or approves anything here; the store's own tests kill at those points.
    let elsewhere =
        |point: &str| ["pairing.", "approvals.", "choice."].iter().any(|kind| point.starts_with(kind));
    let points = crash::POINTS.iter().filter(|point| !elsewhere(point));
    let mut deaths: Vec<Death> = points.map(|point| Death::Point((*point).to_owned(), 1)).collect();
    for method in sends {
        for when in [When::Before, When::After] {
            deaths.push(Death::Send(method, random.u64(1..6), when));
        }
    }
    deaths
}

fn some_death(sends: &[&'static str], random: &mut fastrand::Rng) -> Death {
    match random.u32(0..3) {
        0 => {
            let point = crash::POINTS[random.usize(..crash::POINTS.len())];
            Death::Point(point.to_owned(), random.u32(1..6))
        }
        1 => {
            let when = if random.bool() { When::Before } else { When::After };
            Death::Send(sends[random.usize(..sends.len())], random.u64(1..15), when)
        }
        _ => Death::Moment(Duration::from_millis(random.u64(0..400))),
    }
}

/// The model echoes word by word; what begins with "note" it first writes into a file.
fn script(house: &House) {
    house.model.otherwise(|ask| {
        let text = ask.last_user();
        if text.contains("note ") && ask.last_role() == "user" {
            let path = "/mnt/user-data/outputs/notes.txt";
            return Reply::tool(
                "write_file",
                &json!({"path": path, "content": format!("{text}\n"), "append": true}),
            )
            .into();
        }
        Reply::text(&format!("echo: {text}")).words_per_chunk(1).every(Duration::from_millis(15)).into()
    });
}

/// Most talk in private, two in groups.
fn people(house: &House) -> Vec<Talk> {
    let talk = |n: usize| {
        let name = format!("Person {n}");
        let person = house.platform.person(&name);
        let group = n < 2;
        let chat = match group {
            true => house.platform.group(&name, &[&person]),
            false => house.platform.private(&person),
        };
        Talk { chat, person, name, group, said: Vec::new() }
    };
    (0..CHATS).map(talk).collect()
}

/// Everybody whose last message is answered says something new, gives a command, or changes a message
/// that is answered already, which is to change nothing.
fn speak(house: &House, talks: &mut [Talk], random: &mut fastrand::Rng) {
    for talk in talks {
        let shown = house.platform.shown(&talk.chat);
        if !is_answered(talk, &shown) || shown.len() < talk.said.len() {
            continue;
        }
        if let Some(said) = talk.said.last().filter(|_| random.u32(0..6) == 0) {
            house.platform.edit(&talk.chat, &said.message, "too late");
        }
        let (text, answer) = words(talk, random);
        let (chat, person) = (talk.chat.clone(), talk.person.clone());
        let words = Words { chat, person, text, to_bot: true, ..Words::default() };
        talk.said.push(Said { message: house.platform.write(&words), answer });
    }
}

/// Tells whether the last that somebody said has its final answer.
fn is_answered(talk: &Talk, shown: &[Shown]) -> bool {
    let last = shown.last().filter(|last| is_final(last)).map(|last| last.text.as_str());
    talk.said.last().is_none_or(|said| last == Some(&said.answer))
}

/// Returns what somebody says and what is to be answered.
fn words(talk: &Talk, random: &mut fastrand::Rng) -> (String, String) {
    let number = talk.said.len();
    if number > 0 && random.u32(0..5) == 0 {
        let (text, answer) = match random.u32(0..3) {
            0 => ("/models sim", "This conversation now uses sim."),
            1 => ("/mode queue", "Mode queue: a message waits until I am done."),
            _ => ("/agent lead", "lead_agent answers here from now on."),
        };
        return (text.to_owned(), answer.to_owned());
    }
    let kind = if random.u32(0..4) == 0 { "note" } else { "say" };
    let text = format!("{kind} {number} in chat {} and some more words", talk.chat);
    if talk.group {
        let answer = format!("echo: [{}] {text}", talk.name);
        return (text, answer);
    }
    let answer = format!("echo: {text}");
    (text, answer)
}

/// Starts the daemon and sees to it that it dies in this way.
async fn die(house: &mut House, death: &Death, count: &mut Count) {
    match death {
        Death::Point(name, nth) => {
            house.set("PUDU_CRASH_AT", &format!("{name}#{nth}"));
            if name.starts_with("turn.failed") {
                house
                    .platform
                    .sends()
                    .iter()
                    .for_each(|method| house.platform.fail(method, 1, Fault::Internal));
            }
        }
        Death::Send(..) | Death::Moment(_) => house.set("PUDU_CRASH_AT", ""),
    }
    if !house.try_start() {
        count.early += 1;
        count.at(death);
        return;
    }
    if let Death::Send(method, nth, when) = death {
        let pid = house.pid();
        let kill = Box::new(move |_: &_| {
            kill_process(pid, Signal::KILL).ok();
            Then::Cut
        });
        house.platform.on_call(method, *nth, *when, kill);
    }
    let patience = match death {
        Death::Moment(after) => *after,
        Death::Point(..) | Death::Send(..) => Duration::from_millis(700),
    };
    let died = house.ended(patience).await.is_some();
    house.platform.heal();
    match (died, death) {
        (true, Death::Point(..)) => count.at(death),
        (true, Death::Send(..)) => count.sends += 1,
        _ => count.moments += 1,
    }
    if !died {
        house.kill();
    }
}

/// The platform delivers some updates again, as it does after a connection broke.
fn redeliver(house: &House, talks: &[Talk], random: &mut fastrand::Rng, count: &mut Count) {
    for talk in talks {
        let Some(said) = talk.said.last().filter(|_| random.u32(0..4) == 0) else { continue };
        house.platform.redeliver(&talk.chat, &said.message);
        count.redeliveries += 1;
    }
}

/// Starts the daemon without any death and checks what people see once all is answered.
async fn settle(house: &mut House, talks: &[Talk], seed: u64) {
    house.set("PUDU_CRASH_AT", "");
    house.start();
    for talk in talks {
        // Two answers in a row may read the same: as many as there were questions have to be there.
        let all = |shown: &[Shown]| is_answered(talk, shown) && shown.len() >= talk.said.len();
        let answered =
            house.platform.wait(&talk.chat, SOON, |platform| all(&platform.shown(&talk.chat)).then_some(()));
        if let Err(timeout) = answered.await {
            panic!("seed {seed}: {timeout}");
        }
    }
    // Nothing waits for a restart to be answered.
    let db = house.database().await;
    let deadline = std::time::Instant::now() + SOON;
    while !db.pending().await.unwrap().is_empty() {
        assert!(std::time::Instant::now() < deadline, "seed {seed}: {:?} is stranded", db.pending().await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    db.close().await;
    // What would be said twice would be said now: the daemon drains before it ends.
    assert!(house.stop().await.success(), "seed {seed}");
    for talk in talks {
        let shown = house.platform.shown(&talk.chat);
        assert!(shown.iter().all(is_final), "seed {seed}: {shown:?}");
        let seen: Vec<String> = shown.into_iter().map(|shown| shown.text).collect();
        let expect: Vec<String> = talk.said.iter().map(|said| said.answer.clone()).collect();
        assert_eq!(seen, expect, "seed {seed}, chat {}", talk.chat);
    }
    no_tool_twice(house, seed);
}

fn no_tool_twice(house: &House, seed: u64) {
    let mut lines: BTreeMap<String, u32> = BTreeMap::new();
    let threads = house.path(".pudu/users/default/threads");
    for thread in std::fs::read_dir(threads).into_iter().flatten().flatten() {
        let notes = std::fs::read_to_string(thread.path().join("user-data/outputs/notes.txt"));
        for line in notes.unwrap_or_default().lines() {
            *lines.entry(line.to_owned()).or_default() += 1;
        }
    }
    let twice: HashMap<_, _> = lines.into_iter().filter(|(_, times)| *times > 1).collect();
    assert!(twice.is_empty(), "seed {seed}: tools ran twice: {twice:?}");
}
