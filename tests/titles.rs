//! Titles of threads: immediately from the first question, later by a model.

use crate::house::{House, SOON, Talker, http};
use pudu_sim::{
    model::{Ask, Reply},
    telegram::Options,
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn entitles(ask: &Ask) -> bool {
    ask.last_user().starts_with("Write a title")
}

/// Returns the titles of all threads, as the command line lists them.
fn titles(house: &House) -> Vec<Value> {
    let (good, out) = house.pudu(&["storage", "threads", "--json"]);
    assert!(good, "{out}");
    let listed: Value = serde_json::from_str(&out).unwrap();
    listed["threads"].as_array().unwrap().iter().map(|thread| thread["title"].clone()).collect()
}

#[tokio::test]
async fn the_first_question_is_the_title_and_no_model_is_asked_for_it() {
    let mut house = House::furnish(Options::default(), "", "").await;
    house.start();
    let (good, none) = house.pudu(&["storage", "threads"]);
    assert_eq!((good, none.trim()), (true, "There are no threads."));
    let ada = Talker::new(&house, "Ada");
    ada.says("what is\nthere?", "echo: what is\nthere?").await;
    ada.says("and here?", "echo: and here?").await;
    assert_eq!(titles(&house), [json!("what is there?")]);
    assert_eq!(house.model.count(), 2, "no model is asked for a title");
    let ask = async |query: &str| {
        let token = std::fs::read_to_string(house.path(".pudu/gateway-token")).unwrap();
        let address = format!("http://{}/api/threads?{query}", house.address);
        let answer = http().get(address).bearer_auth(token.trim()).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let (status, listed) = ask("account=telegram&limit=1").await;
    assert_eq!(status, 200, "{listed}");
    assert!(listed.contains("\"title\":\"what is there?\""), "{listed}");
    for wrong in ["limit=0", "limit=1001", "limit=x", "who=me"] {
        assert_eq!(ask(wrong).await.0, 422, "{wrong}");
    }
    let (good, table) = house.pudu(&["storage", "threads", "telegram"]);
    assert!(good && table.contains("THREAD") && table.contains("what is there?"), "{table}");
    assert!(house.pudu(&["storage", "threads", "elsewhere"]).1.contains("There are no threads."));
}

#[tokio::test]
async fn a_model_writes_the_title_if_one_is_named_and_that_is_paid_as_such() {
    let rest = "title: {model_name: sim, max_words: 4}\n";
    let mut house = House::furnish(Options::default(), "", rest).await;
    house.model.when(entitles, |_| Reply::text("<think>hm</think>\"Sales of March.\"").usage(90, 5).into());
    house.start();
    let ada = Talker::new(&house, "Ada");
    ada.says("how did we do in March?", "echo: how did we do in March?").await;
    house
        .model
        .wait(SOON, |model| model.requests().iter().any(|ask| entitles(ask)).then_some(()))
        .await
        .unwrap();
    ada.says("and in April?", "echo: and in April?").await;
    let late = Instant::now() + SOON;
    while titles(&house) != [json!("Sales of March")] {
        assert!(Instant::now() < late, "{:?}", titles(&house));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    ada.say("/status");
    ada.reads_so(|text| text.contains("• Title: Sales of March\n")).await;
    let asked: Vec<_> = house.model.requests().into_iter().filter(|ask| entitles(ask)).collect();
    assert_eq!(asked.len(), 1, "once a thread");
    let prompt = asked[0].last_user();
    assert!(prompt.contains("4 words") && prompt.contains("Person: how did we do in March?"), "{prompt}");
    assert!(prompt.ends_with("Assistant: echo: how did we do in March?"), "{prompt}");
    ada.say("/usage");
    ada.reads_so(|text| text.contains("for titles")).await;
}

#[tokio::test]
async fn a_title_that_no_model_wrote_stays_local() {
    let rest = "title: {model_name: sim}\n";
    let mut house = House::furnish(Options::default(), "", rest).await;
    house.model.when(entitles, |_| Reply::status(400).into());
    house.start();
    let ada = Talker::new(&house, "Ada");
    ada.says("hello", "echo: hello").await;
    house.logs("failed to write title").await;
    assert_eq!(titles(&house), [json!("hello")]);
}

#[tokio::test]
async fn threads_have_no_titles_where_they_are_switched_off() {
    let mut house = House::furnish(Options::default(), "", "title: {enabled: false}\n").await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    ada.says("hello", "echo: hello").await;
    assert_eq!(titles(&house), [Value::Null]);
}

#[tokio::test]
async fn messages_that_are_answered_together_have_a_title_and_so_has_a_thread_whose_first_run_failed() {
    let mut house = House::furnish(Options::default(), "follow_ups: queue", "").await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    std::fs::write(house.path(".pudu/SOUL.md"), b"\xff").unwrap();
    ada.say("one");
    ada.reads_so(|text| text.contains("cannot be used")).await;
    std::fs::remove_file(house.path(".pudu/SOUL.md")).unwrap();
    ada.says("two", "echo: two").await;
    assert_eq!(titles(&house), [json!("one")]);
}
