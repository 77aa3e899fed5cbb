//! A hidden folder for preparing a skill. It is next to the destination, so that the move is atomic, and is removed on
//! drop.

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

/// Prefix of the names of staging folders. Folders whose name begins with a dot are not skills.
const PREFIX: &str = ".staging-";

/// A staging folder.
pub(crate) struct StagingFolder {
    path: PathBuf,
}

impl StagingFolder {
    /// Creates a staging folder in `beside`, and removes those left by a crash.
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

    /// Returns the folder of the new skill.
    pub(crate) fn inside(&self) -> PathBuf {
        self.path.join("new")
    }

    /// Links the files of an existing skill into the folder.
    pub(crate) fn fill_from(&self, folder: &Path) -> Result<(), SkillError> {
        match FileTree::read(folder)? {
            Some(tree) => tree.link(folder, &self.inside()),
            None => Ok(()),
        }
    }

    /// Copies a version of the history into the folder.
    pub(crate) fn bring_back(&self, former: &Path) -> Result<(), SkillError> {
        match FileTree::read(former)? {
            Some(tree) => tree.copy(former, &self.inside()),
            None => Ok(()),
        }
    }

    /// Writes a file of the skill, replacing an existing one.
    pub(crate) fn put(&mut self, path: &str, bytes: &[u8]) -> Result<(), SkillError> {
        let target = self.inside().join(path);
        let write = || {
            // The existing file may be a hard link to the current skill's file.
            match fs::remove_file(&target) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = self.open(path, bytes.starts_with(b"#!"))?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write().map_err(SkillError::io(&target))?;
        self.sync_up_from(&target)
    }

    /// Removes a file from the skill, and parent folders that become empty.
    pub(crate) fn take_out(&self, path: &str) -> Result<(), SkillError> {
        let (inside, target) = (self.inside(), self.inside().join(path));
        fs::remove_file(&target).map_err(SkillError::io(&target))?;
        for folder in target.ancestors().skip(1).take_while(|folder| **folder != inside) {
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

    /// Creates a file and its parent folders.
    fn open(&self, path: &str, program: bool) -> io::Result<fs::File> {
        let path = self.inside().join(path);
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
        }
        // Readable for all users, because the sandbox may run commands as any user, and writable for none.
        let mode = if program { 0o555 } else { 0o444 };
        OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
    }

    /// Moves the skill into place atomically. An existing one is moved into the staging folder and removed with it.
    pub(crate) fn settle(self, place: &Path) -> Result<(), SkillError> {
        match renameat_with(CWD, self.inside(), CWD, place, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(()),
            Err(Errno::NOENT) => fs::rename(self.inside(), place).map_err(SkillError::io(place)),
            // Some file systems do not support an exchange.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => self.settle_in_two(place),
            Err(error) => Err(SkillError::io(place)(error.into())),
        }
    }

    /// Moves the existing skill out, then the new one into place. Restores the existing one on failure.
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

    /// Removes a skill by moving it into the staging folder.
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
    fn a_replaced_skill_is_never_missing() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("skill");
        let stage = |text: &str| {
            let mut stage = StagingFolder::new(home.path()).unwrap();
            stage.file("SKILL.md", false).unwrap().write_all(text.as_bytes()).unwrap();
            // The existing skill cannot be moved.
            fs::create_dir_all(stage.path.join("old/taken")).unwrap();
            stage
        };
        for text in ["one", "two"] {
            stage(text).settle(&target).unwrap();
            assert_eq!(fs::read_to_string(target.join("SKILL.md")).unwrap(), text);
        }
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "no staging folder is left");
    }

    #[test]
    fn without_an_atomic_exchange_the_existing_skill_is_moved_first() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("skill");
        for text in ["one", "two"] {
            let mut stage = StagingFolder::new(home.path()).unwrap();
            stage.file("SKILL.md", false).unwrap().write_all(text.as_bytes()).unwrap();
            stage.settle_in_two(&target).unwrap();
            assert_eq!(fs::read_to_string(target.join("SKILL.md")).unwrap(), text);
        }
    }
}
