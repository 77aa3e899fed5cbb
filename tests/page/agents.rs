//! Custom agents: one is chosen for a conversation and kept.

use super::{IDLE, NOTICE, TALK, looks::audits, open, says, shown};
use crate::house::House;

const NAME: &str = "document.getElementById('agent').innerText.trim()";
const FIXED: &str = "document.getElementById('agent').disabled";

/// A house with an agent that writes poems.
async fn with_a_poet(rest: &str) -> House {
    let mut house = super::build(rest).await;
    let folder = house.path(".pudu/users/default/agents/poet");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.yaml"), "name: poet\ndescription: Writes poems\n").unwrap();
    std::fs::write(folder.join("SOUL.md"), "You write poems.").unwrap();
    house.start();
    house
}

/// Returns whether the newest request was the poet's.
fn is_poets(house: &House) -> bool {
    house.model.requests().pop().unwrap().body.to_string().contains("You write poems.")
}

#[tokio::test]
async fn a_conversation_is_begun_with_an_agent_and_keeps_it() {
    let house = with_a_poet("agents_api: {enabled: true}\n").await;
    let Some(mut browser) = open(&house).await else { return };
    browser.sees(NAME, "pudu").await;
    says(&mut browser, "plain", "echo: plain").await;
    assert!(!is_poets(&house));
    browser.sees(&shown("agent"), false).await;

    browser.chord("O", 10).await;
    browser.sees("document.querySelectorAll('.turn').length", 0).await;
    browser.eval("document.getElementById('agent').focus()").await;
    browser.presses("Enter").await;
    browser.sees("document.activeElement.innerText", "pudu\nGeneral-purpose agent").await;
    browser.presses("ArrowDown").await;
    browser.sees("document.activeElement.innerText", "poet\nWrites poems").await;
    audits(&mut browser, "the agents").await;
    browser.presses("Enter").await;
    browser.sees(NAME, "poet").await;
    browser.sees("document.activeElement.id", "box").await;
    says(&mut browser, "a verse", "echo: a verse").await;
    assert!(is_poets(&house));
    browser.sees(&format!("[{NAME}, {FIXED}]"), serde_json::json!(["poet", true])).await;
    audits(&mut browser, "a conversation with an agent").await;

    super::reloads(&mut browser).await;
    browser.sees(&format!("[{NAME}, {FIXED}]"), serde_json::json!(["poet", true])).await;
    says(&mut browser, "another", "echo: another").await;
    assert!(is_poets(&house));
    browser.clicks(".turn [aria-label=\"Branch from here\"]").await;
    browser.sees("document.querySelectorAll('.turn').length", 1).await;
    browser.sees(NAME, "poet").await;
    browser.eval("[...document.querySelectorAll('#threads a')].find(link => link.innerText.includes('plain')).click()").await;
    browser.sees(TALK, vec!["you: plain", "pudu: echo: plain"]).await;
    browser.sees(&shown("agent"), false).await;

    browser.chord("O", 10).await;
    browser.sees("document.querySelectorAll('.turn').length", 0).await;
    browser.types("/agent po").await;
    let offered = "[...document.querySelectorAll('#menu b')].map(row => row.innerText.trim())";
    browser.sees(offered, vec!["poet"]).await;
    browser.presses("Tab").await;
    browser.presses("Enter").await;
    browser.sees(NAME, "poet").await;
    browser.resizes(320, 640).await;
    browser.sees("document.documentElement.scrollWidth", 320).await;
    says(&mut browser, "third", "echo: third").await;
    browser.types("/agent").await;
    browser.presses("Enter").await;
    browser.sees("document.querySelector('dialog h2')?.innerText ?? ''", "/agent").await;
    let lead = "[...document.querySelectorAll('dialog button')].find(button => button.innerText === 'lead_agent').click()";
    browser.eval(lead).await;
    browser.sees(&format!("{NOTICE}.split('\\n')[0]"), "lead_agent answers here from now on.").await;
    browser.sees(&shown("agent"), false).await;
    says(&mut browser, "fourth", "echo: fourth").await;
    browser.sees(IDLE, true).await;
    assert_eq!((&browser.failures, &browser.unanswered), (&Vec::new(), &Vec::new()));
}

#[tokio::test]
async fn where_agents_are_not_shown_there_is_nothing_to_choose() {
    let house = with_a_poet("").await;
    let Some(mut browser) = open(&house).await else { return };
    browser.sees(&shown("agent"), false).await;
    browser.types("/agent poet").await;
    browser.presses("Enter").await;
    browser.sees(&format!("{NOTICE}.split('\\n')[0]"), "poet answers here from now on: Writes poems.").await;
}
