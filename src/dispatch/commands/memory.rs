//! `/memory`: counts the facts of DeerFlow's memory file. This version shows them and does not use them yet.

use super::CommandSpec;
use crate::bus::InboxItem;
use crate::dispatch::conversation::ConversationActor;
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "memory",
    argument: super::NO_ARGUMENT,
    about: Language::about_memory,
    run: |actor, arrival, _| Box::pin(run(actor, arrival)),
};

async fn run(actor: &mut ConversationActor, arrival: InboxItem) {
    let text = text(actor.language(&arrival), &actor.shared.home).await;
    actor.answer(arrival, text);
}

async fn text(language: Language, home: &std::path::Path) -> String {
    let path = home.join("users/default/memory.json");
    let text = match tokio::fs::read_to_string(&path).await {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return language.memory_none().to_owned();
        }
        Err(_) => return language.memory_unreadable().to_owned(),
    };
    let document: Option<serde_json::Value> = serde_json::from_str(&text).ok();
    match document.as_ref().and_then(|document| document.get("facts")).and_then(|facts| facts.as_array()) {
        Some(facts) => language.memory_facts(facts.len()),
        None => language.memory_unreadable().to_owned(),
    }
}
