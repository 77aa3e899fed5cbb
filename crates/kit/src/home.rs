//! The folder with all of pudu's data, and the lock of the process that uses it.
//!
//! Two processes on one folder would both resume the same runs. So a process locks a file in the folder, and the
//! operating system releases the lock whenever the process ends. The file also contains the address of the process.

use anyhow::{Context, Result, bail};
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// Remedy in an error about the folder.
const REMEDY: &str = " (give pudu's user write access, or set PUDU_HOME to another folder)";
/// Name of the lock file.
const FILE: &str = "pudu.lock";

/// A locked home, unlocked on drop.
pub struct Home {
    lock: File,
}

impl Home {
    /// Creates the folder if necessary, and locks it.
    pub fn lock(path: &Path) -> Result<Self> {
        create(path)?;
        let mut lock = open(path)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let address = read_url(&mut lock).map(|url| format!(" (at {url})")).unwrap_or_default();
                bail!(
                    "another pudu{address} is already using {}. Stop it first, or set PUDU_HOME to another folder",
                    path.display()
                );
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.join(FILE).display()));
            }
        }
        lock.set_len(0)?;
        // Partial downloads of an interrupted process are useless.
        fs::remove_dir_all(scratch(path)).ok();
        Ok(Self { lock })
    }

    /// Writes the address of this process to the lock file.
    pub fn announce(&mut self, url: &str) -> Result<()> {
        self.lock.write_all(url.as_bytes()).context("cannot write the address of pudu to the lock file")
    }
}

/// Creates the folder, readable only by its owner, unless it exists.
///
/// # Errors
/// On an I/O error. The message has the absolute path.
pub fn create(path: &Path) -> Result<()> {
    let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    created.with_context(|| format!("cannot create the folder {}{REMEDY}", absolute(path).display()))
}

/// Returns the folder for temporary files of the process.
pub fn scratch(path: &Path) -> PathBuf {
    path.join("tmp")
}

/// Returns whether a process uses this home.
pub fn is_taken(path: &Path) -> bool {
    let lock = OpenOptions::new().read(true).open(path.join(FILE));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Returns the address of the process that uses this home, if any.
pub fn running_url(path: &Path) -> Option<String> {
    let mut lock = OpenOptions::new().read(true).open(path.join(FILE)).ok()?;
    match lock.try_lock_shared() {
        Err(TryLockError::WouldBlock) => read_url(&mut lock),
        _ => None,
    }
}

fn open(path: &Path) -> Result<File> {
    let file = path.join(FILE);
    let mut options = OpenOptions::new();
    let opened = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&file);
    opened.with_context(|| format!("cannot write {}{REMEDY}", absolute(&file).display()))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn read_url(lock: &mut File) -> Option<String> {
    let mut url = String::new();
    lock.rewind().ok()?;
    lock.take(1_000).read_to_string(&mut url).ok()?;
    Some(url).filter(|url| !url.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_locked_once_and_its_owner_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("home");
        assert_eq!(running_url(&path), None);
        let mut home = Home::lock(&path).unwrap();
        assert_eq!((running_url(&path), is_taken(&path)), (None, true), "no address is announced yet");
        home.announce("http://127.0.0.1:8001").unwrap();
        assert_eq!(running_url(&path).as_deref(), Some("http://127.0.0.1:8001"));
        let error = Home::lock(&path).err().unwrap().to_string();
        assert!(error.starts_with("another pudu (at http://127.0.0.1:8001) is already using "), "{error}");
        drop(home);
        assert_eq!((running_url(&path), is_taken(&path)), (None, false));
        Home::lock(&path).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_created_is_named_with_a_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let error = format!("{:#}", Home::lock(&file.join("home")).err().unwrap());
        let expected = format!(
            "cannot create the folder {}/home (give pudu's user write access, or set PUDU_HOME to another folder): Not a \
             directory (os error 20)",
            file.display()
        );
        assert_eq!(error, expected);
    }
}
