//! All skills of one moment.

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
    /// Under which terms it may be used.
    pub license: Option<String>,
    /// Its owner.
    pub category: Category,
    /// Whether it is switched on.
    pub enabled: bool,
    /// Whether it can be changed and removed by the one who looks.
    pub editable: bool,
    /// Whether it is a single user's, and not everybody's.
    pub own: bool,
    /// Its folder on this machine.
    pub folder: PathBuf,
    /// Its folder as the agent knows it.
    pub path: String,
    /// The tools that it may use; `None` where it does not say.
    pub tools: Option<Vec<String>>,
    /// The secrets that it needs.
    pub secrets: SkillSecrets,
    /// Callers that may start it.
    pub invocation: SkillInvocation,
    /// Hint for the text behind its name.
    pub argument_hint: Option<String>,
    /// Its whole `SKILL.md`.
    pub text: Arc<str>,
}

/// A skill that gives way to another one of its name: one that ships, or everybody's to a user's own.
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
    /// Skills that are not used because the team, or the user, has an own one.
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

    /// Returns the folders that a sandbox shows, of those that are switched on.
    pub fn folders(&self) -> impl Iterator<Item = ShownFolder> {
        let shown =
            |entry: &CatalogEntry| ShownFolder { host: entry.folder.clone(), agent: entry.path.clone() };
        self.entries.iter().filter(|entry| entry.enabled).map(shown)
    }

    /// Puts the entries in order, and notes which of them are switched on.
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
