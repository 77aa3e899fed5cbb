//! Forms of questions, as chat platforms show them.

mod discord;
mod feishu;
mod slack;

use crate::{
    house::{House, SOON},
    scene::is_final,
};
use pudu_sim::{Platform, model::Reply, platform::Shown};
use serde_json::{Value, json};
use std::time::Duration;

/// The fields of the form in these tests.
fn fields() -> Value {
    json!([
        {"name": "who", "label": "Name", "required": true, "placeholder": "Ada"},
        {"name": "size", "label": "Size", "type": "select", "options": ["Small", "Large, with lid"]},
        {"name": "day", "label": "Day", "type": "date"},
        {"name": "gift", "label": "Gift", "type": "checkbox"},
    ])
}

/// Makes the agent ask the form next.
fn ask_next(house: &House, fields: &Value) {
    let asked = json!({"question": "Where to?", "clarification_type": "missing_info", "fields": fields});
    house.model.next(Reply::tool("ask_clarification", &asked));
}

/// Waits until the bot's last message in a chat meets a condition.
async fn sees(platform: &(dyn Platform + 'static), chat: &str, wanted: impl Fn(&Shown) -> bool) -> Shown {
    let last = |shown: Vec<Shown>| shown.last().filter(|last| is_final(last) && wanted(last)).cloned();
    let found = platform.wait(chat, SOON, |platform| last(platform.shown(chat))).await;
    found.unwrap_or_else(|timeout| panic!("{timeout}: {:?}", platform.shown(chat)))
}

/// Waits for the message with the form.
async fn asked(platform: &(dyn Platform + 'static), chat: &str) -> Shown {
    sees(platform, chat, |last| last.buttons == ["Answer"] && last.text.contains("1. Name *")).await
}

/// Calls `look` until it finds something.
async fn eventually<T>(look: impl Fn() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(found) = look() {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it never happens");
}

/// Returns the last message of the user that the model got.
fn last_words(house: &House) -> String {
    let request = house.model.requests().pop().unwrap();
    request.messages().last().unwrap()["content"].as_str().unwrap().to_owned()
}
