//! DingTalk's peculiarities: messages that cannot be edited, failing cards, reply URLs of messages, renewed sockets,
//! and limits.

use crate::house::{House, SOON};
use pudu_sim::{
    Call, DingTalk, Fault, Outcome, Platform, Then, When,
    dingtalk::{Options, Standing},
    model::{Answer, Reply},
    platform::{Shown, Words},
};
use rustix::process::{Signal, kill_process};
use serde_json::json;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::timeout;

/// Unacknowledged messages are repeated soon, so that no test waits a minute.
fn options(cards: bool) -> Options {
    Options { cards, repeat: Some(Duration::from_secs(2)), ..Options::default() }
}

/// A house on DingTalk, with Ada in a private chat.
struct Talk {
    house: House,
    dingtalk: DingTalk,
    ada: String,
}

impl Talk {
    async fn open(options: Options, account: &str) -> Self {
        let mut talk = Self::build(options, account).await;
        talk.start().await;
        talk
    }

    /// The same with a daemon that can be killed while it makes a call.
    async fn open_to_kill(options: Options) -> Self {
        let mut talk = Self::build(options, "").await;
        talk.house.in_its_own_process();
        talk.start().await;
        talk
    }

    async fn build(options: Options, account: &str) -> Self {
        let dingtalk = DingTalk::start(options).await.unwrap();
        let house = House::elsewhere(Arc::new(dingtalk.clone())).await;
        house.configure(account, "");
        let ada = dingtalk.person("Ada");
        Self { house, dingtalk, ada }
    }

    async fn start(&mut self) {
        self.house.start();
        assert!(self.dingtalk.connected(SOON).await, "{}", self.house.log());
    }

    fn say(&self, text: &str) -> String {
        self.say_in(&self.ada, &self.ada, text)
    }

    fn say_in(&self, chat: &str, person: &str, text: &str) -> String {
        self.dingtalk.write(&words(chat, person, text))
    }

    /// Waits until the last message has this text and is final.
    async fn reads(&self, chat: &str, answer: &str) -> Vec<Shown> {
        let there = |shown: &[Shown]| shown.last().is_some_and(|last| last.text == answer && !last.growing);
        self.sees(chat, there).await
    }

    async fn sees(&self, chat: &str, wanted: impl Fn(&[Shown]) -> bool) -> Vec<Shown> {
        let platform: &dyn Platform = &self.dingtalk;
        let found = platform
            .wait(chat, SOON, |platform| Some(platform.shown(chat)).filter(|shown| wanted(shown)))
            .await;
        found.unwrap_or_else(|timeout| panic!("{timeout}\n{}", self.house.log()))
    }

    fn texts(&self, chat: &str) -> Vec<String> {
        self.dingtalk.shown(chat).into_iter().map(|shown| shown.text).collect()
    }
}

fn words(chat: &str, person: &str, text: &str) -> Words {
    Words {
        chat: chat.to_owned(),
        person: person.to_owned(),
        text: text.to_owned(),
        to_bot: true,
        ..Words::default()
    }
}

fn slowly(text: &str) -> Answer {
    Reply::text(text).words_per_chunk(1).every(Duration::from_millis(150))
}

#[tokio::test]
async fn without_a_template_a_sign_comes_where_an_answer_takes_long_and_makes_room_for_it() {
    let talk = Talk::open(options(false), "").await;
    let begun = Instant::now();
    talk.say("hello");
    talk.reads(&talk.ada, "echo: hello").await;
    // An answer that takes longer has a sign, also a short one on a busy machine.
    if begun.elapsed() < Duration::from_secs(4) {
        assert_eq!(talk.dingtalk.count("robot/oToMessages/batchSend"), 1, "a short answer needs none");
    }
    talk.house.model.next(slowly("one two **three** four five six").after(Duration::from_secs(5)));
    talk.say("count");
    let sign = talk.sees(&talk.ada, |shown| shown.len() > 1).await;
    assert!(sign[1].text.starts_with("⏳ I am working on it. The answer follows."), "{sign:?}");
    talk.reads(&talk.ada, "one two three four five six").await;
    assert_eq!(talk.texts(&talk.ada), ["echo: hello", "one two three four five six"]);
    assert_eq!(talk.dingtalk.count("card/instances/createAndDeliver"), 0);
}

#[tokio::test]
async fn a_number_means_what_was_offered_in_words() {
    let talk = Talk::open(options(false), "").await;
    talk.say("/mode");
    let offered = |shown: &[Shown]| {
        shown.last().is_some_and(|last| last.text.contains("2. interrupt (/mode interrupt)"))
    };
    talk.sees(&talk.ada, offered).await;
    talk.say("1");
    let steer = |shown: &[Shown]| shown.iter().any(|one| one.text.contains("Mode steer"));
    talk.sees(&talk.ada, steer).await;
    assert_eq!(talk.house.model.count(), 0);
    talk.say("2");
    talk.reads(&talk.ada, "echo: 2").await;
}

#[tokio::test]
async fn a_card_that_is_not_delivered_is_a_message() {
    let talk = Talk::open(options(true), "").await;
    talk.dingtalk.lose_cards(1);
    talk.say("hello");
    talk.reads(&talk.ada, "echo: hello").await;
    assert_eq!(talk.texts(&talk.ada), ["echo: hello"]);
    talk.say("and now");
    let shown = talk.reads(&talk.ada, "echo: and now").await;
    assert_eq!(shown.len(), 2);
    assert!(!talk.dingtalk.history(&talk.ada, &shown[1].id).is_empty());
    assert_eq!(talk.dingtalk.count("card/instances/createAndDeliver"), 2, "the next reply is a card again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_template_without_the_variable_costs_the_growing_and_nothing_else() {
    let card = format!("card_template_id: {}\ncard_content_key: wrong\n", Options::default().template);
    let talk = Talk::open(options(false), &card).await;
    talk.house.model.next(slowly("one two three four five six"));
    talk.say("count");
    talk.reads(&talk.ada, "one two three four five six").await;
    // Cards pause then: the next reply leaves no other card.
    talk.say("hello");
    talk.reads(&talk.ada, "echo: hello").await;
    assert_eq!(
        talk.dingtalk.count("card/instances/createAndDeliver"),
        0,
        "nobody sees a card that does not work"
    );
    assert_eq!(talk.texts(&talk.ada), ["one two three four five six", "echo: hello"]);
    let log = talk.house.log();
    assert!(log.contains("card_content_key") && log.contains("no Markdown variable `wrong`"), "{log}");
    let (_, said) = talk.house.pudu(&["doctor"]);
    assert!(said.contains("no Markdown variable `wrong`"), "{said}");
}

#[tokio::test]
async fn what_does_not_fit_a_card_comes_as_a_message() {
    let talk = Talk::open(options(true), "").await;
    talk.dingtalk.limit_card(Some(60));
    let text = "word ".repeat(40).trim_end().to_owned();
    talk.house.model.next(slowly(&text));
    talk.say("a lot");
    talk.reads(&talk.ada, &text).await;
    let texts = talk.texts(&talk.ada);
    assert_eq!(texts.iter().filter(|shown| **shown == text).count(), 1, "{texts:?}");
    assert!(talk.dingtalk.shown(&talk.ada).iter().all(|shown| !shown.growing), "no card is left spinning");
}

#[tokio::test]
async fn somebody_from_outside_is_answered_at_the_messages_own_address() {
    let talk = Talk::open(options(true), "").await;
    let eve = talk.dingtalk.outsider("Eve");
    talk.say_in(&eve, &eve, "hello");
    talk.reads(&eve, "echo: hello").await;
    assert!(talk.dingtalk.count("sessionWebhook") > 0);
    assert_eq!(talk.dingtalk.count("robot/oToMessages/batchSend"), 0);
}

#[tokio::test]
async fn an_app_without_permission_or_calls_still_answers() {
    let talk = Talk::open(options(true), "").await;
    for scope in ["qyapi_robot_sendmsg", "Card.Instance.Write"] {
        talk.dingtalk.permit(scope, false);
    }
    let group = talk.dingtalk.group("Team", &[&talk.ada]);
    talk.say_in(&group, &talk.ada, "hello");
    talk.reads(&group, "echo: [Ada] hello").await;
    talk.dingtalk.limit_month(Some(0));
    talk.say("and now");
    talk.reads(&talk.ada, "echo: and now").await;
}

#[tokio::test]
async fn no_message_falls_between_two_sockets() {
    // Without repetition: messages in between are lost.
    let talk = Talk::open(Options { repeat: None, ..options(true) }, "").await;
    // A socket that ends right after its start is renewed after a pause.
    for round in 0..3 {
        talk.dingtalk.disconnect();
        assert!(talk.dingtalk.renewed(SOON).await, "{}", talk.house.log());
        talk.say(&format!("round {round}"));
        talk.reads(&talk.ada, &format!("echo: round {round}")).await;
    }
}

#[tokio::test]
async fn strange_events_do_no_harm_to_their_neighbours() {
    let talk = Talk::open(options(true), "").await;
    let ada = words(&talk.ada, &talk.ada, "");
    for body in [
        json!({"msgtype": "text"}),
        json!({"msgtype": "interactiveCard", "content": 7}),
        json!({"msgtype": null}),
    ] {
        talk.dingtalk.post(&ada, &body);
    }
    talk.dingtalk.tell("CALLBACK", "/v1.0/im/bot/messages/get", json!("not an object"));
    talk.dingtalk.tell(
        "CALLBACK",
        "/v1.0/card/instances/callback",
        json!({"outTrackId": "p-x-y", "userId": talk.ada}),
    );
    talk.say("hello");
    talk.sees(&talk.ada, |shown| shown.iter().any(|shown| shown.text == "echo: hello" && !shown.growing))
        .await;
    let platform: &dyn Platform = &talk.dingtalk;
    let dingtalk = talk.dingtalk.clone();
    platform.wait(&talk.ada, SOON, |_| (dingtalk.unacknowledged() == 0).then_some(())).await.unwrap();
}

#[tokio::test]
async fn a_pressed_button_of_another_place_does_nothing() {
    let talk = Talk::open(options(true), "").await;
    talk.house.model.next(slowly(&"and on ".repeat(60)));
    talk.say("talk");
    let card = talk.sees(&talk.ada, |shown| shown.iter().any(|shown| shown.text.contains("and on"))).await[0]
        .id
        .clone();
    let bob = talk.dingtalk.person("Bob");
    let content = json!({"cardPrivateData": {"actionIds": ["/stop"], "params": {}}}).to_string();
    for space in [talk.ada.as_str(), "cidG1=="] {
        let press = json!({"outTrackId": card, "userId": bob, "spaceId": space, "spaceType": "IM_GROUP", "content": content});
        talk.dingtalk.tell("CALLBACK", "/v1.0/card/instances/callback", press);
    }
    let whole = "and on ".repeat(60).trim_end().to_owned();
    talk.reads(&talk.ada, &whole).await;
    assert_eq!(talk.texts(&bob), [""; 0]);
}

#[tokio::test]
async fn a_group_is_one_conversation_or_each_persons_own() {
    for (setting, known) in [("", true), ("group_conversations: user\n", false)] {
        let talk = Talk::open(options(true), setting).await;
        let bob = talk.dingtalk.person("Bob");
        let group = talk.dingtalk.group("Team", &[&talk.ada, &bob]);
        talk.say_in(&group, &talk.ada, "mine");
        talk.reads(&group, "echo: [Ada] mine").await;
        talk.say_in(&group, &bob, "his");
        talk.reads(&group, "echo: [Bob] his").await;
        let request = talk.house.model.requests()[1].clone();
        let told = request.messages().iter().any(|message| message["content"] == "[Ada] mine");
        assert_eq!(told, known, "{request:?}");
    }
}

#[tokio::test]
async fn limits_and_expired_tokens_delay_and_lose_nothing() {
    let talk = Talk::open(options(true), "").await;
    talk.say("one");
    talk.reads(&talk.ada, "echo: one").await;
    talk.dingtalk.expire_token();
    talk.dingtalk.limit_qps(Some(2));
    talk.house.model.next(slowly("one two three four five six seven eight"));
    talk.say("two");
    talk.reads(&talk.ada, "one two three four five six seven eight").await;
    assert_eq!(talk.texts(&talk.ada).len(), 2);
}

#[tokio::test]
async fn a_person_who_gets_too_much_is_told_later() {
    let talk = Talk::open(options(false), "").await;
    talk.dingtalk.standing(&talk.ada, Standing::Flooded(1));
    talk.say("hello");
    talk.reads(&talk.ada, "echo: hello").await;
}

#[tokio::test]
async fn what_was_said_and_shown_reaches_the_agent() {
    let talk = Talk::open(options(true), "").await;
    let files = vec![("a.amr".to_owned(), "sound".into())];
    talk.dingtalk.write(&Words { files, ..words(&talk.ada, &talk.ada, "") });
    talk.sees(&talk.ada, |shown| {
        shown.iter().any(|shown| shown.text.contains("what was said") && !shown.growing)
    })
    .await;
    let files = vec![("a.png".to_owned(), "pixels".into())];
    talk.dingtalk.write(&Words { files, ..words(&talk.ada, &talk.ada, "look at this") });
    talk.sees(&talk.ada, |shown| {
        shown.iter().any(|shown| shown.text.contains("look at this") && !shown.growing)
    })
    .await;
    let request = talk.house.model.requests()[1].clone();
    assert!(request.last_user().contains("picture-1.png"), "{request:?}");
}

#[tokio::test]
async fn a_wrong_secret_is_said_and_not_tried_again() {
    let dingtalk = DingTalk::start(options(true)).await.unwrap();
    let mut house = House::elsewhere(Arc::new(dingtalk.clone())).await;
    dingtalk.change_secret("another-secret-than-the-configured-one");
    house.start();
    let mut body = String::new();
    for _ in 0..300 {
        body = house.get("/ready").await.1;
        if body.contains("auth_failed") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(body.contains("auth_failed"), "{body}");
    assert!(!house.log().contains(&Options::default().client_secret), "the secret is in no log");
    assert_eq!(dingtalk.count("gateway/connections/open"), 1);
}

#[tokio::test]
async fn a_message_with_an_unknown_outcome_is_there_at_most_twice() {
    let talk = Talk::open(options(false), "").await;
    talk.dingtalk.fail("robot/oToMessages/batchSend", 2, Fault::CutAfter);
    talk.house.model.next(slowly("one two three four"));
    talk.say("count");
    talk.reads(&talk.ada, "one two three four").await;
    talk.say("next");
    talk.reads(&talk.ada, "echo: next").await;
    let times = talk.texts(&talk.ada).iter().filter(|text| *text == "one two three four").count();
    assert!((1..=2).contains(&times), "{:?}", talk.texts(&talk.ada));
}

#[tokio::test]
async fn an_answer_that_nobody_confirms_for_a_while_arrives_all_the_same() {
    let talk = Talk::open(options(false), "").await;
    talk.say("hello");
    talk.reads(&talk.ada, "echo: hello").await;
    for nth in 1..=4 {
        talk.dingtalk.fail("robot/oToMessages/batchSend", nth, Fault::BadGateway);
    }
    talk.say("still there?");
    talk.reads(&talk.ada, "echo: still there?").await;
    assert_eq!(talk.texts(&talk.ada), ["echo: hello", "echo: still there?"]);
}

#[tokio::test]
async fn a_sign_that_cannot_be_taken_back_is_not_sent() {
    type Happens<'a> = &'a dyn Fn(&Talk);
    let refused = |talk: &Talk| {
        let fault = Fault::Refused(403, "Forbidden.AccessDenied.AccessTokenPermissionDenied".to_owned());
        talk.dingtalk.stage().fail_always("robot/otoMessages/batchRecall", fault);
    };
    let cases: [(&str, Happens<'_>); 4] = [
        ("somebody from outside", &|_| {}),
        ("no permission to send", &|talk| talk.dingtalk.permit("qyapi_robot_sendmsg", false)),
        ("the month's calls are used up", &|talk| talk.dingtalk.limit_month(Some(0))),
        ("nothing is taken back", &refused),
    ];
    for (n, (case, happens)) in cases.into_iter().enumerate() {
        let mut talk = Talk::open(options(false), "").await;
        if n == 0 {
            talk.ada = talk.dingtalk.outsider("Eve");
        }
        happens(&talk);
        for (text, after) in [("hello", 5), ("and now", 0)] {
            let answer = slowly(&format!("one two three {text}")).after(Duration::from_secs(after));
            talk.house.model.next(answer);
            talk.say(text);
            talk.reads(&talk.ada, &format!("one two three {text}")).await;
        }
        assert_eq!(talk.texts(&talk.ada), ["one two three hello", "one two three and now"], "{case}");
    }
}

#[tokio::test]
async fn a_sign_is_taken_back_when_dingtalk_takes_it_back_at_last() {
    let mut talk = Talk::open(options(false), "").await;
    talk.house.model.next(slowly("one two three").after(Duration::from_secs(5)));
    talk.say("count");
    talk.sees(&talk.ada, |shown| shown.first().is_some_and(|sign| sign.text.starts_with('⏳'))).await;
    let fault = Fault::Refused(403, "Forbidden.AccessDenied.AccessTokenPermissionDenied".to_owned());
    talk.dingtalk.stage().fail_always("robot/otoMessages/batchRecall", fault);
    talk.sees(&talk.ada, |shown| shown.last().is_some_and(|last| last.text == "one two three")).await;
    assert_eq!(talk.texts(&talk.ada).len(), 2, "the answer does not wait for it");
    talk.house.logs("delivered reply; deleting the rest later").await;
    talk.house.kill();
    talk.house.start();
    talk.say("and now");
    talk.reads(&talk.ada, "echo: and now").await;
    talk.dingtalk.heal();
    talk.sees(&talk.ada, |shown| shown.len() == 2).await;
    assert_eq!(talk.texts(&talk.ada), ["one two three", "echo: and now"]);
}

#[tokio::test]
async fn words_that_are_refused_for_good_leave_no_half_answer() {
    for cards in [true, false] {
        let talk = Talk::open(options(cards), "").await;
        talk.dingtalk.forbid("tiananmen");
        talk.house.model.next(slowly("one two three four five six seven tiananmen eight nine ten"));
        talk.say("count");
        let told =
            |shown: &[Shown]| shown.iter().any(|one| one.text.contains("DingTalk does not accept my answer"));
        talk.sees(&talk.ada, told).await;
        let shown = talk.dingtalk.shown(&talk.ada);
        let finished = |one: &Shown| !one.growing && one.buttons.is_empty() && !one.text.contains("three");
        assert!(shown.iter().all(finished), "{shown:#?}");
        talk.say("and now");
        talk.reads(&talk.ada, "echo: and now").await;
    }
}

/// An answer of many pages: the daemon dies in the middle.
#[tokio::test]
async fn an_answer_of_several_cards_that_was_killed_leaves_no_card_behind() {
    let text: String = (0..900).map(|n| format!("word{n} ")).collect();
    let text = text.trim_end();
    let mut talk = Talk::open(options(true), "").await;
    talk.house.model.otherwise({
        let text = text.to_owned();
        move |_| Reply::text(&text).words_per_chunk(30).every(Duration::from_millis(150)).into()
    });
    talk.say("count");
    for wanted in ["word600", "word880"] {
        talk.sees(&talk.ada, |shown| shown.iter().any(|one| one.text.contains(wanted))).await;
        talk.house.kill();
        talk.house.start();
    }
    talk.sees(&talk.ada, |shown| {
        shown.last().is_some_and(|last| last.text.ends_with("word899") && !last.growing)
    })
    .await;
    let whole = talk.texts(&talk.ada).join(" ");
    assert_eq!(whole, text);
    assert_eq!(talk.dingtalk.misused(), [""; 0]);
}

/// Kills the daemon at a call, before or after its effect, and starts it again.
async fn killed_at(talk: &mut Talk, method: &str, nth: u64, when: When) {
    let (pid, (tell, killed)) = (talk.house.pid(), tokio::sync::oneshot::channel());
    let kill = move |_: &Call| {
        kill_process(pid, Signal::KILL).ok();
        tell.send(()).ok();
        Then::Cut
    };
    talk.dingtalk.on_call(method, nth, when, Box::new(kill));
    // Slow enough for a progress sign without cards.
    talk.house.model.next(slowly(&(0..40).map(|n| format!("word{n} ")).collect::<String>()));
    talk.say("count");
    // The daemon survives if this reply does not make the call.
    let was_killed = timeout(SOON, killed).await.is_ok();
    talk.dingtalk.heal();
    if was_killed {
        talk.house.kill();
        talk.house.start();
    }
}

#[tokio::test]
async fn a_card_is_there_once_wherever_the_daemon_is_killed() {
    let cases = [
        ("card/instances/createAndDeliver", 1),
        ("card/streaming", 1),
        ("card/streaming", 3),
        ("card/instances", 1),
    ];
    for (method, nth) in cases {
        for when in [When::Before, When::After] {
            let mut talk = Talk::open_to_kill(options(true)).await;
            killed_at(&mut talk, method, nth, when).await;
            let ended =
                |shown: &[Shown]| shown.last().is_some_and(|last| !last.growing && last.buttons.is_empty());
            talk.sees(&talk.ada, ended).await;
            talk.say("and now");
            talk.reads(&talk.ada, "echo: and now").await;
            let shown = talk.dingtalk.shown(&talk.ada);
            assert_eq!(shown.len(), 2, "{method} {nth} {when:?}: {shown:#?}");
        }
    }
}

#[tokio::test]
async fn a_message_is_there_at_most_twice_wherever_the_daemon_is_killed() {
    for nth in [1, 2] {
        for when in [When::Before, When::After] {
            let mut talk = Talk::open_to_kill(options(false)).await;
            killed_at(&mut talk, "robot/oToMessages/batchSend", nth, when).await;
            let answer = |shown: &[Shown]| shown.last().is_some_and(|last| !last.text.starts_with('⏳'));
            talk.sees(&talk.ada, answer).await;
            talk.say("and now");
            talk.reads(&talk.ada, "echo: and now").await;
            let texts = talk.texts(&talk.ada);
            assert!((2..=3).contains(&texts.len()), "{nth} {when:?}: {texts:#?}");
        }
    }
}

// The test's thread waits for the doctor's process: the simulator needs another thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_names_what_is_missing_and_its_mend() {
    let dingtalk = DingTalk::start(options(true)).await.unwrap();
    let house = House::elsewhere(Arc::new(dingtalk.clone())).await;
    let (well, said) = house.pudu(&["doctor"]);
    assert!(well && said.contains("a connection can be opened"), "{said}");
    for call in ["card/streaming", "card/instances/create"].map(|method| dingtalk.calls(method)).concat() {
        assert!(matches!(call.outcome, Outcome::Answered(_)), "it is a card that is there: {call:?}");
    }
    for scope in ["qyapi_robot_sendmsg", "Card.Streaming.Write"] {
        dingtalk.permit(scope, false);
    }
    let (well, said) = house.pudu(&["doctor"]);
    assert!(!well && said.contains("apply for qyapi_robot_sendmsg"), "{said}");
    assert!(said.contains("apply for Card.Streaming.Write"), "{said}");
    dingtalk.change_secret("another-secret-than-the-configured-one");
    let (well, said) = house.pudu(&["doctor"]);
    assert!(!well && said.contains("copy Client ID and Client Secret"), "{said}");
    assert!(!said.contains(&Options::default().client_secret), "{said}");
    assert!(dingtalk.shown("").is_empty() && dingtalk.sockets() == 0, "it changes nothing");
}
