//! Earlier versions of changed skills, stored in `.history/NAME/NUMBER` in the folder of skills. Each has a record of
//! the change and a copy of the skill's folder before the change. Editing a skill's file in place does not affect its
//! versions.
//!
//! The record is written before the change. After a crash in between, it describes a change that was not made. Such a
//! record is detected by comparing the files, and removed. History is limited, and the oldest versions are deleted
//! first.

use crate::{
    SkillError,
    tree::{self, FileTree},
};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, DirBuilder},
    io::Read,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// The folder of all histories.
const FOLDER: &str = ".history";
/// The record of a change.
const RECORD: &str = "record.json";
/// The copy of the skill's folder before the change.
const FORMER: &str = "former";
/// Suffix of an incomplete version's name.
const PART: &str = ".part";
/// Maximum number of versions of a skill.
const MAX_VERSIONS: usize = 20;
/// Maximum size of all versions of a skill, in bytes.
const MAX_HISTORY_BYTES: u64 = 8 * 1024 * 1024;
/// Maximum number of skills with a history, including removed ones.
const MAX_HISTORIES: usize = 128;
/// Maximum size of a record, in bytes.
const MAX_RECORD_BYTES: u64 = 64 * 1024;

/// A change to a skill, and the version before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillVersion {
    /// Number of the version, starting at 1.
    pub number: u64,
    /// Time of the change, in milliseconds since 1970.
    pub at: i64,
    /// The kind of change.
    pub action: String,
    /// Author of the change.
    pub by: String,
    /// Reason for the change, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Thread in which the skill was changed, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The changed file, if there is exactly one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Number of files in the version before the change; 0 if the skill did not exist or was too large to keep.
    pub files: usize,
    /// Findings of the scan that were accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
}

/// The history of one skill.
pub(crate) struct History {
    folder: PathBuf,
    all: PathBuf,
}

impl History {
    /// Returns the history of a skill in a folder of skills.
    pub(crate) fn new(own: &Path, name: &str) -> Self {
        let all = own.join(FOLDER);
        Self { folder: all.join(name), all }
    }

    /// Returns the versions, oldest first. Unreadable ones are omitted.
    pub(crate) fn versions(&self) -> Vec<SkillVersion> {
        let folders = self.folders();
        let read =
            |(number, folder): (u64, PathBuf)| record(&folder).filter(|version| version.number == number);
        folders.into_iter().filter_map(read).collect()
    }

    /// Returns the folder of a version if its files were kept.
    pub(crate) fn former(&self, number: u64) -> Option<PathBuf> {
        let former = self.folder.join(numbered(number)).join(FORMER);
        fs::symlink_metadata(&former).is_ok_and(|meta| meta.is_dir()).then_some(former)
    }

    /// Records a change before it is made to the skill in `place`, with a copy of the current version.
    pub(crate) fn note(&self, place: &Path, version: SkillVersion) -> Result<SkillVersion, SkillError> {
        let number = self.folders().last().map_or(0, |(number, _)| *number) + 1;
        let part = self.folder.join(format!("{}{PART}", numbered(number)));
        DirBuilder::new().recursive(true).mode(0o700).create(&part).map_err(SkillError::io(&part))?;
        let before = FileTree::read(place)?;
        let mut files = 0;
        if let Some(before) = before.filter(|before| before.bytes() <= MAX_HISTORY_BYTES) {
            before.copy(place, &part.join(FORMER))?;
            files = before.files.len();
        }
        let version = SkillVersion { number, files, ..version };
        write_record(&part.join(RECORD), &version)?;
        let path = self.folder.join(numbered(number));
        fs::rename(&part, &path).map_err(SkillError::io(&path))?;
        tree::sync(&self.folder)?;
        Ok(version)
    }

    /// Removes the record of a change that was not made.
    pub(crate) fn forget(&self, number: u64) {
        tree::remove(&self.folder.join(numbered(number))).ok();
    }

    /// Cleans up after a crash: removes incomplete versions, and the latest record if the skill in `place` was not
    /// changed. A change without effect, or one reverted by hand, counts as not made.
    pub(crate) fn clear(&self, place: &Path) {
        for (name, path) in tree::folders(&self.folder) {
            if name.ends_with(PART) {
                tree::remove(&path).ok();
            }
        }
        let Some((number, folder)) = self.folders().pop() else { return };
        let was_created = record(&folder).is_some_and(|version| version.action == "create");
        let former = folder.join(FORMER);
        // Without kept files, there is nothing to compare.
        let unmade = tree::has_same_files(&former, place)
            || was_created && !former.exists() && fs::symlink_metadata(place).is_err();
        if unmade {
            self.forget(number);
        }
    }

    /// Deletes the oldest versions, and whole histories, beyond the limits.
    pub(crate) fn bound(&self, own: &Path) {
        let versions = self.folders();
        let (mut count, mut bytes) = (0, 0_u64);
        for (number, folder) in versions.iter().rev() {
            let size = FileTree::read(&folder.join(FORMER)).ok().flatten().map_or(0, |tree| tree.bytes());
            (count, bytes) = (count + 1, bytes.saturating_add(size));
            if count > MAX_VERSIONS || bytes > MAX_HISTORY_BYTES {
                self.forget(*number);
            }
        }
        let mut histories: Vec<(bool, std::time::SystemTime, PathBuf)> = tree::folders(&self.all)
            .into_iter()
            .map(|(name, path)| {
                let changed = fs::metadata(&path).and_then(|meta| meta.modified());
                (own.join(name).exists(), changed.unwrap_or(std::time::UNIX_EPOCH), path)
            })
            .collect();
        // Histories of removed skills come first, then the oldest.
        histories.sort();
        let surplus = histories.len().saturating_sub(MAX_HISTORIES);
        histories.iter().take(surplus).filter(|(.., path)| *path != self.folder).for_each(|(.., path)| {
            tree::remove(path).ok();
        });
    }

    /// Returns the versions' numbers and folders, oldest first.
    fn folders(&self) -> Vec<(u64, PathBuf)> {
        let numbers = tree::folders(&self.folder);
        let mut found: Vec<(u64, PathBuf)> =
            numbers.into_iter().filter_map(|(name, path)| Some((name.parse().ok()?, path))).collect();
        found.sort();
        found
    }
}

fn numbered(number: u64) -> String {
    format!("{number:06}")
}

fn record(folder: &Path) -> Option<SkillVersion> {
    let mut text = String::new();
    let file = fs::File::open(folder.join(RECORD)).ok()?;
    file.take(MAX_RECORD_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn write_record(path: &Path, version: &SkillVersion) -> Result<(), SkillError> {
    let text = serde_json::to_string_pretty(version).unwrap_or_default();
    pudu_kit::file::create(path, text.as_bytes(), 0o600).map_err(SkillError::io(path))
}
