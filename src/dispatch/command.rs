//! The slash commands: one table, from which help, menus and suggestions are made. Skills are asked for in the
//! same way, and are named behind them.

use pudu_client::base::Skill;
use std::fmt::Write;

/// What a person can ask for with a slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SlashCommand {
    /// `/new`
    New,
    /// `/status`
    Status,
    /// `/models [NAME]`
    Models(Option<String>),
    /// `/memory`
    Memory,
    /// `/help`
    Help,
    /// `/stop`
    Stop,
    /// `/retry`
    Retry,
    /// `/usage`
    Usage,
    /// `/skills`
    Skills,
    /// `/agent [NAME]`
    Agent(Option<String>),
    /// `/mode [NAME]`
    Mode(Option<String>),
    /// `/connect CODE`
    Connect(Option<String>),
    /// `/start [CODE]`, which Telegram sends at first contact.
    Start(Option<String>),
    /// Something else with a slash.
    Unknown(String),
}

/// One row of the table.
pub(crate) struct CommandRow {
    /// The command without its slash.
    pub(crate) name: &'static str,
    /// What may stand behind it.
    pub(crate) argument: &'static str,
    /// What it does.
    pub(crate) help: &'static str,
    make: Make,
}

/// Makes a command of what stands behind it.
type Make = fn(Option<String>) -> SlashCommand;

/// The table, in the order in which help shows it.
pub(crate) const TABLE: &[CommandRow] = &[
    CommandRow { name: "new", argument: "", help: "Start a new conversation", make: |_| SlashCommand::New },
    CommandRow {
        name: "stop",
        argument: "",
        help: "Stop what is being worked on",
        make: |_| SlashCommand::Stop,
    },
    CommandRow {
        name: "retry",
        argument: "",
        help: "Ask the last question again",
        make: |_| SlashCommand::Retry,
    },
    CommandRow {
        name: "status",
        argument: "",
        help: "Show what this conversation is at",
        make: |_| SlashCommand::Status,
    },
    CommandRow {
        name: "models",
        argument: "[name]",
        help: "List the models, or switch to one",
        make: SlashCommand::Models,
    },
    CommandRow {
        name: "agent",
        argument: "[name|new name]",
        help: "List the agents, switch to one, or make one",
        make: SlashCommand::Agent,
    },
    CommandRow {
        name: "mode",
        argument: "[queue|steer|interrupt]",
        help: "Choose what a message does while I work",
        make: SlashCommand::Mode,
    },
    CommandRow {
        name: "skills",
        argument: "",
        help: "List the skills; /name asks for one",
        make: |_| SlashCommand::Skills,
    },
    CommandRow {
        name: "usage",
        argument: "",
        help: "Show the tokens spent here",
        make: |_| SlashCommand::Usage,
    },
    CommandRow {
        name: "memory",
        argument: "",
        help: "Count the facts of a DeerFlow memory (not used yet)",
        make: |_| SlashCommand::Memory,
    },
    CommandRow {
        name: "connect",
        argument: "[code]",
        help: "Make yourself known by a code",
        make: SlashCommand::Connect,
    },
    CommandRow { name: "help", argument: "", help: "Show this help", make: |_| SlashCommand::Help },
];

/// Names that mean something but need no line in the help.
const HIDDEN: &[(&str, Make)] = &[("start", SlashCommand::Start)];

impl SlashCommand {
    /// Reads a command. Only a slash at the very beginning with a plain word behind it makes one: `/mnt/x`,
    /// `//help` and ` /new` are talk.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let name = word.strip_prefix('/')?.to_lowercase();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(plain) {
            return None;
        }
        let argument = Some(rest.trim()).filter(|rest| !rest.is_empty()).map(str::to_owned);
        let row = TABLE.iter().find(|row| row.name == name).map(|row| row.make);
        let hidden = HIDDEN.iter().find(|(hidden, _)| *hidden == name).map(|(_, make)| *make);
        Some(row.or(hidden).map_or(Self::Unknown(name), |make| make(argument)))
    }
}

/// Maximum number of skills listed.
const MAX_LISTED_SKILLS: usize = 60;
/// Maximum length of a skill's description in the menu, in characters.
const MAX_DESCRIPTION_CHARS: usize = 160;

/// Returns the help.
pub(crate) fn help(skills: &[Skill]) -> String {
    let line = |row: &CommandRow| {
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

/// Returns all that may be typed behind a slash: name, what may stand behind it, and what it does.
pub(crate) fn offered(skills: &[Skill]) -> impl Iterator<Item = (&str, &'static str, String)> {
    let row = |row: &'static CommandRow| (row.name, row.argument, row.help.to_owned());
    TABLE
        .iter()
        .map(row)
        .chain(skills.iter().map(|skill| (skill.name.as_str(), "[request]", brief(&skill.about))))
}

/// Lists the skills.
pub(crate) fn skills(skills: &[Skill]) -> String {
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

/// Returns the first sentence of what a skill is for.
pub(crate) fn brief(about: &str) -> String {
    let words = about.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = words.split_once(". ").map_or(words.as_str(), |(first, _)| first).trim_end_matches('.');
    let cut: String = first.chars().take(MAX_DESCRIPTION_CHARS).collect();
    if cut.len() < first.len() { format!("{}…", cut.trim_end()) } else { cut }
}

/// Says that a command is unknown and which was probably meant: a command or a skill.
pub(crate) fn unknown(name: &str, skills: &[Skill]) -> String {
    let names = || TABLE.iter().map(|row| row.name);
    let all = names().chain(skills.iter().map(|skill| skill.name.as_str()));
    let nearest = all.map(|known| (strsim::damerau_levenshtein(known, name), known)).min();
    let meant = match nearest {
        Some((distance, known)) if distance <= 2 && distance < name.len() => {
            format!(" Did you mean `/{known}`?")
        }
        _ => String::new(),
    };
    let all: Vec<String> = names().map(|name| format!("/{name}")).collect();
    format!("Unknown command: /{name}.{meant} Available commands: {}", all.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_word_behind_the_first_slash_is_a_command() {
        let check = |text: &str, expect: Option<SlashCommand>| {
            assert_eq!(SlashCommand::parse(text), expect, "{text:?}")
        };
        check("/new", Some(SlashCommand::New));
        check("/HELP now", Some(SlashCommand::Help));
        check("/models", Some(SlashCommand::Models(None)));
        check("/models  gpt-5 ", Some(SlashCommand::Models(Some("gpt-5".into()))));
        check("/mode\nsteer", Some(SlashCommand::Mode(Some("steer".into()))));
        check("/agent new poet", Some(SlashCommand::Agent(Some("new poet".into()))));
        check("/start abc", Some(SlashCommand::Start(Some("abc".into()))));
        check("/connect abc", Some(SlashCommand::Connect(Some("abc".into()))));
        check("/data-analysis x", Some(SlashCommand::Unknown("data-analysis".into())));
        for talk in ["", "/", "//help", " /new", "/mnt/path", "new", "/é", "/a.b"] {
            check(talk, None);
        }
    }

    #[test]
    fn every_row_parses_to_its_own_command_and_has_a_line_in_the_help() {
        let mut seen = Vec::new();
        for row in TABLE {
            let command = SlashCommand::parse(&format!("/{}", row.name));
            assert_eq!(command, Some((row.make)(None)), "{}", row.name);
            assert!(!seen.contains(&command), "{} stands for two", row.name);
            seen.push(command);
            assert!(help(&[]).contains(&format!("`/{}", row.name)), "{}", row.name);
            assert!(
                row.name.len() <= 32 && (3..=256).contains(&row.help.len()),
                "Telegram's limits of a menu"
            );
        }
    }

    #[test]
    fn an_unknown_command_gets_a_suggestion() {
        assert!(
            unknown("sotp", &[])
                .starts_with("Unknown command: /sotp. Did you mean `/stop`? Available commands: /new | ")
        );
        assert!(unknown("dance", &[]).starts_with("Unknown command: /dance. Available commands: "));
        let skills = [skill("data-analysis", "x")];
        assert!(unknown("data-analyse", &skills).contains("Did you mean `/data-analysis`?"));
    }

    fn skill(name: &str, about: &str) -> Skill {
        Skill { name: name.into(), about: about.into(), path: String::new(), tools: None, text: "".into() }
    }

    #[test]
    fn skills_are_listed_by_their_first_sentence() {
        assert_eq!(skills(&[]), "There are no skills here.");
        let some = [skill("a", "Does this.\n Use it when asked."), skill("b", &"x".repeat(200))];
        let lines =
            format!("Skills:\n\n- `/a` — Does this\n- `/b` — {}…\n\nBegin a message", "x".repeat(160));
        assert!(skills(&some).starts_with(&lines), "{}", skills(&some));
        assert!(help(&some).contains("\n\nSkills, each with your request behind it: `/a`, `/b`\n\n"));
    }
}
