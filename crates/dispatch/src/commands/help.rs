//! `/help`: lists the commands and the skills.

use super::{CommandAnswer, CommandContext, CommandSpec, MAX_LISTED_SKILLS, TABLE, started_by_people};
use pudu_client::base::Skill;
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "help",
    argument: super::NO_ARGUMENT,
    about: Language::about_help,
    run: |context, _| Box::pin(run(context)),
};

async fn run(context: &mut CommandContext<'_>) -> CommandAnswer {
    let text = text(context.language(), &context.skills().await);
    text.into()
}

/// Returns the help.
pub(super) fn text(language: Language, skills: &[Skill]) -> String {
    let line = |row: &CommandSpec| {
        let (argument, about) = ((row.argument)(language), (row.about)(language));
        // A command in a code span cannot be tapped.
        let argument = if argument.is_empty() { String::new() } else { format!(" `{argument}`") };
        format!("- /{}{argument} — {about}", row.name)
    };
    let lines: Vec<String> = TABLE.iter().map(line).collect();
    let names = started_by_people(skills).take(MAX_LISTED_SKILLS).map(|skill| format!("/{}", skill.name));
    let names: Vec<String> = names.collect();
    let skills = match names.as_slice() {
        [] => String::new(),
        names => format!("\n\n{}", language.help_skills(language.list(names))),
    };
    format!("{}\n\n{}{skills}\n\n{}", language.help_commands(), lines.join("\n"), language.help_talk())
}
