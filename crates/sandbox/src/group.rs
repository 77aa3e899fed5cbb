//! Control groups, one per command, with which the kernel enforces limits on all of a command's processes together.
//! Uses version 2 if a subtree is delegated to the daemon, or version 1 on a machine that still uses it.

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
/// Name of the daemon's own group, which is separate because a group with limited subgroups must not contain processes.
const OWN: &str = "daemon";
/// Prefix of the names of commands' groups.
const COMMAND: &str = "command-";

/// Interval between checks for processes that the kernel killed because memory ran out.
const OOM_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Number of the next group. The sequence is per process, because the names contain the process ID.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Control groups of commands.
#[derive(Debug)]
pub(crate) struct CommandGroups {
    tree: Tree,
    /// Groups that could not be removed because their processes were still exiting.
    left: Arc<Mutex<Vec<PathBuf>>>,
    /// Whether kernel memory outside of processes is counted too.
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
    /// Takes over the daemon's subtree if it is delegated, and moves the daemon to a subgroup. With version 1, finds
    /// the daemon's groups and checks whether subgroups can be created.
    pub(crate) fn open() -> io::Result<Self> {
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let Some(folder) = folder(Path::new(TREE), &own) else {
            let mounts = fs::read_to_string("/proc/self/mountinfo")?;
            let own = legacy::OwnGroups::find(&own, &mounts)
                .ok_or_else(|| io::Error::other("cgroup v1 without all needed controllers"))?;
            return Self::open_legacy(own);
        };
        let part = part(&folder);
        if is_ours(part) {
            Self::open_at(part)
        } else {
            Err(io::Error::other("no cgroup is delegated to pudu"))
        }
    }

    fn open_legacy(own: legacy::OwnGroups) -> io::Result<Self> {
        own.sweep(COMMAND);
        let groups = Self::new(Tree::Legacy(own));
        match groups.open_one(&CommandLimits::default()) {
            Some(_) => Ok(groups),
            None => Err(io::Error::other("cannot create subgroups in cgroup v1")),
        }
    }

    fn open_at(folder: &Path) -> io::Result<Self> {
        let offered = fs::read_to_string(folder.join("cgroup.controllers"))?;
        if !["memory", "pids"].iter().all(|wanted| offered.split_whitespace().any(|one| one == *wanted)) {
            return Err(io::Error::other("no cgroup is delegated to pudu"));
        }
        let own = folder.join(OWN);
        fs::create_dir_all(&own).map_err(|_| io::Error::other("no cgroup is delegated to pudu"))?;
        for process in fs::read_to_string(folder.join("cgroup.procs"))?.lines() {
            // A process that has ended in the meantime cannot be moved.
            fs::write(own.join("cgroup.procs"), process).ok();
        }
        fs::write(folder.join("cgroup.subtree_control"), "+memory +pids")
            .map_err(|_| io::Error::other("no cgroup is delegated to pudu"))?;
        sweep(folder);
        Ok(Self::new(Tree::Unified(folder.to_owned())))
    }

    fn new(tree: Tree) -> Self {
        let boot = fs::read_to_string("/proc/cmdline").unwrap_or_default();
        let kernel_memory = !boot.contains("nokmem");
        Self { tree, left: Arc::default(), kernel_memory }
    }

    /// Returns the version of control groups in use.
    pub(crate) fn version(&self) -> u8 {
        match self.tree {
            Tree::Unified(_) => 2,
            Tree::Legacy(_) => 1,
        }
    }

    /// Creates a group for one command. Returns `None` on failure; only the limits per process then apply.
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
        // The group also contains two processes of the sandbox itself. Settings marked `false` are missing in some
        // kernels.
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
                        // Version 1 counts TCP buffers separately.
                        ("memory.kmem.tcp.limit_in_bytes", memory / 4, false),
                    ],
                )?;
                make(&own.pids, &[("pids.max", processes, true)])?;
            }
        }
        Some(group)
    }
}

/// Removes the groups of an earlier daemon's commands.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(COMMAND)) {
            kill(&entry.path());
            fs::remove_dir(entry.path()).ok();
        }
    }
}

/// The group of one command, which is removed on drop.
pub(crate) struct CommandGroup {
    /// One folder, or one per controller with version 1.
    folders: Vec<PathBuf>,
    left: Arc<Mutex<Vec<PathBuf>>>,
    kernel_memory: bool,
    legacy: bool,
}

impl CommandGroup {
    /// Returns the folders of the group.
    pub(crate) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Returns whether kernel memory outside of processes is counted too.
    pub(crate) fn counts_kernel_memory(&self) -> bool {
        self.kernel_memory
    }

    /// Returns whether the kernel killed one of the group's processes because memory ran out.
    pub(crate) fn out_of_memory(&self) -> bool {
        let file = if self.legacy { "memory.oom_control" } else { "memory.events" };
        let Some(folder) = self.folders.first() else { return false };
        let events = fs::read_to_string(folder.join(file)).unwrap_or_default();
        events.lines().any(|line| line.strip_prefix("oom_kill ").is_some_and(|count| count.trim() != "0"))
    }

    /// Waits until the kernel has killed a process because memory ran out. Version 1 leaves the other processes
    /// running.
    pub(crate) async fn wait_for_oom(&self) {
        while !self.out_of_memory() {
            tokio::time::sleep(OOM_CHECK_INTERVAL).await;
        }
    }
}

impl Drop for CommandGroup {
    fn drop(&mut self) {
        for folder in &self.folders {
            kill(folder);
            if fs::remove_dir(folder).is_err() {
                // A process is still exiting, so the next command or the next daemon removes the group.
                self.left.lock().unwrap_or_else(PoisonError::into_inner).push(folder.clone());
            }
        }
    }
}

/// Kills all processes in a group.
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

/// Finds a process's folder in the tree, from the text of `/proc/self/cgroup`; `None` if version 1 is in use.
fn folder(tree: &Path, own: &str) -> Option<PathBuf> {
    let versions_one = own.lines().any(|line| line.contains(":memory:") || line.contains(":pids:"));
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    (!versions_one).then(|| tree.join(path))
}

/// Returns the subtree of a process, even if the process has already been moved to a subgroup.
fn part(folder: &Path) -> &Path {
    let moved = folder.file_name().is_some_and(|name| name == OWN);
    folder.parent().filter(|_| moved).unwrap_or(folder)
}

/// Returns whether this subtree is delegated. systemd marks it as such, and in a container it looks like the root of
/// the tree. Root could write to other subtrees as well, but shares them with other programs.
fn is_ours(folder: &Path) -> bool {
    let marked = ["user.delegate", "trusted.delegate"].iter().any(|name| {
        let mut value = [0; 8];
        rustix::fs::getxattr(folder, *name, &mut value).is_ok_and(|length| value.get(..length) == Some(b"1"))
    });
    // The machine's root group has no `cgroup.type`.
    marked || (folder == Path::new(TREE) && folder.join("cgroup.type").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_found_with_version_two() {
        let folder = |own| folder(Path::new("/t"), own);
        assert_eq!(folder("0::/system.slice/pudu.service\n"), Some("/t/system.slice/pudu.service".into()));
        assert_eq!(folder("0::/\n"), Some("/t/".into()));
        assert_eq!(folder("4:memory:/x\n0::/\n"), None);
        assert_eq!(folder(""), None);
    }

    /// The folder looks like a delegated subtree, with plain files instead of the kernel's.
    #[test]
    fn a_delegated_subtree_is_used_and_each_command_gets_its_limits() {
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
    fn a_subtree_that_is_not_delegated_is_left_alone() {
        let tree = tempfile::tempdir().unwrap();
        fs::write(tree.path().join("cgroup.controllers"), "cpu\n").unwrap();
        assert_eq!(
            CommandGroups::open_at(tree.path()).unwrap_err().to_string(),
            "no cgroup is delegated to \
            pudu"
        );
        assert!(!tree.path().join(OWN).exists());
        assert!(!is_ours(tree.path()) && !is_ours(Path::new(TREE)) && !is_ours(Path::new("/")));
        assert_eq!(part(Path::new("/t/pudu.service/daemon")), Path::new("/t/pudu.service"));
        assert_eq!(part(Path::new("/t/pudu.service")), Path::new("/t/pudu.service"));
    }
}
