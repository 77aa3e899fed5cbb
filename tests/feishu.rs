//! Feishu's peculiarities: closed streams, missing scopes, fragments, expired tokens, topics, presses after a restart,
//! sealed posts.

use crate::house::{House, SOON};
use pudu_sim::{
    Fault, Feishu, Platform, Then, When,
    feishu::{Chunks, Options, Order, Said},
    model::{Answer, At, Reply},
    platform::{Shown, Words},
};
use rustix::process::{Signal, kill_process};
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// A house on Feishu, with Ada in a private chat.
pub(crate) struct Scene {
    pub(crate) house: House,
    pub(crate) feishu: Feishu,
    pub(crate) ada: String,
    pub(crate) chat: String,
}

impl Scene {
    pub(crate) async fn open(account: &str) -> Self {
        let mut scene = Self::build(Options::default(), account).await;
        scene.house.start();
        scene
    }

    pub(crate) async fn build(options: Options, account: &str) -> Self {
        let feishu = Feishu::start(options).await.unwrap();
        let house = House::elsewhere(Arc::new(feishu.clone())).await;
        house.configure(account, "");
        let ada = feishu.person("Ada");
        let chat = feishu.private(&ada);
        Self { house, feishu, ada, chat }
    }

    /// Restarts the daemon and waits until it is connected: presses are not repeated.
    pub(crate) async fn start(&mut self) {
        let before = self.count("ws.connect");
        self.house.start();
        self.sees(&self.chat, |_| (self.count("ws.connect") > before).then_some(())).await;
        self.sees(&self.chat, |_| (self.feishu.connections() == 1).then_some(())).await;
    }

    pub(crate) fn say(&self, text: &str) -> String {
        self.write(&self.chat, text, None)
    }

    fn write(&self, chat: &str, text: &str, answers: Option<&str>) -> String {
        self.feishu.write(&Words {
            chat: chat.to_owned(),
            person: self.ada.clone(),
            text: text.to_owned(),
            to_bot: true,
            answers: answers.map(str::to_owned),
            files: Vec::new(),
        })
    }

    async fn sees<T>(&self, chat: &str, wanted: impl Fn(&[Shown]) -> Option<T>) -> T {
        let found = self.feishu.wait(chat, SOON, |feishu| wanted(&feishu.shown(chat))).await;
        found.unwrap_or_else(|timeout| panic!("{timeout}\n{}", self.house.log()))
    }

    /// Waits until the last message in a chat is final and has this text.
    async fn reads(&self, chat: &str, answer: &str) -> Shown {
        let finished = |shown: &[Shown]| {
            let last = shown.last()?;
            (!last.growing && last.text == answer && !last.buttons.contains(&"Stop".to_owned()))
                .then(|| last.clone())
        };
        self.sees(chat, finished).await
    }

    /// Ada sends a message, which is echoed.
    async fn talks(&self, text: &str) -> Shown {
        self.say(text);
        self.reads(&self.chat, &format!("echo: {text}")).await
    }

    fn words(&self, chat: &str) -> Vec<String> {
        self.feishu.shown(chat).into_iter().map(|shown| shown.text).collect()
    }

    fn count(&self, method: &str) -> usize {
        self.feishu.calls(method).len()
    }

    /// Waits for this text in the health status.
    async fn is_told(&self, words: &str) {
        let told = async {
            while !self.house.get("/ready").await.1.contains(words) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(SOON, told).await.unwrap_or_else(|_| panic!("{}", self.house.log()));
    }

    /// Checks that the bot followed the protocol and acknowledged all events.
    async fn is_clean(&self) {
        assert_eq!(self.feishu.violations(), [""; 0]);
        self.sees(&self.chat, |_| (self.feishu.waiting() == 0).then_some(())).await;
        assert_eq!(self.count("unknown"), 0);
    }
}

/// An answer that arrives word by word.
fn slowly(text: &str) -> Answer {
    Reply::text(text).words_per_chunk(1).every(Duration::from_millis(150))
}

/// An answer with time for an update at each word, also on a busy machine.
fn at_leisure(text: &str) -> Answer {
    slowly(text).every(Duration::from_millis(700))
}

#[tokio::test]
async fn an_answer_streams_into_a_card_that_is_closed_with_a_summary() {
    let scene = Scene::open("stream_interval_ms: 150\n").await;
    scene.house.model.next(at_leisure("one two three four five six seven eight"));
    scene.say("count");
    let shown = scene.reads(&scene.chat, "one two three four five six seven eight").await;
    assert_eq!(scene.words(&scene.chat).len(), 1);
    assert!(scene.count("cardkit.element.content") > 2, "it streamed");
    assert_eq!(scene.count("im.message.patch"), 0);
    scene.sees(&scene.chat, |_| (scene.count("cardkit.card.settings") == 1).then_some(())).await;
    assert_eq!(scene.feishu.preview(&shown.id), "one two three four five six seven eight");
    scene.is_clean().await;
}

#[tokio::test]
async fn a_stream_that_the_platform_closes_is_opened_again() {
    let scene = Scene::open("stream_interval_ms: 150\n").await;
    scene.house.model.next(slowly(&"and on ".repeat(15)));
    scene.say("talk");
    let begun = |shown: &[Shown]| shown.first().filter(|shown| shown.text.contains("and on and")).cloned();
    let before = scene.sees(&scene.chat, begun).await;
    scene.feishu.expire_streams();
    let more = |shown: &[Shown]| {
        shown.first().filter(|shown| shown.growing && shown.text.len() > before.text.len() + 20).cloned()
    };
    scene.sees(&scene.chat, more).await;
    let shown = scene.reads(&scene.chat, "and on ".repeat(15).trim()).await;
    assert_eq!((shown.id, scene.words(&scene.chat).len()), (before.id, 1));
    scene.is_clean().await;
}

#[tokio::test]
async fn without_the_scope_of_cards_an_answer_is_replaced_as_it_grows() {
    let scene = Scene::open("stream_interval_ms: 150\n").await;
    scene.feishu.take_scope("cardkit:card:write");
    scene.house.model.next(at_leisure("one two three four five six seven eight"));
    scene.say("count");
    let shown = scene.reads(&scene.chat, "one two three four five six seven eight").await;
    assert_eq!(scene.words(&scene.chat).len(), 1);
    let history = scene.feishu.history(&scene.chat, &shown.id);
    assert!(history.len() > 3, "it grew: {history:?}");
    assert!(scene.count("im.message.patch") > 1);
    // With the scope, an answer streams again.
    scene.feishu.give_scope("cardkit:card:write");
    scene.talks("again").await;
    assert!(scene.count("cardkit.card.update") > 0);
}

#[tokio::test]
async fn a_scope_that_is_taken_away_in_between_does_not_lose_the_answer() {
    let scene = Scene::open("stream_interval_ms: 150\n").await;
    scene.house.model.next(slowly("one two three four five six seven eight"));
    scene.say("count");
    scene.sees(&scene.chat, |shown| shown.first().filter(|shown| shown.text.contains("two")).cloned()).await;
    scene.feishu.take_scope("cardkit:card:write");
    scene.reads(&scene.chat, "one two three four five six seven eight").await;
    assert_eq!(scene.words(&scene.chat).len(), 1);
}

#[tokio::test]
async fn where_no_card_passes_the_answer_comes_as_a_post() {
    let scene = Scene::open("").await;
    scene.feishu.take_scope("cardkit:card:write");
    scene.feishu.fail("im.message.create", 1, Fault::Refused(400, "230099 no cards here".into()));
    scene.house.model.next(Reply::text("this is **it**"));
    scene.say("well?");
    scene.reads(&scene.chat, "this is it").await;
    assert_eq!(scene.words(&scene.chat), ["this is it"]);
    let kinds: Vec<String> = scene
        .feishu
        .calls("im.message.create")
        .iter()
        .map(|call| call.params["msg_type"].to_string())
        .collect();
    assert_eq!(kinds.last().map(String::as_str), Some("\"post\""), "{kinds:?}");
}

#[tokio::test]
async fn a_token_that_dies_is_renewed_and_nothing_is_lost() {
    let scene = Scene::open("").await;
    scene.talks("first").await;
    for code in [99_991_663, 99_991_664, 99_991_668] {
        scene.feishu.revoke_tokens(code);
        scene.talks(&format!("after {code}")).await;
    }
    assert_eq!(scene.words(&scene.chat).len(), 4);
    assert!(scene.count("auth.token") <= 4, "one renewal each");
}

#[tokio::test]
async fn fragments_in_any_order_and_among_others_are_each_answered_once() {
    let scene = Scene::open("").await;
    scene.talks("whole").await;
    for (order, lose) in [(Order::Reversed, 0), (Order::Shuffled, 0), (Order::Straight, 1)] {
        scene.feishu.chunks(Chunks { size: 120, order, lose, mixed: true });
        let bob = scene.feishu.person("Bob");
        let his = scene.feishu.private(&bob);
        let words =
            Words {
                chat: his.clone(), person: bob, text: "鹿鹿鹿".into(), to_bot: true, ..Words::default()
            };
        scene.feishu.write(&words);
        scene.talks(&format!("in pieces {order:?} 鹿")).await;
        scene.reads(&his, "echo: 鹿鹿鹿").await;
        assert_eq!(scene.words(&his).len(), 1);
    }
    assert_eq!((scene.house.model.count(), scene.words(&scene.chat).len()), (7, 4));
    scene.is_clean().await;
}

#[tokio::test]
async fn a_platform_that_goes_deaf_is_noticed() {
    let options = Options { ping_interval: 1, ..Options::default() };
    let mut scene = Scene::build(options, "").await;
    scene.house.start();
    scene.talks("hello").await;
    scene.feishu.deaf(true);
    scene.sees(&scene.chat, |_| (scene.count("ws.connect") > 1).then_some(())).await;
    scene.feishu.deaf(false);
    scene.talks("still there?").await;
    assert!(scene.house.log().contains("does not answer pings"), "{}", scene.house.log());
}

#[tokio::test]
async fn topics_are_conversations_of_their_own_and_answers_stay_in_them() {
    let scene = Scene::open("").await;
    let group = scene.feishu.topics("team", &[&scene.ada]);
    let (one, two) = (scene.write(&group, "one", None), scene.write(&group, "two", None));
    let both = |shown: &[Shown]| {
        let mut done: Vec<_> = shown.iter().filter(|shown| !shown.growing).collect();
        done.sort_by(|a, b| a.text.cmp(&b.text));
        let found: Vec<_> = done.iter().map(|shown| (shown.text.clone(), shown.answers.clone())).collect();
        let answer = |text: &str, to: &String| (format!("echo: [Ada] {text}"), Some(to.clone()));
        (found == [answer("one", &one), answer("two", &two)]).then_some(())
    };
    scene.sees(&group, both).await;
    scene.write(&group, "and more", Some(&one));
    scene.reads(&group, "echo: [Ada] and more").await;
    let last = scene.house.model.requests().pop().unwrap();
    let said = last.messages().iter().map(|message| message["content"].to_string()).collect::<String>();
    assert!(said.contains("[Ada] one") && !said.contains("[Ada] two"), "{said}");
    scene.is_clean().await;
}

#[tokio::test]
async fn a_topic_of_a_group_that_calls_itself_a_group_is_one_conversation_also_after_a_restart() {
    let mut scene = Scene::open("").await;
    let group = scene.feishu.threads("team", &[&scene.ada]);
    let mut asked = Vec::new();
    for text in ["one", "two"] {
        asked.push(scene.write(&group, text, None));
        scene.reads(&group, &format!("echo: [Ada] {text}")).await;
    }
    for (text, restarts) in [("and more", false), ("and still more", true)] {
        if restarts {
            scene.house.kill();
            scene.start().await;
        }
        scene.write(&group, text, Some(&asked[0]));
        scene.reads(&group, &format!("echo: [Ada] {text}")).await;
        let last = scene.house.model.requests().pop().unwrap();
        let said = last.messages().iter().map(|message| message["content"].to_string()).collect::<String>();
        assert!(said.contains("[Ada] one") && !said.contains("[Ada] two"), "{text}: {said}");
    }
    scene.is_clean().await;
}

#[tokio::test]
async fn words_that_are_refused_for_good_leave_no_half_answer() {
    let scene = Scene::open("").await;
    scene.feishu.forbid("tiananmen");
    scene.house.model.next(slowly("one two three four five six seven tiananmen eight nine ten"));
    scene.say("count");
    let told = |shown: &[Shown]| {
        shown.iter().find(|one| one.text.contains("Feishu does not accept my answer")).cloned()
    };
    scene.sees(&scene.chat, told).await;
    let shown = scene.feishu.shown(&scene.chat);
    let finished = |one: &Shown| !one.growing && one.buttons.is_empty() && !one.text.contains("three");
    assert!(shown.len() == 1 && shown.iter().all(finished), "{shown:#?}");
    scene.talks("and now").await;
}

/// An operation that took effect without a response, directly before a restart.
#[tokio::test]
async fn a_cards_numbers_never_go_backwards() {
    let mut scene = Scene::open("stream_interval_ms: 100\n").await;
    for round in 0..4 {
        scene.house.model.otherwise(|_| slowly("one two three four five six seven eight").into());
        for method in ["cardkit.element.content", "cardkit.card.update"] {
            scene.feishu.fail(method, 2, Fault::CutAfter);
        }
        scene.say(&format!("count {round}"));
        let grows = |shown: &[Shown]| shown.get(round).filter(|one| one.text.contains("four")).map(|_| ());
        scene.sees(&scene.chat, grows).await;
        scene.house.kill();
        scene.house.start();
        scene.reads(&scene.chat, "one two three four five six seven eight").await;
    }
    assert_eq!(scene.feishu.misused(), [""; 0]);
}

#[tokio::test]
async fn a_press_after_a_restart_is_where_the_platform_says_its_message_is() {
    let mut scene = Scene::open("").await;
    scene.say("/mode");
    let offered =
        |shown: &[Shown]| shown.iter().find(|shown| !shown.buttons.is_empty() && !shown.growing).cloned();
    let offer = scene.sees(&scene.chat, offered).await;
    // By then the offer is stored.
    scene.talks("wait").await;
    scene.house.kill();
    scene.start().await;
    assert!(scene.feishu.press(&scene.chat, &scene.ada, &offer.id, "steer"));
    scene.reads(&scene.chat, "Mode steer: a new message reaches me while I work.").await;
    let answered = |_: &[Shown]| scene.feishu.presses().last()?.answer.clone();
    let toast = &scene.sees(&scene.chat, answered).await["toast"];
    assert_eq!((&toast["type"], &toast["content"]), (&json!("info"), &json!("👌")));
    // If the platform does not report it, nothing is guessed.
    scene.say("/mode");
    let other = |shown: &&Shown| shown.id != offer.id && !shown.buttons.is_empty() && !shown.growing;
    let again = |shown: &[Shown]| shown.iter().find(other).cloned();
    let offer = scene.sees(&scene.chat, again).await;
    scene.talks("wait again").await;
    scene.house.kill();
    scene.feishu.take_scope("im:message");
    scene.start().await;
    let before = scene.words(&scene.chat).len();
    assert!(scene.feishu.press(&scene.chat, &scene.ada, &offer.id, "interrupt"));
    let warned = |_: &[Shown]| {
        let answer = scene.feishu.presses().last()?.answer.clone()?;
        (answer["toast"]["type"] == "warning").then(|| answer["toast"]["i18n"]["zh_cn"].clone())
    };
    assert_eq!(scene.sees(&scene.chat, warned).await, "这个按钮已失效。", "the app chooses its own language");
    scene.talks("hello").await;
    assert_eq!(scene.words(&scene.chat).len(), before + 1);
    scene.is_clean().await;
}

#[tokio::test]
async fn a_waiting_message_gets_a_reaction_and_posts_and_bundles_are_read_whole() {
    let scene = Scene::open("").await;
    let mut hold = scene.house.model.hold(1, At::End);
    scene.house.model.next(slowly("one two three four five six seven eight"));
    scene.say("count");
    hold.reached().await.unwrap();
    let waiting = scene.say("next");
    scene.sees(&scene.chat, |_| scene.feishu.reactions(&waiting).first().cloned()).await;
    hold.proceed();
    scene.reads(&scene.chat, "echo: next").await;
    let said =
        |kind: &str, content: serde_json::Value, bundle: Vec<(String, String, serde_json::Value)>| Said {
            chat: scene.chat.clone(),
            person: scene.ada.clone(),
            kind: kind.to_owned(),
            content,
            bundle,
            ..Said::default()
        };
    let post =
        json!({"title": "Plan", "content": [[{"tag": "a", "text": "see", "href": "https://a.example"}]]});
    scene.feishu.say(&said("post", post, Vec::new()));
    scene.sees(&scene.chat, |shown| shown.last().filter(|last| last.text.contains("Plan")).cloned()).await;
    let asked = scene.house.model.requests().pop().unwrap().last_user().to_owned();
    assert_eq!(asked, "**Plan**\n[see](https://a.example)");
    let bundle = vec![(scene.ada.clone(), "text".to_owned(), json!("first thing"))];
    scene.feishu.say(&said("merge_forward", json!({"content": "Merged"}), bundle));
    let read =
        || scene.house.model.requests().pop().filter(|asked| asked.last_pointed().contains("first thing"));
    scene.house.model.wait(SOON, |_| read()).await.unwrap();
    scene
        .sees(&scene.chat, |shown| {
            shown.last().filter(|last| !last.growing && last.text.starts_with("echo")).cloned()
        })
        .await;
    // Other bots are not answered.
    let calls = scene.house.model.count();
    scene.feishu.say(&Said { bot: true, ..said("", json!("I am a bot"), Vec::new()) });
    scene.talks("hello").await;
    assert_eq!(scene.house.model.count(), calls + 1);
}

#[tokio::test]
async fn sealed_and_signed_posts_are_answered_and_others_refused() {
    let account = "mode: webhook\nencrypt_key: sim-encrypt-key\nverification_token: sim-verification-token\n";
    let scene = Scene::open(account).await;
    let url = format!("http://{}/api/webhooks/feishu/feishu", scene.house.address);
    scene.feishu.webhook(Some(url.clone()));
    scene.talks("by post").await;
    let waiting = scene.say("/mode");
    let offered =
        |shown: &[Shown]| shown.iter().find(|shown| !shown.buttons.is_empty() && !shown.growing).cloned();
    let offer = scene.sees(&scene.chat, offered).await;
    assert!(scene.feishu.press(&scene.chat, &scene.ada, &offer.id, "steer"));
    let answered = |_: &[Shown]| scene.feishu.presses().last()?.answer.clone();
    assert_eq!(scene.sees(&scene.chat, answered).await["toast"]["type"], "info");
    scene.feishu.redeliver(&scene.chat, &waiting);
    let event = json!({"schema": "2.0", "header": {"token": "sim-verification-token", "event_type": "x"}});
    for key in ["sim-encrypt-key", "other"] {
        let forged = pudu_sim::feishu::seal(key, &event, 1_000_000, "nonce");
        let mut request = crate::house::http().post(&url).body(forged.body.clone());
        for (name, value) in &forged.headers {
            request = request.header(*name, value);
        }
        assert_eq!(request.send().await.unwrap().status(), 401, "old, or of another key");
    }
    scene.is_clean().await;
}

#[tokio::test]
async fn pictures_go_both_ways_and_what_is_none_goes_as_a_file() {
    let scene = Scene::open("").await;
    let png = &b"\x89PNG\r\n\x1a\n and more"[..];
    let show =
        |name: &str| Reply::tool("present_files", &json!({"filepaths": [format!("/mnt/user-data/{name}")]}));
    let content = json!({"path": "/mnt/user-data/outputs/no.png", "content": "no picture"});
    scene.house.model.next(show("uploads/a.png"));
    scene.house.model.next(Reply::tool("write_file", &content));
    scene.house.model.next(show("outputs/no.png"));
    scene.house.model.next(Reply::text("Here."));
    scene.feishu.write(&Words {
        chat: scene.chat.clone(),
        person: scene.ada.clone(),
        text: "see this".into(),
        to_bot: true,
        files: vec![("a.png".into(), png.into())],
        ..Words::default()
    });
    let sent = |shown: &[Shown]| {
        let files: Vec<_> = shown.iter().flat_map(|shown| shown.files.clone()).collect();
        files.iter().any(|(name, _)| name == "no.png").then_some(files)
    };
    scene.sees(&scene.chat, sent).await;
    let kinds: Vec<String> = scene
        .feishu
        .calls("im.message.create")
        .iter()
        .map(|call| call.params["msg_type"].to_string())
        .collect();
    assert_eq!(kinds.last().map(String::as_str), Some("\"file\""), "{kinds:?}");
    assert_eq!(scene.count("im.resource.get"), 1, "the picture came in");
    assert!(scene.count("im.image.create") >= 1, "it was tried as a picture");
    scene.is_clean().await;
}

#[tokio::test]
async fn the_documented_limits_are_kept_in_every_way_of_showing() {
    for scope in [true, false] {
        let scene = Scene::open("stream_interval_ms: 100\n").await;
        if !scope {
            scene.feishu.take_scope("cardkit:card:write");
        }
        scene.feishu.pace(true);
        // A slow machine does not reach the limit on its own.
        if !scope {
            scene.feishu.fail("im.message.patch", 1, Fault::Refused(400, "230020 slow down".into()));
        }
        scene
            .house
            .model
            .next(Reply::text(&"and on ".repeat(30)).words_per_chunk(1).every(Duration::from_millis(50)));
        scene.say("talk");
        scene.reads(&scene.chat, "and on ".repeat(30).trim()).await;
        assert_eq!(scene.words(&scene.chat).len(), 1);
        let refused = |call: &pudu_sim::Call| format!("{:?}", call.outcome).contains("230020");
        let was_refused = scene.feishu.calls("im.message.patch").iter().any(refused);
        assert_eq!(was_refused, !scope, "the answer survives the limit of five a second");
    }
}

#[tokio::test]
async fn an_event_that_is_not_kept_is_not_acknowledged_and_comes_again() {
    let mut scene = Scene::build(Options::default(), "").await;
    scene.house.configure("", "  inbound_queue_maxsize: 1\n");
    scene.house.start();
    let long = "one two three four five six seven eight nine ten";
    let mut hold = scene.house.model.hold(1, At::End);
    scene.house.model.next(slowly(long));
    scene.say("count");
    hold.reached().await.unwrap();
    scene.say("second");
    scene.is_told("\"feishu\":\"degraded\"").await;
    hold.proceed();
    scene.reads(&scene.chat, "echo: second").await;
    assert_eq!(scene.words(&scene.chat), [long, "echo: second"]);
    scene.is_told("\"feishu\":\"ready\"").await;
    assert!(scene.house.log().contains("sends it again"), "{}", scene.house.log());
    scene.is_clean().await;
}

#[tokio::test]
async fn a_file_in_a_group_is_read_by_answering_it() {
    let scene = Scene::open("").await;
    let group = scene.feishu.group("team", &[&scene.ada]);
    let file = scene.feishu.write(&Words {
        chat: group.clone(),
        person: scene.ada.clone(),
        files: vec![("a.csv".into(), "1,2".into())],
        ..Words::default()
    });
    scene.house.model.next(Reply::tool("read_file", &json!({"path": "/mnt/user-data/uploads/a.csv"})));
    scene.house.model.next(Reply::text("Two numbers."));
    scene.write(&group, "what is in it?", Some(&file));
    scene.reads(&group, "Two numbers.").await;
    assert_eq!(scene.house.model.requests()[1].last_tool(), "1,2");
}

#[tokio::test]
async fn a_thread_under_an_answer_goes_on_with_its_conversation_also_after_a_restart() {
    let mut scene = Scene::open("").await;
    let group = scene.feishu.group("team", &[&scene.ada]);
    scene.write(&group, "one", None);
    let mut last = scene.reads(&group, "echo: [Ada] one").await;
    for (n, text) in ["two", "three"].into_iter().enumerate() {
        if n == 1 {
            scene.house.kill();
            scene.start().await;
        }
        let asked = scene.feishu.say(&Said {
            chat: group.clone(),
            person: scene.ada.clone(),
            content: json!(format!("@_user_1 {text}")),
            mentions: vec![("@_user_1".into(), scene.feishu.bot(), "Pudu".into())],
            answers: Some(last.id.clone()),
            thread: true,
            ..Said::default()
        });
        last = scene.reads(&group, &format!("echo: [Ada] {text}")).await;
        assert_eq!(last.answers, Some(asked), "it stays in the thread");
        let request = scene.house.model.requests().pop().unwrap();
        let goes_on = request.messages().iter().any(|message| message["content"] == "[Ada] one");
        assert!(goes_on, "{request:?}");
    }
}

/// A press contains neither thread nor conversation: both are looked up, and unchanged.
#[tokio::test]
async fn a_press_in_a_thread_under_an_answer_is_in_its_conversation_also_after_a_restart() {
    let mut scene = Scene::open("").await;
    let group = scene.feishu.group("team", &[&scene.ada]);
    scene.write(&group, "one", None);
    let first = scene.reads(&group, "echo: [Ada] one").await;
    let in_thread = |scene: &Scene, text: &str| {
        scene.feishu.say(&Said {
            chat: group.clone(),
            person: scene.ada.clone(),
            content: json!(format!("@_user_1 {text}")),
            mentions: vec![("@_user_1".into(), scene.feishu.bot(), "Pudu".into())],
            answers: Some(first.id.clone()),
            thread: true,
            ..Said::default()
        })
    };
    in_thread(&scene, "/mode");
    let offered = |shown: &[Shown]| {
        shown.iter().rev().find(|shown| !shown.buttons.is_empty() && !shown.growing).cloned()
    };
    let offer = scene.sees(&group, offered).await;
    scene.house.kill();
    scene.start().await;
    assert!(scene.feishu.press(&group, &scene.ada, &offer.id, "steer"));
    scene.reads(&group, "Mode steer: a new message reaches me while I work.").await;
    in_thread(&scene, "/mode");
    let told = |shown: &[Shown]| {
        let last =
            shown.last().filter(|last| last.id != offer.id && !last.buttons.is_empty() && !last.growing)?;
        Some(last.text.clone())
    };
    let told = scene.sees(&group, told).await;
    assert!(told.contains("steer") && told != offer.text, "{told}");
}

#[tokio::test]
async fn an_answer_in_a_private_thread_stays_there_and_it_is_the_same_conversation() {
    let scene = Scene::open("").await;
    let first = scene.talks("hello").await;
    let asked = scene.feishu.say(&Said {
        chat: scene.chat.clone(),
        person: scene.ada.clone(),
        content: json!("in the thread"),
        answers: Some(first.id),
        thread: true,
        ..Said::default()
    });
    let answer = scene.reads(&scene.chat, "echo: in the thread").await;
    assert_eq!(answer.answers, Some(asked));
    let last = scene.house.model.requests().pop().unwrap();
    assert!(last.messages().iter().any(|message| message["content"] == "hello"), "{last:?}");
    scene.talks("outside again").await;
}

#[tokio::test]
async fn a_death_at_any_call_leaves_one_message() {
    for method in [
        "cardkit.card.create",
        "im.message.create",
        "cardkit.element.content",
        "cardkit.card.update",
        "cardkit.card.settings",
    ] {
        for when in [When::Before, When::After] {
            let mut scene = Scene::build(Options::default(), "stream_interval_ms: 150\n").await;
            scene.house.in_its_own_process();
            scene.house.start();
            scene.house.model.otherwise(|_| slowly("one two three four five six").into());
            let pid = scene.house.pid();
            let kill = Box::new(move |_: &pudu_sim::Call| {
                kill_process(pid, Signal::KILL).ok();
                Then::Cut
            });
            scene.feishu.on_call(method, 1, when, kill);
            scene.say("count");
            assert!(scene.house.ended(SOON).await.is_some(), "{method} {when:?}");
            scene.house.start();
            scene.reads(&scene.chat, "one two three four five six").await;
            assert_eq!(scene.words(&scene.chat), ["one two three four five six"], "{method} {when:?}");
            scene.is_clean().await;
        }
    }
}

// A separate thread waits for the doctor.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_names_what_is_missing_and_how_to_mend_it() {
    let scene = Scene::build(Options::default(), "").await;
    let (ok, said) = scene.house.pudu(&["doctor"]);
    assert!(ok && said.contains("by long connection") && said.contains("cardkit:card:write"), "{said}");
    // Without a token, for a missing card.
    for code in ["99991661", "200740"] {
        assert_eq!(scene.feishu.refusals(code), [""; 0]);
    }
    scene.feishu.take_scope("cardkit:card:write");
    scene.feishu.take_scope("contact:user.base:readonly");
    let (_, said) = scene.house.pudu(&["doctor"]);
    assert!(said.contains("poor  scope contact:user.base:readonly: in groups the agent"), "{said}");
    assert!(said.contains("add cardkit:card:write in the developer console"), "{said}");
    scene.house.configure("app_secret: wrong\n", "");
    let secret = scene.feishu.app_secret();
    let text = std::fs::read_to_string(scene.house.path("config.yaml")).unwrap();
    let text = text.replacen(&format!("    app_secret: {secret}\n"), "", 1);
    scene.house.write_config(&text);
    let (ok, said) = scene.house.pudu(&["doctor"]);
    assert!(!ok && said.contains("10014") && said.contains("developer console"), "{said}");
    assert_eq!(scene.count("ws.connect"), 0, "no connection takes events away");
    assert!(scene.feishu.shown(&scene.chat).is_empty());
}

#[tokio::test]
async fn wrong_credentials_end_it_with_a_clear_word_and_no_secret() {
    let options = Options { app_secret: "right".into(), ..Options::default() };
    let mut scene = Scene::build(options, "").await;
    let text = std::fs::read_to_string(scene.house.path("config.yaml")).unwrap();
    let text = text.replacen("app_secret: right", "app_secret: s3cret-and-wrong", 1);
    scene.house.write_config(&text);
    scene.house.start();
    scene.sees(&scene.chat, |_| scene.feishu.calls("auth.token").first().cloned()).await;
    let refused = async || loop {
        let (_, channels) = scene.house.get("/api/channels/").await;
        if channels.contains("auth_failed") {
            return channels;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let channels = tokio::time::timeout(SOON, refused()).await.unwrap();
    assert!(channels.contains("10014"), "{channels}");
    assert!(!channels.contains("s3cret") && !scene.house.log().contains("s3cret"), "no secret");
    assert_eq!(scene.count("auth.token"), 1, "it is not tried for ever");
}
