//! The daemon is killed at every named write, before and after every kind of send, and at random moments, and restarted
//! each time. At the end every accepted message has exactly one final answer, no partial message remains, and no
//! finished tool was called twice. The same on every platform. The messages are in `crash_mix.rs`; some users are new,
//! and some write while the daemon is down.
//!
//! `PUDU_CRASH_KILLS` sets the number of kills (default: each named point once on Telegram, some elsewhere),
//! `PUDU_CRASH_SEED` repeats a run, `PUDU_CRASH_STRANGERS` is the number of new users.

use crate::{
    crash_mix::{Bound, Extra, Talk, answered, mixed, person, script},
    house::{House, SOON},
    platforms,
};
use pudu_sim::{Fault, Platform, Then, When};
use pudu_store::crash;
use rustix::process::{Signal, kill_process};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

/// Number of users who talk to the bot.
const CHATS: usize = 10;
/// Number of users who come later.
const STRANGERS: usize = 24;
/// Number of messages after which a user leaves, so that a long run costs no more per kill than a short one.
const ENOUGH: usize = 40;
/// Number of kills at named points on platforms where not every point is tested.
const SOME: usize = 12;

/// When the daemon is killed.
#[derive(Clone, Debug)]
enum Death {
    /// At the nth pass of a named point in its code.
    Point(String, u32),
    /// Around the nth call of a method, before or after its effect.
    Send(&'static str, u64, When),
    /// After this time.
    Moment(Duration),
}

/// Generates a test for each platform.
macro_rules! crash_tests {
    ($($platform:ident)+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $platform() {
            let platform = platforms::$platform().await;
            // Feishu has file keys, and Slack shares a file once.
            let files = if ["feishu", "slack"].contains(&platform.name()) { 1 } else { 2 };
            let bound = Bound { copies: 1, files };
            a_killed_daemon_answers_everything_exactly_once(platform, bound).await;
        })+
    };
}

crash_tests!(telegram feishu dingtalk slack discord);

/// Messages without a key that cannot be edited: see `docs/channels/dingtalk.md`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dingtalk_without_cards() {
    let bound = Bound { copies: 4, files: 2 };
    a_killed_daemon_answers_everything_exactly_once(platforms::dingtalk_without_cards().await, bound).await;
}

async fn a_killed_daemon_answers_everything_exactly_once(platform: Arc<dyn Platform>, bound: Bound) {
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
    let strangers = number("PUDU_CRASH_STRANGERS").map_or(STRANGERS, |most| usize::try_from(most).unwrap());
    let mut house = House::elsewhere(platform.clone()).await;
    house.in_its_own_process();
    house.configure("", &mixed());
    script(&house);
    let (mut talks, mut gone) = (people(&house), Vec::new());
    let mut count = Count::default();
    if !platform.hears() {
        meet(&mut house, &mut talks, &mut random, (seed, bound)).await;
    }
    for (round, death) in deaths.into_iter().enumerate() {
        if round % 3 == 1 && talks.len() < CHATS + strangers {
            let stranger = person(&house, talks.len() + gone.len());
            talks.push(stranger);
        }
        speak(&house, &mut talks, &mut random, bound);
        die(&mut house, &mut talks, &death, &mut count, (&mut random, bound)).await;
        redeliver(&house, &talks, &mut random, &mut count);
        if round % 8 == 7 {
            settle(&mut house, &talks, seed, bound).await;
            gone.extend(talks.extract_if(.., |talk| !talk.group && talk.said.len() >= ENOUGH));
        }
    }
    talks.append(&mut gone);
    let extra = settle(&mut house, &talks, seed, bound).await;
    let said: usize = talks.iter().map(|talk| talk.said.len()).sum();
    println!(
        "crash test on {}: seed {seed}, {} kills ({} at named points, {} around sends, {} at random moments), \
         {} starts died early, {said} messages, {} redeliveries: 0 lost, 0 stale, {} double, {} files double, {} signs left",
        platform.name(),
        count.total(),
        count.points,
        count.sends,
        count.moments,
        count.early,
        count.redeliveries,
        extra.doubled,
        extra.files,
        extra.signs,
    );
    println!("named points at which it did not die: {}", count.missed());
}

/// Each user talks to the bot once while it runs: on platforms that do not keep events, it has to know the chats whose
/// history it reads later.
async fn meet(
    house: &mut House,
    talks: &mut [Talk],
    random: &mut fastrand::Rng,
    (seed, bound): (u64, Bound),
) {
    house.start();
    let hears = house.platform.wait(&talks[0].chat, SOON, |platform| platform.hears().then_some(()));
    hears.await.unwrap_or_else(|timeout| panic!("{timeout}"));
    talks.iter_mut().for_each(|talk| talk.say(house, random, bound));
    answered(house, talks, &format!("seed {seed}"), bound).await;
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

/// Each named point, and both sides of each kind of send, once.
fn every_death(sends: &[&'static str], random: &mut fastrand::Rng) -> Vec<Death> {
    // These tests do not pair, choose, import, adopt or delete users, and no bot buffers messages; the store's own
    // tests kill at those points.
    let kinds = ["pairing.", "choice.", "import.", "person.", "adoption.", "buffer."];
    let elsewhere = |point: &str| kinds.iter().any(|kind| point.starts_with(kind));
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

/// Most users talk in private, two in groups.
fn people(house: &House) -> Vec<Talk> {
    (0..CHATS).map(|n| person(house, n)).collect()
}

/// Some users without an open message write again, give a command, or edit an answered message: an edit is acknowledged
/// at most once, and changes nothing. A user who is asked a question decides.
fn speak(house: &House, talks: &mut [Talk], random: &mut fastrand::Rng, bound: Bound) {
    for talk in talks {
        if talk.read(&house.platform.shown(&talk.chat), bound).is_err() {
            talk.decide(house);
            continue;
        }
        if random.u32(0..3) == 0 {
            continue;
        }
        if let Some(said) = talk.said.last().filter(|_| random.u32(0..6) == 0) {
            house.platform.edit(&talk.chat, &said.message, "too late");
            talk.edits += 1;
        }
        talk.say(house, random, bound);
    }
}

/// Starts the daemon and makes it die this way.
async fn die(
    house: &mut House,
    talks: &mut [Talk],
    death: &Death,
    count: &mut Count,
    (random, bound): (&mut fastrand::Rng, Bound),
) {
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
    speak(house, talks, random, bound);
    let patience = match death {
        Death::Moment(after) => *after,
        Death::Point(..) | Death::Send(..) => Duration::from_millis(1500),
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

/// The platform repeats some updates, as after a broken connection.
fn redeliver(house: &House, talks: &[Talk], random: &mut fastrand::Rng, count: &mut Count) {
    for talk in talks {
        let Some(said) = talk.said.last().filter(|_| random.u32(0..4) == 0) else { continue };
        house.platform.redeliver(&talk.chat, &said.message);
        count.redeliveries += 1;
    }
}

/// Starts the daemon without a kill and checks the chats when all messages are answered.
async fn settle(house: &mut House, talks: &[Talk], seed: u64, bound: Bound) -> Extra {
    house.set("PUDU_CRASH_AT", "");
    house.start();
    answered(house, talks, &format!("seed {seed}"), bound).await;
    // No answer depends on a restart.
    let db = house.database().await;
    let deadline = Instant::now() + SOON;
    while !db.pending().await.unwrap().is_empty() {
        assert!(Instant::now() < deadline, "seed {seed}: {:?} is stranded", db.pending().await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    db.close().await;
    // Duplicates would be sent now: the daemon drains before it exits.
    assert!(house.stop().await.success(), "seed {seed}");
    let mut all = Extra::default();
    for talk in talks {
        let shown = house.platform.shown(&talk.chat);
        let extra = talk.read(&shown, bound);
        let extra = extra.unwrap_or_else(|why| panic!("seed {seed}, chat {}: {why}\n{shown:#?}", talk.chat));
        all.doubled += extra.doubled;
        all.files += extra.files;
        all.signs += extra.signs;
    }
    assert_eq!(house.platform.misused(), [""; 0], "seed {seed}");
    no_tool_twice(house, seed);
    all
}

fn no_tool_twice(house: &House, seed: u64) {
    let mut lines: BTreeMap<String, u32> = BTreeMap::new();
    for thread in house.threads() {
        let notes = std::fs::read_to_string(thread.join("user-data/outputs/notes.txt"));
        for line in notes.unwrap_or_default().lines() {
            *lines.entry(line.to_owned()).or_default() += 1;
        }
    }
    let twice: HashMap<_, _> = lines.into_iter().filter(|(_, times)| *times > 1).collect();
    assert!(twice.is_empty(), "seed {seed}: tools ran twice: {twice:?}");
}
