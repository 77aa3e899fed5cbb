//! A thread's files, addressed by the agent's paths. Each mount is accessed through its own directory handle: no path
//! is resolved from the machine's root, and opening a file that a command created never blocks. The daemon opens the
//! handles. Operations below them run with the permissions of the files' owner ([`rights`]), which the kernel enforces.

use crate::{
    failure::{failed, no_file},
    monitor,
    mounts::{self, Mount, ROOT, THREAD_FOLDERS, UPLOADS},
    names,
    rights::{self, Owner},
    share,
};
use cap_std::{
    ambient_authority,
    fs::{Dir, DirBuilder, DirBuilderExt, File, MetadataExt, OpenOptions, OpenOptionsExt, PermissionsExt},
};
use pudu_base::{DirEntry, SandboxError, SharedFile};
use rustix::fs::{AtFlags, Gid, OFlags, Uid};
use std::{
    io::{self, Read, Write},
    os::fd::AsFd,
    path::{Component, Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// Folders that are hidden in lists.
pub(crate) const SKIPPED: [&str; 7] =
    [".git", "node_modules", "__pycache__", ".venv", "target", ".cache", ".tool-results"];
/// Maximum total size of the paths in a list, in bytes.
const MAX_LISTED_BYTES: usize = 16 << 20;
/// Number of the next temporary file, which gives concurrent writes different names.
static PARTS: AtomicU64 = AtomicU64::new(0);

/// The files of one thread. The first mount is the thread's own folder, which is created on first use.
pub(crate) struct Files {
    mounts: Vec<Mount>,
    handles: Vec<OnceLock<Dir>>,
    owner: Owner,
}

impl Files {
    pub(crate) fn new(folder: PathBuf, more: Vec<Mount>, owner: Owner) -> Self {
        let own = Mount { host: folder, agent: ROOT.to_owned(), read_only: false };
        let mounts: Vec<Mount> = std::iter::once(own).chain(more).collect();
        let handles = mounts.iter().map(|_| OnceLock::new()).collect();
        Self { mounts, handles, owner }
    }

    /// Returns the mounts, and creates the thread's folder if needed.
    pub(crate) fn mounts(&self) -> Result<&[Mount], SandboxError> {
        self.own()?;
        Ok(&self.mounts)
    }

    pub(crate) fn read(&self, path: &str, limit: u64) -> Result<Vec<u8>, SandboxError> {
        let (file, size) = self.open(path)?;
        // A file that is too large is not read.
        if size > limit {
            return Err(SandboxError::TooLarge { path: path.to_owned(), size, limit });
        }
        let mut bytes = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| failed(path, error))?;
        if bytes.len() as u64 > limit {
            let size = size.max(bytes.len() as u64);
            return Err(SandboxError::TooLarge { path: path.to_owned(), size, limit });
        }
        Ok(bytes)
    }

    /// Opens a regular file and returns its size.
    pub(crate) fn open(&self, path: &str) -> Result<(File, u64), SandboxError> {
        let (dir, inner, _) = self.find(path)?;
        let open = || {
            let mut options = OpenOptions::new();
            options.read(true).custom_flags(without_waiting());
            let file = dir.open_with(&inner, &options)?;
            let meta = file.metadata()?;
            Ok(meta.is_file().then_some((file, meta.len())))
        };
        self.as_owner(path, open)?.ok_or_else(|| no_file(path))
    }

    pub(crate) fn write(&self, path: &str, bytes: &[u8], append: bool) -> Result<(), SandboxError> {
        let (dir, inner, mount) = self.find(path)?;
        if mount.read_only {
            return Err(SandboxError::ReadOnly { path: path.to_owned() });
        }
        if monitor::almost_full(&mount.host) {
            return Err(SandboxError::Refused("the disk of this machine is almost full".to_owned()));
        }
        self.as_owner(path, || {
            if let Some(parent) = inner.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                make_folder(dir, parent)?;
            }
            if append {
                open_to_write(dir, &inner, true)?.write_all(bytes)
            } else {
                replace(dir, &inner, bytes)
            }
        })
    }

    pub(crate) fn list(&self, path: &str, depth: usize, limit: usize) -> Result<Vec<DirEntry>, SandboxError> {
        let (dir, inner, _) = match self.find(path) {
            Err(SandboxError::Outside { .. }) if mounts::leads_to_some(&self.mounts, path) => {
                return Ok(self.list_mounts(path, depth, limit));
            }
            found => found?,
        };
        let inner = if inner.as_os_str().is_empty() { Path::new(".") } else { &inner };
        let mut listed = Listed { entries: Vec::new(), limit, bytes: 0 };
        let shown = path.trim_end_matches('/');
        self.as_owner(path, || listed.walk(&dir.open_dir(inner)?, shown, depth))?;
        if listed.bytes > MAX_LISTED_BYTES {
            let text = format!("the list of {path} is too long; choose a folder below it");
            return Err(SandboxError::Refused(text));
        }
        listed.entries.sort();
        Ok(listed.entries)
    }

    /// Runs file operations with the owner's permissions. The handle must already be open, because only the daemon can
    /// open it.
    pub(crate) fn as_owner<T: Send>(
        &self,
        path: &str,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> Result<T, SandboxError> {
        rights::with(self.owner, work).flatten().map_err(|error| failed(path, error))
    }

    /// Lists a folder that exists only because it contains mounts.
    fn list_mounts(&self, path: &str, depth: usize, limit: usize) -> Vec<DirEntry> {
        let mut entries = Vec::new();
        for (at, below) in mounts::below(&self.mounts, path) {
            if below > depth {
                continue;
            }
            entries.push(DirEntry { path: at.clone(), folder: true, size: 0 });
            // A mount that has been removed since then is treated as empty.
            if below < depth && self.mounts.iter().any(|mount| mount.agent == at) {
                let room = limit.saturating_sub(entries.len());
                entries.extend(self.list(&at, depth - below, room).unwrap_or_default());
            }
        }
        entries.sort();
        entries.truncate(limit);
        entries
    }

    /// Copies a regular file of the thread, of at most `most` bytes, to a path on this machine. The copy takes no space
    /// if the file system can share data.
    pub(crate) fn keep(&self, path: &str, kept: &Path, most: u64) -> Result<(), SandboxError> {
        let (file, size) = share::open(self.own()?, path)?;
        let too_large = |size| SandboxError::TooLarge { path: path.to_owned(), size, limit: most };
        if size > most {
            return Err(too_large(size));
        }
        let folder = kept.parent().unwrap_or(kept);
        if monitor::almost_full_with(folder, size) {
            return Err(SandboxError::Refused("the disk of this machine is almost full".to_owned()));
        }
        let copied = copy(file, kept, most.saturating_add(1)).map_err(|error| failed(path, error));
        // The file may have grown since its size was determined.
        let kept_well = copied.and_then(|size| if size > most { Err(too_large(size)) } else { Ok(()) });
        if kept_well.is_err() {
            // The first error is reported.
            std::fs::remove_file(kept).ok();
        }
        kept_well
    }

    /// Moves a file on this machine to the uploads.
    pub(crate) fn adopt(&self, from: &Path, name: &str) -> Result<SharedFile, SandboxError> {
        let adopt = || {
            let (parent, file) = (from.parent(), from.file_name());
            let (parent, file) = parent.zip(file).ok_or(io::ErrorKind::InvalidInput)?;
            let outside = Dir::open_ambient_dir(parent, ambient_authority())?;
            let uploads = self.own().map_err(io::Error::other)?.open_dir(UPLOADS)?;
            let name = names::free(&uploads, &names::safe(name));
            outside.rename(file, &uploads, &name)?;
            self.give(&uploads, name.as_ref())?;
            let size = uploads.symlink_metadata(&name)?.len();
            Ok(SharedFile { path: format!("{ROOT}/{UPLOADS}/{name}"), name, size, reading: None })
        };
        adopt().map_err(|error| failed(name, error))
    }

    /// Returns the thread's workspace on this machine.
    pub(crate) fn workspace(&self) -> Result<PathBuf, SandboxError> {
        let mounts = self.mounts()?;
        Ok(mounts.first().map_or_else(PathBuf::new, |own| own.host.join(THREAD_FOLDERS[0])))
    }

    /// Resolves an agent's path to a handle and a relative path. Refuses a path outside of all mounts; the handle
    /// refuses symlinks that lead outside.
    fn find(&self, path: &str) -> Result<(&Dir, PathBuf, &Mount), SandboxError> {
        let outside = || SandboxError::Outside { path: path.to_owned() };
        let parts = |part| matches!(part, Component::RootDir | Component::Normal(_) | Component::CurDir);
        if !Path::new(path).components().all(parts) || path.contains('\0') {
            return Err(outside());
        }
        let (mount, inner) = mounts::find(&self.mounts, path).ok_or_else(outside)?;
        if mount.agent == ROOT {
            return Ok((self.own()?, inner, mount));
        }
        let at = self.mounts.iter().position(|other| other == mount).unwrap_or_default();
        let handle = self.handles.get(at).ok_or_else(outside)?;
        if let Some(dir) = handle.get() {
            return Ok((dir, inner, mount));
        }
        let dir =
            Dir::open_ambient_dir(&mount.host, ambient_authority()).map_err(|error| failed(path, error))?;
        Ok((handle.get_or_init(|| dir), inner, mount))
    }

    /// Opens the thread's folder for reading. A missing folder is not created.
    pub(crate) fn existing(&self, path: &str) -> Result<&Dir, SandboxError> {
        match self.mounts.first().map(|own| own.host.symlink_metadata()) {
            Some(Err(error)) => Err(failed(path, error)),
            _ => self.own(),
        }
    }

    /// Opens the thread's folder. Creates it if it is missing.
    pub(crate) fn own(&self) -> Result<&Dir, SandboxError> {
        let (Some(own), Some(handle)) = (self.mounts.first(), self.handles.first()) else {
            return Err(SandboxError::Missing { path: ROOT.to_owned() });
        };
        if let Some(root) = handle.get() {
            return Ok(root);
        }
        let open = || {
            std::fs::create_dir_all(&own.host)?;
            let root = Dir::open_ambient_dir(&own.host, ambient_authority())?;
            for folder in THREAD_FOLDERS {
                let mut builder = DirBuilder::new();
                builder.mode(0o700);
                match root.create_dir_with(folder, &builder) {
                    // A command may have created something else there.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    made => made?,
                }
            }
            self.settle(&root)?;
            Ok(root)
        };
        let root = open().map_err(|error| failed(ROOT, error))?;
        Ok(handle.get_or_init(|| root))
    }

    /// Changes the owner of a folder and its contents if necessary: the folder may be new, or date from when commands
    /// still ran as the daemon's user.
    fn settle(&self, root: &Dir) -> io::Result<()> {
        let Some((user, group)) = self.owner else { return Ok(()) };
        if root.dir_metadata()?.uid() != user {
            settle_all(root, (user, group))?;
        }
        for folder in THREAD_FOLDERS {
            self.give(root, folder.as_ref())?;
        }
        Ok(())
    }

    /// Changes the owner of a folder's entry.
    fn give(&self, dir: &Dir, name: &Path) -> io::Result<()> {
        self.owner.map_or(Ok(()), |owner| give(dir, name, owner))
    }

    /// Changes the owner of an open file.
    pub(crate) fn give_open(&self, what: impl AsFd) -> io::Result<()> {
        self.owner.map_or(Ok(()), |owner| give_open(what, owner))
    }
}

/// Creates a folder and its parents.
fn make_folder(root: &Dir, folder: &Path) -> io::Result<()> {
    match root.open_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => root.create_dir_all(folder),
        opened => opened.map(drop),
    }
}

/// Opens an existing regular file for rewriting, or an existing or new one for appending.
fn open_to_write(dir: &Dir, path: &Path, append: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).append(append).create(append).custom_flags(without_waiting());
    let file = dir.open_with(path, &options)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
}

/// Writes a temporary file and renames it, so that readers never see a partial file. If that would change the file's
/// owner, or if the folder is not writable, the file is overwritten instead.
fn replace(dir: &Dir, path: &Path, bytes: &[u8]) -> io::Result<()> {
    path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let number = PARTS.fetch_add(1, Ordering::Relaxed);
    let beside = path.with_file_name(format!(".{}.{number}.part", std::process::id()));
    let old = dir.symlink_metadata(path).ok().filter(cap_std::fs::Metadata::is_file);
    let write = || {
        let mut options = OpenOptions::new();
        let mut file = match dir.open_with(&beside, options.write(true).create_new(true)) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && old.is_some() => {
                return Ok(false);
            }
            file => file?,
        };
        if let Some(old) = &old {
            let new = file.metadata()?;
            if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
                return Ok(false);
            }
            // A rewritten script stays executable.
            let mode = old.permissions().mode() & 0o777;
            file.set_permissions(PermissionsExt::from_mode(mode))?;
        }
        file.write_all(bytes)?;
        dir.rename(&beside, dir, path)?;
        Ok(true)
    };
    let written: io::Result<bool> = write();
    if !matches!(written, Ok(true)) {
        // The first error is reported.
        dir.remove_file(&beside).ok();
    }
    if written? {
        return Ok(());
    }
    let mut file = open_to_write(dir, path, false)?;
    file.set_len(0)?;
    file.write_all(bytes)
}

/// Copies at most `most` bytes of a file to a new one that only its owner can access. The kernel copies the data, or
/// shares it if possible.
fn copy(from: std::fs::File, to: &Path, most: u64) -> io::Result<u64> {
    let mut options = std::fs::File::options();
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut copy = options.write(true).create_new(true).open(to)?;
    io::copy(&mut from.take(most), &mut copy)
}

/// Returns the flags for opening a file without blocking, because a command may have replaced it with a pipe or a
/// device.
fn without_waiting() -> i32 {
    OFlags::NONBLOCK.bits().cast_signed()
}

/// Changes the owner of an open file or folder, even if it was opened with `O_PATH`.
fn give_open(what: impl AsFd, (user, group): (u32, u32)) -> io::Result<()> {
    let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
    Ok(rustix::fs::chownat(what, "", user, group, AtFlags::EMPTY_PATH)?)
}

/// Changes the owner of an entry in a folder. If the entry is a link, changes the link itself.
fn give(dir: &Dir, name: &Path, (user, group): (u32, u32)) -> io::Result<()> {
    let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
    Ok(rustix::fs::chownat(dir, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Changes the owner of a folder and of all its contents on the same file system. The folder itself comes last, which
/// marks the operation as complete.
fn settle_all(root: &Dir, owner: (u32, u32)) -> io::Result<()> {
    let own = root.dir_metadata()?.dev();
    let mut open = vec![root.try_clone()?];
    while let Some(dir) = open.pop() {
        for entry in dir.entries()? {
            let entry = entry?;
            // The operator's mounts keep their owner.
            if entry.metadata()?.dev() != own {
                continue;
            }
            give(&dir, entry.file_name().as_ref(), owner)?;
            if entry.file_type()?.is_dir() {
                open.push(entry.open_dir()?);
            }
        }
    }
    give_open(root, owner)
}

/// Entries found in folders.
struct Listed {
    entries: Vec<DirEntry>,
    /// Maximum number of entries.
    limit: usize,
    /// Total size of the entries' paths, in bytes.
    bytes: usize,
}

impl Listed {
    fn walk(&mut self, dir: &Dir, path: &str, depth: usize) -> io::Result<()> {
        for entry in dir.entries()? {
            if self.entries.len() >= self.limit || self.bytes > MAX_LISTED_BYTES {
                break;
            }
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type()?;
            let below = format!("{path}/{name}");
            let folder = kind.is_dir();
            // Only the name of an unreadable entry is known.
            let size = if kind.is_file() { entry.metadata().map_or(0, |meta| meta.len()) } else { 0 };
            self.bytes += below.len();
            self.entries.push(DirEntry { path: below.clone(), folder, size });
            if folder && depth > 1 && !SKIPPED.contains(&name.as_str()) {
                match entry.open_dir().and_then(|dir| self.walk(&dir, &below, depth - 1)) {
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                    walked => walked?,
                }
            }
        }
        Ok(())
    }
}
