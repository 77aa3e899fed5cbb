//! A thread's files, by the agent's paths. Everything goes through one directory handle; no path is ever
//! resolved from the machine's root.

use crate::ROOT;
use cap_std::{
    ambient_authority,
    fs::{Dir, DirBuilder, DirBuilderExt, OpenOptions},
};
use pudu_base::{Entry, SandboxError, SharedFile};
use std::{
    io::{self, Read, Write},
    path::{Component, Path, PathBuf},
    sync::OnceLock,
};

/// The folders that every thread has.
const FOLDERS: [&str; 3] = ["workspace", UPLOADS, "outputs"];
/// Where files from people go.
const UPLOADS: &str = "uploads";
/// The longest file name, in bytes; leaves room for a number under the 255 that file systems take.
const LONGEST_NAME: usize = 200;
/// Folders that nobody wants listed.
const SKIPPED: [&str; 6] = [".git", "node_modules", "__pycache__", ".venv", "target", ".cache"];

/// The files of one thread.
pub(crate) struct Files {
    folder: PathBuf,
    root: OnceLock<Dir>,
}

impl Files {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, root: OnceLock::new() }
    }

    pub(crate) fn read(&self, path: &str, limit: u64) -> Result<Vec<u8>, SandboxError> {
        let inner = inner(path)?;
        let file = self.root()?.open(&inner).map_err(|error| failed(path, error))?;
        let meta = file.metadata().map_err(|error| failed(path, error))?;
        if !meta.is_file() {
            return Err(SandboxError::Refused(format!("{path} is not a file")));
        }
        let mut bytes = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| failed(path, error))?;
        if bytes.len() as u64 > limit {
            let size = meta.len().max(bytes.len() as u64);
            return Err(SandboxError::TooLarge { path: path.to_owned(), size, limit });
        }
        Ok(bytes)
    }

    pub(crate) fn write(&self, path: &str, bytes: &[u8], append: bool) -> Result<(), SandboxError> {
        let inner = inner(path)?;
        let root = self.root()?;
        if let Some(parent) = inner.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            make_folder(root, parent).map_err(|error| failed(path, error))?;
        }
        let written = if append {
            let mut options = OpenOptions::new();
            root.open_with(&inner, options.create(true).append(true))
                .and_then(|mut file| file.write_all(bytes))
        } else {
            replace(root, &inner, bytes)
        };
        written.map_err(|error| failed(path, error))
    }

    pub(crate) fn list(&self, path: &str, depth: usize, limit: usize) -> Result<Vec<Entry>, SandboxError> {
        let inner = inner(path)?;
        let root = self.root()?;
        let inner = if inner.as_os_str().is_empty() { Path::new(".") } else { &inner };
        let dir = root.open_dir(inner).map_err(|error| failed(path, error))?;
        let mut entries = Vec::new();
        let shown = path.trim_end_matches('/');
        walk(&dir, shown, depth, limit, &mut entries).map_err(|error| failed(path, error))?;
        entries.sort();
        Ok(entries)
    }

    /// Returns where a plain file is on this machine.
    pub(crate) fn locate(&self, path: &str) -> Result<PathBuf, SandboxError> {
        let inner = inner(path)?;
        let root = self.root()?;
        let real = root.canonicalize(&inner).map_err(|error| failed(path, error))?;
        let meta = root.symlink_metadata(&real).map_err(|error| failed(path, error))?;
        if !meta.is_file() {
            return Err(SandboxError::Refused(format!("{path} is not a file")));
        }
        Ok(self.folder.join(real))
    }

    /// Moves a file of this machine in among the uploads.
    pub(crate) fn adopt(&self, from: &Path, name: &str) -> Result<SharedFile, SandboxError> {
        let adopt = || {
            let (parent, file) = (from.parent(), from.file_name());
            let (parent, file) = parent.zip(file).ok_or(io::ErrorKind::InvalidInput)?;
            let outside = Dir::open_ambient_dir(parent, ambient_authority())?;
            let uploads = self.root().map_err(io::Error::other)?.open_dir(UPLOADS)?;
            let name = free(&uploads, &safe(name));
            outside.rename(file, &uploads, &name)?;
            let size = uploads.symlink_metadata(&name)?.len();
            Ok(SharedFile { path: format!("{ROOT}/{UPLOADS}/{name}"), name, size })
        };
        adopt().map_err(|error| failed(name, error))
    }

    pub(crate) fn workspace(&self) -> Result<PathBuf, SandboxError> {
        self.root()?;
        Ok(self.folder.join(FOLDERS[0]))
    }

    /// Opens the thread's folder, and makes it if it is not there.
    fn root(&self) -> Result<&Dir, SandboxError> {
        if let Some(root) = self.root.get() {
            return Ok(root);
        }
        let open = || {
            std::fs::create_dir_all(&self.folder)?;
            let root = Dir::open_ambient_dir(&self.folder, ambient_authority())?;
            for folder in FOLDERS {
                let mut builder = DirBuilder::new();
                builder.recursive(true).mode(0o700);
                root.create_dir_with(folder, &builder)?;
            }
            Ok(root)
        };
        let root = open().map_err(|error| failed(ROOT, error))?;
        Ok(self.root.get_or_init(|| root))
    }
}

/// Makes a file name of what a sender called a file: no path, nothing that a shell or a person stumbles
/// over, no hidden file, not too long.
fn safe(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = |c: char| if c.is_control() || "<>:\"|?*".contains(c) { '_' } else { c };
    let name: String = name.chars().map(plain).collect();
    let name = name.trim().trim_start_matches('.');
    let (stem, ending) = name.rsplit_once('.').filter(|(_, end)| end.len() <= 16).unwrap_or((name, ""));
    let mut kept = String::new();
    for c in stem.chars() {
        if kept.len() + c.len_utf8() + ending.len() + 1 > LONGEST_NAME {
            break;
        }
        kept.push(c);
    }
    let kept = if kept.trim().is_empty() { "file" } else { kept.trim() };
    if ending.is_empty() { kept.to_owned() } else { format!("{kept}.{ending}") }
}

/// Returns the name, or it with the first number that nothing has yet.
fn free(dir: &Dir, name: &str) -> String {
    let (stem, ending) =
        name.rsplit_once('.').map_or((name, String::new()), |(stem, end)| (stem, format!(".{end}")));
    let numbered = (1..).map(|number| format!("{stem}_{number}{ending}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| dir.symlink_metadata(name).is_err()).unwrap_or_else(|| name.to_owned())
}

/// Turns an agent's path into one below the root. What lies outside is refused by its words already;
/// what symlinks would lead outside is refused by the handle.
fn inner(path: &str) -> Result<PathBuf, SandboxError> {
    let outside = || SandboxError::Outside { path: path.to_owned() };
    let below = Path::new(path).strip_prefix(ROOT).map_err(|_| outside())?;
    let plain = below.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if plain && !path.contains('\0') { Ok(below.to_owned()) } else { Err(outside()) }
}

fn make_folder(root: &Dir, folder: &Path) -> io::Result<()> {
    match root.open_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => root.create_dir_all(folder),
        opened => opened.map(drop),
    }
}

/// Writes beside the file and renames, so that no reader sees half of it.
fn replace(root: &Dir, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = root.write(&beside, bytes).and_then(|()| root.rename(&beside, root, path));
    if written.is_err() {
        // The error that matters is the first one.
        root.remove_file(&beside).ok();
    }
    written
}

fn walk(dir: &Dir, path: &str, depth: usize, limit: usize, entries: &mut Vec<Entry>) -> io::Result<()> {
    for entry in dir.entries()? {
        if entries.len() >= limit {
            break;
        }
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type()?;
        let below = format!("{path}/{name}");
        let folder = kind.is_dir();
        let size = if kind.is_file() { entry.metadata()?.len() } else { 0 };
        entries.push(Entry { path: below.clone(), folder, size });
        if folder && depth > 1 && !SKIPPED.contains(&name.as_str()) {
            walk(&entry.open_dir()?, &below, depth - 1, limit, entries)?;
        }
    }
    Ok(())
}

fn failed(path: &str, error: io::Error) -> SandboxError {
    let path = path.to_owned();
    match error.kind() {
        io::ErrorKind::NotFound => SandboxError::Missing { path },
        // What the handle answers when a symlink leads out.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => SandboxError::Outside { path },
        _ if error.raw_os_error() == Some(rustix::io::Errno::XDEV.raw_os_error()) => {
            SandboxError::Outside { path }
        }
        _ => SandboxError::Io { path, source: error },
    }
}
