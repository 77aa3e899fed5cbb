//! A snapshot of the workspace and the outputs: the files with their versions, and the texts of small ones. A command
//! may change anything concurrently, so no folder or file is opened through a link.

use super::{MAX_COMPARED_BYTES, MAX_SCANNED_FILES};
use crate::{
    ROOT,
    files::{Files, SKIPPED},
    mounts::{OUTPUTS, WORKSPACE},
    results::enter,
};
use cap_std::fs::{Dir, Metadata, MetadataExt, OpenOptions, OpenOptionsExt};
use pudu_base::{SandboxError, digest};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Read},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

/// Folders of version control, caches and builds, in addition to those hidden in all lists.
const NO_WORK: [&str; 17] = [
    ".hg",
    ".svn",
    ".jj",
    ".mcp",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".nox",
    ".gradle",
    ".next",
    ".nuxt",
    ".parcel-cache",
    ".turbo",
    "build",
    "dist",
    "venv",
];
/// Maximum depth of folders.
const MAX_DEPTH: usize = 32;
/// Maximum number of examined folder entries, including skipped ones.
const MAX_ENTRIES: usize = 20_000;
/// Age in seconds up to which a file may have changed again without a new timestamp.
const FRESH: i64 = 2;

/// The files at one point in time.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileSnapshot {
    /// Start time of the scan, in seconds since 1970.
    pub(super) at: i64,
    /// Files and symlinks, by path.
    pub(super) files: BTreeMap<PathBuf, FileEntry>,
    /// The last scanned path; `None` if the scan is complete.
    pub(super) end: Option<PathBuf>,
    /// Folders that could not be read.
    #[serde(default)]
    pub(super) closed: BTreeSet<PathBuf>,
}

/// A file at one point in time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileEntry {
    /// Size, seconds and nanoseconds of the modification time, and inode.
    pub(super) version: (u64, i64, i64, u64),
    /// Target of a symlink.
    pub(super) leads_to: Option<String>,
    pub(super) sha256: Option<String>,
    /// The text, if there is room for it.
    pub(super) text: Option<String>,
    pub(super) binary: bool,
}

/// Scans the files. Unchanged files of an earlier snapshot are not read again. `text_bytes` is the maximum total size
/// of the texts.
pub(super) fn scan(
    files: &Files,
    skipped: &str,
    earlier: Option<&FileSnapshot>,
    text_bytes: usize,
) -> Result<FileSnapshot, SandboxError> {
    let own = match files.existing(ROOT) {
        Err(SandboxError::Missing { .. }) => return Ok(FileSnapshot::default()),
        own => own?,
    };
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX);
    files.as_owner(ROOT, || {
        let snapshot = FileSnapshot { at, ..FileSnapshot::default() };
        let mut scan = Scan { snapshot, skipped, earlier, room: text_bytes, entries: 0 };
        for root in [OUTPUTS, WORKSPACE] {
            scan.enter(own, root, &Path::new(ROOT).join(root), 0)?;
        }
        Ok(scan.snapshot)
    })
}

/// Words that suggest a secret anywhere in a file name.
const SECRET_WORDS: &[&str] = &[
    "token",
    "secret",
    "credential",
    "password",
    "passwd",
    "kubeconfig",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "service-account",
    "service_account",
    "serviceaccount",
];
/// Suffixes of file names that suggest a secret: keys, key stores and tools' credentials.
const SECRET_ENDS: &[&str] = &[
    ".key",
    ".pem",
    ".p8",
    ".p12",
    ".pfx",
    ".ppk",
    ".jks",
    ".keystore",
    ".kdbx",
    ".gpg",
    ".ovpn",
    ".tfstate",
    ".netrc",
    "_netrc",
    ".pgpass",
    "pgpass.conf",
    ".my.cnf",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".htpasswd",
    ".dockercfg",
    ".s3cfg",
    ".boto",
];
/// Folders in which tools store secrets under any file name.
const SECRET_FOLDERS: &[&str] =
    &[".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".gcloud", "gcloud"];

/// Returns whether the name of a file, or of a parent folder, suggests a secret.
pub(super) fn is_sensitive(path: &Path) -> bool {
    let below = path.strip_prefix(ROOT).unwrap_or(path);
    below.iter().skip(1).any(|part| {
        let name = part.to_string_lossy().to_lowercase();
        name.starts_with(".env")
            || SECRET_FOLDERS.contains(&name.as_str())
            || SECRET_WORDS.iter().any(|word| name.contains(word))
            || SECRET_ENDS.iter().any(|end| name.ends_with(end))
    })
}

struct Scan<'a> {
    snapshot: FileSnapshot,
    /// The daemon's own folder below the outputs.
    skipped: &'a str,
    earlier: Option<&'a FileSnapshot>,
    /// Remaining space for texts, in bytes.
    room: usize,
    entries: usize,
}

impl Scan<'_> {
    /// Scans a folder. A command may have made it unreadable or replaced it.
    fn enter(&mut self, above: &Dir, name: &str, path: &Path, depth: usize) -> io::Result<()> {
        match enter(above, name).and_then(|dir| self.folder(&dir, path, depth)) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.snapshot.closed.insert(path.to_owned());
                Ok(())
            }
            Err(error) if is_no_folder(&error) => Ok(()),
            looked => looked,
        }
    }

    fn folder(&mut self, dir: &Dir, path: &Path, depth: usize) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in dir.entries()? {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                self.snapshot.end = Some(path.to_owned());
                return Ok(());
            }
            entries.push(entry?);
        }
        // Sorted, so that all unscanned files come after the scanned ones.
        entries.sort_by_key(cap_std::fs::DirEntry::file_name);
        for entry in entries {
            // An entry that has been removed since is skipped.
            let Ok(meta) = entry.metadata() else { continue };
            let name = entry.file_name().to_string_lossy().into_owned();
            let below = path.join(&name);
            if meta.is_dir() && depth < MAX_DEPTH && !self.is_skipped(&below, &name) {
                self.enter(dir, &name, &below, depth + 1)?;
            } else if meta.is_file() || meta.is_symlink() {
                self.add(dir, &name, below, &meta);
            }
            if self.snapshot.end.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn is_skipped(&self, path: &Path, name: &str) -> bool {
        SKIPPED.contains(&name)
            || NO_WORK.contains(&name)
            || path == Path::new(ROOT).join(OUTPUTS).join(self.skipped)
    }

    fn add(&mut self, dir: &Dir, name: &str, path: PathBuf, meta: &Metadata) {
        if self.snapshot.files.len() >= MAX_SCANNED_FILES {
            self.snapshot.end = self.snapshot.files.keys().next_back().cloned();
            return;
        }
        let version = (meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ino());
        let entry = if meta.is_symlink() {
            let leads_to = dir.read_link_contents(name).unwrap_or_default();
            FileEntry {
                version,
                leads_to: Some(leads_to.to_string_lossy().into_owned()),
                ..FileEntry::default()
            }
        } else if meta.len() > MAX_COMPARED_BYTES || is_sensitive(&path) {
            FileEntry { version, ..FileEntry::default() }
        } else {
            self.known(&path, version).unwrap_or_else(|| self.read(dir, name, version))
        };
        self.snapshot.files.insert(path, entry);
    }

    /// Returns a file from the earlier snapshot if it is unchanged.
    fn known(&self, path: &Path, version: (u64, i64, i64, u64)) -> Option<FileEntry> {
        let earlier = self.earlier?;
        let known = earlier.files.get(path)?;
        (known.version == version && version.1 + FRESH < earlier.at).then(|| known.clone())
    }

    fn read(&mut self, dir: &Dir, name: &str, version: (u64, i64, i64, u64)) -> FileEntry {
        let entry = FileEntry { version, ..FileEntry::default() };
        // An unreadable file is listed without its contents.
        let Some(bytes) = bytes(dir, name).ok().filter(|bytes| bytes.len() as u64 <= MAX_COMPARED_BYTES)
        else {
            return entry;
        };
        let sha256 = Some(digest(&bytes));
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => {
                let left = self.room.checked_sub(text.len());
                self.room = left.unwrap_or(self.room);
                FileEntry { sha256, text: left.map(|_| text), ..entry }
            }
            _ => FileEntry { sha256, binary: true, ..entry },
        }
    }
}

fn bytes(dir: &Dir, name: &str) -> io::Result<Vec<u8>> {
    let mut options = OpenOptions::new();
    // A pipe in place of the file does not block, and a symlink is not followed.
    options.read(true).custom_flags((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed());
    let mut bytes = Vec::new();
    dir.open_with(name, &options)?.take(MAX_COMPARED_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns whether an error means that a folder has been removed or replaced.
fn is_no_folder(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
        || error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}
