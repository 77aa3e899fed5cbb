//! Agents of users: their owners, and who may change shared agents.

use super::{approver, asked, system};
use crate::house::{House, Talker};
use pudu_sim::model::Reply;
use serde_json::json;

#[tokio::test]
async fn an_agent_made_in_a_chat_is_its_makers_and_a_shared_one_is_changed_by_approvers_alone() {
    let mut house = House::build("").await;
    house.write_agent("clerk", "", "You are polite.");
    house.start();
    let (ada, bob) = (Talker::new(&house, "Ada"), Talker::new(&house, "Bob"));
    let made = json!({"soul": "You are a poet.", "description": "Writes."});
    house.model.next(Reply::tool("setup_agent", &made));
    house.model.next(Reply::text("Made."));
    ada.says("/agent new poet all is said", "Made.").await;
    assert!(!house.path(".pudu/users/default/agents/poet").exists());
    ada.says("a poem", "echo: a poem").await;
    assert!(system(&asked(&house)).contains("You are a poet."));
    assert!(asked(&house).tools().contains(&"update_agent"), "it is hers to change");

    bob.says("/agent poet", "There is no agent poet. /agent lists the agents.").await;
    bob.say("/agent");
    let list = bob.reads_so(|text| text.starts_with("Agents:")).await;
    assert!(list.contains("clerk") && !list.contains("poet"), "{list}");
    house.model.next(Reply::tool("setup_agent", &json!({"soul": "You are Bob's.", "description": "b"})));
    house.model.next(Reply::text("Made, too."));
    bob.says("/agent new poet all is said", "Made, too.").await;
    bob.says("a poem", "echo: a poem").await;
    assert!(system(&asked(&house)).contains("You are Bob's."), "each has one of that name");
    bob.says(
        "/agent new clerk x",
        "The agent clerk exists already. Write /agent new NAME, followed by the agent's purpose.",
    )
    .await;

    bob.says("/agent clerk", "clerk answers here from now on.").await;
    bob.says("be rude", "echo: be rude").await;
    assert!(!asked(&house).tools().contains(&"update_agent"), "it is everybody's");
    house.configure(&approver(&bob), "");
    bob.says("be blunt", "echo: be blunt").await;
    assert!(asked(&house).tools().contains(&"update_agent"));

    let (_, listed) = house.pudu(&["agent", "list"]);
    assert_eq!(listed.matches("poet").count(), 2, "{listed}");
    let (_, found) = house.pudu(&["doctor"]);
    assert!(
        found.contains(&format!("ok    shared agents: editable by approvers (telegram {})", bob.person)),
        "{found}"
    );
    // A name in the configuration never means a user's own agent.
    house.configure("session: {assistant_id: poet}\nagent_choice: fixed\n", "");
    ada.say("hello");
    ada.reads_so(|text| text.contains("There is no agent poet")).await;
}
