//! Drops the privileges of a process.

use super::error::{InitError, Trying};
use crate::CommandLimits;
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use rustix::{
    fs::fchown,
    process::{Resource, Rlimit, getrlimit, nice, setrlimit},
    thread::{
        CapabilitySet, CapabilitySets, capability_is_in_bounding_set, clear_ambient_capability_set,
        remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
    },
};
use std::os::fd::AsFd;

/// Nice value that is added to the daemon's for a command's processes.
const NICE: i32 = 5;
/// Maximum number of open files per process, and of files in flight over sockets.
const OPEN: u64 = 4096;
/// The same maximum if no control group counts the kernel memory that files take.
const OPEN_UNCOUNTED: u64 = 1024;
/// First kernel version that counts processes per user namespace. Older ones count all processes of a user on the
/// machine, including the daemon's.
const COUNTS_BY_NAMESPACE: (u32, u32) = (5, 14);
/// Minimum process limit on older kernels, which also count processes outside of the sandbox.
const OLD_COUNT: u64 = 4096;

/// Removes all capabilities that a program could gain on exec.
pub(super) fn empty_bounding_set() -> rustix::io::Result<()> {
    for right in (0..u64::BITS).filter_map(|bit| CapabilitySet::from_bits(1 << bit)) {
        // The query fails for capabilities that this kernel does not know.
        if capability_is_in_bounding_set(right).unwrap_or(false) {
            remove_capability_from_bounding_set(right)?;
        }
    }
    Ok(())
}

/// Changes from root to another user.
pub(super) fn become_user(user: u32, group: u32) -> Result<(), InitError> {
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    setgroups(&[]).trying("cannot drop root's groups")?;
    setresgid(group, group, group).trying("cannot change the group")?;
    setresuid(user, user, user).trying("cannot change the user")
}

/// Changes the owner of an open file.
pub(super) fn give(what: impl AsFd, user: u32, group: u32) -> rustix::io::Result<()> {
    fchown(what, Some(rustix::fs::Uid::from_raw(user)), Some(rustix::fs::Gid::from_raw(group)))
}

/// Drops all capabilities, and the ability to regain them on exec.
pub(super) fn drop_all() -> rustix::io::Result<()> {
    set_no_new_privs(true)?;
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}

/// Sets the resource limits per process. Totals across processes are checked elsewhere.
pub(super) fn limit(limits: &CommandLimits, counted: bool) -> Result<(), InitError> {
    let processes = if counts_by_namespace() { limits.processes } else { limits.processes.max(OLD_COUNT) };
    for (resource, most) in [
        (Resource::Core, 0),
        (Resource::Nproc, processes),
        (Resource::Nofile, if counted { OPEN } else { OPEN_UNCOUNTED }),
        (Resource::Fsize, limits.disk),
        // The address space is not limited, because JIT compilers reserve much more than they use.
        (Resource::Data, limits.memory),
        (Resource::Memlock, 8 * 1024 * 1024),
        (Resource::Msgqueue, 1024 * 1024),
        (Resource::Sigpending, 4096),
    ] {
        // If the machine's limit is lower, it is kept.
        let most = getrlimit(resource).maximum.map_or(most, |hard| most.min(hard));
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit).trying(format_args!("cannot limit {resource:?}"))?;
    }
    nice(NICE).map(drop).trying("cannot lower the priority")
}

/// Raises the limit on open files to the machine's maximum. When this process sends a descriptor over a socket, the
/// same limit applies to all descriptors in flight, including those of this user's other commands. Best effort.
pub(super) fn raise_open_files() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).ok();
}

fn counts_by_namespace() -> bool {
    let name = rustix::system::uname();
    let mut parts = name.release().to_str().unwrap_or_default().split(['.', '-']);
    let mut part = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
    (part(), part()) >= COUNTS_BY_NAMESPACE
}
