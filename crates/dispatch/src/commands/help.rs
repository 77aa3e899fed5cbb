//! `/help`: lists the commands, the skills and the prompts of MCP servers.

use super::{CommandAnswer, CommandContext, CommandSpec, MAX_LISTED_SKILLS, started_by_people, usable};
use pudu_base::{NamedPrompt, Skill};
use pudu_texts::Language;
use std::sync::Arc;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "help",
    argument: super::NO_ARGUMENT,
    about: Language::about_help,
    run: |context, _| Box::pin(run(context)),
};

async fn run(context: &mut CommandContext<'_>) -> CommandAnswer {
    let text = text(
        context.language(),
        context.is_chat(),
        &context.skills().await,
        &context.agent().setup().prompts,
    );
    text.into()
}

/// Returns the help in a chat, or on a thread of the HTTP API.
pub(super) fn text(
    language: Language,
    is_chat: bool,
    skills: &[Skill],
    prompts: &[Arc<dyn NamedPrompt>],
) -> String {
    let line = |row: &CommandSpec| {
        let (argument, about) = ((row.argument)(language), (row.about)(language));
        // In a code span, the command would not be tappable.
        let argument = if argument.is_empty() { String::new() } else { format!(" `{argument}`") };
        format!("- /{}{argument} — {about}", row.name)
    };
    let lines: Vec<String> = usable(is_chat).map(line).collect();
    let names = started_by_people(skills).take(MAX_LISTED_SKILLS).map(|skill| format!("/{}", skill.name));
    let names: Vec<String> = names.collect();
    let skills = match names.as_slice() {
        [] => String::new(),
        names => format!("\n\n{}", language.help_skills(language.list(names))),
    };
    let names = prompts.iter().take(MAX_LISTED_SKILLS).map(|prompt| format!("/{}", prompt.spec().name));
    let names: Vec<String> = names.collect();
    let prompts = match names.as_slice() {
        [] => String::new(),
        names => format!("\n\n{}", language.help_prompts(language.list(names))),
    };
    format!(
        "{}\n\n{}{skills}{prompts}\n\n{}",
        language.help_commands(),
        lines.join("\n"),
        language.help_talk()
    )
}
