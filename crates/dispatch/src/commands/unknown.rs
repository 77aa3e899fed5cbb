//! An unknown command: the answer suggests the nearest one.

use super::{CommandAnswer, CommandContext, started_by_people, usable};
use pudu_base::{NamedPrompt, Skill};
use pudu_model::Offline;
use pudu_texts::Language;
use std::sync::Arc;

/// Answers a command that does not exist.
pub(super) async fn run(context: &mut CommandContext<'_>, name: &str) -> CommandAnswer {
    // The built-in offline model lets people call tools by hand.
    if name == "tool" && super::models::chosen(context).await.as_deref() == Some(Offline::NAME) {
        return CommandAnswer::Message;
    }
    let text = text(
        context.language(),
        context.is_chat(),
        name,
        &context.skills().await,
        &context.agent().setup().prompts,
    );
    text.into()
}

/// Returns the answer to an unknown command, with the nearest command or skill.
pub(super) fn text(
    language: Language,
    is_chat: bool,
    name: &str,
    skills: &[Skill],
    prompts: &[Arc<dyn NamedPrompt>],
) -> String {
    let names = || usable(is_chat).map(|row| row.name);
    let all = names().chain(started_by_people(skills).map(|skill| skill.name.as_str()));
    let all = all.chain(prompts.iter().map(|prompt| prompt.spec().name.as_str()));
    // Among equally near names, one that begins with the typed text is preferred.
    let nearness = |known| (strsim::damerau_levenshtein(known, name), !str::starts_with(known, name), known);
    let suggestion = match all.map(nearness).min() {
        Some((distance, _, known)) if distance <= 2 && distance < name.len() => {
            language.did_you_mean(format!("/{known}"))
        }
        _ => String::new(),
    };
    let all: Vec<String> = names().map(|name| format!("/{name}")).collect();
    let available = language.commands_available(all.join(" | "));
    language.paragraph(&[&language.command_unknown(name), &suggestion, &available])
}
