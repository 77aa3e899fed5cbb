//! Folders of skills as trees of regular files: links, copies, measures and compares them.

use crate::{SkillError, names};
use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

/// Maximum number of files and folders in a changed skill.
pub(crate) const MAX_ENTRIES: usize = 4096;
/// Maximum size of a changed skill, in bytes.
pub(crate) const MAX_TREE_BYTES: u64 = 512 * 1024 * 1024;
/// Maximum nesting depth of folders.
const MAX_DEPTH: usize = 12;

/// Metadata of a file in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeFile {
    pub(crate) bytes: u64,
    pub(crate) program: bool,
    /// Device and inode, which identify the file.
    place: (u64, u64),
}

/// The files of a folder by relative path, and its subfolders.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileTree {
    pub(crate) files: BTreeMap<String, TreeFile>,
    folders: Vec<String>,
}

impl FileTree {
    /// Reads a folder's tree. Returns `None` if the folder does not exist.
    ///
    /// # Errors
    /// When the folder has links or special files, or is too large.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>, SkillError> {
        match fs::symlink_metadata(folder) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => {
                let why = format!("{} is not a folder, or is a symbolic link", folder.display());
                return Err(SkillError::Wrong(why));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(SkillError::io(folder)(error)),
        }
        let mut tree = Self::default();
        tree.walk(folder, "", MAX_DEPTH)?;
        tree.folders.sort();
        if tree.bytes() > MAX_TREE_BYTES {
            return Err(SkillError::Wrong(format!(
                "a skill can have at most {} MiB",
                MAX_TREE_BYTES / 1024 / 1024
            )));
        }
        Ok(Some(tree))
    }

    fn walk(&mut self, folder: &Path, below: &str, depth: usize) -> Result<(), SkillError> {
        for entry in fs::read_dir(folder).map_err(SkillError::io(folder))? {
            let path = entry.map_err(SkillError::io(folder))?.path();
            let name = path.file_name().unwrap_or_default();
            let odd = |why: &str| {
                SkillError::Wrong(format!("{} in the skill {why}", name.to_string_lossy().escape_debug()))
            };
            let Some(name) = name.to_str() else { return Err(odd("has a name that is not UTF-8")) };
            let inside = if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
            if self.files.len() + self.folders.len() >= MAX_ENTRIES {
                return Err(SkillError::Wrong(format!(
                    "a skill can have at most {MAX_ENTRIES} files and folders"
                )));
            }
            let meta = fs::symlink_metadata(&path).map_err(SkillError::io(&path))?;
            if meta.is_dir() {
                if depth == 0 {
                    return Err(odd("is nested too deeply"));
                }
                self.folders.push(inside.clone());
                self.walk(&path, &inside, depth - 1)?;
            } else if meta.is_file() {
                let place = (meta.dev(), meta.ino());
                let file = TreeFile { bytes: meta.len(), program: meta.mode() & 0o100 != 0, place };
                self.files.insert(inside, file);
            } else {
                return Err(odd("is neither a file nor a folder, or it is a link"));
            }
        }
        Ok(())
    }

    /// Returns the total size of all files, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.bytes).sum()
    }

    /// Hard-links the tree to `to`, which must not exist yet and will replace the original.
    pub(crate) fn link(&self, from: &Path, to: &Path) -> Result<(), SkillError> {
        // Some file systems do not support hard links.
        self.repeat(from, to, |old, new| fs::hard_link(old, new).or_else(|_| fs::copy(old, new).map(drop)))
    }

    /// Copies the tree to `to`, which must not exist yet and is kept in addition to the original.
    pub(crate) fn copy(&self, from: &Path, to: &Path) -> Result<(), SkillError> {
        self.repeat(from, to, |old, new| {
            fs::copy(old, new)?;
            fs::File::open(new)?.sync_all()
        })
    }

    fn repeat(
        &self,
        from: &Path,
        to: &Path,
        file: impl Fn(&Path, &Path) -> io::Result<()>,
    ) -> Result<(), SkillError> {
        let make = |path: &Path| {
            DirBuilder::new().recursive(true).mode(0o755).create(path).map_err(SkillError::io(path))
        };
        make(to)?;
        self.folders.iter().try_for_each(|folder| make(&to.join(folder)))?;
        self.files.keys().try_for_each(|path| {
            let (old, new) = (from.join(path), to.join(path));
            file(&old, &new).map_err(SkillError::io(&new))
        })
    }

    /// Returns a path in the tree that conflicts with this one on some systems.
    pub(crate) fn collision(&self, path: &str) -> Option<&str> {
        let folded = names::folded(path);
        let above = |of: &str, other: &str| of.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
        let mut files = self.files.keys().map(String::as_str).filter(|other| {
            let known = names::folded(other);
            (known == folded && *other != path) || above(&folded, &known)
        });
        let mut folders = self.folders.iter().map(String::as_str).filter(|other| {
            let known = names::folded(other);
            known == folded || (above(&folded, &known) && !above(path, other))
        });
        files.next().or_else(|| folders.next())
    }
}

/// Returns whether two folders have the same contents, byte by byte.
pub(crate) fn has_same_files(one: &Path, other: &Path) -> bool {
    let look = |path: &Path| FileTree::read(path).ok().flatten();
    let (Some(left), Some(right)) = (look(one), look(other)) else { return false };
    let alike = |path: &String, file: &TreeFile| {
        right.files.get(path).is_some_and(|other| (other.bytes, other.program) == (file.bytes, file.program))
    };
    let read = |folder: &Path, path: &String| fs::read(folder.join(path)).ok();
    left.folders == right.folders
        && left.files.len() == right.files.len()
        && left.files.iter().all(|(path, file)| alike(path, file))
        && left.files.keys().all(|path| {
            read(one, path).is_some_and(|bytes| read(other, path).is_some_and(|same| bytes == same))
        })
}

/// Removes a folder with its contents.
pub(crate) fn remove(folder: &Path) -> Result<(), SkillError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(SkillError::io(folder)(error)),
        _ => Ok(()),
    }
}

/// Flushes a folder's entries to disk.
pub(crate) fn sync(folder: &Path) -> Result<(), SkillError> {
    pudu_kit::file::sync_folder(folder).map_err(SkillError::io(folder))
}

/// Returns the names of the folders in a folder, sorted.
pub(crate) fn folders(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut found: Vec<(String, PathBuf)> =
        folders.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path()))).collect();
    found.sort();
    found
}
