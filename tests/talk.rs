//! Talks in Telegram, as people see them.

use crate::house::{House, SOON};
use pudu_sim::{
    model::Reply,
    telegram::{Kind, Post},
};
use std::time::Duration;

#[tokio::test]
async fn a_message_becomes_one_streamed_answer() {
    let house = House::open("").await;
    let ada = house.telegram.add_person("Ada", None);
    let chat = house.telegram.private(ada);
    house.model.next(Reply::text("one two three four").words_per_chunk(1).every(Duration::from_millis(600)));
    house.telegram.say(chat, ada, "count").unwrap();
    house.telegram.wait_answer(chat, "one two three four", SOON).await.unwrap();
    let answers = house.telegram.look(|view| view.answers(chat));
    assert_eq!(answers.len(), 1);
    assert!(answers[0].preview_off);
    assert_eq!(answers[0].buttons, Vec::<Vec<_>>::new());
    let texts: Vec<String> =
        house.telegram.history(chat, answers[0].id).into_iter().map(|shown| shown.text).collect();
    assert!(texts.iter().any(|text| text.starts_with("one") && !text.contains("four")), "{texts:?}");
    assert_eq!(house.model.count(), 1, "one model call for a plain answer");
    let request = house.model.requests()[0].clone();
    assert_eq!(request.last_user(), "count");
}

#[tokio::test]
async fn a_group_is_answered_only_when_it_asks_and_a_reply_goes_on() {
    let house = House::open("").await;
    let (ada, bob) = (house.telegram.add_person("Ada", None), house.telegram.add_person("Bob", None));
    let group = house.telegram.add_group(Kind::Supergroup, "team", &[ada, bob]);
    house.telegram.say(group, ada, "hello all").unwrap();
    let asked = house.telegram.say(group, ada, "@pudu_bot what is new?").unwrap();
    house.telegram.wait_answer(group, "echo: [Ada] what is new?", SOON).await.unwrap();
    let answer = house.telegram.look(|view| view.answers(group))[0].clone();
    assert_eq!(answer.reply_to, Some(asked));
    assert_eq!(house.model.count(), 1, "what is said to others costs nothing");
    let more = Post::text("and since?").reply_to(answer.id);
    house.telegram.post(group, bob, &more).unwrap();
    house.telegram.wait_answer(group, "echo: [Bob] and since?", SOON).await.unwrap();
    let request = house.model.requests()[1].clone();
    assert!(request.messages().iter().any(|m| m["content"] == "[Ada] what is new?"), "{request:?}");
}
