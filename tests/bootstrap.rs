//! `/bootstrap`: users introduce themselves, and the lead agent gets its SOUL.md.

use crate::house::{House, Talker};
use pudu_sim::{
    model::{Ask, Reply},
    telegram::Options,
};
use serde_json::json;

const SOUL: &str = "You help the people of a bakery. You are brief.";

fn introduces(ask: &Ask) -> bool {
    system(ask).contains("write the character of the lead agent")
}

fn system(ask: &Ask) -> String {
    ask.messages()[0]["content"].to_string()
}

/// A house in which Ada is an approver.
async fn furnished(account: &str, rest: &str) -> (House, Talker) {
    let mut house = House::furnish(Options::default(), account, rest).await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    house.configure(&format!("approvers: [{}]\n{account}", ada.person), rest);
    (house, ada)
}

const REFUSED: &str =
    "All users share the default agent, so only approvers of this bot can shape its personality.";

#[tokio::test]
async fn people_shape_the_lead_agent_which_then_answers_with_its_soul() {
    let (house, ada) = furnished("", "approvals: {agent_changes: allow}\n").await;
    ada.says("hello", "echo: hello").await;
    ada.says("/bootstrap We are a bakery.", "echo: /bootstrap We are a bakery.").await;
    let asked = house.model.requests().pop().unwrap();
    assert!(introduces(&asked), "{}", system(&asked));
    let mut tools = asked.tools();
    tools.sort_unstable();
    assert_eq!(tools, ["ask_clarification", "setup_agent"], "it can do nothing else");
    ada.says("hm", "echo: hm").await;
    assert!(introduces(&house.model.requests().pop().unwrap()), "it goes on until the character is there");

    house.model.next(Reply::tool("setup_agent", &json!({ "soul": SOUL })));
    ada.says("yes, do it", "echo: yes, do it").await;
    assert_eq!(std::fs::read_to_string(house.path(".pudu/SOUL.md")).unwrap(), format!("{SOUL}\n"));
    ada.says("what now?", "echo: what now?").await;
    let asked = house.model.requests().pop().unwrap();
    assert!(!introduces(&asked) && asked.tools().contains(&"read_file"));
    assert!(system(&asked).contains(&format!("<soul>\\n{SOUL}\\n</soul>")), "{}", system(&asked));

    ada.says("/bootstrap", "echo: /bootstrap").await;
    assert!(system(&house.model.requests().pop().unwrap()).contains(SOUL), "it knows what it changes");
    house.model.next(Reply::tool("setup_agent", &json!({ "soul": SOUL })));
    ada.says("leave it so", "echo: leave it so").await;
    ada.says("done?", "echo: done?").await;
    assert!(!introduces(&house.model.requests().pop().unwrap()), "the same words are a character, too");

    ada.says("/bootstrap", "echo: /bootstrap").await;
    ada.says("/new", "New conversation started. I did not create the agent that you were designing here.")
        .await;
    ada.says("back?", "echo: back?").await;
    assert!(!introduces(&house.model.requests().pop().unwrap()));
}

#[tokio::test]
async fn who_may_not_make_agents_does_not_shape_the_lead_agent_either() {
    let (house, ada) = furnished("agent_choice: choose", "").await;
    ada.says("/bootstrap", REFUSED).await;
    assert_eq!(house.model.count(), 0);
}

#[tokio::test]
async fn who_is_no_approver_does_not_shape_the_lead_agent_whether_changes_are_approved_or_not() {
    for rest in ["", "approvals: {agent_changes: allow}\n"] {
        let (house, ada) = furnished("", rest).await;
        let bob = Talker::new(&house, "Bob");
        bob.says("/bootstrap We are rude.", REFUSED).await;
        house.configure("", rest);
        ada.says("/bootstrap", REFUSED).await;
        assert_eq!((house.model.count(), house.path(".pudu/SOUL.md").exists()), (0, false));
    }
}

#[tokio::test]
async fn the_right_to_shape_the_lead_agent_ends_with_the_approver() {
    let (house, ada) = furnished("", "approvals: {agent_changes: allow}\n").await;
    ada.says("/bootstrap", "echo: /bootstrap").await;
    house.configure("", "approvals: {agent_changes: allow}\n");
    ada.says("so?", "echo: so?").await;
    let asked = house.model.requests().pop().unwrap();
    assert!(!introduces(&asked) && !asked.tools().contains(&"setup_agent"), "{:?}", asked.tools());
}

#[tokio::test]
async fn where_changes_of_agents_are_approved_the_lead_agents_is() {
    let (house, ada) = furnished("", "").await;
    ada.says("/bootstrap", "echo: /bootstrap").await;
    house.model.next(Reply::tool("setup_agent", &json!({ "soul": SOUL })));
    ada.say("do it");
    ada.reads_so(|text| text.contains("setup_agent") && text.contains("bakery")).await;
    assert!(!house.path(".pudu/SOUL.md").exists(), "not before somebody approved it");
}

#[tokio::test]
async fn a_soul_that_cannot_be_read_answers_nobody() {
    let (house, ada) = furnished("", "").await;
    std::fs::write(house.path(".pudu/SOUL.md"), b"\xff").unwrap();
    ada.say("hello");
    ada.reads_so(|text| text.contains("The agent lead_agent cannot be used: its SOUL.md is not UTF-8")).await;
    assert_eq!(house.model.count(), 0);
}
