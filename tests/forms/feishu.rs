use super::{ask_next, asked, eventually, fields, last_words, sees};
use crate::{feishu::Scene, scene::is_final};
use pudu_sim::{Platform, platform::Words};
use serde_json::{Value, json};

/// Submits the form of a message as a user, and returns the toast.
async fn submits(scene: &Scene, chat: &str, person: &str, message: &str, values: &Value) -> Value {
    let before = scene.feishu.presses().len();
    assert!(scene.feishu.submit(chat, person, message, "Answer", values));
    eventually(|| scene.feishu.presses().get(before)?.answer.clone()).await["toast"].clone()
}

#[tokio::test]
async fn a_form_is_filled_in_the_card_survives_a_restart_and_counts_once() {
    let mut scene = Scene::open("").await;
    let chat = scene.chat.clone();
    ask_next(&scene.house, &fields());
    scene.say("order it");
    let form = asked(&scene.feishu, &chat).await;
    let toast = submits(&scene, &chat, &scene.ada, &form.id, &json!({"field_2": "soon"})).await;
    let wrong = "Name: Please fill this in.\nDay: Please enter a date as YYYY-MM-DD.";
    assert_eq!(toast, json!({"type": "error", "content": wrong}));
    scene.house.kill();
    scene.start().await;
    let right = json!({"field_0": "Ada", "field_1": "1", "field_2": "2026-12-01 +0800", "field_3": true});
    assert_eq!(submits(&scene, &chat, &scene.ada, &form.id, &right).await["type"], "success");
    sees(&scene.feishu, &chat, |last| last.text.contains("echo: Name: Ada")).await;
    assert_eq!(last_words(&scene.house), "Name: Ada\nSize: Large, with lid\nDay: 2026-12-01\nGift: yes");
    let answered = || {
        let shown = scene.feishu.shown(&chat).into_iter().find(|shown| shown.id == form.id)?;
        (is_final(&shown) && shown.buttons.is_empty() && shown.text.ends_with(" answered.")).then_some(())
    };
    eventually(answered).await;
    assert_eq!(scene.house.model.count(), 2, "one answer counts");
}

#[tokio::test]
async fn only_people_with_access_answer_a_form_and_a_message_ends_it() {
    let mut scene = Scene::build(pudu_sim::feishu::Options::default(), "").await;
    scene.house.configure(&format!("allowed_users: ['{}']\n", scene.ada), "");
    scene.house.start();
    let eve = scene.feishu.person("Eve");
    let room = scene.feishu.group("herd", &[&scene.ada, &eve]);
    let say = |text: &str, answers: Option<String>| {
        let (chat, person, text) = (room.clone(), scene.ada.clone(), text.to_owned());
        scene.feishu.write(&Words { chat, person, text, to_bot: true, answers, files: Vec::new() })
    };
    ask_next(&scene.house, &fields());
    say("order it", None);
    let form = asked(&scene.feishu, &room).await;
    let right = json!({"field_0": "Ada"});
    let refused = submits(&scene, &room, &eve, &form.id, &right).await;
    assert_eq!(refused, json!({"type": "warning", "content": "You cannot answer this."}));
    say("Name: Ada", Some(form.id.clone()));
    sees(&scene.feishu, &room, |last| last.text.contains("echo: ")).await;
    let late = submits(&scene, &room, &scene.ada, &form.id, &right).await;
    assert!(late["content"].as_str().unwrap().contains("moved on"), "{late}");
    assert_eq!(scene.house.model.count(), 2);
}
