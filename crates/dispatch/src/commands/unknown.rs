//! An unknown command: the answer suggests the nearest one.

use super::{TABLE, started_by_people};
use crate::bus::InboxItem;
use crate::{
    command::SlashCommand,
    conversation::{CommandFn, ConversationActor},
};
use pudu_client::{base::Skill, model::Offline};
use pudu_texts::Language;

pub(super) const RUN: CommandFn = |actor, arrival, command| Box::pin(run(actor, arrival, command));

async fn run(actor: &mut ConversationActor, arrival: InboxItem, command: SlashCommand) {
    // The model without a model calls tools by hand.
    if command.name == "tool"
        && super::models::chosen(actor, &arrival.inbound).await.as_deref() == Some(Offline::NAME)
    {
        actor.say(arrival).await;
        return;
    }
    let text = text(actor.language(&arrival), &command.name, &actor.skills(&arrival).await);
    actor.answer(arrival, text);
}

/// Returns the answer to an unknown command, with the nearest command or skill.
pub(super) fn text(language: Language, name: &str, skills: &[Skill]) -> String {
    let names = || TABLE.iter().map(|row| row.name);
    let all = names().chain(started_by_people(skills).map(|skill| skill.name.as_str()));
    // Of two that are as near, the one that begins so was meant.
    let nearness = |known| (strsim::damerau_levenshtein(known, name), !str::starts_with(known, name), known);
    let meant = match all.map(nearness).min() {
        Some((distance, _, known)) if distance <= 2 && distance < name.len() => {
            language.did_you_mean(format!("/{known}"))
        }
        _ => String::new(),
    };
    let all: Vec<String> = names().map(|name| format!("/{name}")).collect();
    let available = language.commands_available(all.join(" | "));
    language.paragraph(&[&language.command_unknown(name), &meant, &available])
}
