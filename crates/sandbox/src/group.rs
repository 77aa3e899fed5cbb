//! Control groups of version 2, where the daemon was given a part of the tree: one for each command, so that the
//! kernel itself holds all its processes together to what they may use up.

use crate::Limits;
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// Where the tree is.
const TREE: &str = "/sys/fs/cgroup";
/// The daemon's own group: one that has groups with limits below it may not have processes.
const OWN: &str = "daemon";
/// How groups of commands are called.
const COMMAND: &str = "command-";

/// The part of the tree that is ours.
#[derive(Debug)]
pub(crate) struct Groups {
    folder: PathBuf,
    next: AtomicU64,
}

impl Groups {
    /// Takes the part of the tree that the daemon is in, if it may. It moves the daemon one down.
    pub(crate) fn open() -> io::Result<Self> {
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let folder = folder(Path::new(TREE), &own).ok_or_else(|| io::Error::other("version 1 is in use"))?;
        let part = part(&folder);
        if is_ours(part) { Self::open_at(part) } else { Err(io::Error::other("none was delegated")) }
    }

    fn open_at(folder: &Path) -> io::Result<Self> {
        let offered = fs::read_to_string(folder.join("cgroup.controllers"))?;
        if !["memory", "pids"].iter().all(|wanted| offered.split_whitespace().any(|one| one == *wanted)) {
            return Err(io::Error::other("none was delegated"));
        }
        let own = folder.join(OWN);
        fs::create_dir_all(&own).map_err(|_| io::Error::other("none was delegated"))?;
        for process in fs::read_to_string(folder.join("cgroup.procs"))?.lines() {
            // One that has ended meanwhile cannot be moved.
            fs::write(own.join("cgroup.procs"), process).ok();
        }
        fs::write(folder.join("cgroup.subtree_control"), "+memory +pids")
            .map_err(|_| io::Error::other("none was delegated"))?;
        let groups = Self { folder: folder.to_owned(), next: AtomicU64::new(0) };
        groups.sweep();
        Ok(groups)
    }

    /// Removes what commands of an earlier daemon left behind.
    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(COMMAND)) {
                drop(Group { folder: entry.path() });
            }
        }
    }

    /// Makes a group for one command; `None` where that fails, which leaves the limits by process.
    pub(crate) fn open_one(&self, limits: &Limits) -> Option<Group> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.join(format!("{COMMAND}{}-{number}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        let group = Group { folder };
        let set = |file: &str, value: String| fs::write(group.folder.join(file), value);
        set("memory.max", limits.memory.to_string()).ok()?;
        // The two processes of the sandbox itself are in it as well.
        set("pids.max", (limits.processes + 2).to_string()).ok()?;
        // Not every kernel has these.
        set("memory.swap.max", "0".to_owned()).ok();
        set("memory.oom.group", "1".to_owned()).ok();
        Some(group)
    }
}

/// The group of one command. It is gone when this is.
pub(crate) struct Group {
    folder: PathBuf,
}

impl Group {
    /// Returns where it is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the kernel killed something in it for the memory it took.
    pub(crate) fn out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.folder.join("memory.events")).unwrap_or_default();
        events.lines().any(|line| line.strip_prefix("oom_kill ").is_some_and(|count| count.trim() != "0"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        fs::write(self.folder.join("cgroup.kill"), "1").ok();
        // Where a process is still on its way out, the next daemon removes it.
        fs::remove_dir(&self.folder).ok();
    }
}

/// Finds a process's folder in the tree by what `/proc/self/cgroup` says; `None` where version 1 counts.
fn folder(tree: &Path, own: &str) -> Option<PathBuf> {
    let versions_one = own.lines().any(|line| line.contains(":memory:") || line.contains(":pids:"));
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    (!versions_one).then(|| tree.join(path))
}

/// Returns the part that a process is in, also if it was moved one down before.
fn part(folder: &Path) -> &Path {
    let moved = folder.file_name().is_some_and(|name| name == OWN);
    folder.parent().filter(|_| moved).unwrap_or(folder)
}

/// Whether somebody gave this part away, to be divided further: systemd marks it, and a container has one that
/// looks like the root of the tree. Everything else that root could write in belongs to others too.
fn is_ours(folder: &Path) -> bool {
    let marked = ["user.delegate", "trusted.delegate"].iter().any(|name| {
        let mut value = [0; 8];
        rustix::fs::getxattr(folder, *name, &mut value).is_ok_and(|length| value.get(..length) == Some(b"1"))
    });
    // The real root has no type.
    marked || (folder == Path::new(TREE) && folder.join("cgroup.type").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_found_where_version_two_counts() {
        let folder = |own| folder(Path::new("/t"), own);
        assert_eq!(folder("0::/system.slice/pudu.service\n"), Some("/t/system.slice/pudu.service".into()));
        assert_eq!(folder("0::/\n"), Some("/t/".into()));
        assert_eq!(folder("4:memory:/x\n0::/\n"), None);
        assert_eq!(folder(""), None);
    }

    /// A folder that looks like a delegated one; the kernel's part is played by plain files.
    #[test]
    fn a_delegated_part_is_taken_and_each_command_gets_its_limits() {
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        fs::write(at("cgroup.controllers"), "cpu memory pids\n").unwrap();
        fs::write(at("cgroup.procs"), "1\n2\n").unwrap();
        fs::create_dir(at("command-1-0")).unwrap();
        let groups = Groups::open_at(tree.path()).unwrap();
        assert_eq!(fs::read_to_string(at("daemon/cgroup.procs")).unwrap(), "2");
        assert_eq!(fs::read_to_string(at("cgroup.subtree_control")).unwrap(), "+memory +pids");
        let limits = Limits { memory: 5, processes: 7, disk: 9 };
        let group = groups.open_one(&limits).unwrap();
        let read = |name: &str| fs::read_to_string(group.folder().join(name)).unwrap();
        assert_eq!((read("memory.max").as_str(), read("pids.max").as_str()), ("5", "9"));
        assert!(!group.out_of_memory());
        fs::write(group.folder().join("memory.events"), "oom 1\noom_kill 1\n").unwrap();
        assert!(group.out_of_memory());
    }

    #[test]
    fn what_was_not_delegated_is_left_alone() {
        let tree = tempfile::tempdir().unwrap();
        fs::write(tree.path().join("cgroup.controllers"), "cpu\n").unwrap();
        assert_eq!(Groups::open_at(tree.path()).unwrap_err().to_string(), "none was delegated");
        assert!(!tree.path().join(OWN).exists());
        assert!(!is_ours(tree.path()) && !is_ours(Path::new(TREE)) && !is_ours(Path::new("/")));
        assert_eq!(part(Path::new("/t/pudu.service/daemon")), Path::new("/t/pudu.service"));
        assert_eq!(part(Path::new("/t/pudu.service")), Path::new("/t/pudu.service"));
    }
}
