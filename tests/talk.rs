//! Conversations in Telegram, as users see them.

use crate::house::{House, SOON, Talker};
use pudu_sim::{
    model::Reply,
    telegram::{Kind, Options, Post},
};
use std::time::Duration;

#[tokio::test]
async fn a_message_becomes_one_streamed_answer() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::text("one two three four").words_per_chunk(1).every(Duration::from_millis(600)));
    ada.say("count");
    ada.reads("one two three four").await;
    let answers = ada.answers();
    assert_eq!(answers.len(), 1);
    assert!(answers[0].preview_off);
    assert_eq!(answers[0].buttons, Vec::<Vec<_>>::new());
    let texts: Vec<String> =
        house.telegram.history(ada.chat, answers[0].id).into_iter().map(|shown| shown.text).collect();
    assert!(texts.iter().any(|text| text.starts_with("one") && !text.contains("four")), "{texts:?}");
    assert_eq!(house.model.count(), 1, "one model call for a plain answer");
    let request = house.model.requests()[0].clone();
    assert_eq!((request.last_user().as_str(), request.wants_stream()), ("count", true));
}

#[tokio::test]
async fn a_conversation_remembers_what_was_said() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    ada.says("my name is Ada", "echo: my name is Ada").await;
    ada.says("what is my name?", "echo: what is my name?").await;
    let request = house.model.requests()[1].clone();
    let said: Vec<&str> = request.messages()[1..].iter().filter_map(|m| m["content"].as_str()).collect();
    assert_eq!(said, ["my name is Ada", "echo: my name is Ada", "what is my name?"]);
}

#[tokio::test]
async fn a_long_answer_with_code_goes_on_in_further_messages() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let code: String = (0..400).map(|n| format!("let line_{n} = \"{n}\";\n")).collect();
    let text =
        format!("Here it is:\n\n```rust\n{code}```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThat was **all**.");
    house.model.next(Reply::text(&text).words_per_chunk(50));
    ada.say("code");
    house
        .telegram
        .wait(SOON, |view| view.last_answer(ada.chat)?.ends_with("That was all.").then_some(()))
        .await
        .unwrap();
    let answers = ada.answers();
    assert!(answers.len() > 1, "it does not fit one message");
    let whole: String = answers.iter().map(|answer| format!("{}\n", answer.text)).collect();
    for n in 0..400 {
        assert_eq!(whole.matches(&format!("let line_{n} = ")).count(), 1, "line {n}");
    }
    for answer in &answers {
        assert!(answer.text.encode_utf16().count() <= 4096);
        assert!(answer.entities.iter().any(|entity| entity.kind == "pre"), "code stays code");
    }
}

#[tokio::test]
async fn a_group_is_answered_only_when_it_asks_and_a_reply_goes_on() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let bob = Talker::new(&house, "Bob");
    let group = house.telegram.add_group(Kind::Supergroup, "team", &[ada.person, bob.person]);
    let (ada, bob) = (ada.at(group), bob.at(group));
    ada.say("hello all");
    let asked = ada.says("@pudu_bot what is new?", "echo: [Ada] what is new?").await;
    let answer = ada.answers()[0].clone();
    assert_eq!(answer.reply_to, Some(asked));
    assert_eq!(house.model.count(), 1, "what is said to others costs nothing");
    let more = Post::text("and since?").reply_to(answer.id);
    house.telegram.post(group, bob.person, &more).unwrap();
    bob.reads("echo: [Bob] and since?").await;
    let request = house.model.requests()[1].clone();
    assert!(request.messages().iter().any(|m| m["content"] == "[Ada] what is new?"), "{request:?}");
    ada.says("@pudu_bot another thing", "echo: [Ada] another thing").await;
    let request = house.model.requests()[2].clone();
    assert_eq!(request.messages().len(), 2, "a new question in a group begins a new conversation");
}

#[tokio::test]
async fn a_group_may_let_the_bot_answer_everything() {
    let house = House::open("require_mention: false").await;
    let ada = Talker::new(&house, "Ada");
    let ada = ada.at(house.telegram.add_group(Kind::Group, "team", &[ada.person]));
    ada.says("hello all", "echo: [Ada] hello all").await;
}

#[tokio::test]
async fn each_forum_topic_is_a_conversation_of_its_own() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let forum = house.telegram.add_group(Kind::Forum, "team", &[ada.person]);
    let (red, blue) =
        (house.telegram.open_topic(forum, "red").unwrap(), house.telegram.open_topic(forum, "blue").unwrap());
    let ada = ada.at(forum);
    for (topic, text) in [(red, "one"), (blue, "two"), (red, "three")] {
        let post = Post::text(&format!("@pudu_bot {text}")).topic(topic);
        house.telegram.post(forum, ada.person, &post).unwrap();
        ada.reads(&format!("echo: [Ada] {text}")).await;
        assert_eq!(ada.answers().last().unwrap().topic, Some(topic));
    }
    let request = house.model.requests()[2].clone();
    let said: Vec<&str> = request.messages()[1..].iter().filter_map(|m| m["content"].as_str()).collect();
    assert_eq!(said, ["[Ada] one", "echo: [Ada] one", "[Ada] three"]);
}

#[tokio::test]
async fn only_those_on_the_list_are_answered_and_a_stranger_is_told_once() {
    let house = House::build("").await;
    let (ada, eve) = (Talker::new(&house, "Ada"), Talker::new(&house, "Eve"));
    house.configure(&format!("allowed_users: {}", ada.person), "");
    let mut house = house;
    house.start();
    eve.say("let me in");
    let told =
        format!("I do not know you yet, so I cannot answer. Ask your admin to allow your id: {}", eve.person);
    eve.reads(&told).await;
    eve.say("please");
    eve.say("/status");
    house
        .telegram
        .post(
            eve.chat,
            eve.person,
            &Post::text("look").file(pudu_sim::telegram::Upload::document("a.txt", "text/plain", "hi")),
        )
        .unwrap();
    ada.says("hello", "echo: hello").await;
    assert_eq!(eve.answers().len(), 1, "a stranger is told once, not with each message");
    assert_eq!(house.telegram.count("getFile"), 0, "a stranger's file is not fetched");
    assert_eq!(house.model.count(), 1);
}

#[tokio::test]
async fn webhooks_need_their_secret_and_each_update_counts_once() {
    let options = Options { webhook_retry: Duration::from_millis(50), ..Options::default() };
    let mut house = House::furnish(options, "", "").await;
    // The port has to be known before the start, because Telegram is given its address.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    house.bind = format!("127.0.0.1:{port}");
    let url = format!("http://127.0.0.1:{port}/api/webhooks/telegram/telegram");
    house
        .configure(&format!("mode: webhook\nwebhook:\n  url: {url}\n  secret_token: open-sesame-simsim"), "");
    house.start();
    let ada = Talker::new(&house, "Ada");
    ada.says("by hook", "echo: by hook").await;
    let update = house.telegram.last_update().unwrap();
    house.telegram.redeliver(update);
    ada.says("again", "echo: again").await;
    assert_eq!(ada.answers().len(), 2);
    let forged = crate::house::http().post(&url).body("{}").send().await.unwrap();
    assert_eq!(forged.status(), 401);
}
