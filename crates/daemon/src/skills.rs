//! Skills of the daemon and the command line.

use anyhow::{Context, Result};
use pudu_client::skills::{Catalog, CatalogPaths, Skills, shipped};
use pudu_config::{Fixed, Start, Subagent, extensions};
use std::{fs::DirBuilder, os::unix::fs::DirBuilderExt, path::Path};

/// The folder of the shipped skills in the home.
const SHIPPED: &str = "shipped-skills";
/// Folder of installed skills, relative to the home folder.
const OWN: &str = "users/default/skills/custom";

/// Folder of users, relative to the home folder.
const USERS: &str = "users";

/// Makes the handle; writes the shipped skills into the home if they are not there. `file` is the configuration's.
pub fn open(start: &Start, fixed: &Fixed, file: Option<&Path>) -> Result<Skills> {
    let home = &fixed.home;
    let made = DirBuilder::new().recursive(true).mode(0o700).create(home);
    made.with_context(|| format!("cannot make the folder {}", home.display()))?;
    // The path in a sandbox must not depend on pudu's working folder.
    let home = home.canonicalize().with_context(|| format!("cannot find the folder {}", home.display()))?;
    let shipped =
        shipped::unpack(&home.join(SHIPPED)).context("cannot write out the skills that ship with pudu")?;
    Ok(Skills::new(CatalogPaths {
        shipped,
        shelf: std::path::absolute(&fixed.skills.path).unwrap_or_else(|_| fixed.skills.path.clone()),
        own: home.join(OWN),
        users: home.join(USERS),
        state: extensions::place(start, file),
        container: fixed.skills.container_path.clone(),
    }))
}

/// Returns a line for each skill that a sub-agent is to have, and that there is not. A person may have one of that
/// name, so that it is no error.
pub fn unknown(subagents: &[Subagent], catalog: &Catalog) -> Vec<String> {
    let named =
        subagents.iter().flat_map(|kind| kind.skills.iter().flatten().map(move |skill| (kind, skill)));
    let missing = named.filter(|(_, skill)| catalog.get(skill).is_none());
    missing
        .map(|(kind, skill)| {
            format!("the sub-agent {} is to have the skill {skill}, and there is none", kind.name)
        })
        .collect()
}

/// Removes skills that older versions wrote. Only the process that holds the home may do that.
pub fn remove_old_versions(skills: &Skills) {
    shipped::remove_other_versions(&skills.places().shipped);
}
