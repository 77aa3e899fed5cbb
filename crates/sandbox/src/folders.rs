//! Folders of threads on this machine. All providers that use these folders share this code: the daemon adds and reads
//! files here regardless of how commands run.

use crate::{
    OutputEdit, OutputEdited, ROOT, Upload, discard, files::Files, monitor, mounts::WORKSPACE, output_edit,
    results, rights::Owner, share,
};
use cap_std::{ambient_authority, fs::Dir};
use pudu_base::{MessageId, SandboxError, SharedFile, ThreadFolder, UserId};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// Folder for records of runs' changes, next to the folders that the agent sees.
pub(crate) const CHANGES: &str = "changes";
/// Folder in which other agents work for the thread, next to the folders that the agent sees.
pub(crate) const ACP_WORKSPACE: &str = "acp-workspace";
/// Maximum depth of visited folders below a user's folder.
const MAX_VISITED_DEPTH: usize = 64;

/// The folders of all threads.
#[derive(Clone, Debug)]
pub struct Folders {
    home: PathBuf,
    owner: Owner,
    /// Locked for shared access while files are added, and for exclusive access while they are removed.
    uploads: Arc<RwLock<()>>,
}

impl Folders {
    /// Creates a handle to the folders below a home. `owner` is the owner of the threads' files if it is not the
    /// daemon's user.
    #[must_use]
    pub fn new(home: PathBuf, owner: Option<(u32, u32)>) -> Self {
        // Sandboxes are created with another working directory.
        let home = std::path::absolute(&home).unwrap_or(home);
        Self { home, owner, uploads: Arc::default() }
    }

    /// Returns the home.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the files of a thread.
    #[must_use]
    pub fn thread_files(&self, folder: &ThreadFolder) -> ThreadFiles {
        ThreadFiles(Arc::new(Files::new(self.thread(folder).join("user-data"), Vec::new(), self.owner)))
    }

    /// Returns a thread's workspace on this machine.
    #[must_use]
    pub fn workspace(&self, folder: &ThreadFolder) -> PathBuf {
        self.thread(folder).join("user-data").join(WORKSPACE)
    }

    /// Returns a thread's folder on this machine. The agent sees some of its subfolders.
    pub(crate) fn thread(&self, folder: &ThreadFolder) -> PathBuf {
        self.user(&folder.owner).join("threads").join(safe(folder.thread.as_str()))
    }

    /// Returns the folder of a thread in which other agents work, and creates it. The thread's own agent reads it. Blocks.
    ///
    /// # Errors
    /// When the folder cannot be created.
    pub fn acp_workspace(&self, folder: &ThreadFolder) -> io::Result<PathBuf> {
        let workspace = self.thread(folder).join(ACP_WORKSPACE);
        fs::create_dir_all(&workspace)?;
        Ok(workspace)
    }

    /// Returns a user's folder on this machine.
    #[must_use]
    pub fn user(&self, user: &UserId) -> PathBuf {
        self.home.join("users").join(user.as_str())
    }

    /// Returns the disk usage of a thread's files, in bytes; `None` if they cannot be counted because there are too
    /// many or because a folder is too deep or unreadable. Blocks.
    #[must_use]
    pub fn size(&self, folder: &ThreadFolder) -> Option<u64> {
        monitor::bytes(&self.thread(folder))
    }

    /// Visits the regular files in a user's folder with their relative paths, folder by folder and sorted by name. No
    /// link is followed, and no concurrent change by a command leads outside of the folder. Blocks.
    ///
    /// # Errors
    /// When a folder cannot be read, or `visit` fails.
    pub fn visit_user(
        &self,
        user: &UserId,
        visit: &mut dyn FnMut(&Path, cap_std::fs::File) -> io::Result<()>,
    ) -> io::Result<()> {
        let own = match Dir::open_ambient_dir(self.user(user), ambient_authority()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            own => own?,
        };
        let mut open = vec![(PathBuf::new(), own)];
        while let Some((place, dir)) = open.pop() {
            let mut entries: Vec<_> = dir.entries()?.collect::<Result<_, _>>()?;
            entries.sort_by_key(cap_std::fs::DirEntry::file_name);
            for entry in entries {
                let (path, kind) = (place.join(entry.file_name()), entry.file_type()?);
                if kind.is_dir() && path.components().count() <= MAX_VISITED_DEPTH {
                    open.push((path, entry.open_dir()?));
                } else if kind.is_file() {
                    visit(&path, entry.open()?)?;
                }
            }
        }
        Ok(())
    }

    /// Removes a user's folder. For the local user, whose folder contains the data of the whole installation, only the
    /// threads are removed. Blocks.
    ///
    /// # Errors
    /// When the folder cannot be moved away or removed completely. In the latter case, [`Folders::remove_deleted`]
    /// tries again.
    pub fn remove_user(&self, user: &UserId) -> io::Result<()> {
        let own = self.user(user);
        let folder = if *user == UserId::local() { own.join("threads") } else { own };
        self.discard(&folder)
    }

    /// Converts the agent's path of a thread's file to one relative to the user's folder.
    #[must_use]
    pub fn place(&self, folder: &ThreadFolder, path: &str) -> Option<PathBuf> {
        let below = Path::new(path).strip_prefix(ROOT).ok()?;
        Some(Path::new("threads").join(safe(folder.thread.as_str())).join("user-data").join(below))
    }

    /// Moves the files of a thread to another user. If that user already has the thread's folder, an earlier call moved
    /// it, and a newer folder without files is removed. Blocks.
    ///
    /// # Errors
    /// When the files cannot be moved, or both users have files of the thread.
    pub fn hand_over(&self, folder: &ThreadFolder, to: &UserId) -> io::Result<()> {
        let (from, target) = (self.thread(folder), ThreadFolder { owner: to.clone(), ..folder.clone() });
        let target = self.thread(&target);
        if target.exists() {
            return match holds_files(&from)? {
                true => Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "both users have files in the folder of \
                        the thread",
                )),
                false => self.discard(&from),
            };
        }
        fs::create_dir_all(self.user(to).join("threads"))?;
        match fs::rename(from, target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            moved => moved,
        }
    }

    /// Removes all files of a thread. They are moved away first, so that a new thread with the same ID does not get
    /// any. Blocks.
    ///
    /// # Errors
    /// When the files cannot be moved away or removed completely. In the latter case, [`Folders::remove_deleted`] tries
    /// again.
    pub fn remove(&self, folder: &ThreadFolder) -> io::Result<()> {
        self.discard(&self.thread(folder))
    }

    /// Moves a folder away and removes it.
    fn discard(&self, folder: &Path) -> io::Result<()> {
        let deleted = self.deleted();
        fs::create_dir_all(&deleted)?;
        let moved = fs::rename(folder, deleted.join(MessageId::fresh().as_str()));
        match moved {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            moved => moved.and_then(|()| discard::all(&deleted)),
        }
    }

    /// Removes the files of a thread and the records of their changes, but keeps its folders, because a container may
    /// have mounted them. Blocks.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn strip(&self, folder: &ThreadFolder) -> io::Result<()> {
        self.discard(&self.thread(folder).join(CHANGES))?;
        fs::create_dir_all(self.deleted())?;
        let deleted = Dir::open_ambient_dir(self.deleted(), ambient_authority())?;
        if let Some(agents) = open_existing(&self.thread(folder).join(ACP_WORKSPACE))? {
            empty(&agents, &deleted)?;
        }
        let Some(own) = open_existing(&self.thread(folder).join("user-data"))? else {
            return discard::all(&self.deleted());
        };
        for folder in own.entries()? {
            let folder = folder?;
            if folder.file_type()?.is_dir() {
                empty(&folder.open_dir()?, &deleted)?;
            } else {
                own.rename(folder.file_name(), &deleted, MessageId::fresh().as_str())?;
            }
        }
        discard::all(&self.deleted())
    }

    /// Returns a guard for adding files. While it exists, [`Folders::hold_uploads`] waits.
    pub async fn keep_files(&self) -> OwnedRwLockReadGuard<()> {
        self.uploads.clone().read_owned().await
    }

    /// Returns a guard for removing files. While it exists, [`Folders::keep_files`] waits.
    pub async fn hold_uploads(&self) -> OwnedRwLockWriteGuard<()> {
        self.uploads.clone().write_owned().await
    }

    /// Removes the remains of deleted files. Blocks.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn remove_deleted(&self) -> io::Result<()> {
        discard::all(&self.deleted())
    }

    fn deleted(&self) -> PathBuf {
        self.user(&UserId::local()).join("deleted")
    }

    /// Returns the owner of the threads' files if it is not the daemon's user.
    #[must_use]
    pub fn owner(&self) -> Option<(u32, u32)> {
        self.owner
    }
}

/// Opens a folder; `None` if it does not exist.
fn open_existing(folder: &Path) -> io::Result<Option<Dir>> {
    match Dir::open_ambient_dir(folder, ambient_authority()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// Moves the contents of a folder to the deleted files.
fn empty(folder: &Dir, deleted: &Dir) -> io::Result<()> {
    for entry in folder.entries()? {
        folder.rename(entry?.file_name(), deleted, MessageId::fresh().as_str())?;
    }
    Ok(())
}

/// The files of one thread, for the daemon.
#[derive(Clone)]
pub struct ThreadFiles(pub(crate) Arc<Files>);

impl ThreadFiles {
    /// Copies a regular file of the thread to a new file in a folder of the daemon, for callers that need a path. No
    /// command can change the copy or redirect its path. The caller has to remove it.
    ///
    /// # Errors
    /// When the path is outside, missing, not a regular file, or contains a symlink; when the file is larger than
    /// `most` bytes; or when it cannot be copied.
    pub async fn keep(
        &self,
        path: &str,
        folder: &Path,
        name: &str,
        most: u64,
    ) -> Result<PathBuf, SandboxError> {
        let target = folder.join(name);
        let to = target.clone();
        blocking(&self.0, path, move |files, path| files.keep(path, &to, most)).await?;
        Ok(target)
    }

    /// Opens a regular file of the thread and returns its size. No symlink is followed, and no concurrent change by a
    /// command can substitute another file.
    ///
    /// # Errors
    /// When the path is outside, missing, not a regular file, or contains a symlink.
    pub async fn open(&self, path: &str) -> Result<(File, u64), SandboxError> {
        blocking(&self.0, path, |files, path| {
            share::inner(path)?;
            share::open(files.existing(path)?, path)
        })
        .await
    }

    /// Lists at most `limit` regular files of the uploads, by name.
    ///
    /// # Errors
    /// When the uploads cannot be read.
    pub async fn uploads(&self, limit: usize) -> Result<Vec<Upload>, SandboxError> {
        blocking(&self.0, ROOT, move |files, path| match files.existing(path) {
            Err(SandboxError::Missing { .. }) => Ok(Vec::new()),
            own => share::uploads(own?, limit),
        })
        .await
    }

    /// Removes a file from the uploads.
    ///
    /// # Errors
    /// When the name is invalid, does not exist, or is not a regular file.
    pub async fn remove_upload(&self, name: &str) -> Result<(), SandboxError> {
        blocking(&self.0, name, |files, name| {
            let path = share::upload_path(name)?;
            share::remove(files.existing(&path)?, name)
        })
        .await
    }

    /// Rewrites a text file of the outputs if its SHA-256 still matches.
    ///
    /// # Errors
    /// When the path is outside of the outputs, missing, not a regular file, contains a symlink, or cannot be written.
    pub async fn edit_output(&self, path: &str, edit: OutputEdit) -> Result<OutputEdited, SandboxError> {
        blocking(&self.0, path, move |files, path| output_edit::edit(files, path, &edit)).await
    }

    /// Stores a text or an image as a new file in a folder below the outputs, and returns the agent's path. If the
    /// folder then has too many files, the oldest are removed.
    ///
    /// # Errors
    /// When the folder or the name is invalid or in use, the contents are too large, or the disk is almost full.
    pub async fn keep_result(
        &self,
        folder: &str,
        name: &str,
        bytes: Vec<u8>,
    ) -> Result<String, SandboxError> {
        let name = name.to_owned();
        blocking(&self.0, folder, move |files, folder| results::keep(files, folder, &name, &bytes)).await
    }

    /// Removes a file stored by [`ThreadFiles::keep_result`].
    ///
    /// # Errors
    /// When the path is invalid, does not exist, or is not a regular file.
    pub async fn remove_result(&self, path: &str) -> Result<(), SandboxError> {
        blocking(&self.0, path, results::remove).await
    }

    /// Moves a file on this machine to the uploads, under a safe and unused name.
    ///
    /// # Errors
    /// When the file cannot be moved.
    pub async fn adopt(&self, from: &Path, name: &str) -> Result<SharedFile, SandboxError> {
        let from = from.to_owned();
        blocking(&self.0, name, move |files, name| files.adopt(&from, name)).await
    }
}

/// Runs blocking file operations.
pub(crate) async fn blocking<T: Send + 'static>(
    files: &Arc<Files>,
    path: &str,
    work: impl FnOnce(&Files, &str) -> Result<T, SandboxError> + Send + 'static,
) -> Result<T, SandboxError> {
    let (files, owned) = (files.clone(), path.to_owned());
    let done = pudu_kit::blocking::run(move || work(&files, &owned)).await;
    done.unwrap_or_else(|_| Err(SandboxError::Refused(format!("{path}: the file operation panicked"))))
}

/// Converts an ID, which an API client may have chosen, to a safe file name.
pub(crate) fn safe(id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name: String = id.chars().take(64).map(|c| if plain(c) { c } else { '-' }).collect();
    if name == id && !id.is_empty() { name } else { format!("{name}.{:016x}", fingerprint(id)) }
}

/// FNV-1a, which distinguishes IDs with the same safe characters and is stable across builds.
fn fingerprint(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns whether a folder, which may be missing, contains anything but folders.
fn holds_files(folder: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if !entry.file_type()?.is_dir() || holds_files(&entry.path())? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn visited(folders: &Folders, user: &UserId) -> Vec<(String, String)> {
        let mut all = Vec::new();
        let mut visit = |path: &Path, mut file: cap_std::fs::File| {
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            all.push((path.display().to_string(), text));
            Ok(())
        };
        folders.visit_user(user, &mut visit).unwrap();
        all.sort();
        all
    }

    #[test]
    fn a_users_files_are_visited_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let folders = Folders::new(dir.path().to_owned(), None);
        let ada = UserId::from_raw("ada").unwrap();
        assert_eq!(visited(&folders, &ada), []);
        let own = folders.user(&ada).join("threads/t/user-data");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("note"), "hers").unwrap();
        fs::write(dir.path().join("secret"), "not hers").unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), own.join("file")).unwrap();
        std::os::unix::fs::symlink(dir.path(), own.join("folder")).unwrap();
        assert_eq!(visited(&folders, &ada), [("threads/t/user-data/note".to_owned(), "hers".to_owned())]);
        folders.remove_user(&ada).unwrap();
        assert!(!folders.user(&ada).exists() && dir.path().join("secret").exists());
        folders.remove_user(&ada).unwrap();
    }

    #[test]
    fn only_the_threads_of_the_local_user_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let folders = Folders::new(dir.path().to_owned(), None);
        let own = folders.user(&UserId::local());
        for folder in ["threads/t", "skills/custom"] {
            fs::create_dir_all(own.join(folder)).unwrap();
        }
        folders.remove_user(&UserId::local()).unwrap();
        assert!(!own.join("threads").exists() && own.join("skills/custom").exists());
    }
}
