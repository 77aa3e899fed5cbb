//! An unknown command: the answer suggests the nearest one.

use super::{CommandAnswer, CommandContext, TABLE, started_by_people};
use pudu_client::{base::Skill, model::Offline};
use pudu_texts::Language;

/// Answers a command that does not exist.
pub(super) async fn run(context: &mut CommandContext<'_>, name: &str) -> CommandAnswer {
    // The model without a model calls tools by hand.
    if name == "tool" && super::models::chosen(context).await.as_deref() == Some(Offline::NAME) {
        return CommandAnswer::Message;
    }
    let text = text(context.language(), name, &context.skills().await);
    text.into()
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
