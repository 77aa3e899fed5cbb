//! All failures of a model, over each wire: rate limits, an overloaded provider, a stream that breaks, fails or stalls,
//! an invalid call, a request that is too long, a killed daemon. Each turn writes a line to a file and then confirms
//! it. Nearly all turns end with exactly this confirmation, and no line is written twice.
//!
//! `PUDU_SWEEP_ROUNDS` sets the number of rounds (default: 2); in each, every failure occurs in one turn before its
//! call, and in one after it.

use crate::{
    house::{House, SOON, Talker},
    wires,
};
use pudu_sim::model::{Answer, Cause, Reply, Trouble, Wire};
use serde_json::json;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// Minimum share of turns that end correctly.
const RIGHT: f64 = 0.99;
/// Timeout of a silent stream: longer than a busy machine needs for a chunk.
const SILENCE: &str = "    stream_chunk_timeout: 3\n    max_retries: 3\n";
const REST: &str = "llm_call: {retry_base_delay_ms: 5, retry_cap_delay_ms: 20}\n\
    summarization: {keep: {type: messages, value: 2}}\n";
const WRITES: &str = "I write it down.";
const SUMMARY: &str = "Ada and the assistant compare regions; all of them sold about as much.";

/// The failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blow {
    Limited,
    Overloaded,
    Unheard,
    Cut,
    Garbled,
    Silent,
    Failed,
    Noisy,
    TooLong,
    Killed,
}

impl Blow {
    const ALL: [Self; 10] = [
        Self::Limited,
        Self::Overloaded,
        Self::Unheard,
        Self::Cut,
        Self::Garbled,
        Self::Silent,
        Self::Failed,
        Self::Noisy,
        Self::TooLong,
        Self::Killed,
    ];
}

/// A turn with one failure, before or after its call.
#[derive(Clone, Copy, Debug)]
struct Cell {
    blow: Blow,
    after: bool,
    n: usize,
}

impl Cell {
    /// The user's message, and the line in the file.
    fn name(self) -> String {
        format!("note {:?}-{}-{}", self.blow, if self.after { "after" } else { "before" }, self.n)
    }

    /// Finds the turn of a message.
    fn read(said: &str) -> Option<Self> {
        let (_, name) = said.rsplit_once("note ")?;
        let mut parts = name.trim().split('-');
        let blow =
            Blow::ALL.into_iter().find(|blow| Some(format!("{blow:?}").as_str()) == parts.clone().next())?;
        let after = parts.nth(1)? == "after";
        Some(Self { blow, after, n: parts.next()?.parse().ok()? })
    }

    fn done(self) -> String {
        format!("Done: {}.", self.name())
    }

    /// The expected final text.
    fn whole(self) -> String {
        format!("{WRITES}\n\n{}", self.done())
    }

    /// The number of chunks before the failure: in the text, in the call, at the end.
    fn chunk(self) -> usize {
        const BEFORE: [usize; 8] = [5, 9, 8, 11, 1, 7, 10, 3];
        const AFTER: [usize; 4] = [4, 6, 1, 5];
        if self.after { AFTER[self.n % AFTER.len()] } else { BEFORE[self.n % BEFORE.len()] }
    }
}

/// Generates a test for each wire.
macro_rules! sweep_tests {
    ($($name:ident $wire:ident)+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            sweep(Wire::$wire).await;
        })+
    };
}

sweep_tests!(chat_completions Chat responses Responses messages Messages gemini Gemini ollama Ollama);

async fn sweep(wire: Wire) {
    let rounds = std::env::var("PUDU_SWEEP_ROUNDS").map_or(2, |rounds| rounds.parse().unwrap());
    let mut house = wires::build(wire, SILENCE, REST).await;
    script(&house);
    house.in_its_own_process();
    house.start();
    let (mut cells, mut wrong) = (Vec::new(), Vec::new());
    for n in 0..rounds {
        let round = Blow::ALL.into_iter().flat_map(|blow| [false, true].map(|after| Cell { blow, after, n }));
        let round: Vec<_> = round.map(|cell| (cell, Talker::new(&house, &cell.name()))).collect();
        wrong.extend(play(&mut house, &round).await);
        cells.extend(round.into_iter().map(|(cell, _)| cell));
    }
    let share = 1.0 - wrong.len() as f64 / cells.len() as f64;
    let calls = house.model.count();
    println!(
        "sweep of {wire:?}: {} turns, {:.1} % right, {calls} calls of the model",
        cells.len(),
        share * 100.0
    );
    assert!(share >= RIGHT, "{wire:?}: {wrong:#?}\n{}", house.model);
    assert_eq!(
        unwritten(&house, &cells),
        Vec::<String>::new(),
        "{wire:?}: lines that do not stand there once"
    );
    assert_eq!(house.model.refused(), Vec::<String>::new(), "{wire:?}: the provider refused");
}

/// Runs all turns of a round concurrently, those with a killed daemon last. Returns the wrong results.
async fn play(house: &mut House, round: &[(Cell, Talker)]) -> Vec<String> {
    let (killed, others): (Vec<_>, Vec<_>) = round.iter().partition(|(cell, _)| cell.blow == Blow::Killed);
    prepare(&others).await;
    speak(&others);
    let mut wrong = all_wrong(&others).await;
    speak(&killed);
    let streaming = house.model.wait(SOON, |model| {
        let exchanges = model.exchanges();
        let open = exchanges.iter().filter(|one| one.end.is_none() && one.first.is_some()).count();
        (open == killed.len()).then_some(())
    });
    streaming.await.unwrap_or_else(|timeout| panic!("{timeout}"));
    house.kill();
    house.in_its_own_process();
    house.start();
    wrong.extend(all_wrong(&killed).await);
    wrong
}

/// Creates a history for turns whose next request is to be too long.
async fn prepare(cells: &[&(Cell, Talker)]) {
    for n in 0..3 {
        let text = format!("region {n}: {}", "units and prices ".repeat(60));
        let long = || cells.iter().filter(|(cell, _)| cell.blow == Blow::TooLong);
        for (_, talker) in long() {
            talker.say(&text);
        }
        for (_, talker) in long() {
            talker.reads_final(|said| said.starts_with(&format!("echo: region {n}:"))).await;
        }
    }
}

fn speak(cells: &[&(Cell, Talker)]) {
    for (cell, talker) in cells {
        talker.say(&cell.name());
    }
}

/// Returns the turns that do not end correctly, with their chats: both answers and nothing else, in one message.
async fn all_wrong(cells: &[&(Cell, Talker)]) -> Vec<String> {
    let deadline = Instant::now() + 3 * SOON;
    for (cell, talker) in cells {
        let left = deadline.saturating_duration_since(Instant::now());
        talker.reads_within(left, |said| said == cell.whole()).await.ok();
    }
    let mut wrong = Vec::new();
    for (cell, talker) in cells {
        let mut said: Vec<String> = talker.answers().into_iter().map(|seen| seen.text).collect();
        said.retain(|text| !text.starts_with("echo: region "));
        if said != [cell.whole()] {
            wrong.push(format!("{}: {said:?}", cell.name()));
        }
    }
    wrong
}

/// Returns the turns whose line is not in a file exactly once, with its count.
fn unwritten(house: &House, cells: &[Cell]) -> Vec<String> {
    let files = house.threads().into_iter().map(|thread| thread.join("user-data/outputs/notes.txt"));
    let all: String = files.filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    let count = |cell: &Cell| all.lines().filter(|line| **line == cell.name()).count();
    let wrong = cells.iter().map(|cell| (cell.name(), count(cell))).filter(|(_, count)| *count != 1);
    wrong.map(|(name, count)| format!("{name}: {count} times")).collect()
}

/// The model writes a line, then confirms it; each failure occurs once.
fn script(house: &House) {
    let struck: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    house.model.otherwise(move |ask| {
        let said = ask.last_user();
        if said.starts_with("pudu asks this, not a person") {
            return Reply::text(SUMMARY).into();
        }
        let Some(cell) = Cell::read(&said) else {
            return Reply::text(&format!("echo: {said}")).into();
        };
        let since = ask.messages().iter().rev().take_while(|message| message["role"] != "user");
        let written =
            since.filter(|message| message["role"] == "tool" && message["content"] == "OK").count() > 0;
        let answer = if written {
            Reply::text(&cell.done()).reasoning("that is it")
        } else {
            let path = "/mnt/user-data/outputs/notes.txt";
            let line = json!({"path": path, "content": format!("{}\n", cell.name()), "append": true});
            Reply::text(WRITES).reasoning("let me see").tool("write_file", &line)
        };
        let size = ask.body.to_string().len();
        let mut struck = struck.lock().unwrap();
        match struck.get(&cell.name()) {
            // It is still too long unless it became shorter.
            Some(before) if cell.blow == Blow::TooLong && written == cell.after && size >= *before => {
                Reply::refused(Cause::Overflow).into()
            }
            None if written == cell.after => {
                struck.insert(cell.name(), size);
                strike(cell, answer)
            }
            _ => answer.into(),
        }
    });
}

/// Returns the reply in place of an answer.
fn strike(cell: Cell, answer: Answer) -> Reply {
    let trouble = |trouble: Trouble| answer.clone().trouble(cell.chunk(), trouble).into();
    match cell.blow {
        Blow::Limited => Reply::refused(Cause::RateLimit).into(),
        Blow::Overloaded => Reply::refused(Cause::Overloaded).into(),
        Blow::TooLong => Reply::refused(Cause::Overflow).into(),
        Blow::Unheard => Reply::Cut,
        Blow::Cut => trouble(Trouble::Cut),
        Blow::Silent => trouble(Trouble::Stall),
        Blow::Failed => trouble(Trouble::Error("Overloaded".to_owned())),
        Blow::Noisy => trouble(Trouble::Garbage),
        Blow::Garbled => Answer::default().raw_tool("write_file", "{\"path\": \"/mnt/user-data/out").into(),
        // Slow enough to be interrupted, and never silent for long.
        Blow::Killed => answer.every(Duration::from_millis(400)).into(),
    }
}
