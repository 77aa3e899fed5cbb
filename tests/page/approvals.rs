//! Approvals on the page.

use super::{IDLE, NOTICE, build, looks::audits, open, reloads, shown};
use crate::house::{House, SOON};
use pudu_sim::model::{Answer, Reply};
use serde_json::{Value, json};

const CARD: &str = "[...document.querySelectorAll('.approval')].map(card => [card.ariaLabel, ...[...card.querySelectorAll('button')].map(button => button.innerText)])";
const OUTCOME: &str = "[...document.querySelectorAll('.approval.decided b')].map(node => node.innerText)";

async fn house(more: &str) -> House {
    let mut house = build(&format!("approvals: {{tools: [write_file]{more}}}\n")).await;
    house.start();
    house
}

fn writes(content: &str) -> Answer {
    Reply::tool("write_file", &json!({"path": "/mnt/user-data/outputs/a.txt", "content": content}))
}

fn asks() -> Value {
    json!([["Approval needed", "Approve", "Deny"]])
}

#[tokio::test]
async fn a_call_is_approved_by_keys_and_its_outcome_stays() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    let long = format!("{}\n\nthe middle\n\n{}", "begin ".repeat(200), "end ".repeat(200));
    house.model.next(writes(&long));
    browser.types("write it").await;
    browser.presses("Enter").await;
    browser.sees(CARD, asks()).await;
    browser.sees("document.getElementById('spoken').innerText.startsWith('Approval needed: ')", true).await;
    reloads(&mut browser).await;
    browser.sees(CARD, asks()).await;
    browser.sees("document.querySelector('.approval pre')?.checkVisibility()", false).await;
    browser.eval("document.querySelector('.approval summary').focus()").await;
    browser.presses("Enter").await;
    browser.sees("document.querySelector('.approval pre').checkVisibility() && document.querySelector('.approval pre').innerText.includes('the middle')", true).await;
    // Scrollable text can be reached by keyboard.
    browser.presses("Tab").await;
    browser.presses("Tab").await;
    browser.sees("document.activeElement.innerText", "Approve").await;
    browser.presses("Enter").await;
    browser.sees(OUTCOME, vec!["Approved"]).await;
    browser.sees("document.activeElement.classList.contains('approval')", true).await;
    browser.sees(IDLE, true).await;
    assert!(house.model.requests()[1].last_tool().starts_with("OK"));
    reloads(&mut browser).await;
    browser.sees(OUTCOME, vec!["Approved"]).await;
    assert_eq!(browser.failures, [""; 0]);
}

#[tokio::test]
async fn two_tabs_agree_and_a_death_of_the_daemon_asks_the_same_again() {
    let mut house = house("").await;
    let (Some(mut one), Some(mut other)) = (open(&house).await, open(&house).await) else { return };
    house.model.next(writes("hi"));
    one.types("write it").await;
    one.presses("Enter").await;
    one.sees(CARD, asks()).await;
    let hash = one.eval("location.hash").await;
    other.eval(&format!("location.hash = {hash}")).await;
    other.sees(CARD, asks()).await;
    house.kill();
    one.sees(&shown("link"), true).await;
    house.bind = house.address.clone();
    house.start();
    one.sees(&shown("link"), false).await;
    other.sees(&shown("link"), false).await;
    one.sees(CARD, asks()).await;
    other.clicks(".approval .button:not(.main)").await;
    for browser in [&mut one, &mut other] {
        browser.sees(OUTCOME, vec!["Denied"]).await;
        browser.sees(IDLE, true).await;
        browser.sees(NOTICE, "").await;
        assert_eq!(browser.failures, [""; 0]);
    }
}

#[tokio::test]
async fn what_nobody_decides_is_denied_and_what_is_stopped_is_not_asked_any_more() {
    let house = house(", timeout_seconds: 8").await;
    let Some(mut browser) = open(&house).await else { return };
    house.model.next(writes("hi"));
    browser.types("write it").await;
    browser.presses("Enter").await;
    browser.sees(CARD, asks()).await;
    browser.sees(OUTCOME, vec!["Expired without a decision"]).await;
    browser.sees(IDLE, true).await;
    house.configure("", "suggestions: {enabled: false}\napprovals: {tools: [write_file]}\n");
    house.logs("applied edited configuration").await;
    house.model.next(writes("hi"));
    browser.types("again").await;
    browser.presses("Enter").await;
    browser.sees("document.querySelectorAll('.approval').length", 2).await;
    browser.presses("Escape").await;
    browser.sees(IDLE, true).await;
    browser.sees("document.querySelectorAll('.approval:not(.decided)').length", 0).await;
}

#[tokio::test]
async fn a_question_fits_a_phone_and_axe_finds_nothing() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    browser.resizes(320, 640).await;
    for scheme in ["light", "dark"] {
        browser.prefers(scheme).await;
        house.model.next(writes(&"wide".repeat(2000)));
        browser.eval("document.getElementById('box').focus()").await;
        browser.types("write it").await;
        browser.presses("Enter").await;
        browser.sees("document.querySelectorAll('.approval:not(.decided)').length", 1).await;
        browser.eval("document.querySelector('.approval:not(.decided) summary').click()").await;
        browser.sees("[document.documentElement.scrollWidth, document.getElementById('scroll').scrollWidth <= document.getElementById('scroll').clientWidth]", json!([320, true])).await;
        audits(&mut browser, "a question").await;
        browser.clicks(".approval:not(.decided) .main").await;
        browser.sees(IDLE, true).await;
        audits(&mut browser, "an outcome").await;
    }
}

/// Holds each response with messages back until `release()`.
const LATE_PAGES: &str = "{
    const fetched = window.fetch;
    const released = new Promise(go => { window.release = go; });
    window.late = 0;
    window.fetch = async (path, options) => {
        const answer = await fetched(path, options);
        if (String(path).includes('/messages/page')) { window.late += 1; await released; }
        return answer;
    };
}";
const DRAWN: &str = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))";

#[tokio::test]
async fn a_question_stays_when_a_page_from_before_it_comes_late() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    browser.eval(LATE_PAGES).await;
    browser.types("first").await;
    browser.presses("Enter").await;
    browser.sees("window.late > 0", true).await;
    // The page may be fetched before the first run asks the model.
    house.model.wait(SOON, |model| (model.count() == 1).then_some(())).await.unwrap();
    house.model.next(writes("hi"));
    browser.types("write it").await;
    browser.presses("Enter").await;
    browser.sees(CARD, asks()).await;
    browser.eval("release()").await;
    browser.sees("document.getElementById('spoken').innerText.startsWith('Answer complete')", true).await;
    browser.eval(DRAWN).await;
    browser.sees(CARD, asks()).await;
    browser.clicks(".approval:not(.decided) .main").await;
    browser.sees(IDLE, true).await;
    browser.sees(OUTCOME, vec!["Approved"]).await;
}
