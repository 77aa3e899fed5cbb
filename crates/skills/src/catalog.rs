//! A snapshot of all skills.

use crate::{BrokenSkill, Category};
use pudu_base::{ShownFolder, Skill, SkillInvocation, SkillSecrets};
use std::{path::PathBuf, sync::Arc};

/// A skill in the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogEntry {
    /// Name of the skill.
    pub name: String,
    /// Purpose of the skill.
    pub about: String,
    /// License of the skill.
    pub license: Option<String>,
    /// Owner of the skill.
    pub category: Category,
    /// Whether the skill is enabled.
    pub enabled: bool,
    /// Whether the viewing user can change and remove it.
    pub editable: bool,
    /// Whether the skill belongs to a single user and is not shared.
    pub own: bool,
    /// Folder on this machine.
    pub folder: PathBuf,
    /// Folder in the sandbox.
    pub path: String,
    /// Tools that the skill may use; `None` if it does not restrict them.
    pub tools: Option<Vec<String>>,
    /// Secrets that the skill needs.
    pub secrets: SkillSecrets,
    /// Whether users and the model may invoke it.
    pub invocation: SkillInvocation,
    /// Hint for the text after the skill's name.
    pub argument_hint: Option<String>,
    /// The whole `SKILL.md`.
    pub text: Arc<str>,
}

/// A skill overridden by another one of the same name: a shipped skill, or a shared skill that a user has replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// Name of the overridden skill.
    pub name: String,
    /// Folder of the overridden skill.
    pub folder: PathBuf,
    /// The folder of the overriding skill.
    pub by: PathBuf,
}

/// A snapshot of all skills.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// The skills, sorted by name.
    pub entries: Vec<CatalogEntry>,
    /// Skills that could not be loaded.
    pub broken: Vec<BrokenSkill>,
    /// Skills that are overridden by a skill of the team or the user.
    pub hidden: Vec<Hidden>,
    pub(crate) enabled: Arc<[Skill]>,
}

impl Catalog {
    /// Returns the enabled skills in the form that a run uses, sorted by name.
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
