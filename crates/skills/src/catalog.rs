//! All skills of one moment.

use crate::{BrokenSkill, Category};
use pudu_base::Skill;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// A skill of the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogEntry {
    /// Its name.
    pub name: String,
    /// Its purpose.
    pub about: String,
    /// Under which terms it may be used.
    pub license: Option<String>,
    /// Its owner.
    pub category: Category,
    /// Whether it is switched on.
    pub enabled: bool,
    /// Whether it can be removed.
    pub editable: bool,
    /// Its folder on this machine.
    pub folder: PathBuf,
    /// Its folder as the agent knows it.
    pub path: String,
    /// The tools that it may use; `None` where it does not say.
    pub tools: Option<Vec<String>>,
    /// Its whole `SKILL.md`.
    pub text: Arc<str>,
}

/// A skill that ships, and gives way to another one of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The folder of the one that is used.
    pub by: PathBuf,
}

/// All skills of one moment.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// The skills, by name.
    pub entries: Vec<CatalogEntry>,
    /// Skills that could not be used.
    pub broken: Vec<BrokenSkill>,
    /// Skills that are not used because the team has its own.
    pub hidden: Vec<Hidden>,
    pub(crate) enabled: Arc<[Skill]>,
}

impl Catalog {
    /// Returns those that are switched on, by name, as a run knows them.
    #[must_use]
    pub fn enabled(&self) -> Arc<[Skill]> {
        self.enabled.clone()
    }

    /// Finds one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&CatalogEntry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Returns the folders that a sandbox shows: the agent's path and this machine's, of those that are
    /// switched on.
    pub fn folders(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.entries
            .iter()
            .filter(|entry| entry.enabled)
            .map(|entry| (entry.path.as_str(), entry.folder.as_path()))
    }
}
