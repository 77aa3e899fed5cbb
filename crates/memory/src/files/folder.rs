//! The files in one user's folder. Links that lead outside are not followed, and files are written atomically.

use crate::{error::MemoryError, scope::MemoryScope};
use cap_std::{
    ambient_authority,
    fs::{Dir, MetadataExt, OpenOptions, OpenOptionsExt},
};
use pudu_base::UserId;
use std::{
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
};

/// Maximum size of a file that is read, in bytes. A `memory.json` of version 1.0 with 10,000 facts has 5 MiB.
const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;

/// Minimum age of a file's last change, in milliseconds, at which the next change is certain to get a different time.
const MIN_SETTLED_AGE: i64 = 2_000;

/// Version of a file's content, determined without reading the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FactFileVersion {
    inode: u64,
    length: u64,
    /// Last change of the content (mtime) and of the file (ctime), in seconds and nanoseconds since 1970.
    modified: (i64, i64),
    changed: (i64, i64),
}

/// A user's folder.
pub(crate) struct UserFolder {
    dir: Dir,
    path: PathBuf,
    /// Number of steps until the disk fails permanently. Tests use it to interrupt a writer.
    #[cfg(test)]
    pub(super) steps_left: std::cell::Cell<Option<u32>>,
}

impl UserFolder {
    /// Opens a user's folder. Returns `None` if it does not exist.
    pub(crate) fn open(home: &Path, user: &UserId) -> Result<Option<Self>, MemoryError> {
        let path = home.join("users").join(user.as_str());
        let open = || Dir::open_ambient_dir(home, ambient_authority())?.open_dir(relative(user));
        match open() {
            Ok(dir) => Ok(Some(Self::new(dir, path))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(why) => Err(MemoryError::Io { path, why }),
        }
    }

    /// Opens a user's folder, creating it if necessary.
    pub(crate) fn create(home: &Path, user: &UserId) -> Result<Self, MemoryError> {
        let path = home.join("users").join(user.as_str());
        let open = || {
            std::fs::create_dir_all(home)?;
            let dir = Dir::open_ambient_dir(home, ambient_authority())?;
            dir.create_dir_all(relative(user))?;
            dir.open_dir(relative(user))
        };
        let dir = open().map_err(MemoryError::io(&path))?;
        Ok(Self::new(dir, path))
    }

    fn new(dir: Dir, path: PathBuf) -> Self {
        Self {
            dir,
            path,
            #[cfg(test)]
            steps_left: std::cell::Cell::new(tests::steps()),
        }
    }

    /// Returns the full path of a file, for messages.
    pub(crate) fn path(&self, file: impl AsRef<Path>) -> PathBuf {
        self.path.join(file)
    }

    pub(super) fn lock_file(&self, name: &str) -> Result<std::fs::File, MemoryError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o600);
        let file = self.dir.open_with(name, &options).map_err(MemoryError::io(self.path(name)))?;
        Ok(file.into_std())
    }

    /// Reads a file. Returns `None` if it does not exist.
    pub(crate) fn read(&self, file: impl AsRef<Path>) -> Result<Option<Vec<u8>>, MemoryError> {
        let file = file.as_ref();
        self.read_up_to(file, MAX_FILE_BYTES).map_err(MemoryError::io(self.path(file)))
    }

    fn read_up_to(&self, file: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
        #[cfg(test)]
        tests::count_read(file);
        let opened = match self.dir.open(file) {
            Ok(opened) => opened,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        if !opened.metadata()?.is_file() {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a file"));
        }
        let mut bytes = Vec::new();
        opened.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(io::Error::new(ErrorKind::FileTooLarge, "it is larger than 32 MiB"));
        }
        Ok(Some(bytes))
    }

    /// Returns the version of a file, or `None` if it changed so recently that the next change could look the same.
    pub(crate) fn version(&self, file: &Path, now: i64) -> Option<FactFileVersion> {
        let meta = self.dir.metadata(file).ok()?;
        let version = FactFileVersion {
            inode: meta.ino(),
            length: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        };
        let is_settled = |(seconds, _): (i64, i64)| (now - MIN_SETTLED_AGE) / 1_000 > seconds;
        (is_settled(version.modified) && is_settled(version.changed)).then_some(version)
    }

    /// Whether a file or folder exists.
    pub(crate) fn exists(&self, file: impl AsRef<Path>) -> bool {
        self.dir.symlink_metadata(file).is_ok()
    }

    /// Whether a path exists and is not a folder.
    pub(crate) fn is_file(&self, file: impl AsRef<Path>) -> bool {
        self.dir.symlink_metadata(file).is_ok_and(|meta| !meta.is_dir())
    }

    /// Lists the names in a folder, sorted. A missing folder is empty.
    pub(crate) fn list(&self, folder: impl AsRef<Path>) -> Result<Vec<String>, MemoryError> {
        let folder = folder.as_ref();
        let names = || -> io::Result<Vec<String>> {
            let entries = match self.dir.read_dir(folder) {
                Ok(entries) => entries,
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                    return Ok(Vec::new());
                }
                Err(error) => return Err(error),
            };
            let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
            let mut names = names.collect::<io::Result<Vec<String>>>()?;
            names.sort();
            Ok(names)
        };
        names().map_err(MemoryError::io(self.path(folder)))
    }

    /// Returns when a file was last written, in milliseconds since 1970.
    pub(crate) fn modified(&self, file: impl AsRef<Path>) -> i64 {
        let modified = self.dir.symlink_metadata(file).and_then(|meta| meta.modified());
        let since = modified.ok().and_then(|time| time.into_std().duration_since(std::time::UNIX_EPOCH).ok());
        since.and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or_default()
    }

    /// Writes a new file, durably.
    pub(super) fn create_file(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        self.step()?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut opened = self.dir.open_with(file, &options)?;
        opened.write_all(bytes)?;
        opened.sync_all()
    }

    pub(super) fn create_folder(&self, folder: &Path) -> io::Result<()> {
        self.step()?;
        self.dir.create_dir_all(folder)
    }

    /// Moves a file to its destination, durably, creating its folder if necessary.
    pub(super) fn place(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        if let Some(folder) = to.parent() {
            self.dir.create_dir_all(folder)?;
        }
        self.dir.rename(from, &self.dir, to)?;
        self.sync(to.parent())
    }

    /// Removes a file, durably. A missing file is not an error.
    pub(super) fn remove(&self, file: &Path) -> io::Result<()> {
        self.step()?;
        match self.dir.remove_file(file) {
            Ok(()) => self.sync(file.parent()),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Removes a folder with its contents. A missing folder is not an error.
    pub(super) fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        self.step()?;
        match self.dir.remove_dir_all(folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes a folder if it is empty.
    pub(super) fn prune(&self, folder: &Path) {
        self.dir.remove_dir(folder).ok();
    }

    /// Makes a folder's entries durable.
    pub(super) fn sync(&self, folder: Option<&Path>) -> io::Result<()> {
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        self.dir.open(folder)?.sync_all()
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "a test stops here")]
    fn step(&self) -> io::Result<()> {
        Ok(())
    }

    #[cfg(test)]
    fn step(&self) -> io::Result<()> {
        match self.steps_left.get() {
            None => Ok(()),
            Some(0) => Err(io::Error::other("killed")),
            Some(left) => {
                self.steps_left.set(Some(left - 1));
                Ok(())
            }
        }
    }
}

fn relative(user: &UserId) -> PathBuf {
    Path::new("users").join(user.as_str())
}

/// Returns the folder of an agent's facts.
pub(crate) fn facts_folder(agent: &str) -> PathBuf {
    Path::new("agents").join(agent).join("facts")
}

/// Returns the folder of the metadata of an agent's facts.
pub(crate) fn metadata_folder(agent: &str) -> PathBuf {
    Path::new("agents").join(agent).join(".metadata")
}

impl MemoryScope {
    pub(crate) fn facts_folder(&self) -> PathBuf {
        facts_folder(self.agent())
    }

    pub(crate) fn metadata_folder(&self) -> PathBuf {
        metadata_folder(self.agent())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    thread_local! {
        static STEPS: Cell<Option<u32>> = const { Cell::new(None) };
        static FACTS_READ: Cell<usize> = const { Cell::new(0) };
    }

    /// Returns the number of files of facts that this thread has read.
    pub(crate) fn facts_read() -> usize {
        FACTS_READ.get()
    }

    pub(super) fn count_read(file: &super::Path) {
        FACTS_READ.set(FACTS_READ.get() + usize::from(file.extension().is_some_and(|end| end == "md")));
    }

    pub(super) fn steps() -> Option<u32> {
        STEPS.get()
    }

    /// Makes the disk fail permanently after a number of steps, in folders that this thread opens.
    pub(crate) fn kill_after(steps: Option<u32>) {
        STEPS.set(steps);
    }
}
