use super::{ask_next, asked, eventually, fields, last_words, sees};
use crate::discord::Server;
use pudu_sim::{Platform, platform::Words};
use serde_json::json;

/// Presses the button as a user, and returns the number of the modal.
async fn opens(server: &Server, chat: &str, person: &str, message: &str) -> usize {
    let before = server.discord.modals().len();
    assert!(server.discord.press(chat, person, message, "Answer"));
    eventually(|| (server.discord.modals().len() > before).then_some(())).await;
    before
}

/// Waits for a message that only one user sees.
async fn whispers(server: &Server, chat: &str, text: &str) {
    let found =
        |shown: &[pudu_sim::platform::Shown]| shown.iter().any(|shown| shown.text == text).then_some(());
    server.sees(chat, found).await;
}

#[tokio::test]
async fn a_form_is_filled_in_a_modal_and_counts_once() {
    let server = Server::open("").await;
    let (discord, chat): (&(dyn Platform + 'static), &str) = (&server.discord, &server.direct);
    ask_next(&server.house, &fields());
    server.write(chat, "order it", true, None);
    let form = asked(discord, chat).await;
    let modal = opens(&server, chat, &server.ada, &form.id).await;
    assert!(server.discord.submit(modal, &json!({"field_0": " ", "field_2": "soon"})));
    whispers(&server, chat, "Name: Please fill this in.\nDay: Please enter a date as YYYY-MM-DD.").await;
    let other = opens(&server, chat, &server.ada, &form.id).await;
    let right =
        json!({"field_0": "Ada", "field_1": "Large, with lid", "field_2": "2026-12-01", "field_3": "Yes"});
    assert!(server.discord.submit(modal, &right));
    sees(discord, chat, |last| last.text.contains("echo: Name: Ada")).await;
    assert_eq!(last_words(&server.house), "Name: Ada\nSize: Large, with lid\nDay: 2026-12-01\nGift: yes");
    let answered = || {
        let shown = discord.shown(chat).into_iter().find(|shown| shown.id == form.id)?;
        (shown.buttons.is_empty() && shown.text.ends_with("✅ Ada answered.")).then_some(())
    };
    eventually(answered).await;
    assert!(server.discord.submit(other, &right));
    whispers(&server, chat, "These questions were answered already, or the conversation has moved on.").await;
    assert_eq!(server.house.model.count(), 2, "one answer counts");
    assert_eq!(server.discord.unanswered(), 0);
}

#[tokio::test]
async fn a_form_survives_a_restart_and_only_people_with_access_answer_it() {
    let mut server = Server::build(pudu_sim::discord::Options::default()).await;
    server.house.configure(&format!("allowed_users: ['{}']\n", server.ada), "");
    server.start().await;
    let eve = server.discord.person("Eve");
    let room = server.discord.group("herd", &[&server.ada, &eve]);
    ask_next(&server.house, &fields());
    let (chat, person, text) = (room.clone(), server.ada.clone(), "order it".to_owned());
    server.discord.write(&Words { chat, person, text, to_bot: true, answers: None, files: Vec::new() });
    let form = asked(&server.discord, &room).await;
    assert!(server.discord.press(&room, &eve, &form.id, "Answer"));
    whispers(&server, &room, "You cannot answer this.").await;
    let modal = opens(&server, &room, &server.ada, &form.id).await;
    server.house.kill();
    server.start().await;
    assert!(server.discord.submit(modal, &json!({"field_0": "Ada"})));
    sees(&server.discord, &room, |last| last.text.contains("echo: ") && last.text.contains("Name: Ada"))
        .await;
    assert_eq!(server.house.model.count(), 2);
}

#[tokio::test]
async fn a_form_with_too_many_fields_is_answered_in_a_message() {
    let server = Server::open("").await;
    let many: Vec<_> =
        (1..=6).map(|n| json!({"name": format!("n{n}"), "label": format!("Field {n}")})).collect();
    ask_next(&server.house, &json!(many));
    server.write(&server.direct, "order it", true, None);
    let shown = sees(&server.discord, &server.direct, |last| last.text.contains("6. Field 6")).await;
    assert!(shown.buttons.is_empty() && shown.text.contains("answer each field in one message"), "{shown:?}");
}
