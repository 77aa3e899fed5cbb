//! `/skills`: lists the skills.

use super::{CommandAnswer, CommandContext, CommandSpec, MAX_LISTED_SKILLS, brief, started_by_people};
use pudu_base::Skill;
use pudu_texts::Language;
use std::fmt::Write;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "skills",
    argument: super::NO_ARGUMENT,
    about: Language::about_skills,
    run: |context, _| Box::pin(run(context)),
};

async fn run(context: &mut CommandContext<'_>) -> CommandAnswer {
    let text = text(context.language(), &context.skills().await);
    text.into()
}

/// Lists the skills.
pub(super) fn text(language: Language, skills: &[Skill]) -> String {
    let skills: Vec<&Skill> = started_by_people(skills).collect();
    if skills.is_empty() {
        return language.skills_none().to_owned();
    }
    let mut text = format!("{}\n", language.skills());
    for skill in skills.iter().take(MAX_LISTED_SKILLS) {
        let hint = skill.argument_hint.as_ref().map(|hint| format!(" {hint}")).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = write!(text, "\n- `/{}{hint}` — {}", skill.name, brief(&skill.about));
    }
    if let Some(more @ 1..) = skills.len().checked_sub(MAX_LISTED_SKILLS) {
        let _ = write!(text, "\n- {}", language.more(more));
    }
    format!("{text}\n\n{}", language.skills_usage())
}
