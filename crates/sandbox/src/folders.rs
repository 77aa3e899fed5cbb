//! Folders of threads on this machine. Every provider that shows a thread its folder shares this: the daemon
//! puts files in and takes files out here, with every runner of commands.

use crate::{
    OutputEdit, OutputEdited, ROOT, Upload, discard, files::Files, monitor, output_edit, results,
    rights::Owner, share,
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

/// Folder for the changes of runs, beside those that the agent sees.
pub(crate) const CHANGES: &str = "changes";
/// Folders below a user's are visited no deeper.
const MAX_VISITED_DEPTH: usize = 64;

/// The folders of all threads.
#[derive(Clone, Debug)]
pub struct Folders {
    home: PathBuf,
    owner: Owner,
    /// Held by those who put files in, against those who remove them.
    uploads: Arc<RwLock<()>>,
}

impl Folders {
    /// Takes the home, and the owner of the files of threads if that is not the daemon's own user.
    #[must_use]
    pub fn new(home: PathBuf, owner: Option<(u32, u32)>) -> Self {
        // Sandboxes are made from another working folder than the daemon's.
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
    pub fn of(&self, folder: &ThreadFolder) -> ThreadFiles {
        ThreadFiles(Arc::new(Files::new(self.thread(folder).join("user-data"), Vec::new(), self.owner)))
    }

    /// Returns a thread's own folder on this machine. The agent sees folders below it.
    pub(crate) fn thread(&self, folder: &ThreadFolder) -> PathBuf {
        self.user(&folder.owner).join("threads").join(safe(folder.thread.as_str()))
    }

    /// Returns a user's own folder on this machine.
    #[must_use]
    pub fn user(&self, user: &UserId) -> PathBuf {
        self.home.join("users").join(user.as_str())
    }

    /// Returns how much of the disk the files of a thread take, in bytes; `None` where they cannot be counted: there are
    /// too many, in folders too deep, or one that cannot be read. It blocks.
    #[must_use]
    pub fn size(&self, folder: &ThreadFolder) -> Option<u64> {
        monitor::bytes(&self.thread(folder))
    }

    /// Visits the plain files in a user's own folder, each with its place there, in order. No link is followed, and nothing
    /// that a command does meanwhile leads out of the folder. It blocks.
    ///
    /// # Errors
    /// When a folder cannot be read, and what `visit` returns.
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

    /// Removes a user's folder with everything in it. Of the local user, whose folder has the data of the whole
    /// installation, only the threads go. It blocks.
    ///
    /// # Errors
    /// When it cannot be moved away, or not all be removed: [`Folders::remove_deleted`] tries that again.
    pub fn remove_user(&self, user: &UserId) -> io::Result<()> {
        let own = self.user(user);
        let folder = if *user == UserId::local() { own.join("threads") } else { own };
        self.discard(&folder)
    }

    /// Returns where in its user's own folder a file of a thread is, by the path that the agent knows.
    #[must_use]
    pub fn place(&self, folder: &ThreadFolder, path: &str) -> Option<PathBuf> {
        let below = Path::new(path).strip_prefix(ROOT).ok()?;
        Some(Path::new("threads").join(safe(folder.thread.as_str())).join("user-data").join(below))
    }

    /// Gives the files of a thread to another user. If that user has the thread's folder, an earlier call moved it, and
    /// the folders that came since are removed. It blocks.
    ///
    /// # Errors
    /// When the files cannot be moved, or both users have files of the thread.
    pub fn hand_over(&self, folder: &ThreadFolder, to: &UserId) -> io::Result<()> {
        let (from, target) = (self.thread(folder), ThreadFolder { owner: to.clone(), ..folder.clone() });
        let target = self.thread(&target);
        if target.exists() {
            return match holds_files(&from)? {
                true => {
                    Err(io::Error::new(io::ErrorKind::AlreadyExists, "both users have files of the thread"))
                }
                false => self.discard(&from),
            };
        }
        fs::create_dir_all(self.user(to).join("threads"))?;
        match fs::rename(from, target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            moved => moved,
        }
    }

    /// Removes all files of a thread: they are moved out of its way, so that a thread that begins under the same id has
    /// none, and then removed. It blocks.
    ///
    /// # Errors
    /// When they cannot be moved, or not all be removed: [`Folders::remove_deleted`] tries that again.
    pub fn remove(&self, folder: &ThreadFolder) -> io::Result<()> {
        self.discard(&self.thread(folder))
    }

    /// Moves a folder out of its way, and removes it there.
    fn discard(&self, folder: &Path) -> io::Result<()> {
        let deleted = self.deleted();
        fs::create_dir_all(&deleted)?;
        let moved = fs::rename(folder, deleted.join(MessageId::fresh().as_str()));
        match moved {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            moved => moved.and_then(|()| discard::all(&deleted)),
        }
    }

    /// Removes the files of a thread that stays, with the records of their changes, and leaves its folders where they
    /// are: a container may show them. It blocks.
    ///
    /// # Errors
    /// When not all can be removed.
    pub fn strip(&self, folder: &ThreadFolder) -> io::Result<()> {
        self.discard(&self.thread(folder).join(CHANGES))?;
        let own = match Dir::open_ambient_dir(self.thread(folder).join("user-data"), ambient_authority()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            own => own?,
        };
        fs::create_dir_all(self.deleted())?;
        let deleted = Dir::open_ambient_dir(self.deleted(), ambient_authority())?;
        for folder in own.entries()? {
            let folder = folder?;
            if folder.file_type()?.is_dir() {
                let dir = folder.open_dir()?;
                for entry in dir.entries()? {
                    dir.rename(entry?.file_name(), &deleted, MessageId::fresh().as_str())?;
                }
            } else {
                own.rename(folder.file_name(), &deleted, MessageId::fresh().as_str())?;
            }
        }
        discard::all(&self.deleted())
    }

    /// Returns a guard; while it lives no files of threads are removed under [`Folders::hold_uploads`].
    pub async fn keep_files(&self) -> OwnedRwLockReadGuard<()> {
        self.uploads.clone().read_owned().await
    }

    /// Returns a guard; while it lives no files are added under [`Folders::keep_files`].
    pub async fn hold_uploads(&self) -> OwnedRwLockWriteGuard<()> {
        self.uploads.clone().write_owned().await
    }

    /// Removes the remains of files that were removed. It blocks.
    ///
    /// # Errors
    /// When remains are left.
    pub fn remove_deleted(&self) -> io::Result<()> {
        discard::all(&self.deleted())
    }

    fn deleted(&self) -> PathBuf {
        self.user(&UserId::local()).join("deleted")
    }

    /// Returns the owner of the files of threads if that is not the daemon's own user.
    #[must_use]
    pub fn owner(&self) -> Option<(u32, u32)> {
        self.owner
    }
}

/// The files of one thread, for the daemon.
#[derive(Clone)]
pub struct ThreadFiles(pub(crate) Arc<Files>);

impl ThreadFiles {
    /// Keeps a copy of a plain file of the thread in a folder of the daemon's, under a name that nothing there has, for
    /// callers that take files by their path only: no command can change it or make that path lead elsewhere.
    /// Removing it again is the caller's business.
    ///
    /// # Errors
    /// When the path is outside, missing, a symlink or below one, or no plain file, when the file has more than `most`
    /// bytes, or when it cannot be kept.
    pub async fn keep(
        &self,
        path: &str,
        folder: &Path,
        name: &str,
        most: u64,
    ) -> Result<PathBuf, SandboxError> {
        let kept = folder.join(name);
        let to = kept.clone();
        blocking(&self.0, path, move |files, path| files.keep(path, &to, most)).await?;
        Ok(kept)
    }

    /// Opens a plain file of the thread, and says how large it is. No symlink is followed, and nothing that a
    /// command does meanwhile makes it another file.
    ///
    /// # Errors
    /// When the path is outside, missing, a symlink or below one, or no plain file.
    pub async fn open(&self, path: &str) -> Result<(File, u64), SandboxError> {
        blocking(&self.0, path, |files, path| {
            share::inner(path)?;
            share::open(files.existing(path)?, path)
        })
        .await
    }

    /// Lists the plain files among the uploads, by name, `limit` at most.
    ///
    /// # Errors
    /// When they cannot be read.
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
    /// When the name is no valid one, no file has it, or it names no plain file.
    pub async fn remove_upload(&self, name: &str) -> Result<(), SandboxError> {
        blocking(&self.0, name, |files, name| {
            let path = share::upload_path(name)?;
            share::remove(files.existing(&path)?, name)
        })
        .await
    }

    /// Rewrites a text file of the outputs, if it is still the one with this SHA-256.
    ///
    /// # Errors
    /// When the path is not one of the outputs, missing, a symlink or below one, no plain file, or cannot be written.
    pub async fn edit_output(&self, path: &str, edit: OutputEdit) -> Result<OutputEdited, SandboxError> {
        blocking(&self.0, path, move |files, path| output_edit::edit(files, path, &edit)).await
    }

    /// Keeps a text as a new file in a folder below the outputs, and returns its path as the agent knows it. Of many
    /// files in that folder the oldest ones are removed.
    ///
    /// # Errors
    /// When folder or name lead elsewhere, something is in the way, the text is too large, or the disk almost full.
    pub async fn keep_result(
        &self,
        folder: &str,
        name: &str,
        bytes: Vec<u8>,
    ) -> Result<String, SandboxError> {
        let name = name.to_owned();
        blocking(&self.0, folder, move |files, folder| results::keep(files, folder, &name, &bytes)).await
    }

    /// Removes a file that [`ThreadFiles::keep_result`] kept.
    ///
    /// # Errors
    /// When the path leads elsewhere, nothing has it, or it names no plain file.
    pub async fn remove_result(&self, path: &str) -> Result<(), SandboxError> {
        blocking(&self.0, path, results::remove).await
    }

    /// Moves a file of this machine in among the uploads, under a safe name that nothing has yet.
    ///
    /// # Errors
    /// When it cannot be moved.
    pub async fn adopt(&self, from: &Path, name: &str) -> Result<SharedFile, SandboxError> {
        let from = from.to_owned();
        blocking(&self.0, name, move |files, name| files.adopt(&from, name)).await
    }
}

/// Runs file work where it may block.
pub(crate) async fn blocking<T: Send + 'static>(
    files: &Arc<Files>,
    path: &str,
    work: impl FnOnce(&Files, &str) -> Result<T, SandboxError> + Send + 'static,
) -> Result<T, SandboxError> {
    let (files, owned) = (files.clone(), path.to_owned());
    let done = tokio::task::spawn_blocking(move || work(&files, &owned)).await;
    done.unwrap_or_else(|_| Err(SandboxError::Refused(format!("{path}: the file work broke down"))))
}

/// Makes a folder's name of a thread's id, which an API client may have chosen.
pub(crate) fn safe(id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name: String = id.chars().take(64).map(|c| if plain(c) { c } else { '-' }).collect();
    if name == id && !id.is_empty() { name } else { format!("{name}.{:016x}", fingerprint(id)) }
}

/// FNV-1a: distinguishes ids that look alike once made safe; the same in every build.
fn fingerprint(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns whether there is anything but folders in a folder, which need not be there.
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
    fn a_user_has_their_own_files_and_no_link_adds_any() {
        let dir = tempfile::tempdir().unwrap();
        let folders = Folders::new(dir.path().to_owned(), None);
        let ada = UserId::of("ada").unwrap();
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
    fn of_the_local_user_only_the_threads_go() {
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
