//! Decisions on platforms without buttons: only by the number in the question, not by other text.

use crate::{
    asks::wish,
    house::SOON,
    scene::{Scene, is_final},
};
use pudu_sim::{DingTalk, Fault, Feishu, Platform, dingtalk, feishu, model::Reply, platform::Shown};
use serde_json::json;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Generates a module of tests for each reason why buttons are missing.
macro_rules! in_each_way {
    ($($way:ident)+ => $scenarios:tt) => {
        $(mod $way { super::in_each_way!(@tests $way $scenarios); })+
    };
    (@tests $way:ident [$($scenario:ident)+]) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $scenario() {
            super::$scenario(super::$way().await).await;
        })+
    };
}
use in_each_way;

in_each_way!(dingtalk_without_cards dingtalk_cards_without_buttons feishu_without_cards => [
    a_number_decides_and_the_answer_says_who_did
    somebody_elses_number_decides_nothing
    a_restart_keeps_the_question_and_its_numbers
    a_number_decides_one_question_and_not_the_next
    what_a_number_decides_can_be_read_whole
    a_number_chooses_below_a_finished_reply_and_that_is_kept
]);

const CAREFUL: &str = "approvals: {tools: [write_file]}\n";

async fn open(scene: Scene, account: &str) -> Scene {
    let mut scene = scene;
    scene.house.configure(account, CAREFUL);
    scene.start().await;
    scene
}

async fn dingtalk(account: &str) -> Scene {
    let repeat = Some(Duration::from_millis(200));
    let options = dingtalk::Options { cards: false, repeat, ..dingtalk::Options::default() };
    let platform = Arc::new(DingTalk::start(options).await.unwrap());
    open(Scene::build(platform).await, account).await
}

async fn dingtalk_without_cards() -> Scene {
    dingtalk("").await
}

async fn dingtalk_cards_without_buttons() -> Scene {
    let dingtalk::Options { template, content_key, .. } = dingtalk::Options::default();
    let card = format!("card_template_id: {template}\ncard_content_key: {content_key}\n");
    dingtalk(&format!("{card}stream_interval_ms: 200\n")).await
}

async fn feishu_without_cards() -> Scene {
    let feishu = Feishu::start(feishu::Options::default()).await.unwrap();
    feishu.take_scope("cardkit:card:write");
    for method in ["im.message.create", "im.message.reply"] {
        feishu.fail(method, 1, Fault::Refused(400, "230099 no cards here".into()));
    }
    open(Scene::build(Arc::new(feishu)).await, "").await
}

/// Waits for a question whose approval has this number.
async fn asked(scene: &Scene, chat: &str, number: usize) -> Shown {
    let approve = format!("{number} = Approve");
    let found = |shown: &[Shown]| {
        shown.iter().find(|one| one.text.contains("May I?") && one.text.contains(&approve)).cloned()
    };
    let asked = scene.sees(chat, found).await;
    assert!(asked.text.contains("write_file") && asked.buttons.is_empty(), "{asked:?}");
    assert!(asked.text.contains(&format!("{} = Deny", number + 1)), "{asked:?}");
    assert!(asked.text.contains("Stop: /stop"), "{asked:?}");
    asked
}

/// Waits for a final message that contains all of these texts.
async fn says(scene: &Scene, chat: &str, words: &[&str]) {
    let all = |one: &Shown| is_final(one) && words.iter().all(|word| one.text.contains(word));
    scene.sees(chat, |shown| shown.iter().any(all).then_some(())).await;
}

async fn a_number_decides_and_the_answer_says_who_did(scene: Scene) {
    scene.house.model.next(wish());
    scene.say("write it");
    asked(&scene, &scene.chat, 1).await;
    scene.say("/approve yes");
    says(&scene, &scene.chat, &["/help"]).await;
    assert_eq!(scene.model_calls(), 1, "typed words decide nothing");
    scene.house.model.next(Reply::text("It is written."));
    scene.say("1");
    says(&scene, &scene.chat, &[" approved write_file", "It is written."]).await;
    assert_eq!(scene.house.model.requests()[1].last_tool(), "OK");
    let words = scene.words(&scene.chat);
    assert!(!words.iter().any(|text| text.contains("Approve")), "{words:?}");
    scene.say("1");
    says(&scene, &scene.chat, &["echo: 1"]).await;
}

async fn somebody_elses_number_decides_nothing(scene: Scene) {
    let (ada, bob) = (scene.ada.clone(), scene.platform.person("Bob"));
    let room = scene.platform.group("Herd", &[&ada, &bob]);
    scene.house.model.next(wish());
    scene.write(&room, &ada, "write it", true, None);
    asked(&scene, &room, 1).await;
    scene.write(&room, &bob, "1", true, None);
    says(&scene, &room, &["You cannot decide this."]).await;
    assert_eq!(scene.model_calls(), 1, "nothing was decided");
    asked(&scene, &room, 1).await;
    scene.write(&room, &ada, "2", true, None);
    says(&scene, &room, &[" denied write_file"]).await;
    assert!(scene.house.model.requests()[1].last_tool().contains("denied this call."));
}

async fn a_restart_keeps_the_question_and_its_numbers(mut scene: Scene) {
    scene.house.model.next(wish());
    scene.say("write it");
    let before = asked(&scene, &scene.chat, 1).await;
    // By then the question's position is stored: an ordinary message of DingTalk cannot be found again.
    scene.say("/usage");
    says(&scene, &scene.chat, &["oken"]).await;
    scene.house.kill();
    scene.start().await;
    let after = asked(&scene, &scene.chat, 1).await;
    assert_eq!(after.id, before.id, "it stands there once");
    scene.house.model.next(Reply::text("It is written."));
    scene.say("1");
    says(&scene, &scene.chat, &[" approved write_file", "It is written."]).await;
    assert_eq!(scene.house.model.requests().pop().unwrap().last_tool(), "OK");
    let words = scene.words(&scene.chat);
    assert_eq!(words.iter().filter(|text| text.contains("write_file")).count(), 1, "{words:?}");
    let sent = scene.platform.sends().iter().flat_map(|method| scene.platform.calls(method));
    let asked = sent.filter(|call| format!("{:?}", call.params).contains("May I?")).count();
    assert!(before.growing || asked == 1, "nobody is asked twice");
}

async fn a_number_decides_one_question_and_not_the_next(scene: Scene) {
    scene.house.model.next(wish());
    scene.house.model.next(wish());
    scene.say("write it twice");
    asked(&scene, &scene.chat, 1).await;
    scene.say("1");
    asked(&scene, &scene.chat, 3).await;
    scene.say("1");
    scene.say("4");
    says(&scene, &scene.chat, &[" approved write_file", " denied write_file"]).await;
    says(&scene, &scene.chat, &["echo: 1"]).await;
}

async fn what_a_number_decides_can_be_read_whole(scene: Scene) {
    for (n, long) in [1_200, 30_000].into_iter().enumerate() {
        let words = format!("{} the middle {n} {}", "begin ".repeat(long / 6), "end ".repeat(long / 4));
        let args = json!({"path": "/mnt/user-data/outputs/a.txt", "content": words});
        scene.house.model.next(Reply::tool("write_file", &args));
        scene.say("write it");
        let (middle, approve) = (format!("the middle {n}"), format!("{} = Approve", 2 * n + 1));
        let readable = |shown: &[Shown]| {
            let words: String = shown.iter().map(|one| one.text.as_str()).collect();
            let mut files = shown.iter().flat_map(|one| &one.files);
            let file = files.any(|(_, bytes)| String::from_utf8_lossy(bytes).contains(&middle));
            // Feishu accepts cards again for the next reply.
            let button = shown.iter().find(|one| one.buttons.iter().any(|button| button == "Approve"));
            let asked = button.is_some() || words.contains(&approve);
            (asked && (file || words.contains(&middle))).then(|| button.map(|one| one.id.clone()))
        };
        match scene.sees(&scene.chat, readable).await {
            Some(message) => assert!(scene.platform.press(&scene.chat, &scene.ada, &message, "Approve")),
            None => drop(scene.say(&(2 * n + 1).to_string())),
        }
        says(&scene, &scene.chat, &[" approved write_file"]).await;
    }
}

async fn a_number_chooses_below_a_finished_reply_and_that_is_kept(mut scene: Scene) {
    let args = json!({"question": "Which one?", "clarification_type": "approach_choice", "options": ["Asia", "Europe"]});
    scene.house.model.next(Reply::tool("ask_clarification", &args));
    scene.say("travel");
    says(&scene, &scene.chat, &["Which one?", "2. Europe"]).await;
    // A user would not answer before the daemon has stored the message's ID.
    let (db, deadline) = (scene.house.database().await, Instant::now() + SOON);
    while !db.pending().await.unwrap().is_empty() {
        assert!(Instant::now() < deadline, "the question is not delivered");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    scene.say("2");
    says(&scene, &scene.chat, &[" chose: Europe"]).await;
    says(&scene, &scene.chat, &["echo: Europe"]).await;
    // Not by a kill: an ordinary message of DingTalk that may have been sent is sent again.
    assert!(scene.house.stop().await.success());
    scene.start().await;
    scene.say("and on");
    says(&scene, &scene.chat, &["echo: and on"]).await;
    let words = scene.words(&scene.chat);
    let count = |part: &str| words.iter().filter(|text| text.contains(part)).count();
    assert_eq!((count("Which one?"), count("chose: Europe"), count("echo: Europe")), (1, 1, 1), "{words:?}");
}

/// A temporary failure to send does not leave a user with an invisible question.
#[tokio::test]
async fn a_question_that_was_not_taken_is_asked_again() {
    let scene = dingtalk_without_cards().await;
    // The first call sends the progress sign.
    scene.platform.fail("robot/oToMessages/batchSend", 2, Fault::CutBefore);
    scene.house.model.next(wish());
    scene.say("write it");
    asked(&scene, &scene.chat, 1).await;
}
