//! Installs skills from archives, and removes installed skills.

use crate::{Catalog, Category, ScanReport, ScanVerdict, SkillError, archive, scan, stage::StagingFolder};
use std::{fs::File, io::BufReader, path::Path};

/// An installed skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Name of the skill.
    pub name: String,
    /// Number of files.
    pub files: usize,
    /// Total size of the files, in bytes.
    pub bytes: u64,
    /// Findings of the scan that were accepted.
    pub report: ScanReport,
    /// Differences between the archive and the installed skill: keys without effect, repaired texts and names.
    pub notes: Vec<String>,
}

/// Extracts a skill next to its destination, scans it, and moves it into place. `own` is the folder of installed
/// skills. The caller holds the lock.
pub(crate) fn install(
    own: &Path,
    catalog: &Catalog,
    file: &Path,
    replace: bool,
) -> Result<Installed, SkillError> {
    if file.is_dir() {
        let folder = file.join("SKILL.md").is_file();
        let path = file.to_owned();
        return Err(if folder {
            SkillError::Folder { path, own: own.to_owned() }
        } else {
            SkillError::NoArchive { path }
        });
    }
    let archive = BufReader::new(File::open(file).map_err(SkillError::io(file))?);
    let mut stage = StagingFolder::new(own)?;
    let contents = archive::unpack(archive, &mut stage)?;
    let name = contents.front.name;
    let target = own.join(&name);
    vacant(catalog, &target, &name, replace)?;
    let report = scan(&stage.inside()).map_err(SkillError::io(file))?;
    if report.verdict() == ScanVerdict::Block {
        return Err(SkillError::Blocked { name, report });
    }
    stage.settle(&target)?;
    Ok(Installed { name, files: contents.files.len(), bytes: contents.bytes, report, notes: contents.notes })
}

/// Checks that a skill may be installed at a place. With `replace`, it may replace an installed skill, or override a
/// shipped one until it is removed, but it never replaces one that the operator added by hand.
fn vacant(catalog: &Catalog, place: &Path, name: &str, replace: bool) -> Result<(), SkillError> {
    let exists = |where_, help| Err(SkillError::Exists { name: name.to_owned(), where_, help });
    let other = catalog.get(name).filter(|entry| entry.folder != place);
    match other.map(|entry| entry.category) {
        Some(Category::Custom) => exists("custom", "give the new one another `name` in its SKILL.md"),
        Some(Category::Public) if !replace => exists(
            "public",
            "`pudu skill install --replace` replaces it, and `pudu skill remove` restores it",
        ),
        _ if place.exists() && !replace => exists("custom", "`pudu skill install --replace` replaces it"),
        _ => Ok(()),
    }
}

/// Removes an installed skill. The caller holds the lock.
pub(crate) fn remove(own: &Path, catalog: &Catalog, name: &str) -> Result<(), SkillError> {
    // A broken skill is known only by the name of its folder.
    let broken = || {
        let folder = own.join(name);
        (crate::frontmatter::check_name(name).is_ok() && folder.is_dir()).then_some(folder)
    };
    let folder = match catalog.get(name) {
        Some(entry) if entry.editable => entry.folder.clone(),
        Some(entry) => {
            let what = match entry.category {
                Category::Public => "one of the public skills",
                Category::Custom => "in the folder of `skills.path`",
            };
            return Err(SkillError::Fixed { name: name.to_owned(), what });
        }
        None => broken().ok_or_else(|| SkillError::Unknown(name.to_owned()))?,
    };
    StagingFolder::new(own)?.clear(&folder)
}
