//! Incremental changes to a skill by an agent. Each change is made to a hidden copy.

use crate::{
    Front, SkillError, archive::MAX_SKILL_MD_BYTES, history::History, magic, names, stage::StagingFolder,
    tree::FileTree,
};
use std::{fs, io::Read, path::Path};

/// Maximum size of a file written by a change, in bytes. Users have to be able to review it.
pub const MAX_FILE_BYTES: usize = 192 * 1024;
/// The file that makes a folder a skill.
pub(crate) const SKILL: &str = "SKILL.md";

/// A change to a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkillChange {
    /// Creates the skill, with this `SKILL.md`.
    Create(String),
    /// Replaces its whole `SKILL.md`.
    Edit(String),
    /// Replaces a piece of text that occurs exactly once in one of its files.
    Patch {
        /// The file.
        path: String,
        /// The piece.
        old: String,
        /// The replacement.
        new: String,
    },
    /// Deletes the skill.
    Delete,
    /// Writes a whole file other than `SKILL.md`.
    WriteFile {
        /// The file.
        path: String,
        /// The text.
        text: String,
    },
    /// Removes one of its files.
    RemoveFile {
        /// The file.
        path: String,
    },
    /// Restores the version before a change.
    Restore(u64),
}

impl SkillChange {
    /// Returns the name of the action.
    #[must_use]
    pub fn action(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Edit(_) => "edit",
            Self::Patch { .. } => "patch",
            Self::Delete => "delete",
            Self::WriteFile { .. } => "write_file",
            Self::RemoveFile { .. } => "remove_file",
            Self::Restore(_) => "rollback",
        }
    }

    /// Returns the changed file, if there is exactly one.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::Create(_) | Self::Edit(_) => Some(SKILL),
            Self::Patch { path, .. } | Self::WriteFile { path, .. } | Self::RemoveFile { path } => Some(path),
            Self::Delete | Self::Restore(_) => None,
        }
    }
}

/// Makes a change to the skill at `place` in a staging folder. Returns `None` for a deletion. The caller holds the
/// lock.
pub(crate) fn stage(
    own: &Path,
    place: &Path,
    name: &str,
    history: &History,
    change: &SkillChange,
) -> Result<Option<StagingFolder>, SkillError> {
    let there = FileTree::read(place)?;
    let mut stage = StagingFolder::new(own)?;
    match (&there, change) {
        (Some(_), SkillChange::Create(_)) => {
            let help = "edit it, or give the new one another name";
            return Err(SkillError::Exists { name: name.to_owned(), where_: "custom", help });
        }
        (None, SkillChange::Create(text)) => stage.put(SKILL, &checked(SKILL, text)?)?,
        (_, SkillChange::Restore(number)) => restore(&stage, name, history, *number)?,
        (None, _) => return Err(SkillError::Unknown(name.to_owned())),
        (Some(_), SkillChange::Delete) => return Ok(None),
        (Some(_), SkillChange::Edit(text)) => {
            stage.fill_from(place)?;
            stage.put(SKILL, &checked(SKILL, text)?)?;
        }
        (Some(tree), SkillChange::Patch { path, old, new }) => {
            let path = plain(path)?;
            present(tree, &path)?;
            let text = patched(&read(&place.join(&path))?, &path, old, new)?;
            stage.fill_from(place)?;
            stage.put(&path, &checked(&path, &text)?)?;
        }
        (Some(tree), SkillChange::WriteFile { path, text }) => {
            let path = plain(path)?;
            if names::folded(&path).rsplit('/').next() == Some("skill.md") {
                return Err(SkillError::Wrong(
                    "a skill has one SKILL.md: change it with edit or patch".to_owned(),
                ));
            }
            if let Some(other) = tree.collision(&path) {
                return Err(SkillError::Wrong(format!("{path} is the same as {other} on some machines")));
            }
            stage.fill_from(place)?;
            stage.put(&path, &checked(&path, text)?)?;
        }
        (Some(tree), SkillChange::RemoveFile { path }) => {
            let path = plain(path)?;
            if path == SKILL {
                return Err(SkillError::Wrong(
                    "a skill needs its SKILL.md: delete the whole skill instead".to_owned(),
                ));
            }
            present(tree, &path)?;
            stage.fill_from(place)?;
            stage.take_out(&path)?;
        }
    }
    Ok(Some(stage))
}

/// Restores a version into a staging folder.
fn restore(stage: &StagingFolder, name: &str, history: &History, number: u64) -> Result<(), SkillError> {
    match history.former(number) {
        Some(former) => stage.bring_back(&former),
        None => {
            let available: Vec<String> = history
                .versions()
                .iter()
                .filter(|version| version.files > 0)
                .map(|version| version.number.to_string())
                .collect();
            let available = if available.is_empty() { "none".to_owned() } else { available.join(", ") };
            Err(SkillError::Wrong(format!(
                "there is no version {number} of `{name}` to restore; there are: {available}"
            )))
        }
    }
}

/// Checks the result of a change, and returns the front matter of its `SKILL.md`.
pub(crate) fn check(stage: &StagingFolder, name: &str) -> Result<Front, SkillError> {
    let inside = stage.inside();
    // Also checks the limits on size and number of files.
    FileTree::read(&inside)?;
    let text = read(&inside.join(SKILL))?;
    let front =
        Front::read(&text, Some(name)).map_err(|why| SkillError::Wrong(format!("SKILL.md: {why}")))?;
    if front.name != name {
        let why = format!("`name` in its SKILL.md is `{}`, but must be `{name}`", front.name);
        return Err(SkillError::Wrong(why));
    }
    match front.odd.is_empty() {
        true => Ok(front),
        false => Err(SkillError::Wrong(format!("SKILL.md: {}", front.odd.join("; ")))),
    }
}

/// Returns the normalized form of a path in the skill.
fn plain(path: &str) -> Result<String, SkillError> {
    let wrong = |why: &str| SkillError::Wrong(format!("{}: {why}", path.escape_debug()));
    let parts = names::parts(path).map_err(wrong)?;
    if path.ends_with('/') {
        return Err(wrong("it is a folder's name"));
    }
    if parts.iter().any(|part| part.starts_with('.')) {
        return Err(wrong("a skill has no hidden files"));
    }
    Ok(parts.join("/"))
}

fn present(tree: &FileTree, path: &str) -> Result<(), SkillError> {
    match tree.files.contains_key(path) {
        true => Ok(()),
        false => Err(SkillError::Wrong(format!("the skill has no file {path}"))),
    }
}

/// Checks a text before it is written.
fn checked(path: &str, text: &str) -> Result<Vec<u8>, SkillError> {
    let limit = if path == SKILL { MAX_SKILL_MD_BYTES as usize } else { MAX_FILE_BYTES };
    if text.len() > limit {
        return Err(SkillError::Wrong(format!("{path} is larger than {} KiB", limit / 1024)));
    }
    if text.contains('\0') || magic::program(text.as_bytes()).is_some() {
        return Err(SkillError::Wrong(format!("{path} is not text")));
    }
    Ok(text.as_bytes().to_vec())
}

/// Replaces a piece of text that occurs exactly once.
fn patched(text: &str, path: &str, old: &str, new: &str) -> Result<String, SkillError> {
    let wrong = |why: &str| Err(SkillError::Wrong(format!("{path}: {why}")));
    if old.is_empty() || old == new {
        return wrong("the old text is empty, or the same as the new one");
    }
    match text.matches(old).take(2).count() {
        1 => Ok(text.replacen(old, new, 1)),
        0 => wrong("the old text was not found: read the file again, and copy the text exactly"),
        _ => wrong("the old text occurs more than once: include more of the surrounding text"),
    }
}

/// Reads a text file of a skill.
pub(crate) fn read(path: &Path) -> Result<String, SkillError> {
    let mut bytes = Vec::new();
    let limit = MAX_FILE_BYTES as u64;
    fs::File::open(path)
        .and_then(|file| file.take(limit + 1).read_to_end(&mut bytes))
        .map_err(SkillError::io(path))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if bytes.len() as u64 > limit {
        return Err(SkillError::Wrong(format!("{name} is larger than {} KiB", limit / 1024)));
    }
    String::from_utf8(bytes).map_err(|_| SkillError::Wrong(format!("{name} is not UTF-8 text")))
}
