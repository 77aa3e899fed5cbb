//! User actions while the agent works.

use crate::house::{House, SOON, Talker};
use pudu_sim::{
    model::{At, Reply},
    telegram::{Kind, MessageId, Post},
};
use std::time::Duration;

/// A slow answer, during which something else happens.
fn slow() -> Reply {
    Reply::text("I am thinking about it very slowly indeed")
        .words_per_chunk(1)
        .every(Duration::from_millis(250))
        .into()
}

#[tokio::test]
async fn follow_ups_wait_are_seen_and_are_answered_together() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let mut hold = house.model.hold(1, At::End);
    house.model.next(slow());
    ada.say("first");
    hold.reached().await.unwrap();
    let (two, three) = (ada.say("second"), ada.say("third"));
    let both = house.telegram.wait(SOON, |view| (view.count("setMessageReaction") >= 2).then_some(()));
    both.await.unwrap_or_else(|timeout| panic!("{timeout}"));
    hold.proceed();
    ada.reads("echo: third").await;
    assert_eq!(house.model.count(), 2, "both are answered by one turn");
    let request = house.model.requests()[1].clone();
    let said: Vec<&str> = request.messages()[1..].iter().filter_map(|m| m["content"].as_str()).collect();
    assert_eq!(said, ["first", "I am thinking about it very slowly indeed", "second", "third"]);
    for message in [two, three] {
        let seen = house.telegram.transcript(ada.chat).into_iter().find(|seen| seen.id == message).unwrap();
        assert_eq!(seen.reactions, ["👀"], "each is acknowledged");
    }
    assert_eq!(ada.answers().len(), 2);
}

#[tokio::test]
async fn stop_stops_the_run_and_keeps_what_was_said() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    house.model.next(
        Reply::text("one two three").words_per_chunk(1).every(Duration::from_millis(300)).stall_after(2),
    );
    ada.say("count");
    ada.reads_so(|text| text.starts_with("one two")).await;
    ada.say("waiting");
    ada.say("/stop");
    house
        .telegram
        .wait(SOON, |view| {
            let answers = view.answers(ada.chat);
            let texts: Vec<&str> = answers.iter().map(|answer| answer.text.as_str()).collect();
            (texts == ["one two\n\nStopped.", "Stopped. One waiting message was dropped."]).then_some(())
        })
        .await
        .unwrap();
    house.model.wait(SOON, |_| (house.model.hangups() == 1).then_some(())).await.unwrap();
    ada.says("go on", "echo: go on").await;
    let request = house.model.requests()[1].clone();
    assert!(
        request.messages().iter().any(|m| m["content"] == "one two"),
        "what was said is remembered: {request:?}"
    );
}

#[tokio::test]
async fn the_stop_button_stops_and_needs_no_further_words() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::text("one two three").words_per_chunk(1).stall_after(2));
    ada.say("count");
    ada.reads_so(|text| text.starts_with("one two")).await;
    let answer = ada.answers()[0].clone();
    let press = house.telegram.press(ada.chat, ada.person, answer.id, "Stop").unwrap();
    ada.reads("one two\n\nStopped.").await;
    assert_eq!(ada.answers().len(), 1);
    let answered = house.telegram.wait(SOON, |view| {
        view.presses().iter().find(|other| other.id == press)?.answer.is_some().then_some(())
    });
    answered.await.unwrap();
}

#[tokio::test]
async fn in_steer_mode_a_message_reaches_the_run() {
    let house = House::open("follow_ups: steer").await;
    let ada = Talker::new(&house, "Ada");
    let hold = house.model.hold(1, At::Start);
    house.model.next(Reply::tool("ls", &serde_json::json!({"path": "/mnt/user-data"})));
    house.model.next(Reply::text("Très bien"));
    ada.say("hello");
    let mut hold = hold;
    hold.reached().await.unwrap();
    ada.say("in French please");
    house.acknowledged().await;
    hold.proceed();
    ada.reads("Très bien").await;
    let request = house.model.requests()[1].clone();
    assert_eq!((request.last_role(), request.last_user().as_str()), ("user", "in French please"));
    assert_eq!((house.model.count(), ada.answers().len()), (2, 1), "one answer for both");
}

#[tokio::test]
async fn a_message_that_comes_too_late_to_steer_is_answered_next() {
    let house = House::open("follow_ups: steer").await;
    let ada = Talker::new(&house, "Ada");
    let mut hold = house.model.hold(1, At::End);
    ada.say("hello");
    hold.reached().await.unwrap();
    ada.say("one more thing");
    house.acknowledged().await;
    hold.proceed();
    ada.reads("echo: one more thing").await;
    let texts: Vec<String> = ada.answers().into_iter().map(|answer| answer.text).collect();
    assert_eq!(texts, ["echo: hello", "echo: one more thing"]);
}

#[tokio::test]
async fn in_interrupt_mode_a_message_stops_the_run_and_is_answered() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    ada.says("/mode interrupt", "Mode interrupt: a new message stops my work, and I answer it at once.")
        .await;
    house.model.next(Reply::text("one two three").words_per_chunk(1).stall_after(2));
    ada.say("count");
    ada.reads_so(|text| text.starts_with("one two")).await;
    ada.say("never mind");
    ada.reads("echo: never mind").await;
    let texts: Vec<String> = ada.answers().into_iter().skip(1).map(|answer| answer.text).collect();
    assert_eq!(texts, ["one two\n\nStopped.", "echo: never mind"]);
}

#[tokio::test]
async fn an_edited_message_changes_its_turn_while_it_waits() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let mut hold = house.model.hold(1, At::End);
    ada.say("first");
    hold.reached().await.unwrap();
    let second = ada.say("secnod");
    house.acknowledged().await;
    house.telegram.edit(ada.chat, second, "second").unwrap();
    house.telegram.wait(SOON, |view| (view.waiting() == 0).then_some(())).await.unwrap();
    hold.proceed();
    ada.reads("echo: second").await;
    assert_eq!(house.model.count(), 2);
}

#[tokio::test]
async fn a_waiting_message_that_is_edited_into_a_command_is_one() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let mut hold = house.model.hold(1, At::End);
    ada.say("first");
    hold.reached().await.unwrap();
    let second = ada.say("statsu");
    house.acknowledged().await;
    house.telegram.edit(ada.chat, second, "/status").unwrap();
    ada.reads_so(|text| text.contains("State: working for")).await;
    hold.proceed();
    let answered = house
        .telegram
        .wait(SOON, |view| view.answers(ada.chat).into_iter().find(|answer| answer.text == "echo: first"));
    answered.await.unwrap();
    assert_eq!((house.model.count(), ada.answers().len()), (1, 2));
}

#[tokio::test]
async fn commands_are_answered_while_every_run_is_busy() {
    let house = House::furnish(Default::default(), "", "  max_concurrency: 1\n").await;
    let mut house = house;
    house.start();
    let (ada, bob) = (Talker::new(&house, "Ada"), Talker::new(&house, "Bob"));
    let mut hold = house.model.hold(1, At::End);
    ada.say("long work");
    hold.reached().await.unwrap();
    bob.say("me too");
    bob.reads_so(|text| text.starts_with('⏳')).await;
    bob.say("/status");
    let status = house.telegram.wait(SOON, |view| {
        view.answers(bob.chat).into_iter().find(|answer| answer.text.contains("Active thread"))
    });
    let status = status.await.unwrap().text;
    assert!(status.contains("State: working for") && status.contains("Model: sim"), "{status}");
    assert_eq!(house.model.count(), 1, "the limit of runs holds");
    hold.proceed();
    ada.reads("echo: long work").await;
    let done = house
        .telegram
        .wait(SOON, |view| view.answers(bob.chat).into_iter().find(|answer| answer.text == "echo: me too"));
    done.await.unwrap();
}

/// Ada and Bob in one topic, where another agent answers Bob.
struct Shared {
    house: House,
    ada: Talker,
    bob: Talker,
    topic: MessageId,
}

impl Shared {
    async fn open(follow_ups: &str) -> Self {
        let mut house = House::build("").await;
        let (ada, bob) = (Talker::new(&house, "Ada"), Talker::new(&house, "Bob"));
        let users = format!("session: {{users: {{'{}': {{assistant_id: poet}}}}}}\n", bob.person);
        house.configure(&format!("follow_ups: {follow_ups}\n{users}"), "");
        let folder = house.path(".pudu/users/default/agents/poet");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("SOUL.md"), "You are a poet.").unwrap();
        house.start();
        let forum = house.telegram.add_group(Kind::Forum, "team", &[ada.person, bob.person]);
        let topic = house.telegram.open_topic(forum, "red").unwrap();
        Self { ada: ada.at(forum), bob: bob.at(forum), house, topic }
    }

    fn says(&self, talker: &Talker, text: &str) {
        let post = Post::text(&format!("@pudu_bot {text}")).topic(self.topic);
        self.house.telegram.post(talker.chat, talker.person, &post).unwrap();
    }

    /// Waits until this number of messages was acknowledged as waiting.
    async fn waits(&self, count: u64) {
        let telegram = &self.house.telegram;
        let seen = telegram.wait(SOON, |view| (view.count("setMessageReaction") == count).then_some(()));
        seen.await.unwrap();
    }

    /// Returns for each request the user messages since the last answer, and whether the poet was asked.
    fn asked(&self) -> Vec<(Vec<String>, bool)> {
        let requests = self.house.model.requests();
        let one = requests.iter().map(|ask| {
            let since = ask.messages().iter().rev().take_while(|message| message["role"] != "assistant");
            let people = since.filter(|message| message["role"] == "user");
            let mut said: Vec<String> =
                people.map(|message| message["content"].as_str().unwrap().to_owned()).collect();
            said.reverse();
            (said, ask.messages()[0]["content"].as_str().unwrap().contains("You are a poet."))
        });
        one.collect()
    }
}

#[tokio::test]
async fn what_somebody_else_is_to_answer_is_a_turn_of_its_own() {
    let shared = Shared::open("queue").await;
    let mut hold = shared.house.model.hold(1, At::End);
    shared.says(&shared.ada, "one");
    hold.reached().await.unwrap();
    for (at, (talker, text)) in
        [(&shared.bob, "two"), (&shared.bob, "three"), (&shared.ada, "four")].into_iter().enumerate()
    {
        shared.says(talker, text);
        shared.waits(at as u64 + 1).await;
    }
    hold.proceed();
    shared.ada.reads("echo: [Ada] four").await;
    let turn = |said: &[&str], poet| (said.iter().map(|&text| text.to_owned()).collect::<Vec<_>>(), poet);
    let expect = [
        turn(&["[Ada] one"], false),
        turn(&["[Bob] two", "[Bob] three"], true),
        turn(&["[Ada] four"], false),
    ];
    assert_eq!(shared.asked(), expect);
}

#[tokio::test]
async fn nobody_steers_a_run_of_somebody_whom_another_agent_answers() {
    let shared = Shared::open("steer").await;
    let mut hold = shared.house.model.hold(1, At::Start);
    shared.house.model.next(Reply::tool("ls", &serde_json::json!({"path": "/mnt/user-data"})));
    shared.says(&shared.ada, "one");
    hold.reached().await.unwrap();
    shared.says(&shared.bob, "two");
    shared.waits(1).await;
    shared.says(&shared.ada, "three");
    shared.waits(2).await;
    hold.proceed();
    shared.ada.reads("echo: [Bob] two").await;
    let turn = |said: &[&str], poet| (said.iter().map(|&text| text.to_owned()).collect::<Vec<_>>(), poet);
    let expect = [turn(&["[Ada] one"], false), turn(&["[Ada] three"], false), turn(&["[Bob] two"], true)];
    assert_eq!(shared.asked(), expect);
}
