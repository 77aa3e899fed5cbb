//! Confines this process to its open descriptors: no files, no network, no other processes, and only the system calls
//! for computation. For programs that read untrusted input and write to their standard output.
//!
//! Namespaces are used if available; changing the user from root and the system call filter are mandatory. Deliberately
//! absent: limits, which the caller sets.

use super::{
    error::{InitError, Trying},
    outer, privileges,
    quota::Proc,
    seccomp,
};
use nix::sched::{CloneFlags, unshare};
use rustix::{
    mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, mount_remount, unmount},
    process::{getegid, geteuid, pivot_root, setsid},
    thread::capabilities,
};
use std::{fs, io};

/// User and group of commands and confined processes if the daemon is root: an ID that distributions and systemd keep
/// free.
pub(crate) const NOBODY_ELSE: (u32, u32) = (65_533, 65_533);

/// Confines this process. Must be called while there is a single thread.
///
/// # Errors
/// When a privilege could not be dropped; the process has to exit then.
pub fn withdraw() -> Result<(), String> {
    work().map_err(|InitError(why)| why)
}

fn work() -> Result<(), InitError> {
    outer::close_strangers().trying("closing what was inherited")?;
    // A session leader has no terminal either. If memory runs out, this process is killed first, if possible.
    setsid().ok();
    fs::write("/proc/self/oom_score_adj", "1000").ok();
    let from_root = geteuid().is_root();
    if leave(from_root).is_ok() {
        empty_root().ok();
    }
    // Without capabilities and new namespaces there is nothing to drop, and no permission to drop it.
    let powerless = capabilities(None).is_ok_and(|sets| sets.permitted.is_empty());
    if !powerless {
        privileges::empty_bounding_set().trying("emptying the bounding set")?;
        if from_root {
            let (user, group) = NOBODY_ELSE;
            privileges::become_user(user, group)?;
        }
    }
    privileges::drop_all().trying("dropping capabilities")?;
    seccomp::install_for_thinking()
}

/// Enters new namespaces.
fn leave(from_root: bool) -> Result<(), InitError> {
    let flags = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP
        | CloneFlags::CLONE_NEWNET;
    if from_root {
        return unshare(flags).trying("leaving the machine's namespaces");
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let proc = Proc::open().trying("opening /proc")?;
    unshare(flags | CloneFlags::CLONE_NEWUSER).trying("entering a user namespace")?;
    outer::map(&proc, user, group)
}

/// Creates an empty root, and unmounts the machine's.
fn empty_root() -> io::Result<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let safe = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("tmpfs", "/proc", "tmpfs", safe, c"mode=0555,size=4k,nr_inodes=2")?;
    std::env::set_current_dir("/proc")?;
    mount_remount("/proc", safe | MountFlags::BIND | MountFlags::RDONLY, "")?;
    // The old root is mounted on top of the new one, from where it is unmounted.
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    std::env::set_current_dir("/")
}
