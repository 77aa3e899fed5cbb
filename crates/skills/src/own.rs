//! The skills of one user (or room): shared skills and the user's own. For this user, an own skill overrides a shared
//! one of the same name.
//!
//! All users share the local user's own skills. Own skills are changed incrementally: a change is made to a copy,
//! scanned, recorded in the history, and moved into place atomically.

use crate::{
    BrokenSkill, Catalog, CatalogEntry, Category, Hidden, Installed, ScanReport, ScanVerdict, SkillError,
    SkillVersion, Skills,
    change::{self, SKILL, SkillChange},
    discover::{self, Root},
    frontmatter,
    history::History,
    install, scan,
    skills::{lock_folder, tell_broken},
    stage::StagingFolder,
    state,
    tree::FileTree,
    user_catalogs::{CachedView, Stamps},
};
use pudu_base::UserId;
use std::{
    fmt::Write as _,
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Maximum total size of a user's skill texts, in bytes.
const MAX_OWN_BYTES: usize = 1024 * 1024;
/// Maximum number of own skills per user.
const MAX_OWN_SKILLS: usize = 64;
/// Maximum length of the preview of a version to restore, in bytes.
const MAX_PREVIEW_BYTES: usize = 200 * 1024;

/// Author and circumstances of a skill change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeAuthor {
    /// Name of the author.
    pub by: String,
    /// Reason for the change, if one was given.
    pub why: Option<String>,
    /// The thread of the change, if any.
    pub thread: Option<String>,
    /// Time of the change, in milliseconds since 1970.
    pub at: i64,
}

/// Preview of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangePreview {
    /// Findings of the scan that would be accepted.
    pub report: ScanReport,
    /// The texts of the restored version, if the change restores one.
    pub restored: Option<String>,
    /// The files that the change writes, in full.
    pub written: Vec<WrittenFile>,
}

/// A file of a skill after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    /// Path in the skill.
    pub path: String,
    /// The text, or the size of a binary file.
    pub text: String,
}

/// The skills of one user.
#[derive(Clone, Debug)]
pub struct OwnSkills {
    skills: Skills,
    user: UserId,
}

impl Skills {
    /// Returns the skills of a user, for reading and changing.
    #[must_use]
    pub fn for_user(&self, user: &UserId) -> OwnSkills {
        OwnSkills { skills: self.clone(), user: user.clone() }
    }
}

impl OwnSkills {
    /// Returns the catalog of the user: shared skills and their own.
    #[must_use]
    pub fn read(&self) -> Arc<Catalog> {
        let shared = self.skills.read();
        if self.is_everybodys() {
            return shared;
        }
        let users = self.skills.users();
        let known = users.get(&self.user);
        let fresh = known.as_ref().filter(|view| {
            Arc::ptr_eq(&view.shared, &shared)
                && view.seen.iter().all(|(path, stamp)| discover::stamp(path) == *stamp)
        });
        if let Some(view) = fresh {
            users.put(&self.user, view.clone());
            return view.catalog.clone();
        }
        let (catalog, seen) = self.load_catalog(&shared);
        let catalog = Arc::new(catalog);
        let of_own = |catalog: &Catalog| {
            let beside = |broken: &&BrokenSkill| broken.folder.starts_with(self.root());
            catalog.broken.iter().filter(beside).cloned().collect::<Vec<_>>()
        };
        tell_broken(&of_own(&catalog), known.map(|view| of_own(&view.catalog)).as_deref());
        users.put(&self.user, CachedView { shared, catalog: catalog.clone(), seen: Arc::new(seen) });
        catalog
    }

    /// Switches one of the user's own skills on or off, and returns it.
    ///
    /// # Errors
    /// When the skill does not exist or is shared, or the switch cannot be stored.
    pub fn set_enabled(&self, name: &str, enabled: bool) -> Result<CatalogEntry, SkillError> {
        if self.is_everybodys() {
            return self.skills.set_enabled(name, enabled);
        }
        let _alone = self.lock_own()?;
        let entry = self.read().get(name).cloned().ok_or_else(|| SkillError::Unknown(name.to_owned()))?;
        if !entry.own {
            return Err(SkillError::Fixed { name: name.to_owned(), what: "everybody's" });
        }
        state::write(&self.state(), name, enabled)?;
        Ok(CatalogEntry { enabled, ..entry })
    }

    /// Installs a skill from an archive among the user's own.
    ///
    /// # Errors
    /// As [`Skills::install`].
    pub fn install(&self, archive: &Path, replace: bool) -> Result<Installed, SkillError> {
        if self.is_everybodys() {
            return self.skills.install(archive, replace);
        }
        let _alone = self.lock_own()?;
        install::install(&self.own(), &self.own_only(), archive, replace)
    }

    /// Removes one of the user's own skills, and its switch. Its history is kept.
    ///
    /// # Errors
    /// As [`Skills::remove`].
    pub fn remove(&self, name: &str) -> Result<(), SkillError> {
        if self.is_everybodys() {
            return self.skills.remove(name);
        }
        let _alone = self.lock_own()?;
        install::remove(&self.own(), &self.own_only(), name)?;
        state::forget(&self.state(), name)
    }

    /// Previews a change to one of the user's own skills without applying it.
    ///
    /// # Errors
    /// When the change is invalid, or the scan blocks it.
    pub fn examine(&self, name: &str, change: &SkillChange) -> Result<ChangePreview, SkillError> {
        let _alone = self.lock_own()?;
        let (stage, folder, report) = self.staged(name, change)?;
        let Some(stage) = stage else { return Ok(ChangePreview { report, ..ChangePreview::default() }) };
        let (new, restores) = (stage.inside(), matches!(change, SkillChange::Restore(_)));
        let restored = restores.then(|| preview(&new)).transpose()?;
        Ok(ChangePreview { report, restored, written: written(&folder, &new)? })
    }

    /// Changes one of the user's own skills, effective from the next run on. Returns the recorded change, whose number
    /// can be used to restore the version before it.
    ///
    /// # Errors
    /// When the change is invalid, the scan blocks it, or the disk fails. The skill is then unchanged.
    pub fn change(
        &self,
        name: &str,
        change: &SkillChange,
        author: ChangeAuthor,
    ) -> Result<SkillVersion, SkillError> {
        let _alone = self.lock_own()?;
        let (stage, folder, report) = self.staged(name, change)?;
        let history = self.skill_history(name);
        let ChangeAuthor { by, why, thread, at } = author;
        let version = history.note(
            &folder,
            SkillVersion {
                number: 0,
                at,
                action: change.action().to_owned(),
                by,
                why,
                thread,
                file: change.file().map(str::to_owned),
                files: 0,
                findings: report
                    .findings
                    .iter()
                    .map(|found| format!("{}: {}", found.rule, found.what))
                    .collect(),
            },
        )?;
        let done = match stage {
            Some(stage) => stage.settle(&folder),
            None => StagingFolder::new(&self.own())?.clear(&folder),
        };
        if let Err(error) = done {
            history.forget(version.number);
            return Err(error);
        }
        if let Some(root) = folder.parent() {
            crate::tree::sync(root)?;
        }
        history.bound(&self.own());
        Ok(version)
    }

    /// Returns the changes to one of the user's own skills, oldest first.
    ///
    /// # Errors
    /// When the name is invalid, or no skill ever had it.
    pub fn history(&self, name: &str) -> Result<Vec<SkillVersion>, SkillError> {
        let unknown = || SkillError::Unknown(name.to_owned());
        frontmatter::check_name(name).map_err(|_| unknown())?;
        let versions = self.skill_history(name).versions();
        if versions.is_empty() && !self.read().get(name).is_some_and(|entry| entry.editable) {
            return Err(unknown());
        }
        Ok(versions)
    }

    /// Returns the `SKILL.md` of a version if it was kept.
    #[must_use]
    pub fn former_text(&self, name: &str, number: u64) -> Option<String> {
        frontmatter::check_name(name).ok()?;
        change::read(&self.skill_history(name).former(number)?.join(SKILL)).ok()
    }

    /// Returns whether all users share this user's own skills.
    #[must_use]
    pub fn is_everybodys(&self) -> bool {
        self.user == UserId::local()
    }

    /// Makes a change in a staging folder and scans it. The caller holds the lock.
    fn staged(
        &self,
        name: &str,
        change: &SkillChange,
    ) -> Result<(Option<StagingFolder>, PathBuf, ScanReport), SkillError> {
        frontmatter::check_name(name).map_err(SkillError::Wrong)?;
        let folder = self.place(name, change)?;
        let history = self.skill_history(name);
        history.clear(&folder);
        let Some(stage) = change::stage(&self.own(), &folder, name, &history, change)? else {
            return Ok((None, folder, ScanReport::default()));
        };
        change::check(&stage, name)?;
        let report = scan(&stage.inside()).map_err(SkillError::io(&folder))?;
        match report.verdict() {
            ScanVerdict::Block => Err(SkillError::Blocked { name: name.to_owned(), report }),
            ScanVerdict::Allow | ScanVerdict::Warn => Ok((Some(stage), folder, report)),
        }
    }

    /// Returns the folder of one of the user's own skills, or of a new one.
    fn place(&self, name: &str, change: &SkillChange) -> Result<PathBuf, SkillError> {
        let catalog = self.read();
        let folder = self.own().join(name);
        let creates_skill = matches!(change, SkillChange::Create(_) | SkillChange::Restore(_));
        match catalog.get(name) {
            Some(entry) if entry.editable => Ok(entry.folder.clone()),
            // A shared skill cannot be changed, and a name must be unique among shared skills.
            Some(entry) if entry.folder != folder && (self.is_everybodys() || !creates_skill) => {
                let what = match entry.category {
                    Category::Public => "one of the public skills",
                    Category::Custom if self.is_everybodys() => "in the folder of `skills.path`",
                    Category::Custom => "everybody's",
                };
                Err(SkillError::Fixed { name: name.to_owned(), what })
            }
            _ => {
                let own = catalog.entries.iter().filter(|entry| entry.editable).count();
                match creates_skill && own >= MAX_OWN_SKILLS {
                    true => Err(SkillError::Wrong(format!(
                        "there are {MAX_OWN_SKILLS} skills already: delete one first"
                    ))),
                    false => Ok(folder),
                }
            }
        }
    }

    /// Searches the user's own skills, and adds the shared ones.
    fn load_catalog(&self, shared: &Catalog) -> (Catalog, Stamps) {
        let state = self.state();
        let mut seen = vec![(state.clone(), discover::stamp(&state))];
        let mut catalog = Catalog::default();
        let switches = state::read(&state).map_err(|error| {
            let why = format!("none of these skills is used until this is fixed: {error}");
            catalog.broken.push(BrokenSkill { folder: state.clone(), why });
        });
        let root = Root { path: self.own(), category: Category::Custom, editable: true };
        let haul = discover::find_skills(&root);
        seen.extend(haul.seen);
        catalog.broken.extend(haul.broken);
        let mut room = MAX_OWN_BYTES;
        for found in haul.found {
            match self.skills.entry(&root, found, switches.as_ref().ok(), &catalog, &mut room) {
                Ok(entry) => catalog.entries.push(CatalogEntry { own: true, ..entry }),
                Err(broken) => catalog.broken.push(broken),
            }
        }
        (add_shared(catalog, shared).ordered(), seen)
    }

    /// Returns the catalog of the user's own skills, without shared ones.
    fn own_only(&self) -> Catalog {
        let mut catalog = Catalog::clone(&self.read());
        catalog.entries.retain(|entry| entry.own);
        catalog
    }

    fn skill_history(&self, name: &str) -> History {
        History::new(&self.own(), name)
    }

    /// Locks the user's skills against concurrent changes.
    fn lock_own(&self) -> Result<fs::File, SkillError> {
        if !self.is_everybodys() {
            // The user's folder also contains other, private data.
            let folder = self.skills.places().users.join(self.user.as_str());
            let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
            created.map_err(SkillError::io(&folder))?;
        }
        lock_folder(&self.own())
    }

    /// Returns the folder of the user's skills and their switches.
    fn root(&self) -> PathBuf {
        self.skills.places().users.join(self.user.as_str()).join("skills")
    }

    fn own(&self) -> PathBuf {
        match self.is_everybodys() {
            true => self.skills.places().own.clone(),
            false => self.root().join("custom"),
        }
    }

    fn state(&self) -> PathBuf {
        self.root().join("state.json")
    }
}

/// Adds the shared skills to a user's own. An own skill overrides a shared one with the same name or place.
fn add_shared(mut own: Catalog, shared: &Catalog) -> Catalog {
    own.broken.extend(shared.broken.iter().cloned());
    own.hidden.extend(shared.hidden.iter().cloned());
    let mut others = Vec::new();
    for entry in &shared.entries {
        match own.entries.iter().find(|mine| mine.name == entry.name || mine.path == entry.path) {
            Some(mine) => own.hidden.push(Hidden {
                name: entry.name.clone(),
                folder: entry.folder.clone(),
                by: mine.folder.clone(),
            }),
            None => others.push(CatalogEntry { editable: false, ..entry.clone() }),
        }
    }
    own.entries.extend(others);
    own
}

/// Returns the files in a staging folder that differ from those at the skill's place.
fn written(place: &Path, new: &Path) -> Result<Vec<WrittenFile>, SkillError> {
    let before = FileTree::read(place)?.unwrap_or_default();
    let after = FileTree::read(new)?.unwrap_or_default();
    let changed = after.files.into_iter().filter(|(path, file)| before.files.get(path) != Some(file));
    let mut written = Vec::new();
    for (path, file) in changed {
        let text = match (change::read(&new.join(&path)), change::read(&place.join(&path))) {
            (Ok(text), Ok(same)) if text == same => continue,
            (Ok(text), _) => text,
            (Err(_), _) => format!("[{} bytes that are not text, or too many]", file.bytes),
        };
        written.push(WrittenFile { path, text });
    }
    Ok(written)
}

/// Returns the texts of a skill, for users who decide whether to restore it.
fn preview(folder: &Path) -> Result<String, SkillError> {
    let tree = FileTree::read(folder)?.unwrap_or_default();
    let mut text = String::new();
    for (path, file) in &tree.files {
        // Writing to a String cannot fail.
        let _ = match change::read(&folder.join(path)) {
            Ok(words) => {
                let lines: String = words.lines().map(|line| format!("  | {line}\n")).collect();
                write!(text, "{path}:\n{lines}")
            }
            Err(_) => writeln!(text, "{path}: {} bytes that are not text, or too many", file.bytes),
        };
        if text.len() > MAX_PREVIEW_BYTES {
            let why =
                "the version is too long to be reviewed before it is restored: use `pudu skill rollback`";
            return Err(SkillError::Wrong(why.to_owned()));
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
