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

/// Nice value of a command's processes relative to the daemon.
const NICE: i32 = 5;
/// Maximum number of open files of a process, and of files in flight over sockets.
const OPEN: u64 = 4096;
/// The same if no control group counts the kernel memory of files.
const OPEN_UNCOUNTED: u64 = 1024;
/// Before this kernel version, processes were counted per user of the whole machine, including the daemon's.
const COUNTS_BY_NAMESPACE: (u32, u32) = (5, 14);
/// Minimum process limit on such a kernel, to leave room for the daemon.
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

/// Changes the user from root.
pub(super) fn become_user(user: u32, group: u32) -> Result<(), InitError> {
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    setgroups(&[]).trying("leaving root's groups")?;
    setresgid(group, group, group).trying("leaving root's group")?;
    setresuid(user, user, user).trying("not being root any more")
}

/// Changes the owner of an open file.
pub(super) fn give(what: impl AsFd, user: u32, group: u32) -> rustix::io::Result<()> {
    fchown(what, Some(rustix::fs::Uid::from_raw(user)), Some(rustix::fs::Gid::from_raw(group)))
}

/// Drops all capabilities, and the possibility to regain them on exec.
pub(super) fn drop_all() -> rustix::io::Result<()> {
    set_no_new_privs(true)?;
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}

/// Sets the resource limits per process. The sum of all processes is checked elsewhere.
pub(super) fn limit(limits: &CommandLimits, counted: bool) -> Result<(), InitError> {
    let processes = if counts_by_namespace() { limits.processes } else { limits.processes.max(OLD_COUNT) };
    for (resource, most) in [
        (Resource::Core, 0),
        (Resource::Nproc, processes),
        (Resource::Nofile, if counted { OPEN } else { OPEN_UNCOUNTED }),
        (Resource::Fsize, limits.disk),
        // Not the address space: JIT compilers reserve much more than they use.
        (Resource::Data, limits.memory),
        (Resource::Memlock, 8 * 1024 * 1024),
        (Resource::Msgqueue, 1024 * 1024),
        (Resource::Sigpending, 4096),
    ] {
        // A lower limit of the machine is not raised.
        let most = getrlimit(resource).maximum.map_or(most, |hard| most.min(hard));
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit).trying(format_args!("limiting {resource:?}"))?;
    }
    nice(NICE).map(drop).trying("stepping back behind the daemon")
}

/// Raises the limit of open files to the machine's maximum: it also limits descriptors in flight over sockets,
/// including those of other commands of this user, when this process sends one. Best effort.
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
