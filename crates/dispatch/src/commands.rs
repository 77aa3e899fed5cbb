//! Slash commands: one file each, and one table that help, menus and suggestions are built from. Skills and the prompts
//! of MCP servers are started in the same way, and are listed after the commands.
//!
//! To add a command, add a file with its [`CommandSpec`] and a line in [`TABLE`].

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
mod schedule;
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
use pudu_agent::Agent;
use pudu_base::{BoxFuture, NamedPrompt, PromptSpec, Skill, UserId, named_prompt};
use pudu_harness::middleware::named;
use pudu_store::StoreError;
use pudu_texts::Language;
use std::sync::Arc;

/// Implementation of a command. Receives the argument.
type CommandFn = for<'a> fn(&'a mut CommandContext<'_>, Option<String>) -> BoxFuture<'a, CommandAnswer>;

/// A command: its texts for help and menus, and its implementation.
pub struct CommandSpec {
    /// The command without its slash.
    pub name: &'static str,
    /// Placeholder for its argument; empty if it takes none.
    pub argument: fn(Language) -> &'static str,
    /// Its help text.
    pub about: fn(Language) -> &'static str,
    run: CommandFn,
}

impl CommandSpec {
    /// Returns whether text after the command is refused.
    fn takes_no_argument(&self) -> bool {
        (self.argument)(Language::default()).is_empty()
    }
}

/// The commands, in the order of the help.
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
    schedule::COMMAND,
    skills::COMMAND,
    secret::COMMAND,
    usage::COMMAND,
    compact::COMMAND,
    memory::COMMAND,
    connect::COMMAND,
    help::COMMAND,
];

/// Placeholder of a command without an argument.
const NO_ARGUMENT: fn(Language) -> &'static str = |_| "";
/// Commands that help does not list.
const HIDDEN: &[CommandSpec] = &[start::COMMAND];

/// Commands about the messages and people of a chat, which a thread of the HTTP API does not have.
const ONLY_IN_CHATS: [&str; 2] = ["mode", "connect"];

/// Maximum number of agents or models shown as buttons.
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

/// Returns whether a command starts a skill of a user or a prompt of a server. A command takes precedence over both.
pub(super) async fn is_message(agent: &Agent, user: &UserId, command: &SlashCommand) -> bool {
    if is_command(&command.name) {
        return false;
    }
    named_prompt(&agent.setup().prompts, &command.name).is_some()
        || named(&agent.catalog_of(user).await.enabled(), &command.name).is_some()
}

/// Runs a command; an unknown one is answered with a suggestion.
pub(super) async fn run(context: &mut CommandContext<'_>, command: SlashCommand) -> CommandAnswer {
    match find(&command.name) {
        Some(spec) if !context.is_chat() && ONLY_IN_CHATS.contains(&spec.name) => {
            context.language().command_only_in_chats(spec.name).into()
        }
        Some(spec) if spec.takes_no_argument() && command.argument.is_some() => {
            context.language().command_takes_no_argument(spec.name).into()
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

/// Returns the commands that work in a chat, or else those that work on a thread of the HTTP API.
fn usable(is_chat: bool) -> impl Iterator<Item = &'static CommandSpec> {
    TABLE.iter().filter(move |spec| is_chat || works_on_threads(spec.name))
}

/// A command, a skill or a prompt that can be typed after a slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedEntry<'a> {
    /// The text after the slash.
    pub name: &'a str,
    /// Placeholder for its argument; empty if it takes none.
    pub argument: &'a str,
    /// Its purpose.
    pub about: String,
    /// `command`, `skill` or `prompt`.
    pub kind: &'static str,
}

/// Returns the commands, skills and prompts that can be typed after a slash.
pub fn offered<'a>(
    language: Language,
    skills: &'a [Skill],
    prompts: &'a [Arc<dyn NamedPrompt>],
) -> impl Iterator<Item = OfferedEntry<'a>> {
    let row = move |row: &'static CommandSpec| {
        let (argument, about) = ((row.argument)(language), (row.about)(language).to_owned());
        OfferedEntry { name: row.name, argument, about, kind: "command" }
    };
    let skill = move |skill: &'a Skill| {
        let argument = skill.argument_hint.as_deref().unwrap_or(language.argument_request());
        OfferedEntry { name: &skill.name, argument, about: brief(&skill.about), kind: "skill" }
    };
    let prompt = |prompt: &'a Arc<dyn NamedPrompt>| {
        let PromptSpec { name, about, argument_hint, .. } = prompt.spec();
        OfferedEntry { name, argument: argument_hint, about: brief(about), kind: "prompt" }
    };
    let skills = started_by_people(skills).map(skill);
    TABLE.iter().map(row).chain(skills).chain(prompts.iter().map(prompt))
}

/// Returns the skills that people can start by name.
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

/// Logs that a choice could not be stored, and returns the answer.
fn not_stored(language: Language, error: &StoreError) -> String {
    tracing::error!(%error, "failed to store a choice");
    language.not_stored().to_owned()
}

/// Returns the mark to append to a line of a list; empty if it has none.
fn mark(has: bool, mark: &str) -> String {
    if has { format!(" {mark}") } else { String::new() }
}

/// Converts a count of rows.
fn count(rows: i64) -> usize {
    usize::try_from(rows).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::SkillInvocation;

    const EN: Language = Language::English;

    #[test]
    fn every_command_is_found_by_its_name_and_listed_in_the_help() {
        let mut seen = Vec::new();
        for spec in TABLE.iter().chain(HIDDEN) {
            let command = SlashCommand::parse(&format!("/{}", spec.name)).unwrap();
            assert!(is_command(&command.name), "{}", spec.name);
            assert!(!seen.contains(&spec.name), "{} names two commands", spec.name);
            seen.push(spec.name);
        }
        for spec in TABLE {
            for language in Language::ALL {
                assert!(
                    help::text(language, true, &[], &[]).contains(&format!("- /{} ", spec.name)),
                    "{}",
                    spec.name
                );
                let about = (spec.about)(language).chars().count();
                assert!(spec.name.len() <= 32 && (3..=256).contains(&about), "Telegram's limits of a menu");
            }
        }
        assert!(!is_command("data-analysis"));
    }

    #[test]
    fn a_thread_is_offered_only_commands_that_work_there() {
        let check = |name: &str, is_chat: bool, is_offered: bool| {
            let help = help::text(EN, is_chat, &[], &[]);
            assert_eq!(help.contains(&format!("- /{name} ")), is_offered, "{name} {is_chat}: {help}");
            let unknown = unknown::text(EN, is_chat, "dance", &[], &[]);
            let listed = unknown.split([' ', '.']).any(|word| word == format!("/{name}"));
            assert_eq!(listed, is_offered, "{name} {is_chat}: {unknown}");
        };
        for name in ONLY_IN_CHATS {
            check(name, true, true);
            check(name, false, false);
        }
        check("models", false, true);
    }

    #[test]
    fn an_unknown_command_gets_a_suggestion() {
        assert!(
            unknown::text(EN, true, "sotp", &[], &[])
                .starts_with("Unknown command: /sotp. Did you mean `/stop`? Available commands: /new | ")
        );
        assert!(
            unknown::text(EN, true, "dance", &[], &[])
                .starts_with("Unknown command: /dance. Available commands: ")
        );
        let skills = [skill("data-analysis", "x")];
        assert!(
            unknown::text(EN, true, "data-analyse", &skills, &[]).contains("Did you mean `/data-analysis`?")
        );
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
        assert!(!help::text(EN, true, &both, &[]).contains("helper"));
        assert!(!unknown::text(EN, true, "helpr", &both, &[]).contains("helper"));
        let last = offered(EN, &both, &[]).last().unwrap();
        assert_eq!((last.name, last.argument, last.kind), ("a", "[file]", "skill"));
        let some = [skill("a", "Does this.\n Use it when asked."), skill("b", &"x".repeat(200))];
        let lines =
            format!("Skills:\n\n- `/a` — Does this\n- `/b` — {}…\n\nStart a message", "x".repeat(160));
        assert!(skills::text(EN, &some).starts_with(&lines), "{}", skills::text(EN, &some));
        assert!(
            help::text(EN, true, &some, &[])
                .contains("\n\nSkills (add your request after the name): /a, /b\n\n")
        );
    }
}
