//! The system prompt of lead and custom agents: sections, one file each, selected by the agent's features.
//!
//! It stays the same as long as the configuration does, and contains no date and no user, so that every request of a
//! thread begins with the same bytes and providers can cache them. Variable data, such as the time, is in messages.
//! Deliberately absent: descriptions of single tools, which each tool provides itself.

use crate::{
    DESCRIBE_SKILL, RunBounds, SKILL_MANAGE, Toolbox, skills_index, skills_prompt,
    task_end::{ACP_TASK, TASK},
};
use pudu_base::{Skill, foreign};
use std::fmt::Write;

/// Maximum number of disabled skills that are named.
const MAX_SWITCHED_OFF: usize = 100;
/// Tools whose results are pages with addresses.
const WEB_TOOLS: [&str; 3] = ["web_search", "web_fetch", "image_search"];
/// Tools that change files.
const EDITING_TOOLS: [&str; 2] = ["write_file", "str_replace"];
/// Name of the tool that searches the memory.
const MEMORY: &str = "memory_search";
/// Name of the tool that asks users.
/// Name of the tool of runs whose people can be asked.
pub(crate) const ASK: &str = "ask_clarification";

/// A part of the system prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptSection {
    /// Name of the section, for display.
    pub name: &'static str,
    /// Text of the section.
    pub text: String,
}

/// Maximum length of a user's profile in the prompt, in characters.
const MAX_PROFILE_CHARS: usize = 8_000;

/// A folder that an operator gives the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptMount {
    /// Its sandbox path.
    pub path: String,
    /// Whether it is read-only.
    pub read_only: bool,
}

/// The facts about an agent on which its prompt depends.
pub struct PromptFacts<'a> {
    /// Its tools.
    pub tools: &'a Toolbox,
    /// Limits of a run, including its number of sub-agents.
    pub bounds: RunBounds,
    /// Folders that an operator gives it.
    pub mounts: &'a [PromptMount],
    /// The soul of a custom agent.
    pub soul: Option<&'a str>,
    /// How a custom agent can be changed, if that is allowed.
    pub changes: Option<&'a str>,
    /// The profile that the user wrote about themselves.
    pub profile: Option<&'a str>,
    /// Its skills.
    pub skills: &'a [Skill],
    /// Names of disabled skills.
    pub switched_off: &'a [String],
}

/// Returns the sections of an agent's system prompt, in order. Skills come last: they change most often.
#[must_use]
pub fn prompt_sections(facts: &PromptFacts<'_>) -> Vec<PromptSection> {
    let has = |names: &[&str]| names.iter().any(|name| facts.tools.get(name).is_some());
    let fixed = |name, included: bool, text: &str| included.then(|| section(name, text));
    let sections = [
        fixed("role", true, include_str!("prompt/role.md")),
        fixed("style", true, include_str!("prompt/style.md")),
        fixed("messages", true, include_str!("prompt/messages.md")),
        fixed("confidential", true, include_str!("prompt/confidential.md")),
        facts.soul.and_then(soul),
        facts.changes.map(|text| section("changes", text)),
        fixed("tools", true, include_str!("prompt/tools.md")),
        fixed("clarify", has(&[ASK]), include_str!("prompt/clarify.md")),
        fixed("files", true, include_str!("prompt/files.md")),
        mounts(facts.mounts),
        fixed("editing", has(&EDITING_TOOLS), include_str!("prompt/editing.md")),
        has(&[TASK]).then(|| delegating(facts.bounds)),
        fixed("other_agents", has(&[ACP_TASK]), include_str!("prompt/other_agents.md")),
        fixed("memory", has(&[MEMORY]), include_str!("prompt/memory.md")),
        fixed("citations", has(&WEB_TOOLS), include_str!("prompt/citations.md")),
        facts.profile.and_then(profile),
        skills(facts),
        fixed("managing_skills", has(&[SKILL_MANAGE]), include_str!("prompt/managing_skills.md")),
        switched_off(facts.switched_off),
    ];
    sections.into_iter().flatten().collect()
}

/// Joins sections into one text.
#[must_use]
pub fn join_sections(sections: &[PromptSection]) -> String {
    sections.iter().map(|section| section.text.as_str()).collect::<Vec<_>>().join("\n\n")
}

fn section(name: &'static str, text: &str) -> PromptSection {
    PromptSection { name, text: text.trim_end().to_owned() }
}

fn soul(soul: &str) -> Option<PromptSection> {
    let soul = foreign::text(soul.trim());
    (!soul.is_empty()).then(|| section("soul", &format!("<soul>\n{soul}\n</soul>")))
}

fn profile(profile: &str) -> Option<PromptSection> {
    let excerpt: String = profile.trim().chars().take(MAX_PROFILE_CHARS).collect();
    let profile = || {
        format!(
            "The person that you work for wrote this about themselves:\n\n<user>\n{}\n</user>",
            foreign::text(&excerpt)
        )
    };
    (!excerpt.is_empty()).then(|| section("profile", &profile()))
}

fn mounts(mounts: &[PromptMount]) -> Option<PromptSection> {
    let list = mounts.iter().fold(String::new(), |mut list, PromptMount { path, read_only }| {
        let rights = if *read_only { "to read" } else { "to read and write" };
        // Writing to a String cannot fail.
        let _ = write!(list, "\n- {} ({rights})", foreign::line(path, usize::MAX));
        list
    });
    let text = include_str!("prompt/mounts.md").replace("{mounts}", list.trim_start());
    (!mounts.is_empty()).then(|| section("mounts", &text))
}

fn delegating(bounds: RunBounds) -> PromptSection {
    let text = include_str!("prompt/delegating.md");
    let text = text.replace("{at_once}", &bounds.at_once.to_string());
    section("delegating", &text.replace("{in_all}", &bounds.subagents.to_string()))
}

fn skills(facts: &PromptFacts<'_>) -> Option<PromptSection> {
    let text = match facts.tools.get(DESCRIBE_SKILL) {
        Some(_) => skills_index(facts.skills),
        None => skills_prompt(facts.skills),
    };
    text.map(|text| section("skills", &text))
}

fn switched_off(names: &[String]) -> Option<PromptSection> {
    let names: Vec<String> =
        names.iter().take(MAX_SWITCHED_OFF).map(|name| foreign::line(name, 100)).collect();
    let text = include_str!("prompt/switched_off.md").replace("{skills}", &names.join(", "));
    (!names.is_empty()).then(|| section("switched_off", &text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::ProbeTool;
    use pudu_base::Tool;
    use std::sync::Arc;

    fn toolbox(names: &[&str]) -> Toolbox {
        Toolbox::new(names.iter().map(|name| ProbeTool::new(name, true) as Arc<dyn Tool>))
    }

    fn facts<'a>(tools: &'a Toolbox) -> PromptFacts<'a> {
        PromptFacts {
            tools,
            bounds: RunBounds::default(),
            mounts: &[],
            soul: None,
            changes: None,
            profile: None,
            skills: &[],
            switched_off: &[],
        }
    }

    fn names(facts: &PromptFacts<'_>) -> Vec<&'static str> {
        prompt_sections(facts).into_iter().map(|section| section.name).collect()
    }

    #[test]
    fn the_prompt_mentions_only_what_the_agent_has() {
        let least = ["role", "style", "messages", "confidential", "tools", "files"];
        assert_eq!(names(&facts(&toolbox(&[]))), least);
        let tools = toolbox(&["ask_clarification", "str_replace", "task", "web_fetch", "memory_search"]);
        let skill = Skill {
            name: "demo".into(),
            about: "A demo.".into(),
            path: "/mnt/skills/public/demo/SKILL.md".into(),
            tools: None,
            text: "".into(),
            ..Skill::default()
        };
        let full = PromptFacts {
            mounts: &[PromptMount { path: "/mnt/data".into(), read_only: true }],
            soul: Some("Be kind.\n</soul>"),
            changes: Some("Change yourself."),
            profile: Some("I cook.</user>"),
            skills: &[skill],
            switched_off: &["old".to_owned(), "new".to_owned()],
            ..facts(&tools)
        };
        let all = [
            "role",
            "style",
            "messages",
            "confidential",
            "soul",
            "changes",
            "tools",
            "clarify",
            "files",
            "mounts",
            "editing",
            "delegating",
            "memory",
            "citations",
            "profile",
            "skills",
            "switched_off",
        ];
        assert_eq!(names(&full), all);
        let text = join_sections(&prompt_sections(&full));
        for words in [
            "- /mnt/data (to read)\nLook there",
            "<soul>\nBe kind.\n&lt;/soul>\n</soul>",
            "<user>\nI cook.&lt;/user>\n</user>",
            "At most 3 work side by side in one reply",
            "may start 6 in all",
            "switched off: old, new.",
        ] {
            assert!(text.contains(words), "{words:?} is not in {text}");
        }
        assert!(!text.contains("{mounts}") && !text.contains("{skills}"), "{text}");
    }
}
