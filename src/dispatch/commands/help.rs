//! `/help`: lists the commands and the skills.

use super::{CommandSpec, MAX_LISTED_SKILLS, TABLE};
use crate::bus::InboxItem;
use crate::dispatch::conversation::ConversationActor;
use pudu_client::base::Skill;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "help",
    argument: "",
    help: "Show this help",
    run: |actor, arrival, _| Box::pin(run(actor, arrival)),
};

async fn run(actor: &mut ConversationActor, arrival: InboxItem) {
    let text = text(&actor.skills(&arrival.inbound.sender.id).await);
    actor.answer(arrival, text);
}

/// Returns the help.
pub(super) fn text(skills: &[Skill]) -> String {
    let line = |row: &CommandSpec| {
        let space = if row.argument.is_empty() { "" } else { " " };
        format!("- `/{}{space}{}` — {}", row.name, row.argument, row.help)
    };
    let lines: Vec<String> = TABLE.iter().map(line).collect();
    let names: Vec<String> =
        skills.iter().take(MAX_LISTED_SKILLS).map(|skill| format!("`/{}`", skill.name)).collect();
    let skills = match names.as_slice() {
        [] => String::new(),
        names => format!("\n\nSkills, each with your request behind it: {}", names.join(", ")),
    };
    format!(
        "Available commands:\n\n{}{skills}\n\nAnything else you write is for the assistant.",
        lines.join("\n")
    )
}
