//! Folders of skills, on this machine and for the agent.

use super::{Start, model::ModelConfig, model_name, reader::Section};
use pudu_client::{SkillEvolution, SkillRules};
use std::path::{Component, Path, PathBuf};

/// Skills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillsConfig {
    /// The operator's own folder of skills, with `public` and `custom` in it.
    pub path: PathBuf,
    /// Folder of skills in the sandbox: below `/mnt`, without a slash at the end.
    pub container_path: String,
}

/// Path of the skills in the sandbox by default.
const USUAL: &str = "/mnt/skills";
/// Paths of the sandbox that have another use.
const TAKEN: [&str; 2] = ["/mnt/user-data", "/mnt/acp-workspace"];

pub(super) fn read(top: &Section<'_>, start: &Start) -> SkillsConfig {
    let section = top.section("skills");
    section.note_unused(&["use"]);
    let path = section.text("path").optional("`skills` in the home folder");
    let typed = section.text("container_path").or(USUAL.to_owned());
    let container_path = typed.trim_end_matches('/').to_owned();
    if !is_free(&container_path) {
        let what = format!("\"{typed}\" is no place for skills");
        section.refuse(
            "container_path",
            what,
            "choose a path below /mnt that is not the agent's own, such as /mnt/skills",
        );
    }
    SkillsConfig {
        path: path.map_or_else(|| start.home().join("skills"), |path| start.dir.join(path)),
        container_path,
    }
}

/// Reads how agents meet skills: DeerFlow's `skills.deferred_discovery` and `skill_evolution`.
pub(super) fn rules(top: &Section<'_>, models: &[ModelConfig]) -> SkillRules {
    let deferred = top.section("skills").flag("deferred_discovery").or(false);
    let section = top.section("skill_evolution");
    let enabled = section.flag("enabled").or(false);
    let moderator = model_name::named(&section, "moderation_model_name", models, "none");
    let fail_closed = section.flag("security_fail_closed").or(true);
    SkillRules { deferred, evolution: enabled.then_some(SkillEvolution { moderator, fail_closed }) }
}

/// Returns whether a path is below `/mnt` and meets nothing else that is there.
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
    fn skills_get_a_place_of_their_own_below_mnt() {
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
