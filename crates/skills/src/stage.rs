//! A folder in which an archive is written out before anybody sees it: beside its place to be, so that the
//! move there is one step. It is gone when this is dropped.

use crate::{
    SkillError,
    archive::Sink,
    tree::{self, FileTree},
};
use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};
use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// Prefix of the names of staging folders. A folder whose name begins with a dot is never taken for a skill.
const PREFIX: &str = ".staging-";

/// The folder.
pub(crate) struct StagingFolder {
    path: PathBuf,
}

impl StagingFolder {
    /// Makes one, and takes away those that a crash left.
    pub(crate) fn new(beside: &Path) -> Result<Self, SkillError> {
        DirBuilder::new().recursive(true).mode(0o755).create(beside).map_err(SkillError::io(beside))?;
        for entry in fs::read_dir(beside).map_err(SkillError::io(beside))?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                fs::remove_dir_all(entry.path()).ok();
            }
        }
        let path = beside.join(format!("{PREFIX}{}", uuid::Uuid::now_v7()));
        DirBuilder::new().mode(0o755).create(&path).map_err(SkillError::io(&path))?;
        Ok(Self { path })
    }

    /// Returns the folder that the skill is written to.
    pub(crate) fn inside(&self) -> PathBuf {
        self.path.join("new")
    }

    /// Fills it with a skill that is there, to be changed.
    pub(crate) fn take(&self, folder: &Path) -> Result<(), SkillError> {
        match FileTree::look(folder)? {
            Some(tree) => tree.link(folder, &self.inside()),
            None => Ok(()),
        }
    }

    /// Fills it with a version of the history, which stays as it is.
    pub(crate) fn bring_back(&self, former: &Path) -> Result<(), SkillError> {
        match FileTree::look(former)? {
            Some(tree) => tree.copy(former, &self.inside()),
            None => Ok(()),
        }
    }

    /// Puts a file into the skill, in the place of one of that name.
    pub(crate) fn put(&mut self, path: &str, bytes: &[u8]) -> Result<(), SkillError> {
        let place = self.inside().join(path);
        let write = || {
            // What is there may be a file of the skill as it is now.
            match fs::remove_file(&place) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = self.open(path, bytes.starts_with(b"#!"))?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write().map_err(SkillError::io(&place))?;
        self.sync_up_from(&place)
    }

    /// Takes a file out of the skill, and the folders that have nothing else.
    pub(crate) fn take_out(&self, path: &str) -> Result<(), SkillError> {
        let (inside, place) = (self.inside(), self.inside().join(path));
        fs::remove_file(&place).map_err(SkillError::io(&place))?;
        for folder in place.ancestors().skip(1).take_while(|folder| **folder != inside) {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn sync_up_from(&self, place: &Path) -> Result<(), SkillError> {
        let inside = self.inside();
        let mut above = place.ancestors().skip(1).take_while(|folder| folder.starts_with(&inside));
        above.try_for_each(tree::sync)
    }

    /// Makes a file, and the folders above it.
    fn open(&self, path: &str, program: bool) -> io::Result<fs::File> {
        let path = self.inside().join(path);
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
        }
        // Everybody may read it and nobody change it, whoever the sandbox makes its commands run as.
        let mode = if program { 0o555 } else { 0o444 };
        OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
    }

    /// Puts the skill into its place in one step; what is there already goes into the stage, and with it at the end.
    pub(crate) fn settle(self, place: &Path) -> Result<(), SkillError> {
        match renameat_with(CWD, self.inside(), CWD, place, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(()),
            Err(Errno::NOENT) => fs::rename(self.inside(), place).map_err(SkillError::io(place)),
            // Not every file system can do that.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => self.settle_in_two(place),
            Err(error) => Err(SkillError::io(place)(error.into())),
        }
    }

    /// Takes out what is there before the skill goes in; if that fails it is put back.
    fn settle_in_two(&self, place: &Path) -> Result<(), SkillError> {
        let old = self.path.join("old");
        let replaced = match fs::rename(place, &old) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(SkillError::io(place)(error)),
        };
        fs::rename(self.inside(), place).map_err(|error| {
            if replaced {
                fs::rename(&old, place).ok();
            }
            SkillError::io(place)(error)
        })
    }

    /// Takes a skill out of its place.
    pub(crate) fn clear(self, place: &Path) -> Result<(), SkillError> {
        fs::rename(place, self.path.join("old")).map_err(SkillError::io(place))
    }
}

impl Drop for StagingFolder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.path).ok();
    }
}

impl Sink for StagingFolder {
    fn folder(&mut self, path: &str) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o755).create(self.inside().join(path))
    }

    fn file(&mut self, path: &str, program: bool) -> io::Result<Box<dyn Write + '_>> {
        Ok(Box::new(self.open(path, program)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_replaced_is_at_no_time_away() {
        let home = tempfile::tempdir().unwrap();
        let place = home.path().join("skill");
        let stage = |text: &str| {
            let mut stage = StagingFolder::new(home.path()).unwrap();
            stage.file("SKILL.md", false).unwrap().write_all(text.as_bytes()).unwrap();
            // Nothing can be moved aside.
            fs::create_dir_all(stage.path.join("old/taken")).unwrap();
            stage
        };
        for text in ["one", "two"] {
            stage(text).settle(&place).unwrap();
            assert_eq!(fs::read_to_string(place.join("SKILL.md")).unwrap(), text);
        }
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn where_two_cannot_change_places_what_is_there_is_moved_first() {
        let home = tempfile::tempdir().unwrap();
        let place = home.path().join("skill");
        for text in ["one", "two"] {
            let mut stage = StagingFolder::new(home.path()).unwrap();
            stage.file("SKILL.md", false).unwrap().write_all(text.as_bytes()).unwrap();
            stage.settle_in_two(&place).unwrap();
            assert_eq!(fs::read_to_string(place.join("SKILL.md")).unwrap(), text);
        }
    }
}
