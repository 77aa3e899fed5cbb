//! The skills that ship with pudu. They are embedded in the binary, so that a single file is enough to install pudu,
//! and extracted into the home once per version, so that a sandbox can mount them. Their folder is named after their
//! fingerprint.

use crate::SkillError;
use include_dir::{Dir, DirEntry, include_dir};
use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

static SHIPPED: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../skills/public");

/// Extracts the skills into a folder unless this version's are already there, and returns their path.
///
/// # Errors
/// When the skills cannot be written.
pub fn unpack(below: &Path) -> Result<PathBuf, SkillError> {
    let folder = below.join(format!("{:016x}", fingerprint(&SHIPPED)));
    if folder.is_dir() {
        return Ok(folder);
    }
    let part = below.join(format!(".{}.part", uuid::Uuid::now_v7()));
    create_folder(&part).and_then(|()| write(&SHIPPED, &part)).map_err(SkillError::io(&part))?;
    match fs::rename(&part, &folder) {
        Ok(()) => Ok(folder),
        Err(error) => {
            fs::remove_dir_all(&part).ok();
            // Another process may have extracted them first.
            if folder.is_dir() { Ok(folder) } else { Err(SkillError::io(&folder)(error)) }
        }
    }
}

/// Removes the skills of other versions. The caller must have exclusive use of the home.
pub fn remove_other_versions(place: &Path) {
    let Some(entries) = place.parent().and_then(|below| fs::read_dir(below).ok()) else { return };
    for entry in entries.flatten().filter(|entry| entry.path() != place) {
        if let Err(error) = fs::remove_dir_all(entry.path()) {
            tracing::warn!(folder = %entry.path().display(), %error, "failed to remove skills of an older version");
        }
    }
}

fn create_folder(folder: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(folder)
}

fn write(dir: &Dir<'_>, into: &Path) -> std::io::Result<()> {
    for entry in dir.entries() {
        if !is_ours(entry) {
            continue;
        }
        let path = into.join(entry.path());
        match entry {
            DirEntry::Dir(dir) => {
                create_folder(&path)?;
                write(dir, into)?;
            }
            DirEntry::File(file) => {
                let mut out = OpenOptions::new().write(true).create_new(true).mode(0o444).open(path)?;
                out.write_all(file.contents())?;
            }
        }
    }
    Ok(())
}

/// Returns whether an entry belongs to a skill, unlike files left in a checkout by running its scripts.
fn is_ours(entry: &DirEntry<'_>) -> bool {
    let name = entry.path().file_name().unwrap_or_default().to_string_lossy();
    !name.starts_with('.') && name != "__pycache__"
}

/// Returns an FNV-1a hash of paths and contents, which is the same in every build of the same skills.
fn fingerprint(dir: &Dir<'_>) -> u64 {
    fn fold(hash: u64, bytes: &[u8]) -> u64 {
        bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
    }
    fn walk(hash: u64, dir: &Dir<'_>) -> u64 {
        dir.entries().iter().filter(|entry| is_ours(entry)).fold(hash, |hash, entry| {
            let hash = fold(hash, entry.path().as_os_str().as_encoded_bytes());
            match entry {
                DirEntry::Dir(dir) => walk(hash, dir),
                DirEntry::File(file) => fold(fold(hash, &[0]), file.contents()),
            }
        })
    }
    walk(0xcbf2_9ce4_8422_2325, dir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Front, ScanVerdict, scan};

    #[test]
    fn shipped_skills_are_extracted_once_and_other_versions_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("shipped");
        let folder = unpack(&below).unwrap();
        fs::create_dir(below.join("0123")).unwrap();
        fs::create_dir(below.join(".x.part")).unwrap();
        assert_eq!(unpack(&below).unwrap(), folder);
        remove_other_versions(&folder);
        assert_eq!(fs::read_dir(&below).unwrap().count(), 1);
        assert!(folder.join("deep-research/SKILL.md").is_file());
    }

    #[test]
    fn every_shipped_skill_passes_the_checks_for_untrusted_ones() {
        let dir = tempfile::tempdir().unwrap();
        let place = unpack(dir.path()).unwrap();
        let mut names = Vec::new();
        for entry in fs::read_dir(&place).unwrap() {
            let folder = entry.unwrap().path();
            let text = fs::read_to_string(folder.join("SKILL.md")).unwrap();
            let front = Front::read(&text, None).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
            assert_eq!(Some(front.name.as_str()), folder.file_name().and_then(|name| name.to_str()));
            assert_eq!((front.odd, front.notes), (vec![], vec![]));
            let report = scan(&folder).unwrap();
            assert_eq!(report.verdict(), ScanVerdict::Allow, "{}:\n{report}", front.name);
            names.push(front.name);
        }
        names.sort();
        let expect = [
            "code-review",
            "data-analysis",
            "deep-research",
            "documents-and-slides",
            "meeting-notes",
            "skill-creator",
            "translate-documents",
            "web-page",
        ];
        assert_eq!(names, expect);
    }
}
