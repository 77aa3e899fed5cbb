//! The mounts of a sandbox for the shell and the file tools, with the agent's paths and those on this machine.

use pudu_base::ShownFolder;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

/// The agent's path of the thread's own files.
pub const ROOT: &str = "/mnt/user-data";
/// Folder for files from users.
pub const UPLOADS: &str = "uploads";
/// Folder in which the agent works.
pub(crate) const WORKSPACE: &str = "workspace";
/// Folder for files to users.
pub(crate) const OUTPUTS: &str = "outputs";
/// Folders that every thread has.
pub const THREAD_FOLDERS: [&str; 3] = [WORKSPACE, UPLOADS, OUTPUTS];
/// The agent's path of skills.
pub const SKILLS: &str = "/mnt/skills";
/// The agent's path of files from other agents that work for this one.
pub const ACP: &str = "/mnt/acp-workspace";

/// Paths that a configured mount cannot use, because they are parts of the sandbox itself.
const TAKEN: [&str; 20] = [
    ROOT, SKILLS, ACP, "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/nix",
    "/old", "/proc", "/run", "/sbin", "/sys", "/tmp", "/usr", "/var",
];

/// A folder on this machine and its path in the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Path on this machine.
    pub host: PathBuf,
    /// Path in the sandbox.
    pub agent: String,
    /// Whether the mount is read-only.
    pub read_only: bool,
}

impl Mount {
    /// Creates a read-only mount of a folder that a run shows to the agent.
    pub(crate) fn from_shown_folder(ShownFolder { host, agent }: ShownFolder) -> Self {
        Self { host, agent, read_only: true }
    }

    /// Creates a mount configured by the operator.
    ///
    /// # Errors
    /// When the mount is invalid. The error contains the reason.
    pub fn configured(host: PathBuf, agent: &str, read_only: bool) -> Result<Self, String> {
        if !is_plain(&host) {
            return Err(format!("{} is not an absolute path without `.` and `..`", host.display()));
        }
        let path = Path::new(agent);
        if !is_plain(path) || path == Path::new("/") || agent.contains(char::is_control) {
            return Err(format!("{agent:?} is not an absolute path without `.` and `..` below the root"));
        }
        // A mount also must not hide a taken path: `/mnt` may contain other mounts but cannot be replaced as a whole.
        let meets = |taken: &&str| path.starts_with(taken) || Path::new(taken).starts_with(path);
        match TAKEN.iter().find(|taken| meets(taken)) {
            Some(taken) => Err(format!("{agent} is reserved: the sandbox has its own {taken}")),
            None => Ok(Self { host, agent: agent.trim_end_matches('/').to_owned(), read_only }),
        }
    }
}

fn is_plain(path: &Path) -> bool {
    let parts = |part| matches!(part, Component::RootDir | Component::Normal(_));
    path.is_absolute() && path.components().all(parts)
}

/// Finds the innermost mount that contains an agent's path. Also returns the path relative to that mount.
pub(crate) fn find<'m>(mounts: &'m [Mount], path: &str) -> Option<(&'m Mount, PathBuf)> {
    let inside =
        |mount: &'m Mount| Some((mount, Path::new(path).strip_prefix(&mount.agent).ok()?.to_owned()));
    mounts.iter().filter_map(inside).max_by_key(|(mount, _)| mount.agent.len())
}

/// Returns whether a path is a folder that contains mounts.
pub(crate) fn leads_to_some(mounts: &[Mount], path: &str) -> bool {
    !below(mounts, path).is_empty()
}

/// Returns the folders below a path that are mounts or contain mounts, each with its depth.
pub(crate) fn below(mounts: &[Mount], path: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for rest in mounts.iter().filter_map(|mount| Path::new(&mount.agent).strip_prefix(path).ok()) {
        let mut at = path.trim_end_matches('/').to_owned();
        for (level, part) in rest.iter().enumerate() {
            at = format!("{at}/{}", part.display());
            found.insert(at.clone(), level + 1);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(host: &str, agent: &str) -> Mount {
        Mount { host: host.into(), agent: agent.into(), read_only: true }
    }

    #[test]
    fn the_innermost_mount_is_found_by_whole_names() {
        let mounts = [mount("/a", "/mnt/x"), mount("/b", "/mnt/x/y"), mount("/c", "/mnt/xy")];
        let find = |path| find(&mounts, path).map(|(mount, rest)| (mount.host.to_str().unwrap(), rest));
        assert_eq!(find("/mnt/x/file"), Some(("/a", "file".into())));
        assert_eq!(find("/mnt/x/y/file"), Some(("/b", "file".into())));
        assert_eq!(find("/mnt/xy"), Some(("/c", "".into())));
        assert_eq!(find("/mnt/xyz"), None);
        assert_eq!(find("mnt/x"), None);
    }

    #[test]
    fn folders_that_contain_mounts_are_found() {
        let mounts = [mount("/a", "/mnt/skills/public/x"), mount("/b", "/mnt/skills/custom/y")];
        let found =
            |path| below(&mounts, path).into_iter().map(|(at, level)| format!("{level} {at}")).collect();
        let all: Vec<String> = found("/mnt/skills/");
        let expected = [
            "1 /mnt/skills/custom",
            "2 /mnt/skills/custom/y",
            "1 /mnt/skills/public",
            "2 /mnt/skills/public/x",
        ];
        assert_eq!(all, expected);
        let none: Vec<String> = found("/mnt/skills/public/x");
        assert_eq!(none, [""; 0]);
        assert!(leads_to_some(&mounts, "/mnt") && !leads_to_some(&mounts, "/mnt/skill"));
    }

    #[test]
    fn mounts_that_would_break_the_sandbox_are_refused() {
        let agent = |agent: &str| Mount::configured("/srv/data".into(), agent, true).map(|mount| mount.agent);
        assert_eq!(agent("/mnt/data/"), Ok("/mnt/data".into()));
        assert_eq!(agent("/opt"), Ok("/opt".into()));
        for (path, word) in [
            ("/", "below the root"),
            ("data", "not an absolute path"),
            ("/mnt/../etc", "not an absolute path"),
            ("/mnt/a\nb", "not an absolute path"),
            ("/mnt", "/mnt/user-data"),
            ("/mnt/user-data/x", "/mnt/user-data"),
            ("/mnt/skills", "/mnt/skills"),
            ("/usr/local", "/usr"),
            ("/proc", "/proc"),
        ] {
            let said = agent(path).unwrap_err();
            assert!(said.contains(word), "{path}: {said}");
        }
        assert!(Mount::configured("data".into(), "/mnt/data", true).unwrap_err().contains("data is not"));
    }
}
