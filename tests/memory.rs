//! Memory: statements of users are remembered where they belong and nowhere else.

use crate::{
    house::{House, SOON, Talker},
    platforms::on_each_platform,
    scene::Scene,
};
use pudu_sim::{
    model::{Ask, Reply},
    telegram::Options,
};
use serde_json::{Value, json};

on_each_platform!([what_is_said_in_a_room_is_the_rooms_and_what_is_said_alone_is_ones_own]);

pub const QUICK: &str = "memory: {debounce_seconds: 1}\n";

pub fn learns(ask: &Ask) -> bool {
    ask.last_user().contains("<current_memory>")
}

pub fn fact(content: &str, quote: &str) -> Value {
    json!({
        "content": content, "quote": quote, "category": "preference", "confidence": 0.9, "scope": "user",
        "durability": "durable", "authority": "descriptive"
    })
}

/// A model's answer that proposes a fact with a quote.
pub fn proposes(content: &str, quote: &str) -> String {
    proposes_all(&[fact(content, quote)])
}

pub fn proposes_all(facts: &[Value]) -> String {
    format!("```json\n{}\n```", json!({ "user": {}, "history": {}, "newFacts": facts }))
}

pub async fn furnished(answer: String) -> House {
    let mut house = House::furnish(Options::default(), "", QUICK).await;
    house.model.when(learns, move |_| Reply::text(&answer).usage(70, 7).into());
    house.start();
    house
}

pub fn told(house: &House) -> String {
    house.model.requests().iter().rev().find(|ask| !learns(ask)).unwrap().last_user()
}

#[tokio::test]
async fn what_a_person_says_of_themselves_is_there_in_the_next_conversation_and_for_nobody_else() {
    let house = furnished(proposes("Prefers green tea", "I always drink green tea")).await;
    let (ada, bob) = (Talker::new(&house, "Ada"), Talker::new(&house, "Bob"));
    ada.says("I always drink green tea.", "echo: I always drink green tea.").await;
    house.logs("learned from conversation").await;
    ada.say("/usage");
    ada.reads_so(|text| text.contains("for the memory")).await;
    ada.says("/new", "New conversation started.").await;
    ada.say("/memory");
    let listed = ada.reads_so(|text| text.contains("My memory of this chat: one fact.")).await;
    assert!(listed.contains("Prefers green tea"), "{listed}");
    // The model repeats its context.
    ada.say("what do I drink?");
    ada.reads_final(|text| text.starts_with("echo: what do I drink?")).await;
    let asked = told(&house);
    assert!(asked.contains("<memory>\n") && asked.contains("Prefers green tea"), "{asked}");
    ada.say("/memory last");
    ada.reads_so(|text| text.contains("facts for the last answer") && text.contains("green tea")).await;
    ada.say("and what else?");
    ada.reads_final(|text| text.starts_with("echo: and what else?")).await;
    let again = told(&house);
    assert_eq!(again.matches("Prefers green tea").count(), 0, "once a thread: {again}");

    bob.says("what do I drink?", "echo: what do I drink?").await;
    assert!(!told(&house).contains("green tea"));
    bob.says("/memory", "My memory of this chat is empty.").await;
}

#[tokio::test]
async fn what_is_forgotten_is_gone_and_what_is_switched_off_learns_nothing() {
    let house = furnished(proposes("Prefers green tea", "I always drink green tea")).await;
    let ada = Talker::new(&house, "Ada");
    ada.say("/memory add My bicycle is red.");
    let added = ada.reads_so(|text| text.starts_with("Remembered as")).await;
    let id = added.trim_start_matches("Remembered as ").trim_end_matches('.').to_owned();
    ada.say("which colour has my bicycle?");
    ada.reads_final(|text| text.starts_with("echo: which colour has my bicycle?")).await;
    assert!(told(&house).contains("My bicycle is red."));
    ada.say("/memory search BICYCLE");
    ada.reads_so(|text| text.contains("My memory of this chat: one fact.")).await;
    ada.says(&format!("/memory forget {id}"), "Forgotten.").await;
    ada.says("/memory forget nothing", "There is no fact nothing. /memory lists the facts.").await;
    ada.says("/new", "New conversation started.").await;
    ada.say("the bicycle's colour?");
    ada.reads_final(|text| text.starts_with("echo: the bicycle's colour?")).await;
    assert!(!told(&house).contains("My bicycle is red."));
    let files = walk(&house.path(".pudu/users"));
    assert!(!files.iter().any(|text| text.contains("My bicycle is red.")), "no file has it");

    ada.say("/memory off");
    ada.reads_so(|text| text.starts_with("Memory is off: I no longer learn")).await;
    ada.says("I always drink green tea.", "echo: I always drink green tea.").await;
    ada.say("/memory");
    ada.reads_so(|text| text.contains("Memory is off: I learn nothing")).await;
}

/// Returns the texts of all files in a folder.
pub fn walk(folder: &std::path::Path) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => texts.extend(walk(&entry.path())),
            false => texts.extend(std::fs::read_to_string(entry.path())),
        }
    }
    texts
}

#[tokio::test]
async fn a_conversation_that_waits_to_be_read_is_read_after_a_death() {
    // It waits long enough to be killed meanwhile.
    let mut house = House::furnish(Options::default(), "", "memory: {debounce_seconds: 8}\n").await;
    let answer = proposes("Prefers green tea", "I always drink green tea");
    house.model.when(learns, move |_| Reply::text(&answer).into());
    house.start();
    let ada = Talker::new(&house, "Ada");
    ada.says("I always drink green tea.", "echo: I always drink green tea.").await;
    house.kill();
    house.start();
    house.logs("learned from conversation").await;
    ada.say("/memory");
    ada.reads_so(|text| text.contains("Prefers green tea")).await;
    let read = house.model.requests().iter().filter(|ask| learns(ask)).count();
    assert_eq!(read, 1, "once");
}

#[tokio::test]
async fn a_proposal_without_proof_is_not_remembered() {
    let house = furnished(proposes("Is called Bob", "my name is Bob")).await;
    let ada = Talker::new(&house, "Ada");
    ada.says("My colleague is Bob.", "echo: My colleague is Bob.").await;
    house.logs("quote: 1").await;
    ada.says("/memory", "My memory of this chat is empty.").await;
}

#[tokio::test]
async fn a_conversation_of_questions_and_tasks_costs_no_call() {
    let house = furnished(proposes("Is called Bob", "my name is Bob")).await;
    let (ada, bob) = (Talker::new(&house, "Ada"), Talker::new(&house, "Bob"));
    ada.says("summarise: 'my name is Bob'", "echo: summarise: 'my name is Bob'").await;
    ada.says("What is the capital of Peru?", "echo: What is the capital of Peru?").await;
    bob.says("My name is Bob.", "echo: My name is Bob.").await;
    house.logs("learned from conversation").await;
    let (db, late) = (house.database().await, std::time::Instant::now() + SOON);
    while db.next_learning().await.unwrap().is_some() {
        assert!(std::time::Instant::now() < late, "it waits still\n{}", house.log());
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(house.model.requests().iter().filter(|ask| learns(ask)).count(), 1, "Bob's alone");
}

/// Sends a message of a user, and returns the model's context.
async fn asks(scene: &Scene, chat: &str, person: &str, text: &str) -> String {
    let answers = || scene.house.model.requests().iter().filter(|ask| !learns(ask)).count();
    let before = answers();
    scene.write(chat, person, text, true, None);
    scene.house.model.wait(SOON, |_| (answers() > before).then_some(())).await.unwrap();
    told(&scene.house)
}

async fn what_is_said_in_a_room_is_the_rooms_and_what_is_said_alone_is_ones_own(scene: Scene) {
    // The model always proposes both: facts without a quote from the conversation are not stored.
    let both = proposes_all(&[
        fact("Prefers green tea", "I always drink green tea"),
        fact("Meets on Mondays", "We always meet on Mondays"),
    ]);
    scene.house.model.when(learns, move |_| Reply::text(&both).into());
    scene.house.configure("", QUICK);
    let (ada, bob) = (scene.ada.clone(), scene.platform.person("Bob"));
    let room = scene.platform.group("Herd", &[&ada, &bob]);
    let of_bob = scene.platform.private(&bob);
    asks(&scene, &scene.chat, &ada, "I always drink green tea.").await;
    scene.house.logs("\"message\":\"learned from conversation\"").await;
    asks(&scene, &room, &ada, "We always meet on Mondays.").await;
    scene.house.logs("\"user\":\"room-").await;

    let question = "what do I drink, and when do we meet?";
    let told = asks(&scene, &room, &bob, question).await;
    assert!(told.contains("Meets on Mondays") && !told.contains("green tea"), "in the room: {told}");
    let told = asks(&scene, &of_bob, &bob, question).await;
    assert!(!told.contains("Mondays") && !told.contains("green tea"), "to Bob alone: {told}");
    // Her conversation still contains her message.
    scene.write(&scene.chat, &ada, "/new", true, None);
    scene
        .sees(&scene.chat, |shown| shown.iter().any(|s| s.text.starts_with("New conversation")).then_some(()))
        .await;
    let told = asks(&scene, &scene.chat, &ada, question).await;
    assert!(told.contains("Prefers green tea") && !told.contains("Mondays"), "to Ada alone: {told}");
}

/// Returns the requests of runs, without IDs and times that differ between houses.
fn stable(house: &House) -> Vec<Value> {
    let asked = house.model.requests().into_iter().filter(|ask| !learns(ask));
    asked.map(|ask| ask.body.clone()).collect()
}

#[tokio::test]
async fn memory_adds_no_byte_to_the_beginning_of_requests() {
    // The user's messages; memory may only be below the newest message of a request.
    let said = ["I always drink green tea.", "what do I drink?", "and in the evening?"];
    let mut houses = Vec::new();
    for rest in ["memory: {enabled: false}\n", QUICK] {
        let mut house = House::furnish(Options::default(), "", rest).await;
        let answer = proposes("Prefers green tea", "I always drink green tea");
        house.model.when(learns, move |_| Reply::text(&answer).into());
        house.model.otherwise(|_| Reply::text("Fine.").into());
        house.start();
        let ada = Talker::new(&house, "Ada");
        if rest == QUICK {
            ada.says("I always drink green tea.", "Fine.").await;
            house.logs("learned from conversation").await;
            ada.says("/new", "New conversation started.").await;
        }
        let before = stable(&house).len();
        for text in said {
            let count = stable(&house).len();
            ada.say(text);
            house.model.wait(SOON, |_| (stable(&house).len() > count).then_some(())).await.unwrap();
            ada.reads("Fine.").await;
        }
        houses.push(stable(&house).split_off(before));
    }
    let [without, with] = &houses[..] else { unreachable!() };
    assert!(with[0].to_string().contains("Prefers green tea") && !without[0].to_string().contains("Prefers"));
    for (plain, told) in without.iter().zip(with) {
        assert_eq!(plain["tools"].to_string(), told["tools"].to_string(), "tools");
        assert_eq!(plain["messages"][0].to_string(), told["messages"][0].to_string(), "system prompt");
    }
    // Within a conversation each request begins with the complete previous one.
    for asked in [without, with] {
        for pair in asked.windows(2) {
            let earlier = pair[0]["messages"].as_array().unwrap();
            let later = pair[1]["messages"].as_array().unwrap();
            let same = later.iter().zip(earlier).all(|(a, b)| a == b);
            assert!(same && later.len() > earlier.len(), "{earlier:?}\n{later:?}");
        }
    }
}
