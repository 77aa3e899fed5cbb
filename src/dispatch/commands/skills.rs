//! `/skills`: lists the skills.

use super::{CommandSpec, MAX_LISTED_SKILLS, brief};
use crate::bus::InboxItem;
use crate::dispatch::conversation::ConversationActor;
use pudu_client::base::Skill;
use std::fmt::Write;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "skills",
    argument: "",
    help: "List the skills; /name asks for one",
    run: |actor, arrival, _| Box::pin(run(actor, arrival)),
};

async fn run(actor: &mut ConversationActor, arrival: InboxItem) {
    let text = text(&actor.skills(&arrival.inbound.sender.id).await);
    actor.answer(arrival, text);
}

/// Lists the skills.
pub(super) fn text(skills: &[Skill]) -> String {
    if skills.is_empty() {
        return "There are no skills here.".to_owned();
    }
    let mut text = "Skills:\n".to_owned();
    for skill in skills.iter().take(MAX_LISTED_SKILLS) {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n- `/{}` — {}", skill.name, brief(&skill.about));
    }
    if let Some(more @ 1..) = skills.len().checked_sub(MAX_LISTED_SKILLS) {
        let _ = write!(text, "\n- and {more} more");
    }
    text.push_str("\n\nBegin a message with one of them, and say behind it what you want. I also use them by myself where they fit.");
    text
}
