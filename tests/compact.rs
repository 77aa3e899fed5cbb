//! Long conversations: summaries on request, and automatic ones for a full context window.

use crate::{
    house::{House, Talker},
    scene::slowly,
};
use pudu_sim::{
    model::{Ask, Reply},
    telegram::Options,
};

const SUMMARY: &str = "Ada compares the regions; Bavaria sold 1,204 units in March, and Saxony comes next.";
const SUMMARIZED: &str =
    "The conversation had become long, so I summarized its earlier part. Some details may be lost.";

fn summarizes(ask: &Ask) -> bool {
    ask.last_user().starts_with("pudu asks this, not a person")
}

/// A house whose model writes summaries.
async fn furnished(rest: &str) -> (House, Talker) {
    let mut house = House::furnish(Options::default(), "", rest).await;
    house.start();
    house.model.when(summarizes, |_| Reply::text(SUMMARY).usage(900, 40).into());
    let ada = Talker::new(&house, "Ada");
    (house, ada)
}

/// A message of a certain length.
fn long(n: usize) -> String {
    format!("region {n}: {}", "units and prices ".repeat(60)).trim().to_owned()
}

async fn talk(ada: &Talker, turns: std::ops::Range<usize>) {
    for n in turns {
        ada.say(&long(n));
        ada.reads_final(|text| text.starts_with(&format!("echo: region {n}:"))).await;
    }
}

/// Returns the messages of the newest request after the prompt, in the wire format.
fn asked(house: &House) -> Vec<serde_json::Value> {
    let asked = house.model.requests().pop().unwrap();
    asked.body["messages"].as_array().unwrap()[1..].to_vec()
}

#[tokio::test]
async fn compact_summarizes_at_once_and_says_what_that_saves() {
    let (house, ada) = furnished("summarization: {keep: {type: messages, value: 2}}\n").await;
    ada.says("/compact", "No active conversation.").await;
    ada.says("hello", "echo: hello").await;
    ada.says("/compact", "There is too little to summarize: the newest messages stay as they are, and a summary of the others has to save 400 tokens.").await;
    talk(&ada, 0..3).await;
    let before = house.model.count();
    ada.say("/compact");
    let said = ada.reads_so(|text| text.starts_with("I summarized the conversation: ")).await;
    assert!(said.contains("the model now reads about ") && said.contains(" tokens instead of "), "{said}");
    assert_eq!(house.model.count(), before + 1, "one call, for the summary");
    let summary = house.model.requests().pop().unwrap();
    assert_eq!(summary.tools(), house.model.requests()[0].tools(), "with the same tools");
    ada.says("and now?", "echo: and now?").await;
    let messages = asked(&house);
    let first = messages[0]["content"].as_str().unwrap();
    assert!(first.starts_with("<conversation_so_far>") && first.contains(SUMMARY), "{first}");
    assert!(!messages.iter().any(|message| message["content"].as_str().unwrap().contains("region 1:")));
    ada.say("/usage");
    let usage = ada.reads_so(|text| text.starts_with("Tokens in this conversation: ")).await;
    assert!(usage.contains("in 7 runs"), "the summary counts: {usage}");
}

#[tokio::test]
async fn compact_is_refused_while_a_run_works() {
    let (house, ada) = furnished("summarization: {keep: {type: messages, value: 2}}\n").await;
    talk(&ada, 0..3).await;
    house.model.next(slowly(&"hm ".repeat(400)));
    ada.say("talk");
    ada.reads_so(|text| text.contains("hm")).await;
    let calls = house.model.count();
    ada.says("/compact", "I am still working. Send /compact again when I am done.").await;
    assert_eq!(house.model.count(), calls);
    ada.say("/stop");
    ada.reads_so(|text| text.contains("Stopped.")).await;
}

#[tokio::test]
async fn a_summary_that_the_window_needs_is_told_once_and_outlives_a_restart() {
    let rules = "summarization: {trigger: {type: messages, value: 6}, keep: {type: messages, value: 2}}\n";
    let (mut house, ada) = furnished(rules).await;
    talk(&ada, 0..4).await;
    let told = |text: &str| text.matches(SUMMARIZED).count();
    let answers = || ada.answers().iter().map(|seen| told(&seen.text)).collect::<Vec<_>>();
    assert_eq!(answers(), [0, 0, 0, 1]);
    let before = asked(&house);
    house.kill();
    house.start();
    ada.says("go on", "echo: go on").await;
    let after = asked(&house);
    assert_eq!(after[..before.len()], before[..], "the same bytes after a restart");
    assert_eq!(answers(), [0, 0, 0, 1, 0]);
}

#[tokio::test]
async fn compact_says_where_summaries_are_off_and_where_the_model_writes_none() {
    let (_house, ada) =
        furnished("summarization: {enabled: false, keep: {type: messages, value: 2}}\n").await;
    talk(&ada, 0..3).await;
    ada.says("/compact", "Summaries are turned off here (summarization.enabled).").await;
    let mut house =
        House::furnish(Options::default(), "", "summarization: {keep: {type: messages, value: 2}}\n").await;
    house.start();
    house.model.when(summarizes, |_| Reply::text("OK.").into());
    let ada = Talker::new(&house, "Ada");
    talk(&ada, 0..3).await;
    let failed = "The model did not write a usable summary, so nothing has changed. Try again later.";
    ada.says("/compact", failed).await;
    ada.says("go on", "echo: go on").await;
    assert!(!asked(&house)[0].to_string().contains("conversation_so_far"));
}
