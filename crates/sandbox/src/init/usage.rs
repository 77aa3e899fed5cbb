//! Resource usage of all processes in a sandbox, from `/proc`. If a control group counts kernel memory, only the memory
//! of processes and the resources that the kernel counts per user are checked. Otherwise, kernel memory outside of
//! processes is estimated by its maximum, which is too high, but only beyond the usage of ordinary programs.

use super::wire::{JailPlan, Net};
use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, ErrorKind},
    path::{Path, PathBuf},
};

/// Minimum resident memory of a process whose proportional share is read, in bytes.
const SMALL: u64 = 16 << 20;
/// Number of sockets and number of pipes that an ordinary program uses and that are not counted.
const ORDINARY: u64 = 64;
/// Maximum size of the data buffered in a socket (twice `net.core.wmem_max`) and in a pipe (16 pages), in bytes.
const SOCKET: u64 = 2 * 212_992;
const PIPE: u64 = 64 << 10;
/// Kernel memory per watched file, in bytes.
const WATCH: u64 = 256;
/// Maximum number of files that all processes watch. The kernel limits this number per user, including the daemon's own
/// watches.
const WATCHES: u64 = 65_536;
/// Maximum number of pipes, which the kernel also limits per user.
const PIPES: usize = 512;
/// Folders that are kept in memory.
const IN_MEMORY: [&str; 2] = ["/tmp", "/dev/shm"];
/// Number of consecutive failed checks that make a process count as hiding. A single check may fail during an exec.
const HIDDEN: u32 = 3;

/// Checks the usage of a command.
pub(super) struct UsageProbe {
    memory: u64,
    counted: bool,
    own_net: bool,
    /// The machine's shared memory at the start of the command, in bytes.
    shared: u64,
    hidden: u32,
}

impl UsageProbe {
    /// Starts the probe. Must be called before the command starts.
    pub(super) fn begin(plan: &JailPlan) -> Self {
        Self {
            memory: plan.limits.memory,
            counted: plan.counted,
            own_net: plan.net != Net::Shared,
            shared: shared(),
            hidden: 0,
        }
    }

    /// Returns the command's remaining memory in bytes; `None` if the command exceeds a limit.
    pub(super) fn left(&mut self) -> Option<u64> {
        let mut seen = UsageSample::default();
        for process in processes() {
            self.add_process(&process, &mut seen);
            if seen.is_greedy() {
                return None;
            }
        }
        self.hidden = if seen.hidden { self.hidden + 1 } else { 0 };
        if !self.counted && self.hidden >= HIDDEN {
            return None;
        }
        let mut memory = seen.memory;
        if !self.counted {
            memory += self.of_nobody(&seen);
            // Unmapped shared pages do not appear in any process but still count as the machine's shared memory.
            if seen.shares && shared().saturating_sub(self.shared) > self.memory {
                return None;
            }
        }
        self.memory.checked_sub(memory)
    }

    fn add_process(&self, process: &Path, seen: &mut UsageSample) {
        let Some(task) = TaskProbe::from_process(process) else { return };
        seen.memory += match task.resident {
            resident if resident * 1024 < SMALL => resident * 1024,
            resident => fair_share(&task.path).unwrap_or(resident * 1024),
        } + task.tables * 1024;
        if !self.counted {
            seen.shares |= shares(&task.path);
        }
        match fs::read_dir(task.path.join("fd")) {
            Ok(open) => open.flatten().for_each(|file| seen.note(&file.path(), &task.path)),
            Err(error) => seen.hidden |= error.kind() == ErrorKind::PermissionDenied,
        }
    }

    /// Returns the maximum memory outside of processes, in bytes.
    fn of_nobody(&self, seen: &UsageSample) -> u64 {
        let open = seen.sockets.len() as u64;
        // This includes sockets in flight over other sockets.
        let sockets = if self.own_net { open.max(sockets()) } else { open };
        let in_memory = IN_MEMORY.iter().filter_map(|at| rustix::fs::statvfs(*at).ok());
        in_memory.map(|stat| stat.f_blocks.saturating_sub(stat.f_bfree) * stat.f_frsize).sum::<u64>()
            + sockets.saturating_sub(ORDINARY) * SOCKET
            + (seen.pipes.len() as u64).saturating_sub(ORDINARY) * PIPE
            + seen.watches * WATCH
    }
}

/// Result of one check of `/proc`.
#[derive(Default)]
struct UsageSample {
    memory: u64,
    watches: u64,
    sockets: BTreeSet<String>,
    pipes: BTreeSet<String>,
    shares: bool,
    hidden: bool,
}

impl UsageSample {
    /// Returns whether the command uses more than its share of the resources that a user's commands share with the
    /// daemon.
    fn is_greedy(&self) -> bool {
        self.watches > WATCHES || self.pipes.len() > PIPES
    }

    fn note(&mut self, file: &Path, task: &Path) {
        let Ok(target) = fs::read_link(file) else { return };
        let Some(target) = target.to_str() else { return };
        if target.starts_with("socket:") {
            self.sockets.insert(target.to_owned());
        } else if target.starts_with("pipe:") {
            self.pipes.insert(target.to_owned());
        } else if target == "anon_inode:[eventpoll]" {
            let name = file.file_name().unwrap_or_default();
            self.watches += watches(&task.join("fdinfo").join(name), WATCHES - self.watches.min(WATCHES) + 1);
        }
    }
}

/// A thread that shows its process's resources. The main thread shows nothing once it has ended.
struct TaskProbe {
    path: PathBuf,
    /// Resident memory, in KiB.
    resident: u64,
    /// Memory of the page tables, in KiB.
    tables: u64,
}

impl TaskProbe {
    fn from_process(process: &Path) -> Option<Self> {
        Self::read(process.to_owned()).or_else(|| {
            let threads = fs::read_dir(process.join("task")).ok()?;
            threads.flatten().find_map(|thread| Self::read(thread.path()))
        })
    }

    fn read(path: PathBuf) -> Option<Self> {
        let status = fs::read_to_string(path.join("status")).ok()?;
        let number = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().trim_end_matches(" kB").parse().ok()
        };
        Some(Self { resident: number("VmRSS:")?, tables: number("VmPTE:").unwrap_or(0), path })
    }
}

/// Returns the resident memory of a process in bytes, counting shared pages in proportion; `None` if it cannot be read.
fn fair_share(task: &Path) -> Option<u64> {
    let text = fs::read_to_string(task.join("smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kilobytes * 1024)
}

/// Returns whether a process has shared memory that stays allocated while any part is mapped.
fn shares(task: &Path) -> bool {
    let Ok(maps) = fs::File::open(task.join("maps")) else { return false };
    BufReader::new(maps).lines().map_while(Result::ok).any(|line| line.contains("/dev/zero"))
}

/// Returns the number of files that an epoll instance watches, up to `most`.
fn watches(about: &Path, most: u64) -> u64 {
    let Ok(file) = fs::File::open(about) else { return 0 };
    let lines = BufReader::new(file).lines().map_while(Result::ok).filter(|line| line.starts_with("tfd:"));
    lines.zip(0..most).count() as u64
}

/// Returns the number of sockets in this network namespace.
fn sockets() -> u64 {
    let text = fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
    text.split_whitespace().nth(2).and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Returns the machine's shared memory, in bytes.
fn shared() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Shmem:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn processes() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        name.bytes().all(|byte| byte.is_ascii_digit()).then(|| entry.path())
    })
}
