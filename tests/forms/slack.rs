use super::{ask_next, asked, eventually, fields, last_words, sees};
use crate::slack::Office;
use pudu_sim::{
    Platform,
    platform::Words,
    slack::{Options, View},
};
use serde_json::{Value, json};

/// Presses the button as a user, and returns the modal.
async fn opens(office: &Office, chat: &str, person: &str, message: &str) -> View {
    let before = office.slack.views().len();
    assert!(office.slack.press(chat, person, message, "Answer"));
    eventually(|| office.slack.views().get(before).cloned()).await
}

/// Submits a modal, and returns its state after the response.
async fn submits(office: &Office, view: &View, values: &Value) -> View {
    assert!(office.slack.submit(&view.id, values));
    eventually(|| (office.slack.unacknowledged() == 0).then_some(())).await;
    office.slack.views().into_iter().find(|known| known.id == view.id).unwrap()
}

fn text_of(view: &View) -> &str {
    view.content["blocks"][0]["text"]["text"].as_str().unwrap()
}

#[tokio::test]
async fn a_form_is_filled_in_a_modal_and_counts_once() {
    let office = Office::open(Options::default()).await;
    let (slack, chat): (&(dyn Platform + 'static), &str) = (&office.slack, &office.direct);
    ask_next(&office.house, &fields());
    office.write(chat, "order it", true, None);
    let form = asked(slack, chat).await;
    let view = opens(&office, chat, &office.ada, &form.id).await;
    assert_eq!(text_of(&view), "❓ Where to?");
    let wrong = submits(&office, &view, &json!({"field_0": " ", "field_2": "soon"})).await;
    let errors = json!({"field_0": "Please fill this in.", "field_2": "Please enter a date as YYYY-MM-DD."});
    assert_eq!((wrong.open, wrong.errors), (true, errors));
    let other = opens(&office, chat, &office.ada, &form.id).await;
    let right =
        json!({"field_0": "Ada", "field_1": "Large, with lid", "field_2": "2026-12-01", "field_3": true});
    assert!(!submits(&office, &view, &right).await.open);
    let answer = "Name: Ada\nSize: Large, with lid\nDay: 2026-12-01\nGift: yes";
    sees(slack, chat, |last| last.text.contains("echo: Name: Ada")).await;
    assert_eq!(last_words(&office.house), answer);
    let answered = || {
        let shown = office.slack.shown(chat).into_iter().find(|shown| shown.id == form.id)?;
        (shown.buttons.is_empty() && shown.text.ends_with("✅ Ada answered.")).then_some(())
    };
    eventually(answered).await;
    let calls = office.house.model.count();
    submits(&office, &view, &right).await;
    let late = submits(&office, &other, &json!({"field_0": "Eve"})).await;
    assert_eq!(text_of(&late), "These questions were answered already, or the conversation has moved on.");
    assert_eq!(office.house.model.count(), calls, "one answer counts");
}

#[tokio::test]
async fn a_form_survives_a_restart_and_ends_with_the_next_message() {
    let mut office = Office::open(Options::default()).await;
    let chat = office.direct.clone();
    ask_next(&office.house, &fields());
    office.write(&chat, "order it", true, None);
    let form = asked(&office.slack, &chat).await;
    let view = opens(&office, &chat, &office.ada, &form.id).await;
    office.house.kill();
    eventually(|| (office.slack.connections() == 0).then_some(())).await;
    office.house.start();
    eventually(|| (office.slack.connections() == 1).then_some(())).await;
    assert!(submits(&office, &view, &json!({})).await.open, "the fields are known");
    office.write(&chat, "Name: Ada", true, None);
    sees(&office.slack, &chat, |last| last.text == "echo: Name: Ada").await;
    let late = opens(&office, &chat, &office.ada, &form.id).await;
    assert!(text_of(&late).contains("moved on"), "{late:?}");
    assert!(text_of(&submits(&office, &view, &json!({"field_0": "Ada"})).await).contains("moved on"));
    assert_eq!(office.house.model.count(), 2);
}

#[tokio::test]
async fn only_people_with_access_answer_a_form_and_files_come_with_it() {
    let mut office = Office::build(Options::default()).await;
    let eve = office.slack.person("Eve");
    let team = office.slack.group("herd", &[&office.ada, &eve]);
    office.house.configure(&format!("allowed_users: [{}]\n", office.ada), "");
    office.house.start();
    let fields = json!([{"name": "who", "label": "Name", "required": true}, {"name": "plan", "label": "Plan", "type": "file"}]);
    ask_next(&office.house, &fields);
    let (person, text) = (office.ada.clone(), "order it".to_owned());
    office.slack.write(&Words {
        chat: team.clone(),
        person,
        text,
        to_bot: true,
        answers: None,
        files: Vec::new(),
    });
    let form = asked(&office.slack, &team).await;
    let refused = opens(&office, &team, &eve, &form.id).await;
    assert_eq!(text_of(&refused), "You cannot answer this.");
    let view = opens(&office, &team, &office.ada, &form.id).await;
    submits(&office, &view, &json!({"field_0": "Ada", "field_1": "plan.txt"})).await;
    sees(&office.slack, &team, |last| last.text.contains("echo: ") && last.text.contains("plan.txt")).await;
    assert!(last_words(&office.house).contains("Name: Ada"));
}

#[tokio::test]
async fn posted_events_answer_forms_too() {
    let (office, _) = Office::open_for_posts().await;
    let chat = office.direct.clone();
    ask_next(&office.house, &fields());
    office.write(&chat, "order it", true, None);
    let form = asked(&office.slack, &chat).await;
    let view = opens(&office, &chat, &office.ada, &form.id).await;
    let wrong = submits(&office, &view, &json!({})).await;
    assert_eq!(wrong.errors, json!({"field_0": "Please fill this in."}));
    submits(&office, &view, &json!({"field_0": "x".repeat(2_900)})).await;
    sees(&office.slack, &chat, |last| last.text.contains("echo: Name: xxx")).await;
}
