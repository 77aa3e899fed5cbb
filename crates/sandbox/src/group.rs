//! Control groups: one per command, so that the kernel enforces the limits of all its processes together. Version 2 if
//! a subtree is delegated to the daemon, version 1 if that is in use.

mod legacy;

use crate::CommandLimits;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Mount point of the control group tree.
const TREE: &str = "/sys/fs/cgroup";
/// Name of the daemon's own group: a group with limited subgroups must not contain processes.
const OWN: &str = "daemon";
/// Prefix of the names of commands' groups.
const COMMAND: &str = "command-";

/// Interval between checks for processes killed by the kernel.
const OOM_LOOK: Duration = Duration::from_millis(100);

/// Number of the next group. A process has one sequence, because its number is a part of the names.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Control groups of commands.
#[derive(Debug)]
pub(crate) struct CommandGroups {
    tree: Tree,
    /// Groups whose processes were still on their way out when they were removed.
    left: Arc<Mutex<Vec<PathBuf>>>,
    /// Whether memory that belongs to no process is counted too.
    kernel_memory: bool,
}

#[derive(Debug)]
enum Tree {
    /// The delegated subtree.
    Unified(PathBuf),
    /// The daemon's own groups, in which subgroups can be created.
    Legacy(legacy::OwnGroups),
}

impl CommandGroups {
    /// Takes over the subtree of the daemon if it is delegated, and moves the daemon to a subgroup. With version 1,
    /// finds the daemon's groups and checks whether subgroups can be created.
    pub(crate) fn open() -> io::Result<Self> {
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let Some(folder) = folder(Path::new(TREE), &own) else {
            let mounts = fs::read_to_string("/proc/self/mountinfo")?;
            let own = legacy::OwnGroups::find(&own, &mounts)
                .ok_or_else(|| io::Error::other("those of version 1 are not all there"))?;
            return Self::open_legacy(own);
        };
        let part = part(&folder);
        if is_ours(part) { Self::open_at(part) } else { Err(io::Error::other("none was delegated")) }
    }

    fn open_legacy(own: legacy::OwnGroups) -> io::Result<Self> {
        own.sweep(COMMAND);
        let groups = Self::new(Tree::Legacy(own));
        match groups.open_one(&CommandLimits::default()) {
            Some(_) => Ok(groups),
            None => Err(io::Error::other("those of version 1 are not ours to divide")),
        }
    }

    fn open_at(folder: &Path) -> io::Result<Self> {
        let offered = fs::read_to_string(folder.join("cgroup.controllers"))?;
        if !["memory", "pids"].iter().all(|wanted| offered.split_whitespace().any(|one| one == *wanted)) {
            return Err(io::Error::other("none was delegated"));
        }
        let own = folder.join(OWN);
        fs::create_dir_all(&own).map_err(|_| io::Error::other("none was delegated"))?;
        for process in fs::read_to_string(folder.join("cgroup.procs"))?.lines() {
            // A process that has ended meanwhile cannot be moved.
            fs::write(own.join("cgroup.procs"), process).ok();
        }
        fs::write(folder.join("cgroup.subtree_control"), "+memory +pids")
            .map_err(|_| io::Error::other("none was delegated"))?;
        sweep(folder);
        Ok(Self::new(Tree::Unified(folder.to_owned())))
    }

    fn new(tree: Tree) -> Self {
        let boot = fs::read_to_string("/proc/cmdline").unwrap_or_default();
        let kernel_memory = !boot.contains("nokmem");
        Self { tree, left: Arc::default(), kernel_memory }
    }

    /// Returns the version in use.
    pub(crate) fn version(&self) -> u8 {
        match self.tree {
            Tree::Unified(_) => 2,
            Tree::Legacy(_) => 1,
        }
    }

    /// Creates a group for one command; `None` on failure, which leaves only the limits per process.
    pub(crate) fn open_one(&self, limits: &CommandLimits) -> Option<CommandGroup> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|folder| {
            fs::remove_dir(folder).is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
        });
        drop(left);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{COMMAND}{}-{number}", std::process::id());
        let mut group = CommandGroup {
            folders: Vec::new(),
            left: self.left.clone(),
            kernel_memory: self.kernel_memory,
            legacy: self.version() == 1,
        };
        let mut make = |parent: &Path, settings: &[(&str, u64, bool)]| -> Option<()> {
            let folder = parent.join(&name);
            fs::create_dir(&folder).ok()?;
            group.folders.push(folder.clone());
            for (file, value, needed) in settings {
                let set = fs::write(folder.join(file), value.to_string());
                if *needed {
                    set.ok()?;
                }
            }
            Some(())
        };
        // The group includes two processes of the sandbox itself. Not every kernel has the optional settings.
        let (memory, processes) = (limits.memory, limits.processes + 2);
        match &self.tree {
            Tree::Unified(folder) => make(
                folder,
                &[
                    ("memory.max", memory, true),
                    ("pids.max", processes, true),
                    ("memory.swap.max", 0, false),
                    ("memory.oom.group", 1, false),
                ],
            )?,
            Tree::Legacy(own) => {
                make(
                    &own.memory,
                    &[
                        ("memory.limit_in_bytes", memory, true),
                        ("memory.swappiness", 0, false),
                        ("memory.memsw.limit_in_bytes", memory, false),
                        // Counted separately.
                        ("memory.kmem.tcp.limit_in_bytes", memory / 4, false),
                    ],
                )?;
                make(&own.pids, &[("pids.max", processes, true)])?;
            }
        }
        Some(group)
    }
}

/// Removes groups of an earlier daemon's commands.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(COMMAND)) {
            kill(&entry.path());
            fs::remove_dir(entry.path()).ok();
        }
    }
}

/// The group of one command, removed on drop.
pub(crate) struct CommandGroup {
    /// One folder, or one per controller.
    folders: Vec<PathBuf>,
    left: Arc<Mutex<Vec<PathBuf>>>,
    kernel_memory: bool,
    legacy: bool,
}

impl CommandGroup {
    /// Returns its folders.
    pub(crate) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Returns whether memory that belongs to no process is counted too.
    pub(crate) fn counts_kernel_memory(&self) -> bool {
        self.kernel_memory
    }

    /// Returns whether the kernel killed one of its processes for memory.
    pub(crate) fn out_of_memory(&self) -> bool {
        let file = if self.legacy { "memory.oom_control" } else { "memory.events" };
        let Some(folder) = self.folders.first() else { return false };
        let events = fs::read_to_string(folder.join(file)).unwrap_or_default();
        events.lines().any(|line| line.strip_prefix("oom_kill ").is_some_and(|count| count.trim() != "0"))
    }

    /// Returns when that has happened: in version 1 the kernel leaves the other processes running.
    pub(crate) async fn wait_for_oom(&self) {
        while !self.out_of_memory() {
            tokio::time::sleep(OOM_LOOK).await;
        }
    }
}

impl Drop for CommandGroup {
    fn drop(&mut self) {
        for folder in &self.folders {
            kill(folder);
            if fs::remove_dir(folder).is_err() {
                // If a process is still exiting, the next command or the next daemon removes the group.
                self.left.lock().unwrap_or_else(PoisonError::into_inner).push(folder.clone());
            }
        }
    }
}

/// Kills all processes of a group.
fn kill(folder: &Path) {
    if fs::write(folder.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    for process in fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default().lines() {
        if let Some(process) = process.parse().ok().and_then(Pid::from_raw) {
            kill_process(process, Signal::KILL).ok();
        }
    }
}

/// Finds a process's folder in the tree from `/proc/self/cgroup`; `None` if version 1 is in use.
fn folder(tree: &Path, own: &str) -> Option<PathBuf> {
    let versions_one = own.lines().any(|line| line.contains(":memory:") || line.contains(":pids:"));
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    (!versions_one).then(|| tree.join(path))
}

/// Returns the subtree of a process, also if the process was moved to a subgroup before.
fn part(folder: &Path) -> &Path {
    let moved = folder.file_name().is_some_and(|name| name == OWN);
    folder.parent().filter(|_| moved).unwrap_or(folder)
}

/// Returns whether this subtree is delegated: systemd marks it, and in a container it looks like the root of the tree.
/// Any other subtree that root can write to also belongs to others.
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

    /// A folder that looks like a delegated subtree; plain files replace the kernel.
    #[test]
    fn a_delegated_part_is_taken_and_each_command_gets_its_limits() {
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        fs::write(at("cgroup.controllers"), "cpu memory pids\n").unwrap();
        fs::write(at("cgroup.procs"), "1\n2\n").unwrap();
        fs::create_dir(at("command-1-0")).unwrap();
        let groups = CommandGroups::open_at(tree.path()).unwrap();
        assert_eq!(fs::read_to_string(at("daemon/cgroup.procs")).unwrap(), "2");
        assert_eq!(fs::read_to_string(at("cgroup.subtree_control")).unwrap(), "+memory +pids");
        let limits = CommandLimits { memory: 5, processes: 7, disk: 9 };
        let group = groups.open_one(&limits).unwrap();
        let folder = &group.folders()[0];
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!((read("memory.max").as_str(), read("pids.max").as_str()), ("5", "9"));
        assert!(!group.out_of_memory());
        fs::write(folder.join("memory.events"), "oom 1\noom_kill 1\n").unwrap();
        assert!(group.out_of_memory());
    }

    #[test]
    fn what_was_not_delegated_is_left_alone() {
        let tree = tempfile::tempdir().unwrap();
        fs::write(tree.path().join("cgroup.controllers"), "cpu\n").unwrap();
        assert_eq!(CommandGroups::open_at(tree.path()).unwrap_err().to_string(), "none was delegated");
        assert!(!tree.path().join(OWN).exists());
        assert!(!is_ours(tree.path()) && !is_ours(Path::new(TREE)) && !is_ours(Path::new("/")));
        assert_eq!(part(Path::new("/t/pudu.service/daemon")), Path::new("/t/pudu.service"));
        assert_eq!(part(Path::new("/t/pudu.service")), Path::new("/t/pudu.service"));
    }
}
