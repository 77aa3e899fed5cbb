//! Confines this process to its open descriptors, without files, network and other processes, and with only the system
//! calls for computation. For programs that read untrusted input and write to their standard output.
//!
//! Namespaces are used if they are available. The system call filter and, if this process is root, the change of the
//! user are mandatory. Deliberately absent: resource limits, which the caller sets.

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

/// User and group of commands and confined processes if the daemon is root. Distributions and systemd keep this ID
/// free.
pub(crate) const COMMAND_USER: (u32, u32) = (65_533, 65_533);

/// Confines this process. Must be called while the process has a single thread.
///
/// # Errors
/// When a privilege could not be dropped. The process then has to exit.
pub fn withdraw() -> Result<(), String> {
    work().map_err(|InitError(why)| why)
}

fn work() -> Result<(), InitError> {
    outer::close_strangers().trying("cannot close inherited file descriptors")?;
    // A failure is harmless, because a session leader has no terminal. Best effort: if memory runs out, the kernel
    // kills this process first.
    setsid().ok();
    fs::write("/proc/self/oom_score_adj", "1000").ok();
    let from_root = geteuid().is_root();
    if leave(from_root).is_ok() {
        empty_root().ok();
    }
    // Without capabilities, there is nothing to drop and no permission to drop it.
    let powerless = capabilities(None).is_ok_and(|sets| sets.permitted.is_empty());
    if !powerless {
        privileges::empty_bounding_set().trying("cannot clear the capability bounding set")?;
        if from_root {
            let (user, group) = COMMAND_USER;
            privileges::become_user(user, group)?;
        }
    }
    privileges::drop_all().trying("cannot drop capabilities")?;
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
        return unshare(flags).trying("cannot create namespaces");
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let proc = Proc::open().trying("cannot open /proc")?;
    unshare(flags | CloneFlags::CLONE_NEWUSER).trying("cannot create a user namespace")?;
    outer::map(&proc, user, group)
}

/// Replaces the machine's root with an empty one.
fn empty_root() -> io::Result<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let safe = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("tmpfs", "/proc", "tmpfs", safe, c"mode=0555,size=4k,nr_inodes=2")?;
    std::env::set_current_dir("/proc")?;
    mount_remount("/proc", safe | MountFlags::BIND | MountFlags::RDONLY, "")?;
    // This stacks the old root on top of the new one, from where it is unmounted.
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    std::env::set_current_dir("/")
}
