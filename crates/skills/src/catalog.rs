//! All skills at one moment.

use crate::{BrokenSkill, Category};
use pudu_base::{ShownFolder, Skill, SkillInvocation, SkillSecrets};
use std::{path::PathBuf, sync::Arc};

/// A skill of the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogEntry {
    /// Its name.
    pub name: String,
    /// Its purpose.
    pub about: String,
    /// Licence of the skill.
    pub license: Option<String>,
    /// Its owner.
    pub category: Category,
    /// Whether it is enabled.
    pub enabled: bool,
    /// Whether the viewing user can change and remove it.
    pub editable: bool,
    /// Whether it belongs to a single user instead of being shared.
    pub own: bool,
    /// Its folder on this machine.
    pub folder: PathBuf,
    /// Its folder in the sandbox.
    pub path: String,
    /// The tools that it may use; `None` if it does not restrict them.
    pub tools: Option<Vec<String>>,
    /// The secrets that it needs.
    pub secrets: SkillSecrets,
    /// Callers that may start it.
    pub invocation: SkillInvocation,
    /// Hint for the text after its name.
    pub argument_hint: Option<String>,
    /// Its whole `SKILL.md`.
    pub text: Arc<str>,
}

/// A skill that another one of its name overrides: a shipped one, or a shared one that a user has their own version of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The folder of the overriding skill.
    pub by: PathBuf,
}

/// All skills at one moment.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// The skills, by name.
    pub entries: Vec<CatalogEntry>,
    /// Skills that could not be loaded.
    pub broken: Vec<BrokenSkill>,
    /// Skills that are overridden by a skill of the team or the user.
    pub hidden: Vec<Hidden>,
    pub(crate) enabled: Arc<[Skill]>,
}

impl Catalog {
    /// Returns the enabled skills, by name, in the form for a run.
    #[must_use]
    pub fn enabled(&self) -> Arc<[Skill]> {
        self.enabled.clone()
    }

    /// Finds a skill.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&CatalogEntry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Returns the folders of the enabled skills for a sandbox.
    pub fn folders(&self) -> impl Iterator<Item = ShownFolder> {
        let shown =
            |entry: &CatalogEntry| ShownFolder { host: entry.folder.clone(), agent: entry.path.clone() };
        self.entries.iter().filter(|entry| entry.enabled).map(shown)
    }

    /// Sorts the entries, and caches the enabled ones.
    pub(crate) fn ordered(mut self) -> Self {
        self.entries.sort_by(|a, b| a.name.cmp(&b.name));
        self.enabled = self.entries.iter().filter(|entry| entry.enabled).map(skill).collect();
        self
    }
}

fn skill(entry: &CatalogEntry) -> Skill {
    Skill {
        name: entry.name.clone(),
        about: entry.about.clone(),
        path: format!("{}/SKILL.md", entry.path),
        tools: entry.tools.clone(),
        text: entry.text.clone(),
        secrets: entry.secrets.clone(),
        invocation: entry.invocation,
        argument_hint: entry.argument_hint.clone(),
    }
}
