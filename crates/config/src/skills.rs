//! Folders of skills, on this machine and in the sandbox.

use super::{Start, model::ModelConfig, reader::Section};
use pudu_agent::{SkillEvolution, SkillRules};
use std::path::{Component, Path, PathBuf};

/// Folders of skills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillsConfig {
    /// The operator's folder of skills, which contains `public` and `custom`.
    pub path: PathBuf,
    /// Folder of skills in the sandbox, below `/mnt`, without a trailing slash.
    pub container_path: String,
}

/// Default path of the skills in the sandbox.
const USUAL: &str = "/mnt/skills";
/// Reserved paths of the sandbox.
const TAKEN: [&str; 2] = ["/mnt/user-data", "/mnt/acp-workspace"];

pub(super) fn read(top: &Section<'_>, start: &Start) -> SkillsConfig {
    let section = top
        .section("skills")
        .about("Skills: folders with a SKILL.md that explains a kind of work to the agent.");
    section.note_unused(&["use"]);
    settings! { section =>
        /// Folder of your own skills, in `public` and `custom`; without it `skills` in the home folder.
        path = text().eg(".pudu/skills").optional("`skills` in the home folder");
        /// Path of the skills in the sandbox.
        typed as "container_path" = text().or(USUAL.to_owned());
    }
    let container_path = typed.trim_end_matches('/').to_owned();
    if !is_free(&container_path) {
        let what = format!("\"{typed}\" is not a valid path for skills");
        section.refuse(
            "container_path",
            what,
            "choose a path below /mnt that the agent does not use, such as /mnt/skills",
        );
    }
    SkillsConfig {
        path: path.map_or_else(|| start.home().join("skills"), |path| start.dir.join(path)),
        container_path,
    }
}

/// Reads the rules for agents' use of skills: DeerFlow's `skills.deferred_discovery` and `skill_evolution`.
pub(super) fn rules(top: &Section<'_>, models: &[ModelConfig]) -> SkillRules {
    let section = top.section("skills");
    settings! { section =>
        /// Whether the prompt lists only the names of skills, and the tool describe_skill returns their purpose.
        deferred as "deferred_discovery" = flag().or(false);
    }
    let section = top.section("skill_evolution").about("Skills that agents create and change.");
    settings! { section =>
        /// Whether the lead agent has the tool skill_manage.
        enabled = flag().or(false);
        /// Name of the model that checks each change after the scan; without one the scan and the approval decide.
        moderator as "moderation_model_name" = model(models).eg("main").optional("none");
        /// Whether a change is refused if that model gives no verdict.
        fail_closed as "security_fail_closed" = flag().or(true);
    }
    SkillRules { deferred, evolution: enabled.then_some(SkillEvolution { moderator, fail_closed }) }
}

/// Returns whether a path is below `/mnt` and does not overlap with a reserved path.
fn is_free(path: &str) -> bool {
    let plain = Path::new(path).components().skip(1).all(|part| matches!(part, Component::Normal(_)));
    let clean = !path.contains("//")
        && !path.split('/').any(|part| part == ".")
        && !path.chars().any(char::is_control);
    let meets = |taken: &&str| Path::new(path).starts_with(taken);
    plain && clean && path.starts_with("/mnt/") && !TAKEN.iter().any(meets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skills_have_their_own_path_below_mnt() {
        for path in ["/mnt/skills", "/mnt/a/b", "/mnt/user-data2"] {
            assert!(is_free(path), "{path}");
        }
        for path in [
            "",
            "/",
            "/mnt",
            "/etc",
            "mnt/skills",
            "/mnt/../etc",
            "/mnt/user-data/x",
            "/mnt/user-data",
            "/mnt//x",
            "/mnt/./x",
        ] {
            assert!(!is_free(path), "{path}");
        }
    }
}
