//! Finds skills in a folder: all folders with a `SKILL.md` down to a maximum depth, but not inside other skills. Links
//! are not followed, and names that begin with a dot are ignored.

use crate::{Front, archive::MAX_SKILL_MD_BYTES};
use std::{
    fs,
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// Maximum depth of visited folders.
const MAX_DEPTH: usize = 4;
/// Maximum number of visited folders in one root.
const MAX_FOLDERS: usize = 2_000;
/// Maximum number of visited entries in one folder.
const MAX_FOLDER_ENTRIES: usize = 2_000;
/// Maximum number of skills in one root.
const MAX_SKILLS: usize = 256;
/// Maximum length of a folder's name, in bytes.
const MAX_FOLDER_NAME_BYTES: usize = 128;

/// Owner of a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// The skill ships with pudu or DeerFlow.
    Public,
    /// The skill is the team's own.
    Custom,
}

impl Category {
    /// Returns the category's name, which is also its folder.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Custom => "custom",
        }
    }
}

/// A folder with skills.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    pub(crate) path: PathBuf,
    pub(crate) category: Category,
    /// Whether pudu installs and removes skills in this folder.
    pub(crate) editable: bool,
}

/// A skill that was found.
#[derive(Clone, Debug)]
pub(crate) struct FoundSkill {
    pub(crate) front: Front,
    pub(crate) text: String,
    pub(crate) folder: PathBuf,
    /// The folder's path relative to its root.
    pub(crate) below: String,
}

/// A folder that looks like a skill but is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenSkill {
    /// The folder.
    pub folder: PathBuf,
    /// The cause and the fix.
    pub why: String,
}

/// Metadata of a file or folder. Equal stamps mean unchanged contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    changed: (i64, i64),
    size: u64,
    inode: u64,
}

/// Returns the stamp of a path.
pub(crate) fn stamp(path: &Path) -> Option<FileStamp> {
    let meta = fs::metadata(path).ok()?;
    Some(FileStamp { changed: (meta.mtime(), meta.mtime_nsec()), size: meta.len(), inode: meta.ino() })
}

/// Result of searching a root.
#[derive(Debug, Default)]
pub(crate) struct Haul {
    pub(crate) found: Vec<FoundSkill>,
    pub(crate) broken: Vec<BrokenSkill>,
    /// Paths whose stamps must be unchanged for the result to remain valid.
    pub(crate) seen: Vec<(PathBuf, Option<FileStamp>)>,
    folders: usize,
}

/// Searches a root.
pub(crate) fn find_skills(root: &Root) -> Haul {
    let mut haul = Haul::default();
    walk(&root.path, "", MAX_DEPTH, &mut haul);
    haul
}

impl Haul {
    fn add_broken(&mut self, folder: &Path, why: impl Into<String>) {
        if self.broken.len() < MAX_SKILLS {
            self.broken.push(BrokenSkill { folder: folder.to_owned(), why: why.into() });
        }
    }

    /// Records the stamp of a path before it is read, so that a change during the read is detected.
    fn remember(&mut self, path: &Path) {
        self.seen.push((path.to_owned(), stamp(path)));
    }
}

fn walk(folder: &Path, below: &str, depth: usize, haul: &mut Haul) {
    haul.folders += 1;
    haul.remember(folder);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => return haul.add_broken(folder, format!("it cannot be read: {error}")),
    };
    let mut names = Vec::new();
    for entry in entries.flatten() {
        if names.len() >= MAX_FOLDER_ENTRIES {
            haul.add_broken(
                folder,
                format!("it has more than {MAX_FOLDER_ENTRIES} entries; the rest is ignored"),
            );
            break;
        }
        match entry.file_name().into_string() {
            Ok(name) if name.starts_with('.') => {}
            Ok(name) => names.push((name, entry.file_type().ok())),
            Err(name) => haul.add_broken(&folder.join(name), "its name is not UTF-8"),
        }
    }
    names.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (name, kind) in names {
        let (path, Some(kind)) = (folder.join(&name), kind) else { continue };
        if kind.is_symlink() && path.is_dir() {
            haul.add_broken(&path, "it is a link; links are not followed: move the folder here");
        }
        if !kind.is_dir() {
            continue;
        }
        if name.len() > MAX_FOLDER_NAME_BYTES || name.chars().any(char::is_control) {
            haul.add_broken(&path, "its name is too long, or contains invisible characters");
            continue;
        }
        if haul.folders >= MAX_FOLDERS || haul.found.len() >= MAX_SKILLS {
            haul.add_broken(
                &path,
                format!("it is left out: the limit is {MAX_SKILLS} skills and {MAX_FOLDERS} folders"),
            );
            return;
        }
        let below = if below.is_empty() { name } else { format!("{below}/{name}") };
        visit_folder(&path, below, depth, haul);
    }
}

/// Loads the skill in a folder, or searches its subfolders.
fn visit_folder(folder: &Path, below: String, depth: usize, haul: &mut Haul) {
    let file = folder.join("SKILL.md");
    haul.remember(&file);
    match read(&file) {
        Ok(Some(text)) => match Front::read(&text, folder.file_name().and_then(|name| name.to_str())) {
            Ok(front) => haul.found.push(FoundSkill { front, text, folder: folder.to_owned(), below }),
            Err(why) => haul.add_broken(folder, why),
        },
        Ok(None) if has_other_case(folder) => {
            haul.add_broken(folder, "its file must be named SKILL.md, in capitals: rename it");
        }
        Ok(None) if depth > 1 => walk(folder, &below, depth - 1, haul),
        Ok(None) => {}
        Err(why) => haul.add_broken(folder, why),
    }
}

/// Returns whether a folder has a `SKILL.md` with different letter case, which works only on case-insensitive systems.
fn has_other_case(folder: &Path) -> bool {
    ["skill.md", "Skill.md"].iter().any(|name| folder.join(name).is_file())
}

/// Reads a `SKILL.md`. Returns `None` if there is none.
fn read(file: &Path) -> Result<Option<String>, String> {
    match fs::symlink_metadata(file) {
        Ok(meta) if meta.is_file() => {}
        Ok(_) => return Err("its SKILL.md is not a plain file".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("its SKILL.md cannot be read: {error}")),
    }
    let mut bytes = Vec::new();
    let opened =
        fs::File::open(file).and_then(|open| open.take(MAX_SKILL_MD_BYTES + 1).read_to_end(&mut bytes));
    opened.map_err(|error| format!("its SKILL.md cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_SKILL_MD_BYTES {
        return Err(format!("its SKILL.md is larger than {} KiB", MAX_SKILL_MD_BYTES / 1024));
    }
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| "its SKILL.md is not UTF-8 text: save it as UTF-8".to_owned())
}
