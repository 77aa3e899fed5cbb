//! Skills: folders with a `SKILL.md` that instructs the agent in a kind of work.
//!
//! [`Skills`] finds them, switches them on and off, installs them from archives and removes them. [`OwnSkills`] are the
//! skills of one user, which are changed incrementally and have a history. [`Catalog`] is a snapshot of all skills.
//! [`examine`] and [`scan`] check untrusted skills. [`shipped`] contains the built-in ones. All functions block on file
//! access.
//!
//! Deliberately absent: the agent's loop, which gets plain [`pudu_base::Skill`]s, and the execution of a skill's
//! programs. The sandbox is the security boundary; the checks here are an additional safeguard.

mod archive;
mod catalog;
mod change;
mod discover;
mod frontmatter;
mod history;
mod install;
mod magic;
mod names;
mod own;
mod scan;
pub mod shipped;
mod skills;
mod stage;
mod state;
mod tree;
mod user_catalogs;

pub use archive::{ArchiveRefusal, Contents, examine};
pub use catalog::{Catalog, CatalogEntry, Hidden};
pub use change::{MAX_FILE_BYTES, SkillChange};
pub use discover::{BrokenSkill, Category};
pub use frontmatter::{Front, is_skill_name};
pub use history::SkillVersion;
pub use install::Installed;
pub use own::{ChangeAuthor, ChangePreview, OwnSkills, WrittenFile};
pub use scan::{Finding, FindingSeverity, ScanReport, ScanVerdict, scan};
pub use skills::{CatalogPaths, Skills};

use std::{io, path::PathBuf};

/// Failure of an operation on a skill.
#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    /// There is no such skill.
    #[error("there is no skill `{0}`")]
    Unknown(String),
    /// A skill with that name already exists.
    #[error("a skill `{name}` already exists ({where_}); {help}")]
    Exists {
        /// Name of the skill.
        name: String,
        /// Description of its location.
        where_: &'static str,
        /// The fix.
        help: &'static str,
    },
    /// The skill cannot be changed or removed by pudu.
    #[error(
        "`{name}` is {what} and cannot be changed or removed here; `pudu skill disable {name}` disables it"
    )]
    Fixed {
        /// Name of the skill.
        name: String,
        /// Description of the skill.
        what: &'static str,
    },
    /// The change is invalid.
    #[error("{0}")]
    Wrong(String),
    /// The archive is dangerous or broken. Nothing was extracted.
    #[error("the archive is refused: {0}")]
    Refused(ArchiveRefusal),
    /// A skill's folder was given instead of its archive.
    #[error(
        "{0} is a skill's folder, but an archive is required: pack it (cd {0} && zip -r ../skill.zip .), or copy it into {1}",
        path.display(),
        own.display()
    )]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Folder of the user's own skills.
        own: PathBuf,
    },
    /// A folder was given instead of an archive.
    #[error("{} is a folder, but an archive is required: name a .skill or .zip file", path.display())]
    NoArchive {
        /// The folder.
        path: PathBuf,
    },
    /// The scan blocks the installation.
    #[error("the scan of `{name}` blocks it:\n{report}")]
    Blocked {
        /// The skill's name.
        name: String,
        /// The findings.
        report: ScanReport,
    },
    /// The file with the switches has an invalid value.
    #[error("{}: {why}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// The cause and the fix.
        why: String,
    },
    /// An operation of the system failed.
    #[error("{}: {why}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The system's error.
        why: io::Error,
    },
}

impl From<ArchiveRefusal> for SkillError {
    fn from(refusal: ArchiveRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl SkillError {
    fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |why| Self::Io { path, why }
    }
}
