//! The history: search, rename, pin, delete, and long conversations.

use super::{BOX, IDLE, TALK, browser::Browser, house, open, says, visit};
use crate::house::{House, SOON, Talker, http};
use serde_json::{Value, json};

/// Contents of the history: headings, and titles below them.
const HISTORY: &str =
    "[...document.querySelectorAll('#threads :is(h3, .thread-title)')].map(node => node.innerText)";

const CURRENT: &str = "document.querySelector('#threads [aria-current] .thread-title')?.innerText ?? ''";

/// Opens the menu of a thread and selects an entry.
async fn takes(browser: &mut Browser, title: &str, entry: &str) {
    browser.eval(&format!("document.querySelector('[aria-label=\"Actions for {title}\"]').click()")).await;
    let button =
        format!("[...document.querySelectorAll('.menu button')].find(one => one.innerText === '{entry}')");
    browser.sees(&format!("Boolean({button})"), true).await;
    browser.eval(&format!("{button}.click()")).await;
}

async fn post(house: &House, path: &str, body: Value) -> Value {
    let asked = http().post(format!("http://{}{path}", house.address)).json(&body).send().await.unwrap();
    asked.json().await.unwrap()
}

#[tokio::test]
async fn conversations_are_found_renamed_pinned_and_deleted() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    for title in ["apples", "bananas", "cherries"] {
        says(&mut browser, title, &format!("echo: {title}")).await;
        browser.chord("O", 10).await;
        browser.sees("document.querySelectorAll('.turn').length", 0).await;
    }
    browser.sees(HISTORY, vec!["Today", "cherries", "bananas", "apples"]).await;
    browser.eval("[...document.querySelectorAll('#threads a')].at(-1).click()").await;
    browser.sees(TALK, vec!["you: apples", "pudu: echo: apples"]).await;
    browser.sees(CURRENT, "apples").await;
    browser.eval("history.back()").await;
    browser.sees("document.querySelectorAll('.turn').length", 0).await;
    browser.eval("history.forward()").await;
    browser.sees(TALK, vec!["you: apples", "pudu: echo: apples"]).await;

    browser.chord("K", 2).await;
    browser.sees("document.activeElement.id", "search").await;
    browser.types("BAN").await;
    browser.sees(HISTORY, vec!["Today", "bananas"]).await;
    browser.presses("ArrowDown").await;
    browser.sees("document.activeElement.innerText", "bananas").await;
    browser.presses("Enter").await;
    browser.sees(TALK, vec!["you: bananas", "pudu: echo: bananas"]).await;
    browser.eval("document.getElementById('search').focus()").await;
    browser.presses("Escape").await;
    browser.sees(HISTORY, vec!["Today", "cherries", "bananas", "apples"]).await;

    takes(&mut browser, "apples", "Pin").await;
    browser.sees(HISTORY, vec!["Pinned", "apples", "Today", "cherries", "bananas"]).await;
    takes(&mut browser, "cherries", "Rename").await;
    browser.sees("document.activeElement.value", "cherries").await;
    browser.types("dates").await;
    browser.presses("Enter").await;
    browser.sees(HISTORY, vec!["Pinned", "apples", "Today", "dates", "bananas"]).await;
    takes(&mut browser, "bananas", "Delete").await;
    browser.sees("document.querySelector('dialog h2').innerText", "Delete this conversation?").await;
    browser.presses("Escape").await;
    browser.sees("document.querySelector('dialog')", Value::Null).await;
    takes(&mut browser, "bananas", "Delete").await;
    browser.clicks("dialog .danger").await;
    browser.sees(HISTORY, vec!["Pinned", "apples", "Today", "dates"]).await;
    browser.sees("[location.hash, document.querySelectorAll('.turn').length]", json!(["#/", 0])).await;
    assert_eq!(browser.failures, [""; 0]);
}

#[tokio::test]
async fn what_somebody_wrote_in_a_chat_is_in_the_history_with_its_origin() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    says(&mut browser, "draft one", "echo: draft one").await;
    browser.types("half a tho").await;
    post(&house, "/api/threads", json!({"thread_id": "demo", "metadata": {"terminal": "demo"}})).await;
    assert_eq!(house.begin_run("demo", "from elsewhere").await, 200);
    house.model.wait(SOON, |model| (model.count() == 2).then_some(())).await.unwrap();
    let ada = Talker::new(&house, "Ada");
    ada.says("from telegram", "echo: from telegram").await;
    visit(&mut browser, &house).await;
    let origins = "[...document.querySelectorAll('#threads li')].map(row => row.innerText.trim().split('\\n')).filter(row => row.length > 1)";
    browser.sees(origins, json!([["from elsewhere", "Terminal"]])).await;
    browser.eval("[...document.querySelectorAll('#threads a')].find(link => link.innerText.includes('elsewhere')).click()").await;
    browser.sees(TALK, vec!["you: from elsewhere", "pudu: echo: from elsewhere"]).await;
    says(&mut browser, "and from here", "echo: and from here").await;
    browser.eval("[...document.querySelectorAll('#threads a')].find(link => link.innerText.includes('draft')).click()").await;
    browser.sees(BOX, "half a tho").await;
}

#[tokio::test]
async fn of_a_long_conversation_only_what_is_looked_at_is_loaded() {
    let house = house("").await;
    let thread = post(&house, "/api/threads", json!({})).await["thread_id"].as_str().unwrap().to_owned();
    let message = |at: usize| {
        let kind = if at.is_multiple_of(2) { "human" } else { "ai" };
        json!({"type": kind, "id": format!("m{at}"), "content": format!("message {at}\n\n{}", "word ".repeat(80))})
    };
    let messages: Vec<Value> = (0..400).map(message).collect();
    post(&house, &format!("/api/threads/{thread}/state"), json!({"values": {"messages": messages}})).await;
    let Some(mut browser) = Browser::start().await else { return };
    browser.open(&format!("http://{}/#/t/{thread}", house.address)).await;
    let first = "document.querySelector('.turn .bubble')?.innerText.split('\\n')[0] ?? ''";
    let newest = "document.querySelector('.turn:last-child .words')?.innerText.split('\\n')[0] ?? ''";
    browser.sees(newest, "message 399").await;
    browser.sees("document.querySelectorAll('.turn').length <= 60", true).await;
    browser.sees("(view => view.scrollHeight - view.scrollTop - view.clientHeight < 3)(document.getElementById('scroll'))", true).await;
    let seen = browser.eval("[...document.querySelectorAll('.turn')].length").await.as_u64().unwrap();
    browser.eval("document.getElementById('scroll').scrollTop = 0").await;
    browser.sees(&format!("document.querySelectorAll('.turn').length > {seen}"), true).await;
    browser.sees("document.getElementById('scroll').scrollTop > 500", true).await;
    let upwards = format!("(document.getElementById('scroll').scrollTop = 0, {first})");
    browser.sees(&upwards, "message 0").await;
    browser.sees("document.querySelectorAll('.turn').length", 200).await;
    browser.sees(IDLE, true).await;
    says(&mut browser, "one more", "echo: one more").await;
    assert_eq!(browser.failures, [""; 0]);
}
