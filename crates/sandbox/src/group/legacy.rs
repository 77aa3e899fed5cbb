//! The daemon's control groups of version 1, which has a separate tree for each resource. The daemon's own limits also
//! apply to subgroups.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The daemon's own group in each tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OwnGroups {
    pub(super) memory: PathBuf,
    pub(super) pids: PathBuf,
}

impl OwnGroups {
    /// Finds the groups from `/proc/self/cgroup` and `/proc/self/mountinfo`; `None` if one is not mounted.
    pub(super) fn find(own: &str, mounts: &str) -> Option<Self> {
        let folder = |counted| {
            let path = path(own, counted)?;
            // A later mount may hide this one.
            mounts
                .lines()
                .filter_map(|mount| path_below_mount(mount, counted, path))
                .find(|at| at.join("cgroup.procs").exists())
        };
        Some(Self { memory: folder("memory")?, pids: folder("pids")? })
    }

    /// Removes empty groups left by daemons that have ended. The groups of other running daemons may be next to them.
    pub(super) fn sweep(&self, prefix: &str) {
        for entry in [&self.memory, &self.pids].into_iter().flat_map(fs::read_dir).flatten().flatten() {
            let name = entry.file_name();
            let of = name.to_str().and_then(|name| name.strip_prefix(prefix)?.split_once('-'));
            if of.is_some_and(|(daemon, _)| !Path::new("/proc").join(daemon).exists()) {
                fs::remove_dir(entry.path()).ok();
            }
        }
    }
}

/// Returns the path of a process in a controller's tree, from a line such as `4:memory:/path`.
fn path<'a>(own: &'a str, counted: &str) -> Option<&'a str> {
    own.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (all, path) = rest.split_once(':')?;
        all.split(',').any(|one| one == counted).then_some(path)
    })
}

/// Returns the path below a mount if the mount is a controller's tree, as in `… ROOT AT … - cgroup cgroup rw,memory`.
fn path_below_mount(mount: &str, counted: &str, path: &str) -> Option<PathBuf> {
    let (location, kind) = mount.split_once(" - ")?;
    let mut kind = kind.split(' ');
    let is_tree = kind.next() == Some("cgroup") && kind.nth(1)?.split(',').any(|option| option == counted);
    let mut location = location.split(' ').skip(3);
    let (root, at) = (location.next()?, location.next()?);
    let below = Path::new(path).strip_prefix(root).ok()?;
    is_tree.then(|| Path::new(at).join(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_groups_are_found_below_their_mounts() {
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        for name in ["memory/a/b", "pids"] {
            fs::create_dir_all(at(name)).unwrap();
            fs::write(at(name).join("cgroup.procs"), "").unwrap();
        }
        let root = tree.path().display();
        let mounts = format!(
            "20 1 0:1 / /nowhere rw - cgroup cgroup rw,memory\n21 1 0:1 / {root}/memory rw,relatime - cgroup cgroup rw,memory\n\
             22 1 0:2 / {root}/pids rw shared:1 - cgroup cgroup rw,pids\n23 1 0:3 / /proc rw - proc proc rw\n"
        );
        let find = |own: &str| OwnGroups::find(own, &mounts);
        let own = OwnGroups { memory: at("memory/a/b"), pids: at("pids/") };
        assert_eq!(find("4:memory:/a/b\n8:pids:/\n0::/\n"), Some(own));
        assert_eq!(find("4:memory:/a/c\n8:pids:/\n"), None);
        assert_eq!(find("4:cpu,memory:/a/b\n8:freezer:/\n"), None);
        // A container sees only a subtree.
        let part = mounts.replace(" 0:1 / ", " 0:1 /docker/x ");
        assert_eq!(
            OwnGroups::find("4:memory:/docker/x/a/b\n8:pids:/\n", &part).map(|own| own.memory),
            Some(at("memory/a/b"))
        );
        assert_eq!(OwnGroups::find("4:memory:/a/b\n8:pids:/\n", &part), None);
    }

    #[test]
    fn groups_of_dead_daemons_are_removed() {
        let tree = tempfile::tempdir().unwrap();
        let own = OwnGroups { memory: tree.path().join("memory"), pids: tree.path().join("pids") };
        let alive = format!("command-{}-3", std::process::id());
        for name in ["memory/command-999999999-1", "pids/command-999999999-1", "memory/others"] {
            fs::create_dir_all(tree.path().join(name)).unwrap();
        }
        fs::create_dir(own.memory.join(&alive)).unwrap();
        own.sweep("command-");
        let left = |folder: &Path| {
            let mut names: Vec<String> = fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        assert_eq!((left(&own.memory), left(&own.pids)), (vec![alive, "others".to_owned()], Vec::new()));
    }
}
