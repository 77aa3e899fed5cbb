//! How fast the gateway answers clients of LangGraph's API: the real binary, a scripted model and a generator, one table
//! out.
//!
//! `cargo bench --bench gateway` runs all of it (about two minutes);
//! `cargo bench --bench gateway -- NAME…` runs the parts whose names begin so. Numbers in the last column are
//! DeerFlow's for the same calls on two cores. The generator and the model run in this process, on the same cores.
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

use figures::{Memory, cpu, heading, mib, ms, pair, quantile, row, secs, wants};
use futures_util::{StreamExt, future::join_all};
use house::House;
use pudu_sim::model::{At, Reply};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// So many streams are open at once.
const STREAMS: usize = 1_000;
/// Turns of the long thread.
const TURNS: usize = 200;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    heading();
    runtime.block_on(async {
        if wants("wait") {
            wait().await;
        }
        if wants("first") {
            first().await;
        }
        if wants("streams") {
            streams().await;
        }
        if wants("thread") {
            thread().await;
        }
        if wants("listeners") {
            listeners().await;
        }
    });
}

/// A client of the gateway.
#[derive(Clone)]
struct Caller {
    http: reqwest::Client,
    api: String,
}

impl Caller {
    fn new(house: &House) -> Self {
        Self { http: house::http(), api: format!("http://{}/api", house.address) }
    }

    async fn post(&self, path: &str, body: Value) -> reqwest::Response {
        let answer = self.http.post(format!("{}{path}", self.api)).json(&body).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer
    }

    /// One turn on a thread of its own.
    async fn turn(&self, text: &str) -> Duration {
        let begin = Instant::now();
        let values: Value = self.post("/runs/wait", asked(text, &[])).await.json().await.unwrap();
        assert_eq!(values["messages"][1]["content"], format!("re: {text}"), "{values}");
        begin.elapsed()
    }
}

fn asked(text: &str, modes: &[&str]) -> Value {
    let message = json!({ "type": "human", "content": text });
    json!({ "assistant_id": "lead_agent", "input": { "messages": [message] }, "stream_mode": modes })
}

async fn house() -> House {
    let house = figures::house().await;
    house.model.otherwise(|ask| Reply::text(&format!("re: {}", ask.last_user())).into());
    house
}

/// Turns through `/runs/wait`: alone, eight side by side, and as many as the machine has room for.
async fn wait() {
    let house = house().await;
    let caller = Caller::new(&house);
    side_by_side(&caller, 1, 20).await;
    let mut alone = side_by_side(&caller, 1, 300).await.0;
    row("`/runs/wait`, one at a time: p50 / p99", &pair(&mut alone), "–", "64 ms");
    let mut eight = side_by_side(&caller, 8, 200).await.0;
    row("`/runs/wait`, 8 at a time: p50 / p99", &pair(&mut eight), "p99 below 20 ms", "–");
    let before = cpu(&house);
    let (mut many, took) = side_by_side(&caller, 64, 100).await;
    let turns = u32::try_from(many.len()).unwrap();
    let cpu = (cpu(&house) - before) / turns;
    row(
        "`/runs/wait`, 64 at a time: turns/s",
        &format!("{:.0}", f64::from(turns) / took.as_secs_f64()),
        "1,200",
        "12",
    );
    row("the same: p50 / p99", &pair(&mut many), "–", "–");
    row("the same: the daemon's CPU time per turn", &ms(cpu), "–", "–");
}

async fn side_by_side(caller: &Caller, callers: usize, turns: usize) -> (Vec<Duration>, Duration) {
    let begin = Instant::now();
    let calls = (0..callers).map(|n| {
        let caller = caller.clone();
        tokio::spawn(async move {
            let mut times = Vec::new();
            for turn in 0..turns {
                times.push(caller.turn(&format!("{n} {turn}")).await);
            }
            times
        })
    });
    let times = join_all(calls).await.into_iter().flat_map(Result::unwrap).collect();
    (times, begin.elapsed())
}

/// From the model's first words to the first words that a client of a stream reads.
async fn first() {
    let house = house().await;
    house.model.otherwise(|_| Reply::words(10, Duration::from_millis(50)));
    let caller = Caller::new(&house);
    let mut late = Vec::new();
    for n in 0..200 {
        let body = asked(&n.to_string(), &["messages-tuple"]);
        let mut stream = caller.post("/runs/stream", body).await.bytes_stream();
        let mut read = String::new();
        let mut seen = None;
        while let Some(chunk) = stream.next().await {
            read.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
            if seen.is_none() && read.contains("word1") {
                seen = Some(Instant::now());
            }
        }
        let said = house.model.exchanges().last().unwrap().first.unwrap();
        late.push(seen.unwrap().saturating_duration_since(said.into_std()));
    }
    late.drain(..20);
    row(
        "model's first words to the stream's: p50 / p99",
        &pair(&mut late),
        "2 ms",
        "34 ms including the model",
    );
}

/// A thousand streams at once, each of 40 words over 10 seconds: how far behind the model the last of each is read.
async fn streams() {
    let house = house().await;
    house.model.otherwise(|_| Reply::words(40, Duration::from_secs(10)));
    let caller = Caller::new(&house);
    let before = Memory::of(&house);
    let at_first = cpu(&house);
    let begin = Instant::now();
    let calls = (0..STREAMS).map(|n| {
        let caller = caller.clone();
        tokio::spawn(async move {
            let text = format!("caller {n}");
            let mut stream =
                caller.post("/runs/stream", asked(&text, &["messages-tuple"])).await.bytes_stream();
            let (mut read, mut last) = (String::new(), None);
            while let Some(chunk) = stream.next().await {
                read.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
                if last.is_none() && read.contains("word40") {
                    last = Some(Instant::now());
                }
            }
            assert_eq!(read.matches("event: messages").count(), 41, "{n}: {read}");
            assert!(read.contains("event: end"), "{n}: {read}");
            (text, last.unwrap())
        })
    });
    let read: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    let took = begin.elapsed();
    let cpu = cpu(&house) - at_first;
    let peak = Memory::of(&house);
    let exchanges = house.model.exchanges();
    let said: HashMap<String, Instant> = exchanges
        .iter()
        .map(|exchange| (exchange.ask.last_user(), exchange.end.unwrap().1.into_std()))
        .collect();
    let mut late: Vec<Duration> = read
        .iter()
        .filter_map(|(text, last)| Some(last.saturating_duration_since(*said.get(text)?)))
        .collect();
    assert!(late.len() >= STREAMS / 2, "{} exchanges are known", late.len());
    row("1,000 streams at once, 40 words over 10 s: all read", &secs(took), "10 s (ideal)", "–");
    row(
        "the same: the model's last word to the reader's: p50 / p99",
        &pair(&mut late),
        "no reader lags",
        "–",
    );
    row("the same: slowest", &ms(quantile(&mut late, 1.0)), "no reader lags", "–");
    row("the same: the daemon's CPU time per stream", &ms(cpu / STREAMS as u32), "–", "–");
    row("the same: the program's own memory", &peak.against(&before), "–", "–");
}

/// The `values` of the late turns of a long thread.
async fn thread() {
    let house = house().await;
    let caller = Caller::new(&house);
    let made: Value = caller.post("/threads", json!({})).await.json().await.unwrap();
    let path = format!("/threads/{}/runs/stream", made["thread_id"].as_str().unwrap());
    let mut turns = Vec::new();
    for n in 0..TURNS {
        let (begin, before) = (Instant::now(), cpu(&house));
        let body = asked(&format!("{n} {}", "x".repeat(1_000)), &["values"]);
        let read = caller.post(&path, body).await.text().await.unwrap();
        assert!(read.contains("event: end"), "{read}");
        turns.push((begin.elapsed(), read.len(), cpu(&house) - before));
    }
    let part = |from: usize| {
        let part = &turns[from..from + 20];
        let mut times: Vec<Duration> = part.iter().map(|turn| turn.0).collect();
        let cpu: Duration = part.iter().map(|turn| turn.2).sum();
        (quantile(&mut times, 0.5), part.iter().map(|turn| turn.1).sum::<usize>() / 20, cpu / 20)
    };
    for (what, from) in [("81–100", 80), ("181–200", 180)] {
        let (time, bytes, cpu) = part(from);
        let here = format!("{}; {:.0} KB; {}", ms(time), bytes as f64 / 1e3, ms(cpu));
        row(&format!("`values` of turns {what}: time, bytes and CPU a turn"), &here, "linear", "–");
    }
}

/// A thousand readers of one run: what they take, and what is left of it.
async fn listeners() {
    let house = house().await;
    let caller = Caller::new(&house);
    house.model.otherwise(|_| Reply::words(200, Duration::from_millis(200)));
    let mut held = house.model.hold(1, At::Chunk(100));
    let run: Value = {
        let made: Value = caller.post("/threads", json!({})).await.json().await.unwrap();
        let path = format!("/threads/{}/runs", made["thread_id"].as_str().unwrap());
        caller.post(&path, asked("hello", &[])).await.json().await.unwrap()
    };
    held.reached().await.unwrap();
    let before = Memory::of(&house);
    let place = format!(
        "{}/threads/{}/runs/{}/stream",
        caller.api,
        run["thread_id"].as_str().unwrap(),
        run["run_id"].as_str().unwrap()
    );
    let mut readers = Vec::new();
    for _ in 0..STREAMS {
        let mut stream = caller.http.get(&place).send().await.unwrap().bytes_stream();
        stream.next().await.unwrap().unwrap();
        readers.push(stream);
    }
    let with = Memory::of(&house);
    drop(readers);
    drop(held);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let after = Memory::of(&house);
    row("1,000 readers of one run: the program's own memory", &with.against(&before), "–", "–");
    row("5 s after they left", &after.against(&before), &format!("given back, to {}", mib(before.own)), "–");
}
