//! Opens the skills for the daemon and the command line.

use anyhow::{Context, Result};
use pudu_config::{Fixed, Start, Subagent, extensions};
use pudu_kit::home;
use pudu_skills::{Catalog, CatalogPaths, Skills, shipped};
use std::path::Path;

/// Folder of the shipped skills, relative to the home folder.
const SHIPPED: &str = "shipped-skills";
/// Folder of installed skills, relative to the home folder.
const OWN: &str = "users/default/skills/custom";

/// Folder of users, relative to the home folder.
const USERS: &str = "users";

/// Creates the handle, and writes missing shipped skills to the home folder. `file` is the configuration file.
pub fn open(start: &Start, fixed: &Fixed, file: Option<&Path>) -> Result<Skills> {
    let home = &fixed.home;
    home::create(home)?;
    // The path in a sandbox must not depend on pudu's working folder.
    let home = home.canonicalize().with_context(|| format!("cannot find the folder {}", home.display()))?;
    let shipped = shipped::unpack(&home.join(SHIPPED)).context("cannot write the shipped skills")?;
    Ok(Skills::new(CatalogPaths {
        shipped,
        shelf: std::path::absolute(&fixed.skills.path).unwrap_or_else(|_| fixed.skills.path.clone()),
        own: home.join(OWN),
        users: home.join(USERS),
        state: extensions::place(start, file),
        container: fixed.skills.container_path.clone(),
    }))
}

/// Returns a line for each nonexistent skill that a sub-agent names. This is not an error, because a user may have a
/// skill of that name.
pub fn unknown(subagents: &[Subagent], catalog: &Catalog) -> Vec<String> {
    let listed =
        subagents.iter().flat_map(|kind| kind.skills.iter().flatten().map(move |skill| (kind, skill)));
    let missing = listed.filter(|(_, skill)| catalog.get(skill).is_none());
    missing
        .map(|(kind, skill)| {
            format!("the sub-agent {} lists the skill {skill}, which does not exist", kind.name)
        })
        .collect()
}

/// Removes shipped skills of older versions. Only the process that holds the home folder may do this.
pub fn remove_old_versions(skills: &Skills) {
    shipped::remove_other_versions(&skills.places().shipped);
}
