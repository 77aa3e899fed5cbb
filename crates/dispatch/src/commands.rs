//! The slash commands: one file each, and one table, from which help, menus and suggestions are made. Skills are asked
//! for in the same way, and are named behind them.
//!
//! To add a command: one file with its [`CommandSpec`], one line in [`TABLE`].

mod agent;
mod bootstrap;
mod compact;
mod connect;
mod context;
mod goal;
mod help;
mod memory;
mod mode;
mod models;
mod new;
mod on_thread;
mod retry;
mod secret;
mod skills;
mod start;
mod status;
mod stop;
mod think;
mod unknown;
mod usage;

pub use crate::view::compacted;
pub(crate) use context::{
    ActivityState, CommandAnswer, CommandContext, ConversationActivity, GoalClearing, LiveConversation,
    StoppedWork,
};
pub use on_thread::{ThreadAnswer, ThreadCaller, ThreadChoices, ThreadReply, choices, on_thread};

use super::command::SlashCommand;
use pudu_client::{
    Client,
    base::{BoxFuture, Skill, UserId},
    harness::middleware::named,
    store::StoreError,
};
use pudu_texts::Language;

/// The work of a command, with its argument.
type CommandFn = for<'a> fn(&'a mut CommandContext<'_>, Option<String>) -> BoxFuture<'a, CommandAnswer>;

/// A command, as help and menus show it, and its work.
pub struct CommandSpec {
    /// The command without its slash.
    pub name: &'static str,
    /// Placeholder for its argument; empty where it takes none.
    pub argument: fn(Language) -> &'static str,
    /// Its help text.
    pub about: fn(Language) -> &'static str,
    run: CommandFn,
}

/// The commands, in the order in which help shows them.
pub const TABLE: &[CommandSpec] = &[
    new::COMMAND,
    stop::COMMAND,
    retry::COMMAND,
    status::COMMAND,
    models::COMMAND,
    think::COMMAND,
    agent::COMMAND,
    bootstrap::COMMAND,
    mode::COMMAND,
    goal::COMMAND,
    skills::COMMAND,
    secret::COMMAND,
    usage::COMMAND,
    compact::COMMAND,
    memory::COMMAND,
    connect::COMMAND,
    help::COMMAND,
];

/// The placeholder of a command without an argument.
const NO_ARGUMENT: fn(Language) -> &'static str = |_| "";
/// Commands that need no line in the help.
const HIDDEN: &[CommandSpec] = &[start::COMMAND];

/// Commands about the messages and people of a chat, which a thread of the HTTP API does not have.
const ONLY_IN_CHATS: [&str; 2] = ["mode", "connect"];

/// Maximum number of agents, or models, that become buttons.
const MAX_BUTTONS: usize = 8;
/// Maximum length of the action that a button carries, in bytes.
const MAX_ACTION_BYTES: usize = 64;
/// Maximum number of skills that are listed.
const MAX_LISTED_SKILLS: usize = 60;
/// Maximum length of a skill's description in the menu, in characters.
const MAX_DESCRIPTION_CHARS: usize = 160;

fn find(name: &str) -> Option<&'static CommandSpec> {
    TABLE.iter().chain(HIDDEN).find(|spec| spec.name == name)
}

/// Returns whether there is a command of this name.
#[must_use]
pub fn is_command(name: &str) -> bool {
    find(name).is_some()
}

/// Returns whether a command asks for a skill of a user. Where a skill has the name of a command, the command is meant.
pub(super) async fn is_skill(client: &Client, user: &UserId, command: &SlashCommand) -> bool {
    !is_command(&command.name) && named(&client.catalog_of(user).await.enabled(), &command.name).is_some()
}

/// Runs a command; an unknown one is answered with a suggestion.
pub(super) async fn run(context: &mut CommandContext<'_>, command: SlashCommand) -> CommandAnswer {
    match find(&command.name) {
        Some(spec) if !context.is_chat() && ONLY_IN_CHATS.contains(&spec.name) => {
            context.language().command_only_in_chats(spec.name).into()
        }
        Some(spec) => (spec.run)(context, command.argument).await,
        None => unknown::run(context, &command.name).await,
    }
}

/// Returns whether a command works on threads of the HTTP API.
#[must_use]
pub fn works_on_threads(name: &str) -> bool {
    !ONLY_IN_CHATS.contains(&name)
}

/// Returns all that may be typed behind a slash: its name, the placeholder of its argument, and its purpose.
pub fn offered<'a>(
    language: Language,
    skills: &'a [Skill],
) -> impl Iterator<Item = (&'a str, &'a str, String)> {
    let row = move |row: &'static CommandSpec| {
        (row.name, (row.argument)(language), (row.about)(language).to_owned())
    };
    let skill = move |skill: &'a Skill| {
        let argument = skill.argument_hint.as_deref().unwrap_or(language.argument_request());
        (skill.name.as_str(), argument, brief(&skill.about))
    };
    TABLE.iter().map(row).chain(started_by_people(skills).map(skill))
}

/// Returns the skills that people start by their names.
fn started_by_people(skills: &[Skill]) -> impl Iterator<Item = &Skill> {
    skills.iter().filter(|skill| skill.invocation.by_people)
}

/// Returns the first sentence of a skill's description.
pub fn brief(about: &str) -> String {
    let words = about.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = words.split_once(". ").map_or(words.as_str(), |(first, _)| first).trim_end_matches('.');
    let cut: String = first.chars().take(MAX_DESCRIPTION_CHARS).collect();
    if cut.len() < first.len() { format!("{}…", cut.trim_end()) } else { cut }
}

/// Returns the answer where a choice could not be stored.
fn not_stored(language: Language, error: &StoreError) -> String {
    tracing::error!(%error, "failed to store a choice");
    language.not_stored().to_owned()
}

/// Returns the mark behind a line of a list, if the line has one.
fn mark(has: bool, mark: &str) -> String {
    if has { format!(" {mark}") } else { String::new() }
}

/// Returns a count of rows as a number.
fn count(rows: i64) -> usize {
    usize::try_from(rows).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_client::base::SkillInvocation;

    const EN: Language = Language::English;

    #[test]
    fn every_row_is_found_by_its_name_and_has_a_line_in_the_help() {
        let mut seen = Vec::new();
        for spec in TABLE.iter().chain(HIDDEN) {
            let command = SlashCommand::parse(&format!("/{}", spec.name)).unwrap();
            assert!(is_command(&command.name), "{}", spec.name);
            assert!(!seen.contains(&spec.name), "{} stands for two", spec.name);
            seen.push(spec.name);
        }
        for spec in TABLE {
            for language in Language::ALL {
                assert!(help::text(language, &[]).contains(&format!("- /{} ", spec.name)), "{}", spec.name);
                let about = (spec.about)(language).chars().count();
                assert!(spec.name.len() <= 32 && (3..=256).contains(&about), "Telegram's limits of a menu");
            }
        }
        assert!(!is_command("data-analysis"));
    }

    #[test]
    fn an_unknown_command_gets_a_suggestion() {
        assert!(
            unknown::text(EN, "sotp", &[])
                .starts_with("Unknown command: /sotp. Did you mean `/stop`? Available commands: /new | ")
        );
        assert!(unknown::text(EN, "dance", &[]).starts_with("Unknown command: /dance. Available commands: "));
        let skills = [skill("data-analysis", "x")];
        assert!(unknown::text(EN, "data-analyse", &skills).contains("Did you mean `/data-analysis`?"));
    }

    fn skill(name: &str, about: &str) -> Skill {
        Skill {
            name: name.into(),
            about: about.into(),
            path: String::new(),
            tools: None,
            text: "".into(),
            ..Skill::default()
        }
    }

    #[test]
    fn skills_are_listed_by_their_first_sentence() {
        assert_eq!(skills::text(EN, &[]), "There are no skills here.");
        let helper = SkillInvocation { by_model: true, by_people: false };
        let helper = Skill { invocation: helper, ..skill("helper", "Helps the model.") };
        assert_eq!(skills::text(EN, std::slice::from_ref(&helper)), "There are no skills here.");
        let hinted = Skill { argument_hint: Some("[file]".into()), ..skill("a", "Does this.") };
        let both = [hinted, helper];
        let listed = skills::text(EN, &both);
        assert!(listed.contains("- `/a [file]` — Does this") && !listed.contains("helper"), "{listed}");
        assert!(!help::text(EN, &both).contains("helper"));
        assert!(!unknown::text(EN, "helpr", &both).contains("helper"));
        let last = offered(EN, &both).last().unwrap();
        assert_eq!((last.0, last.1), ("a", "[file]"));
        let some = [skill("a", "Does this.\n Use it when asked."), skill("b", &"x".repeat(200))];
        let lines =
            format!("Skills:\n\n- `/a` — Does this\n- `/b` — {}…\n\nBegin a message", "x".repeat(160));
        assert!(skills::text(EN, &some).starts_with(&lines), "{}", skills::text(EN, &some));
        assert!(help::text(EN, &some).contains("\n\nSkills, each with your request behind it: /a, /b\n\n"));
    }
}
