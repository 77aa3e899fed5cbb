//! `/memory`: counts the facts of DeerFlow's memory file. This version shows them and does not use them yet.

use super::CommandSpec;
use crate::bus::InboxItem;
use crate::dispatch::conversation::ConversationActor;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "memory",
    argument: "",
    help: "Count the facts of a DeerFlow memory (not used yet)",
    run: |actor, arrival, _| Box::pin(run(actor, arrival)),
};

async fn run(actor: &mut ConversationActor, arrival: InboxItem) {
    let text = text(&actor.shared.home).await;
    actor.answer(arrival, text);
}

async fn text(home: &std::path::Path) -> String {
    let path = home.join("users/default/memory.json");
    let text = match tokio::fs::read_to_string(&path).await {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return "Memory contains 0 fact(s).".to_owned();
        }
        Err(_) => return "Failed to fetch memory information.".to_owned(),
    };
    let document: Option<serde_json::Value> = serde_json::from_str(&text).ok();
    match document.as_ref().and_then(|document| document.get("facts")).and_then(|facts| facts.as_array()) {
        Some(facts) => {
            format!("Memory contains {} fact(s). This version does not use them yet.", facts.len())
        }
        None => "Failed to fetch memory information.".to_owned(),
    }
}
