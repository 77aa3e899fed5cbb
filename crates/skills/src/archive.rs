//! `.skill` archives: zips of one skill's folder, from untrusted sources. An archive is extracted completely or not at
//! all.
//!
//! First, the structure is checked without decoding anything: the names, kinds, sizes and positions of entries. Then
//! each entry is decoded up to its declared size. Nothing is written outside the [`Sink`]'s destination, and only files
//! and folders are created.

mod encoding;

use crate::{Front, magic, names};
use encoding::NameDecoder;
use std::{
    collections::{HashMap, HashSet},
    fmt,
    io::{self, Read, Seek, SeekFrom, Write},
};
use zip::{CompressionMethod, ZipArchive, read::ZipFile};

/// Maximum size of an archive, in bytes.
pub(crate) const MAX_ARCHIVE_BYTES: u64 = 100 * 1024 * 1024;
/// Maximum number of entries.
const MAX_ENTRIES: usize = 4096;
/// Maximum size of the extracted archive, in bytes.
const MAX_EXTRACTED_BYTES: u64 = 512 * 1024 * 1024;
/// Maximum size of a `SKILL.md`, in bytes. A request to the model contains the whole file.
pub(crate) const MAX_SKILL_MD_BYTES: u64 = 128 * 1024;
/// Maximum compression ratio of an entry larger than [`HARMLESS`].
const STEEPEST: u64 = 200;
/// Maximum extracted size of an entry whose compression ratio is not limited, in bytes.
const HARMLESS: u64 = 1024 * 1024;
/// Maximum number of names in a note on names that are not UTF-8.
const MAX_SHOWN_NAMES: usize = 5;
/// Maximum number of reported dangers.
const MAX_REPORTED_DANGERS: usize = 20;
/// Signature of every entry in a zip's central directory.
const DIRECTORY_MARK: &[u8; 4] = b"PK\x01\x02";

/// Reasons why an archive is rejected: the first dangers found in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveRefusal {
    /// The dangers, each with the affected entry, if there is one, and the problem.
    pub dangers: Vec<(Option<String>, String)>,
}

impl ArchiveRefusal {
    fn from_reason(why: impl Into<String>) -> Self {
        Self { dangers: vec![(None, why.into())] }
    }

    fn at(entry: &str, why: impl Into<String>) -> Self {
        Self { dangers: vec![(Some(entry.to_owned()), why.into())] }
    }

    fn add(&mut self, entry: &str, why: impl Into<String>) {
        self.add_danger(Some(entry), why);
    }

    fn add_danger(&mut self, entry: Option<&str>, why: impl Into<String>) {
        if self.dangers.len() < MAX_REPORTED_DANGERS {
            self.dangers.push((entry.map(str::to_owned), why.into()));
        }
    }

    fn verdict(self) -> Result<(), Self> {
        if self.dangers.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for ArchiveRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (entry, why)) in self.dangers.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            match entry {
                // An untrusted file name must not send control characters to a terminal.
                Some(entry) => write!(f, "{}: {why}", entry.escape_debug())?,
                None => f.write_str(why)?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for ArchiveRefusal {}

/// Contents of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The front matter of its `SKILL.md`.
    pub front: Front,
    /// Paths of the files in the skill's folder.
    pub files: Vec<String>,
    /// Total size of the files, in bytes.
    pub bytes: u64,
    /// Differences between the archive and the installed skill, for the installing user.
    pub notes: Vec<String>,
}

/// Destination of entries. Paths are relative, plain and unique.
pub(crate) trait Sink {
    /// Creates a folder and its parents.
    fn folder(&mut self, path: &str) -> io::Result<()>;
    /// Creates a file and its parent folders.
    fn file(&mut self, path: &str, program: bool) -> io::Result<Box<dyn Write + '_>>;
}

/// Discards everything.
struct Nowhere;

impl Sink for Nowhere {
    fn folder(&mut self, _path: &str) -> io::Result<()> {
        Ok(())
    }

    fn file(&mut self, _path: &str, _program: bool) -> io::Result<Box<dyn Write + '_>> {
        Ok(Box::new(io::sink()))
    }
}

/// Checks every byte of an archive without writing anything.
///
/// # Errors
/// When the archive must not be installed.
pub fn examine(archive: impl Read + Seek) -> Result<Contents, ArchiveRefusal> {
    unpack(archive, &mut Nowhere)
}

/// Extracts an archive.
pub(crate) fn unpack(mut archive: impl Read + Seek, sink: &mut dyn Sink) -> Result<Contents, ArchiveRefusal> {
    let size = count(&mut archive)?;
    let mut zip = ZipArchive::new(archive)
        .map_err(|error| ArchiveRefusal::from_reason(format!("it is not a ZIP archive: {error}")))?;
    let plan = plan(&mut zip, size)?;
    let mut skill = None;
    for entry in &plan.entries {
        let mut file = zip.by_index(entry.index).map_err(|error| broken(&entry.name, &error))?;
        if let Some(text) = write(&mut file, entry, sink)? {
            skill = Some(text);
        }
    }
    let text = skill.ok_or_else(|| ArchiveRefusal::from_reason("it contains no SKILL.md"))?;
    let text = String::from_utf8(text)
        .map_err(|_| ArchiveRefusal::at("SKILL.md", "it is not UTF-8 text: save it as UTF-8"))?;
    let front =
        Front::read(&text, plan.folder.as_deref()).map_err(|why| ArchiveRefusal::at("SKILL.md", why))?;
    if !front.odd.is_empty() {
        return Err(ArchiveRefusal::at("SKILL.md", front.odd.join("; ")));
    }
    let files = plan.entries.iter().filter(|entry| !entry.folder);
    let notes = plan.notes.iter().chain(&front.notes).cloned().collect();
    Ok(Contents {
        front,
        notes,
        bytes: files.clone().map(|entry| entry.size).sum(),
        files: files.map(|e| e.path.clone()).collect(),
    })
}

/// Checks the file size and the number of entries before a reader allocates memory for them. Returns the size.
fn count(archive: &mut (impl Read + Seek)) -> Result<u64, ArchiveRefusal> {
    let unreadable = |error: io::Error| ArchiveRefusal::from_reason(format!("it cannot be read: {error}"));
    let size = archive.seek(SeekFrom::End(0)).map_err(unreadable)?;
    if size > MAX_ARCHIVE_BYTES {
        return Err(ArchiveRefusal::from_reason(format!(
            "it is larger than {} MiB",
            MAX_ARCHIVE_BYTES / 1024 / 1024
        )));
    }
    archive.rewind().map_err(unreadable)?;
    let (mut buffer, mut carried, mut marks) = (vec![0; 64 * 1024], 0, 0_usize);
    loop {
        let room = buffer.get_mut(carried..).unwrap_or_default();
        let read = archive.read(room).map_err(unreadable)?;
        let end = carried + read;
        let seen = buffer.get(..end).unwrap_or_default();
        marks += seen.windows(DIRECTORY_MARK.len()).filter(|window| window == DIRECTORY_MARK).count();
        if read == 0 || marks > MAX_ENTRIES {
            break;
        }
        // A signature may span two chunks.
        carried = end.min(DIRECTORY_MARK.len() - 1);
        buffer.copy_within(end - carried..end, 0);
    }
    if marks > MAX_ENTRIES {
        return Err(ArchiveRefusal::from_reason(format!("it has more than {MAX_ENTRIES} entries")));
    }
    archive.rewind().map_err(unreadable)?;
    Ok(size)
}

/// Entries to be written.
struct ExtractPlan {
    entries: Vec<ArchiveEntry>,
    /// The only folder at the top of the archive, if it contains everything.
    folder: Option<String>,
    notes: Vec<String>,
}

/// An entry to be written.
struct ArchiveEntry {
    index: usize,
    name: String,
    /// The path in the skill's folder.
    path: String,
    folder: bool,
    program: bool,
    size: u64,
}

fn plan<R: Read + Seek>(zip: &mut ZipArchive<R>, size: u64) -> Result<ExtractPlan, ArchiveRefusal> {
    if zip.len() > MAX_ENTRIES {
        return Err(ArchiveRefusal::from_reason(format!("it has more than {MAX_ENTRIES} entries")));
    }
    if zip.has_duplicate_names() {
        return Err(ArchiveRefusal::from_reason("two of its entries have the same name"));
    }
    if zip.offset() != 0 {
        return Err(ArchiveRefusal::from_reason("the file contains data before the ZIP archive"));
    }
    let mut refusal = ArchiveRefusal::default();
    let mut entries = Vec::new();
    let mut written = 0_u64;
    let mut names = Vec::new();
    for index in 0..zip.len() {
        names.extend(zip.by_index_raw(index).map(|file| file.name_raw().to_vec()));
    }
    let decoder = NameDecoder::guess(names.iter().map(Vec::as_slice));
    let notes = decoded_names(&decoder, &names);
    for index in 0..zip.len() {
        let file = zip
            .by_index_raw(index)
            .map_err(|error| ArchiveRefusal::from_reason(format!("entry {index}: {error}")))?;
        written = written.saturating_add(file.size());
        match check_entry(&file, index, &decoder) {
            Ok(entry) => entries.push(entry),
            Err((name, why)) => refusal.add(&name, why),
        }
    }
    if written > MAX_EXTRACTED_BYTES {
        refusal.add_danger(
            None,
            format!("extracted, it has more than {} MiB", MAX_EXTRACTED_BYTES / 1024 / 1024),
        );
    }
    if written > 4 * HARMLESS && written / STEEPEST > size {
        refusal.add_danger(None, "its compression ratio is suspiciously high");
    }
    collisions(&entries, &mut refusal);
    refusal.verdict()?;
    zip.validate_header_consistency()
        .map_err(|error| ArchiveRefusal::from_reason(format!("it is inconsistent: {error}")))?;
    entries.retain(|entry| !ignored(&entry.path));
    let folder = root(&mut entries)?;
    Ok(ExtractPlan { entries, folder, notes })
}

/// Returns notes on names that were decoded from an encoding other than UTF-8, and on names with backslashes as
/// separators.
fn decoded_names(decoder: &NameDecoder, names: &[Vec<u8>]) -> Vec<String> {
    let decoded = |name: &Vec<u8>| match decoder.decode(name) {
        Some((name, Some(encoding))) => Some((name.escape_debug().to_string(), encoding)),
        _ => None,
    };
    let mut notes = Vec::new();
    if names.iter().filter_map(|name| decoder.decode(name)).any(|(name, _)| name.contains('\\')) {
        notes.push("names in the archive have backslashes; they were read as slashes".to_owned());
    }
    let others: Vec<(String, &str)> = names.iter().filter_map(decoded).collect();
    let Some((_, encoding)) = others.first() else { return notes };
    let mut shown: Vec<&str> = others.iter().map(|(name, _)| name.as_str()).take(MAX_SHOWN_NAMES).collect();
    if others.len() > MAX_SHOWN_NAMES {
        shown.push("…");
    }
    notes.push(format!(
        "names in the archive are not UTF-8; they were read as {encoding}: {}",
        shown.join(", ")
    ));
    notes
}

/// Checks an entry's record in the directory.
fn check_entry<R: Read>(
    file: &ZipFile<'_, R>,
    index: usize,
    decoder: &NameDecoder,
) -> Result<ArchiveEntry, (String, String)> {
    let raw = file.name_raw();
    let Some((text, _)) = decoder.decode(raw) else {
        let why = "its name is not UTF-8 and its encoding is unclear: rename it in plain letters, or pack the folder again \
                   with names in UTF-8 (zip -r skill.zip FOLDER on Linux and macOS; 7-Zip with the parameter cu=on)";
        return Err((String::from_utf8_lossy(raw).into_owned(), why.to_owned()));
    };
    let name = text.clone().into_owned();
    // Some Windows packers write backslashes. The path is checked in the form in which it will be written.
    let text = text.replace('\\', "/");
    let refuse = |why: &str| Err((name.clone(), why.to_owned()));
    let parts = match names::parts(&text) {
        Ok(parts) => parts,
        Err(why) => return refuse(why),
    };
    if file.encrypted() || matches!(file.compression(), CompressionMethod::AES) {
        return refuse("it is encrypted");
    }
    if !matches!(file.compression(), CompressionMethod::Stored | CompressionMethod::Deflated) {
        return refuse("it uses a compression method other than deflate");
    }
    // The upper half is the Unix mode, regardless of the system that the entry claims to come from.
    let kind = (file.external_attributes() >> 16) & 0o170_000;
    let folder = text.ends_with('/');
    match kind {
        0 => {}
        0o100_000 if !folder => {}
        0o040_000 if folder => {}
        0o120_000 => return refuse("it is a symbolic link"),
        0o040_000 | 0o100_000 => return refuse("its name and its mode disagree on whether it is a folder"),
        _ => return refuse("it is neither a file nor a folder"),
    }
    if folder && file.size() > 0 {
        return refuse("it is a folder entry with content");
    }
    if file.size() > HARMLESS && file.size() / STEEPEST > file.compressed_size() {
        return refuse("its compression ratio is suspiciously high");
    }
    if file.compression() == CompressionMethod::Stored && file.size() != file.compressed_size() {
        return refuse("its sizes contradict each other");
    }
    let program = (file.external_attributes() >> 16) & 0o100 != 0;
    Ok(ArchiveEntry { index, path: parts.join("/"), name, folder, program, size: file.size() })
}

/// Finds paths that are equal on some systems, and files that are also parent folders.
fn collisions(entries: &[ArchiveEntry], refusal: &mut ArchiveRefusal) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    let mut files = HashSet::new();
    for entry in entries {
        let folded = names::folded(&entry.path);
        if !entry.folder {
            files.insert(folded.clone());
        }
        if let Some(other) = seen.insert(folded, &entry.path) {
            refusal.add(
                &entry.name,
                format!("it has the same name as {} on some machines", other.escape_debug()),
            );
        }
    }
    // A folder must be spelt the same way in all paths, even if it has no entry of its own.
    let mut spelt: HashMap<String, String> = HashMap::new();
    for entry in entries {
        let mut above = String::new();
        for part in entry.path.split('/').take(entry.path.matches('/').count()) {
            if !above.is_empty() {
                above.push('/');
            }
            above.push_str(part);
            let folded = names::folded(&above);
            if files.contains(&folded) {
                refusal.add(&entry.name, "another file in the archive has the name of its folder");
                break;
            }
            let first = spelt.entry(folded).or_insert_with(|| above.clone());
            if *first != above {
                refusal
                    .add(&entry.name, "its folder is spelled in two ways that are the same on some machines");
                break;
            }
        }
    }
}

/// Returns whether a file is ignored: hidden, or added by a file manager.
fn ignored(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with('.') || part == "__MACOSX")
}

/// Strips the only top folder, if there is one, and returns its name. The archive has to contain exactly one skill.
fn root(entries: &mut Vec<ArchiveEntry>) -> Result<Option<String>, ArchiveRefusal> {
    const SKILL: &str = "SKILL.md";
    let is_skill = |path: &str| names::folded(path.rsplit('/').next().unwrap_or_default()) == "skill.md";
    let skills: Vec<&ArchiveEntry> =
        entries.iter().filter(|entry| !entry.folder && is_skill(&entry.path)).collect();
    let top = match skills.as_slice() {
        [] => {
            return Err(ArchiveRefusal::from_reason(
                "there is no SKILL.md at its top level or in its only top-level folder",
            ));
        }
        [one] => match one.path.strip_suffix(SKILL) {
            Some("") => String::new(),
            Some(top) if top.matches('/').count() == 1 => top.to_owned(),
            Some(_) => {
                return Err(ArchiveRefusal::at(&one.name, "it is nested deeper than one top-level folder"));
            }
            None => {
                return Err(ArchiveRefusal::at(&one.name, "the file must be named SKILL.md, in capitals"));
            }
        },
        [_, second, ..] => {
            return Err(ArchiveRefusal::at(&second.name, "a second SKILL.md: an archive contains one skill"));
        }
    };
    entries.retain(|entry| !(entry.folder && format!("{}/", entry.path) == top));
    for entry in entries.iter_mut() {
        match entry.path.strip_prefix(&top) {
            Some(path) => entry.path = path.to_owned(),
            None => return Err(ArchiveRefusal::at(&entry.name, "it is outside the skill's folder")),
        }
    }
    Ok(top.strip_suffix('/').map(str::to_owned))
}

/// Writes one entry. Returns its text if it is the `SKILL.md`.
fn write<R: Read>(
    file: &mut ZipFile<'_, R>,
    entry: &ArchiveEntry,
    sink: &mut dyn Sink,
) -> Result<Option<Vec<u8>>, ArchiveRefusal> {
    let stuck =
        |error: io::Error| ArchiveRefusal::at(&entry.name, format!("it could not be written: {error}"));
    if entry.folder {
        sink.folder(&entry.path).map_err(stuck)?;
        return Ok(None);
    }
    let is_skill = entry.path == "SKILL.md";
    if is_skill && entry.size > MAX_SKILL_MD_BYTES {
        return Err(ArchiveRefusal::at(
            &entry.name,
            format!("it is larger than {} KiB", MAX_SKILL_MD_BYTES / 1024),
        ));
    }
    let mut out = sink.file(&entry.path, entry.program).map_err(stuck)?;
    let (mut buffer, mut total, mut text) = (vec![0; 32 * 1024], 0_u64, Vec::new());
    let mut head = Vec::with_capacity(magic::MAGIC_LEN);
    loop {
        let read = file
            .read(&mut buffer)
            .map_err(|error| ArchiveRefusal::at(&entry.name, format!("it is broken: {error}")))?;
        let piece = buffer.get(..read).unwrap_or_default();
        total += piece.len() as u64;
        if total > entry.size {
            return Err(ArchiveRefusal::at(&entry.name, "it is larger than its declared size"));
        }
        if head.len() < magic::MAGIC_LEN {
            head.extend(piece.iter().take(magic::MAGIC_LEN - head.len()));
            if let Some(kind) = magic::program(&head) {
                return Err(ArchiveRefusal::at(&entry.name, format!("it is an executable ({kind})")));
            }
        }
        if piece.is_empty() {
            break;
        }
        if is_skill {
            text.extend_from_slice(piece);
        }
        out.write_all(piece).map_err(stuck)?;
    }
    if total != entry.size {
        return Err(ArchiveRefusal::at(&entry.name, "it is smaller than its declared size"));
    }
    out.flush().map_err(stuck)?;
    Ok(is_skill.then_some(text))
}

fn broken(name: &str, error: &zip::result::ZipError) -> ArchiveRefusal {
    ArchiveRefusal::at(name, format!("it is broken: {error}"))
}

#[cfg(test)]
mod tests;
