//! Copies another program's folders: only regular files, without following links or overwriting files.

use pudu_store::crash;
use rustix::{
    fs::{OFlags, SeekFrom, seek},
    io::Errno,
};
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// Maximum depth of folders.
const MAX_DEPTH: usize = 32;
/// Maximum size of the digested part of a file, in bytes.
const MAX_DIGESTED_BYTES: u64 = 16 * 1024 * 1024;
/// Maximum number of files per copied folder.
const MAX_FILES: usize = 100_000;

/// Result of copying a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CopiedFiles {
    /// Number of newly copied files.
    pub(crate) new: usize,
    /// Number of existing files of the same size.
    pub(crate) same: usize,
    /// Paths that were skipped, with reasons.
    pub(crate) left: Vec<(PathBuf, &'static str)>,
}

impl CopiedFiles {
    /// Describes the skipped files, if any.
    pub(crate) fn note(&self) -> Option<String> {
        const SHOWN: usize = 5;
        let shown = self.left.iter().take(SHOWN).map(|(path, why)| format!("{}: {why}", path.display()));
        let mut words: Vec<String> = shown.collect();
        if self.left.len() > SHOWN {
            words.push(format!("and {} more", self.left.len() - SHOWN));
        }
        (!words.is_empty()).then(|| format!("not copied: {}", words.join("; ")))
    }
}

/// Lists the entries of a folder that cannot be copied, with reasons.
pub(crate) fn skipped(root: &Path, wanted: Selection) -> io::Result<CopiedFiles> {
    let mut skipped = CopiedFiles::default();
    for found in walk(root, wanted)? {
        if let WalkedFile::Left(path, why) = found {
            skipped.left.push((path, why));
        }
    }
    Ok(skipped)
}

/// Reads a regular file up to a maximum size. Returns `None` if it does not exist.
///
/// # Errors
/// The reason as text, if the file is a link, not a regular file, too large or unreadable.
pub fn read_plain(path: &Path, max_bytes: u64) -> Result<Option<Vec<u8>>, &'static str> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() => return Err("symbolic link"),
        Ok(meta) if !meta.is_file() => return Err("not a regular file"),
        Ok(meta) if meta.len() > max_bytes => return Err("too large"),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(_) => return Err("unreadable"),
    }
    // The file may have been replaced since the check.
    let mut bytes = Vec::new();
    let read = open(path).and_then(|file| file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes));
    match read {
        Ok(_) if bytes.len() as u64 > max_bytes => Err("too large"),
        Ok(_) => Ok(Some(bytes)),
        Err(_) => Err("unreadable"),
    }
}

/// Copies a file with its holes, so that unwritten ranges take no space in the copy either.
fn copy_with_holes(source: &mut File, copy: &mut File) -> io::Result<()> {
    let size = source.metadata()?.len();
    let mut at = 0;
    while at < size {
        let begin = match seek(&*source, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            // The remainder is a hole.
            Err(Errno::NXIO) => break,
            // The file system does not support holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
            Err(error) => return Err(error.into()),
        };
        let end = seek(&*source, SeekFrom::Hole(begin)).unwrap_or(size);
        source.seek(io::SeekFrom::Start(begin))?;
        copy.seek(io::SeekFrom::Start(begin))?;
        io::copy(&mut (&mut *source).take(end - begin), copy)?;
        at = end;
    }
    copy.flush()?;
    // Bytes appended during the copy are copied, and a trailing hole is kept.
    let written = copy.stream_position()?;
    copy.set_len(size.max(written))
}

/// Files of a folder, selected by their relative paths.
#[derive(Clone, Copy)]
pub(crate) struct Selection {
    /// Whether a folder is entered.
    pub(crate) enter: fn(&Path) -> bool,
    /// Whether a file is copied.
    pub(crate) take: fn(&Path) -> bool,
}

impl Selection {
    /// All files.
    pub(crate) const ALL: Self = Self { enter: |_| true, take: |_| true };
}

/// Copies each file to a temporary path first, so that no partial file gets the final name.
pub(crate) struct Copier {
    aside: PathBuf,
    /// Whether this is a dry run, which writes nothing.
    dry_run: bool,
}

impl Copier {
    /// Creates a copier with a temporary folder on the target's file system.
    pub(crate) fn new(aside: PathBuf, dry_run: bool) -> Self {
        Self { aside, dry_run }
    }

    /// Copies selected files of a folder.
    pub(crate) fn copy(&self, from: &Path, to: &Path, wanted: Selection) -> io::Result<CopiedFiles> {
        let mut copied = CopiedFiles::default();
        if from == to || same_folder(from, to) {
            return Ok(copied);
        }
        for found in walk(from, wanted)? {
            match found {
                WalkedFile::Plain(path) => self.file(from, to, path, &mut copied)?,
                WalkedFile::Left(path, why) => copied.left.push((path, why)),
            }
        }
        Ok(copied)
    }

    /// Copies one file of a folder.
    pub(crate) fn copy_one(&self, from: &Path, to: &Path, name: &str) -> io::Result<CopiedFiles> {
        let mut copied = CopiedFiles::default();
        if !same_folder(from, to) {
            self.file(from, to, PathBuf::from(name), &mut copied)?;
        }
        Ok(copied)
    }

    fn file(&self, from: &Path, to: &Path, path: PathBuf, copied: &mut CopiedFiles) -> io::Result<()> {
        let target = to.join(&path);
        if leads_away(to, &path) {
            copied.left.push((path, "blocked by a symbolic link in the target folder"));
            return Ok(());
        }
        let Ok(mut source) = open(&from.join(&path)) else {
            copied.left.push((path, "unreadable"));
            return Ok(());
        };
        match fs::symlink_metadata(&target) {
            Ok(there) if there.is_file() && there.len() == source.metadata()?.len() => copied.same += 1,
            Ok(_) => copied.left.push((path, "a different file with this name already exists")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                copied.new += 1;
                if !self.dry_run {
                    self.put(&mut source, &target)?;
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Copies a file to a temporary path and renames it.
    fn put(&self, source: &mut File, target: &Path) -> io::Result<()> {
        let make = |folder: &Path| DirBuilder::new().recursive(true).mode(0o700).create(folder);
        make(&self.aside)?;
        let part = self.aside.join("part");
        let mut options = OpenOptions::new();
        let mut copy = options.write(true).create(true).truncate(true).mode(0o600).open(&part)?;
        copy_with_holes(source, &mut copy)?;
        let executable =
            std::os::unix::fs::PermissionsExt::mode(&source.metadata()?.permissions()) & 0o100 != 0;
        if executable {
            copy.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        }
        copy.sync_data()?;
        target.parent().map_or(Ok(()), make)?;
        crash::point("import.file");
        fs::rename(part, target)
    }
}

/// Returns whether any existing parent of a path below a root is not a real folder, but a file or a link.
fn leads_away(root: &Path, place: &Path) -> bool {
    let folders = place.ancestors().skip(1).map(|folder| root.join(folder));
    // No other process writes there, because no daemon is running on that home.
    let odd = |folder: PathBuf| fs::symlink_metadata(folder).is_ok_and(|meta| !meta.is_dir());
    folders.into_iter().any(odd)
}

/// A file below a folder, with its relative path.
enum WalkedFile {
    Plain(PathBuf),
    Left(PathBuf, &'static str),
}

fn same_folder(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Opens a regular file without following links.
fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NOFOLLOW.bits() | OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Lists the files below a folder in order; none if it does not exist.
fn walk(root: &Path, wanted: Selection) -> io::Result<Vec<WalkedFile>> {
    let (mut found, mut open) = (Vec::new(), vec![(PathBuf::new(), 0)]);
    match fs::symlink_metadata(root) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => return Ok(vec![WalkedFile::Left(PathBuf::from("."), "not a folder")]),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(error),
    }
    while let Some((folder, depth)) = open.pop() {
        let mut entries: Vec<_> = fs::read_dir(root.join(&folder))?.collect::<Result<_, _>>()?;
        entries.sort_by_key(|entry| entry.file_name());
        for entry in entries {
            let (path, kind) = (folder.join(entry.file_name()), entry.file_type()?);
            if found.len() >= MAX_FILES {
                found.push(WalkedFile::Left(path, "too many files"));
                return Ok(found);
            }
            match (kind.is_dir(), kind.is_file()) {
                (true, _) if depth >= MAX_DEPTH => found.push(WalkedFile::Left(path, "nested too deeply")),
                (true, _) if (wanted.enter)(&path) => open.push((path, depth + 1)),
                (_, true) if (wanted.take)(&path) => found.push(WalkedFile::Plain(path)),
                (true, _) | (_, true) => {}
                _ if !(wanted.take)(&path) => {}
                _ if kind.is_symlink() => found.push(WalkedFile::Left(path, "symbolic link")),
                _ => found.push(WalkedFile::Left(path, "not a regular file")),
            }
        }
    }
    Ok(found)
}

/// Returns a digest of selected files of a folder; `None` if there are none.
pub(crate) fn digest(root: &Path, wanted: Selection) -> io::Result<Option<String>> {
    let mut lines = Vec::new();
    for found in walk(root, wanted)? {
        if let WalkedFile::Plain(path) = found {
            let (file, mut bytes) = (open(&root.join(&path))?, Vec::new());
            let size = file.metadata()?.len();
            // Only the beginning and the size of larger files are digested.
            file.take(MAX_DIGESTED_BYTES).read_to_end(&mut bytes)?;
            lines.push(format!("{} {size} {}", path.display(), pudu_base::digest(&bytes)));
        }
    }
    lines.sort();
    Ok((!lines.is_empty()).then(|| pudu_base::digest(lines.join("\n"))))
}

/// Lists the subfolders of a folder by name, without links; none if it does not exist.
pub(crate) fn folders(root: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir()
            && let Ok(name) = entry.file_name().into_string()
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
