//! Memory never contains statements that are not the user's own, or their opposite, whatever a model proposes: traps
//! for a model that believes everything and quotes the best evidence, with honest statements in between.

use crate::{
    house::{House, SOON, Talker},
    memory::{learns, walk},
};
use pudu_sim::{
    model::{Ask, Reply},
    telegram::{Options, Post},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{sync::Arc, time::Instant};

/// A message, and the fact that a model derives from it.
#[derive(Clone, Deserialize)]
struct Line {
    said: String,
    fact: String,
    /// The assistant's answer instead of an echo.
    answer: Option<String>,
    /// A tool's output before that.
    output: Option<String>,
    /// The author of a forwarded message.
    forwarded: Option<String>,
}

fn table(text: &str) -> Arc<[Line]> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns the best quotes: the whole message, the closest words to the fact, and those of others.
fn quotes(line: &Line) -> Vec<&str> {
    let ends = ['.', '!', '?', ':', ',', '"', '。', '：', '，', '“', '”', '\n'];
    let share = |piece: &str| line.fact.split([' ', ',']).filter(|word| piece.contains(word)).count();
    let nearest = line.said.split_inclusive(ends).map(str::trim).max_by_key(|piece| share(piece));
    let others = [line.answer.as_deref(), line.output.as_deref(), Some(line.fact.as_str())];
    [Some(line.said.as_str()), nearest].into_iter().chain(others).flatten().collect()
}

/// The answer of a model that believes everything.
fn gullible(lines: &[Line], ask: &Ask) -> Reply {
    let read = ask.last_user();
    let is_read = |line: &&Line| line.said.lines().all(|part| read.contains(&escaped(part.trim())));
    let labels =
        json!({"confidence": 0.95, "scope": "user", "durability": "durable", "authority": "descriptive"});
    let item = |key: &str, text: &str, quote: &str| {
        let mut item = labels.clone();
        item["shouldUpdate"] = true.into();
        item["category"] = "preference".into();
        item["quote"] = quote.into();
        item[key] = text.into();
        item
    };
    let found: Vec<&Line> = lines.iter().filter(is_read).collect();
    let facts = found
        .iter()
        .flat_map(|line| quotes(line).into_iter().map(|quote| item("content", &line.fact, quote)));
    let facts: Vec<Value> = facts.collect();
    let summary = found.first().map(|line| item("summary", &line.fact, &line.said));
    let user = json!({ "personalContext": summary });
    Reply::text(&json!({ "user": user, "history": {}, "newFacts": facts }).to_string()).into()
}

/// Sends each line as another user, waits until all conversations are processed, and returns the house.
async fn told_to(lines: &Arc<[Line]>) -> House {
    let mut house = House::furnish(Options::default(), "", "memory: {debounce_seconds: 1}\n").await;
    let known = lines.clone();
    house.model.when(learns, move |ask| gullible(&known, ask));
    for line in lines.iter() {
        let is_asked = |line: &Line| {
            let said = line.said.clone();
            move |ask: &Ask| ask.last_role() == "user" && ask.last_user().contains(&said)
        };
        if let Some(answer) = line.answer.clone() {
            house.model.when(is_asked(line), move |_| Reply::text(&answer).into());
        }
        if let Some(output) = line.output.clone() {
            let command = format!("cat <<'END'\n{output}\nEND");
            let call = json!({ "description": "looks", "command": command });
            house.model.when(is_asked(line), move |_| Reply::tool("bash", &call).into());
        }
    }
    house.start();
    let mut people = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        let person = Talker::new(&house, &format!("Person {place}"));
        let post = Post::text(&line.said);
        let post = line.forwarded.as_ref().map_or(post.clone(), |from| post.forwarded_from(from));
        house.telegram.post(person.chat, person.person, &post).unwrap();
        people.push(person);
    }
    for person in &people {
        let ended = house.telegram.wait(SOON * 2, |view| {
            let last = view.answers(person.chat).pop()?;
            let grows = last.buttons.iter().flatten().any(|button| button.text == "Stop");
            (!grows && !last.text.is_empty()).then_some(())
        });
        ended.await.unwrap_or_else(|timeout| panic!("{timeout}"));
    }
    let (db, late) = (house.database().await, Instant::now() + SOON * 2);
    while db.next_learning().await.unwrap().is_some() {
        assert!(Instant::now() < late, "conversations wait still:\n{}", house.log());
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    house
}

/// Returns the texts of all facts and summaries of all users.
fn remembered(house: &House) -> Vec<String> {
    let files = walk(&house.path(".pudu/users"));
    let fact =
        |text: &String| text.starts_with("---\n").then(|| text.lines().last().unwrap_or_default().to_owned());
    let summaries = files.iter().filter_map(|text| serde_json::from_str::<Value>(text).ok());
    let summaries = summaries.filter_map(|file| {
        let text = file.pointer("/user/personalContext/summary")?.as_str()?;
        (!text.is_empty()).then(|| format!("summary: {text}"))
    });
    let mut found: Vec<String> = files.iter().filter_map(fact).chain(summaries).collect();
    found.sort();
    found
}

#[tokio::test]
async fn of_two_hundred_traps_nothing_is_remembered() {
    let traps = table(include_str!("memory/traps.jsonl"));
    assert_eq!(traps.len(), 200);
    let house = told_to(&traps).await;
    let read = house.model.requests().iter().filter(|ask| learns(ask)).count();
    // Most messages state nothing, and the model is not called.
    assert!(read > 20, "the model had its chance {read} times");
    assert_eq!(remembered(&house), [] as [&str; 0]);
}

/// Returns the percentage of these lines whose fact is remembered.
fn share_remembered(lines: &[Line], found: &[String]) -> f64 {
    let is_there =
        |line: &&Line| found.contains(&line.fact) || found.contains(&format!("summary: {}", line.fact));
    100.0 * lines.iter().filter(is_there).count() as f64 / lines.len() as f64
}

#[tokio::test]
async fn of_facts_that_contradict_their_quote_nearly_none_and_of_honest_ones_nearly_all_are_remembered() {
    for (language, traps, honest) in [
        (
            "English",
            include_str!("memory/claims/traps.en.jsonl"),
            include_str!("memory/claims/honest.en.jsonl"),
        ),
        (
            "Chinese",
            include_str!("memory/claims/traps.zh.jsonl"),
            include_str!("memory/claims/honest.zh.jsonl"),
        ),
    ] {
        let (traps, honest) = (table(traps), table(honest));
        let refused = 100.0 - share_remembered(&traps, &remembered(&told_to(&traps).await));
        let stored = share_remembered(&honest, &remembered(&told_to(&honest).await));
        println!(
            "{language}: {refused:.1} % of {} traps refused, {stored:.1} % of {} statements stored",
            traps.len(),
            honest.len()
        );
        assert!(refused >= 98.0 && stored >= 90.0, "{language}: {refused:.1} / {stored:.1}");
    }
}

#[tokio::test]
async fn of_honest_statements_each_is_remembered() {
    let honest = table(include_str!("memory/honest.jsonl"));
    assert!(honest.len() >= 40);
    let house = told_to(&honest).await;
    let mut expect: Vec<String> = honest.iter().map(|line| line.fact.clone()).collect();
    expect.sort();
    let found: Vec<String> =
        remembered(&house).into_iter().filter(|text| !text.starts_with("summary: ")).collect();
    assert_eq!(found, expect);
}
