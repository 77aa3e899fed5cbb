//! How fast and how small the daemon is: the real binary between the simulators, one table out.
//!
//! `cargo bench --bench daemon` runs all of it (about three minutes);
//! `cargo bench --bench daemon -- NAME…` runs the parts whose names begin so. Numbers in the last column are
//! what was measured of others with the same mock: 40 words over 0.8 s, two cores.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "a benchmark stops where something is wrong"
)]

#[path = "common/figures.rs"]
mod figures;
#[path = "../tests/house.rs"]
mod house;

use figures::{Memory, cpu, heading, median, mib, ms, pair, row, secs, wants};
use house::{House, Talker};
use pudu_sim::model::Reply;
use pudu_store::{Db, DbLocation, NewInboxItem};
use std::time::{Duration, Instant};

const WORDS: u32 = 40;
const OVER: Duration = Duration::from_millis(800);
const LONG: Duration = Duration::from_secs(120);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    heading();
    runtime.block_on(async {
        if wants("size") {
            size();
        }
        if wants("start") {
            start().await;
        }
        if wants("accept") {
            accept().await;
        }
        if wants("single") {
            single().await;
        }
        if wants("hundred") {
            hundred().await;
        }
        if wants("flood") {
            flood().await;
        }
        if wants("thread") {
            thread().await;
        }
        if wants("memory") {
            memory().await;
        }
    });
}

fn size() {
    let bytes = std::fs::metadata(env!("CARGO_BIN_EXE_pudu")).unwrap().len();
    row("binary", &format!("{:.1} MB", bytes as f64 / 1e6), "40 MB with five platforms", "ZeroClaw 41 MB");
}

/// From the start of the process to the first healthy answer.
async fn start() {
    let mut times = Vec::new();
    for _ in 0..20 {
        let mut house = House::build("").await;
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        house.bind = format!("127.0.0.1:{port}");
        let begin = Instant::now();
        let mut child = house.spawn();
        while !healthy(port).await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        times.push(begin.elapsed());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    row(
        "start to healthy, first start, median of 20",
        &ms(median(&mut times)),
        "50 ms",
        "ZeroClaw 25–44 ms, DeerFlow 5.9 s",
    );
}

async fn healthy(port: u16) -> bool {
    let answer = house::http().get(format!("http://127.0.0.1:{port}/health")).send().await;
    answer.is_ok_and(|answer| answer.status().is_success())
}

/// What it costs to keep an event for good.
async fn accept() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(&DbLocation::Sqlite(dir.path().join("pudu.db"))).await.unwrap();
    let item = |n: usize| NewInboxItem {
        account: "telegram".into(),
        event_key: format!("u{n}"),
        chat: "1".into(),
        position: None,
        message: Some(n.to_string()),
        payload: "{\"kind\":\"message\",\"text\":\"hello\"}".repeat(8),
        at: 0,
    };
    let mut alone = Vec::new();
    for n in 0..500 {
        let begin = Instant::now();
        db.accept(&item(n)).await.unwrap();
        alone.push(begin.elapsed());
    }
    let (before, begin) = (db.commits(), Instant::now());
    let together = (0..100).map(|worker| {
        let (db, item) = (&db, &item);
        async move {
            let mut times = Vec::new();
            for n in 0..50 {
                let begin = Instant::now();
                db.accept(&item(1_000 + worker * 50 + n)).await.unwrap();
                times.push(begin.elapsed());
            }
            times
        }
    });
    let mut many: Vec<Duration> = futures_util::future::join_all(together).await.concat();
    let (took, commits) = (begin.elapsed(), db.commits() - before);
    row("accept, one at a time: p50 / p99", &pair(&mut alone), "–", "–");
    row("accept, 100 side by side: p50 / p99", &pair(&mut many), "–", "–");
    row(
        "accepts per second, side by side; accepts per fsync",
        &format!("{:.0}; {:.0}", 5_000.0 / took.as_secs_f64(), 5_000.0 / commits as f64),
        "–",
        "–",
    );
}

/// One message after the other.
async fn single() {
    let house = figures::house().await;
    house.model.otherwise(|_| Reply::text("ok then").into());
    let mut times = Vec::new();
    let mut last = None;
    let people: Vec<Talker> = (0..200).map(|n| Talker::new(&house, &format!("P{n}"))).collect();
    let cpu = cpu(&house);
    for ada in &people {
        let begin = Instant::now();
        ada.says("hello", "ok then").await;
        times.push(begin.elapsed());
        last = Some(ada);
    }
    let cpu = (figures::cpu(&house) - cpu) / 200;
    assert!(last.is_some_and(|ada| ada.answers().len() == 1));
    row("zero-latency model, one message at a time: p50 / p99", &pair(&mut times), "–", "DeerFlow 187 ms");
    row("CPU per message, one at a time", &ms(cpu), "–", "–");
}

/// A hundred chats say something at once.
async fn hundred() {
    let house = figures::house().await;
    house.model.otherwise(|_| Reply::words(WORDS, OVER));
    let people: Vec<Talker> = (0..100).map(|n| Talker::new(&house, &format!("P{n}"))).collect();
    Talker::new(&house, "first").says("warm up", &words()).await;
    let (asked, cpu) = (house.model.count(), cpu(&house));
    let begin = Instant::now();
    for ada in &people {
        ada.say("hello");
    }
    for ada in &people {
        ada.reads(&words()).await;
    }
    let took = begin.elapsed();
    let cpu = figures::cpu(&house) - cpu;
    let others = "Hermes 16.5 s, DeerFlow 20 s, ZeroClaw 21.5 s, OpenClaw 36 s";
    row("100 chats at once, 40 words over 0.8 s: all answered", &secs(took), "1.5 s (ideal 0.9 s)", others);
    row(
        "model calls per message",
        &format!("{:.2}", (house.model.count() - asked) as f64 / 100.0),
        "1",
        "ZeroClaw 2, Hermes 2",
    );
    row("CPU for the 100, per message", &ms(cpu / 100), "–", "–");
    let mut first = first_words(&house, &people);
    row(
        "model's first token to first visible words, 100 at once: p50 / p99",
        &pair(&mut first),
        "100 ms",
        "–",
    );
    quiet(&house, people).await;
}

/// The same time with nobody else around.
async fn quiet(house: &House, _others: Vec<Talker>) {
    let mut people = Vec::new();
    for n in 0..20 {
        let ada = Talker::new(house, &format!("Q{n}"));
        ada.says("hello", &words()).await;
        people.push(ada);
    }
    let mut first = first_words(house, &people);
    row("model's first token to first visible words, alone: p50 / p99", &pair(&mut first), "100 ms", "–");
}

fn words() -> String {
    (1..=WORDS).map(|n| format!("word{n}")).collect::<Vec<_>>().join(" ")
}

/// From the model's first word to the first words that each person saw. Exchanges and chats are matched by
/// order of time, which is exact enough for quantiles.
fn first_words(house: &House, people: &[Talker]) -> Vec<Duration> {
    let mut seen: Vec<_> = people
        .iter()
        .filter_map(|ada| {
            let answer = ada.answers().into_iter().next()?;
            let shown = house.telegram.history(ada.chat, answer.id);
            shown.into_iter().find(|shown| shown.text.starts_with("word1")).map(|shown| shown.at)
        })
        .collect();
    seen.sort();
    let exchanges = house.model.exchanges();
    let mut said: Vec<_> =
        exchanges.iter().rev().take(people.len()).filter_map(|exchange| exchange.first).collect();
    said.sort();
    said.iter().zip(&seen).map(|(said, seen)| seen.saturating_duration_since(*said)).collect()
}

/// Two hundred chats, five messages each, as fast as they are answered.
async fn flood() {
    let house = figures::house().await;
    house.model.otherwise(|ask| Reply::text(&format!("re: {}", ask.last_user())).into());
    let people: Vec<Talker> = (0..200).map(|n| Talker::new(&house, &format!("P{n}"))).collect();
    let cpu = cpu(&house);
    let begin = Instant::now();
    let talks = people.iter().map(|ada| async move {
        for n in 0..5 {
            ada.says(&format!("message {n}"), &format!("re: message {n}")).await;
        }
    });
    futures_util::future::join_all(talks).await;
    let took = begin.elapsed();
    let cpu = figures::cpu(&house) - cpu;
    row(
        "zero-latency model, 200 chats x 5 messages: messages/s",
        &format!("{:.0}", 1_000.0 / took.as_secs_f64()),
        "2000, or 0.5 ms CPU",
        "DeerFlow 10.5",
    );
    row("CPU per message in the flood", &ms(cpu / 1_000), "–", "–");
}

/// A thousand turns of one thread.
async fn thread() {
    let mut house = figures::house().await;
    let text = "x".repeat(1_000);
    let answer = "y".repeat(1_000);
    let reply = answer.clone();
    house.model.otherwise(move |_| Reply::text(&reply).into());
    let ada = Talker::new(&house, "Ada");
    let mut times = Vec::new();
    let mut sizes = Vec::new();
    for n in 0..1_000 {
        let begin = Instant::now();
        ada.say(&format!("{n} {text}"));
        let done = house.telegram.wait(LONG, |view| {
            let answers = view.answers(ada.chat);
            // Some say that the conversation was summarised.
            (answers.len() == n + 1 && answers[n].text.starts_with(&answer) && answers[n].buttons.is_empty())
                .then_some(())
        });
        done.await.unwrap();
        times.push(begin.elapsed());
        if n == 99 || n == 999 {
            sizes.push(disk(&house));
        }
    }
    house.stop().await;
    let late = median(&mut times[990..].to_vec());
    row(
        "one thread, turn 1–10 / turn 991–1000: median",
        &format!("{} / {}", ms(median(&mut times[..10].to_vec())), ms(late)),
        "flat",
        "DeerFlow 92 → 605 ms after 200",
    );
    let per_turn = (sizes[1] - sizes[0]) as f64 / 900.0;
    row(
        "disk per turn of 2 KB text, turns 100–1000; beyond the text",
        &format!("{:.1} KB; {:.1} KB", per_turn / 1e3, (per_turn - 2_000.0) / 1e3),
        "< 3 KB beyond",
        "DeerFlow 8 MB",
    );
}

fn disk(house: &House) -> u64 {
    let folder = std::fs::read_dir(house.path(".pudu/data")).unwrap();
    folder.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

/// Memory: idle, after a hundred chats, and when they have been quiet for a minute. What is resident of the program's
/// own file counts apart: the kernel takes that back when it needs the room.
async fn memory() {
    let house = figures::house().await;
    house.model.otherwise(|_| Reply::words(WORDS, OVER));
    tokio::time::sleep(Duration::from_secs(5)).await;
    let idle = Memory::of(&house);
    let people: Vec<Talker> = (0..100).map(|n| Talker::new(&house, &format!("P{n}"))).collect();
    for ada in &people {
        ada.say("hello");
    }
    for ada in &people {
        ada.reads(&words()).await;
    }
    let busy = Memory::of(&house);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let after = Memory::of(&house);
    row(
        "idle memory: private; with the resident pages of the executable",
        &format!("{}; {}", mib(idle.own), mib(idle.resident)),
        "5 MiB; –",
        "ZeroClaw 35.6 MiB, DeerFlow 229 MB in all",
    );
    row(
        "memory after 100 chats: the program's own",
        &busy.against(&idle),
        "+8 MiB",
        "ZeroClaw +17 MiB for 120",
    );
    row("memory a minute later: the program's own", &after.against(&idle), "given back", "–");
}
