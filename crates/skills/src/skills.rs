//! A handle for a home's skills: returns the current catalog, and switches, installs and removes skills.

use crate::{
    BrokenSkill, Catalog, CatalogEntry, Category, Front, Hidden, Installed, SkillError,
    discover::{self, FileStamp, FoundSkill, Root},
    install,
    state::{self, Switches},
    user_catalogs::UserCatalogs,
};
use serde_json::Value;
use std::{
    fs::{self, File, OpenOptions},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// Maximum total size of the texts of all skills, in bytes.
const MAX_CATALOG_BYTES: usize = 8 * 1024 * 1024;

/// Paths of the folders of skills, and of the file with their switches.
#[derive(Clone, Debug, Default)]
pub struct CatalogPaths {
    /// Folder of the skills that ship with pudu.
    pub shipped: PathBuf,
    /// The operator's own folder, which contains `public` and `custom`.
    pub shelf: PathBuf,
    /// Folder of installed skills, which belong to the local user and are shared by all users.
    pub own: PathBuf,
    /// Folder of users. A user's own skills are in `USER/skills/custom` below it.
    pub users: PathBuf,
    /// The file with the switches.
    pub state: PathBuf,
    /// Folder of all skills in the sandbox.
    pub container: String,
}

/// The skills of a home. Clones share their state.
#[derive(Clone, Debug)]
pub struct Skills(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    places: CatalogPaths,
    known: Mutex<CachedCatalog>,
    /// Cached catalogs of users who have their own skills.
    users: UserCatalogs,
}

/// The current catalog, and the stamps of its sources.
#[derive(Debug, Default)]
struct CachedCatalog {
    catalog: Option<Arc<Catalog>>,
    seen: Vec<(PathBuf, Option<FileStamp>)>,
}

impl Skills {
    /// Creates a handle without reading anything.
    #[must_use]
    pub fn new(places: CatalogPaths) -> Self {
        Self(Arc::new(Inner { places, known: Mutex::default(), users: UserCatalogs::default() }))
    }

    /// Returns a handle without any skills.
    #[must_use]
    pub fn none() -> Self {
        let skills = Self::new(CatalogPaths::default());
        skills.lock().catalog = Some(Arc::default());
        skills
    }

    /// Returns the paths.
    #[must_use]
    pub fn places(&self) -> &CatalogPaths {
        &self.0.places
    }

    /// Returns the catalog, which is rebuilt if anything on disk has changed. The check costs one metadata call per
    /// folder and file. Broken skills are logged when they are first found.
    #[must_use]
    pub fn read(&self) -> Arc<Catalog> {
        let mut known = self.lock();
        let same = known.seen.iter().all(|(path, stamp)| discover::stamp(path) == *stamp);
        if let Some(catalog) = known.catalog.as_ref().filter(|_| same) {
            return catalog.clone();
        }
        let (catalog, seen) = self.load_catalog();
        let before = known.catalog.replace(Arc::new(catalog));
        known.seen = seen;
        let catalog = known.catalog.clone().unwrap_or_default();
        drop(known);
        tell_broken(&catalog.broken, before.as_ref().map(|before| before.broken.as_slice()));
        catalog
    }

    /// Switches a skill on or off, and returns it.
    ///
    /// # Errors
    /// When the skill does not exist, or the switch cannot be stored.
    pub fn set_enabled(&self, name: &str, enabled: bool) -> Result<CatalogEntry, SkillError> {
        let _alone = lock_folder(&self.places().own)?;
        let unknown = || SkillError::Unknown(name.to_owned());
        let entry = self.read().get(name).cloned().ok_or_else(unknown)?;
        state::write(&self.places().state, name, enabled)?;
        Ok(CatalogEntry { enabled, ..entry })
    }

    /// Reads a key of the file with the switches, which also contains other settings. Returns `None` if it is missing.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn state_section(&self, key: &str) -> Result<Option<Value>, SkillError> {
        state::section(&self.places().state, key)
    }

    /// Changes a key of the file with the switches under a lock. All other keys keep their exact text. Nothing is
    /// written if `edit` returns an error.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn edit_state<R>(
        &self,
        key: &str,
        edit: impl FnOnce(Option<Value>) -> Result<Value, R>,
    ) -> Result<Result<(), R>, SkillError> {
        let _alone = lock_folder(&self.places().own)?;
        match edit(state::section(&self.places().state, key)?) {
            Ok(value) => state::write_section(&self.places().state, key, &value).map(Ok),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    /// Installs a skill from an archive.
    ///
    /// # Errors
    /// When the archive is rejected, the scan blocks it, the name is taken, or the disk fails. Nothing is installed.
    pub fn install(&self, archive: &Path, replace: bool) -> Result<Installed, SkillError> {
        let _alone = lock_folder(&self.places().own)?;
        install::install(&self.places().own, &self.read(), archive, replace)
    }

    /// Removes an installed skill and its switch.
    ///
    /// # Errors
    /// When the skill does not exist or was not installed, or the disk fails.
    pub fn remove(&self, name: &str) -> Result<(), SkillError> {
        let _alone = lock_folder(&self.places().own)?;
        install::remove(&self.places().own, &self.read(), name)?;
        state::forget(&self.places().state, name)
    }

    fn load_catalog(&self) -> (Catalog, Vec<(PathBuf, Option<FileStamp>)>) {
        let places = self.places();
        let mut seen = vec![(places.state.clone(), discover::stamp(&places.state))];
        let mut catalog = Catalog::default();
        let switches = state::read(&places.state).map_err(|error| {
            // A broken file must not enable disabled skills.
            let why = format!("no skill is used until this is fixed: {error}");
            catalog.broken.push(BrokenSkill { folder: places.state.clone(), why });
        });
        let mut room = MAX_CATALOG_BYTES;
        for root in roots(places) {
            let haul = discover::find_skills(&root);
            seen.extend(haul.seen);
            catalog.broken.extend(haul.broken);
            for found in haul.found {
                if let Some(hidden) = hidden(&root, &found, &catalog) {
                    catalog.hidden.push(hidden);
                    continue;
                }
                match self.entry(&root, found, switches.as_ref().ok(), &catalog, &mut room) {
                    Ok(entry) => catalog.entries.push(entry),
                    Err(broken) => catalog.broken.push(broken),
                }
            }
        }
        (catalog.ordered(), seen)
    }

    /// Creates the entry for a skill that was found. A second skill with the same name or path is an error.
    pub(crate) fn entry(
        &self,
        root: &Root,
        found: FoundSkill,
        switches: Option<&Switches>,
        catalog: &Catalog,
        room: &mut usize,
    ) -> Result<CatalogEntry, BrokenSkill> {
        let FoundSkill { front, text, folder, below } = found;
        let Front { name, about, license, tools, secrets, invocation, argument_hint, odd: _, notes: _ } =
            front;
        let path = format!("{}/{}/{below}", self.places().container, root.category.name());
        if let Some(other) = catalog.entries.iter().find(|other| other.name == name || other.path == path) {
            let why =
                format!("`{name}` in {} takes precedence; give it another name", other.folder.display());
            return Err(BrokenSkill { folder, why });
        }
        let Some(left) = room.checked_sub(text.len()) else {
            let why = format!(
                "the SKILL.md files of all skills together are larger than {} MiB",
                MAX_CATALOG_BYTES / 1024 / 1024
            );
            return Err(BrokenSkill { folder, why });
        };
        *room = left;
        let enabled = switches.is_some_and(|switches| switches.get(&name).copied().unwrap_or(true));
        let (category, editable) = (root.category, root.editable);
        Ok(CatalogEntry {
            name,
            about,
            license,
            category,
            enabled,
            editable,
            own: false,
            folder,
            path,
            tools,
            secrets,
            invocation,
            argument_hint,
            text: text.into(),
        })
    }

    /// Returns the cached catalogs of users.
    pub(crate) fn users(&self) -> &UserCatalogs {
        &self.0.users
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CachedCatalog> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Locks the skills of a folder against changes by other processes, such as the command line.
pub(crate) fn lock_folder(own: &Path) -> Result<File, SkillError> {
    fs::DirBuilder::new().recursive(true).mode(0o755).create(own).map_err(SkillError::io(own))?;
    let path = own.join(".lock");
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = file.map_err(SkillError::io(&path))?;
    file.lock().map_err(SkillError::io(&path))?;
    Ok(file)
}

/// Logs broken skills that were not known before.
pub(crate) fn tell_broken(broken: &[BrokenSkill], before: Option<&[BrokenSkill]>) {
    for new in broken.iter().filter(|new| before.is_none_or(|before| !before.contains(new))) {
        tracing::warn!(folder = %new.folder.display(), why = new.why, "failed to load skill");
    }
}

/// Returns the roots by precedence: the team's own skills override the shipped ones.
fn roots(places: &CatalogPaths) -> [Root; 4] {
    let root = |path: PathBuf, category, editable| Root { path, category, editable };
    [
        root(places.own.clone(), Category::Custom, true),
        root(places.shelf.join("custom"), Category::Custom, false),
        root(places.shelf.join("public"), Category::Public, false),
        root(places.shipped.clone(), Category::Public, false),
    ]
}

/// Returns the entry of a shipped skill that another root overrides.
fn hidden(root: &Root, found: &FoundSkill, catalog: &Catalog) -> Option<Hidden> {
    let name = &found.front.name;
    let other = catalog.get(name).filter(|other| !other.folder.starts_with(&root.path))?;
    (root.category == Category::Public).then(|| Hidden {
        name: name.clone(),
        folder: found.folder.clone(),
        by: other.folder.clone(),
    })
}

#[cfg(test)]
mod tests;
