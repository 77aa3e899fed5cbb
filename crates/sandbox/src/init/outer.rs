//! The first process: still the daemon's user in the daemon's file system, it leaves the namespaces, starts the second
//! process, and waits for it.

use super::{
    error::{InitError, Trying},
    quota::{self, Proc},
    wire::{self, NAME},
};
use nix::sched::{CloneFlags, unshare};
use rustix::{
    process::{DumpableBehavior, getgid, getuid, set_dumpable_behavior, setsid},
    thread::{CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities},
};
use std::{
    fs, io,
    os::{fd::AsFd, unix::net::UnixStream, unix::process::CommandExt},
    path::Path,
    process::Command,
};

/// Arguments: `root` or `user`, `own-net` or `host-net`, the folders of the control groups.
pub(super) fn main(wish: &[&str]) -> i32 {
    match work(wish) {
        Ok(code) => code,
        Err(InitError(why)) => {
            // The second process does not exist to report the error. A failure of this report is ignored.
            if let Ok(socket) = io::stdin().as_fd().try_clone_to_owned() {
                wire::send(&UnixStream::from(socket), &wire::InitMessage::Failed(why), None).ok();
            }
            1
        }
    }
}

fn work(wish: &[&str]) -> Result<i32, InitError> {
    let &[whose, net, ref groups @ ..] = wish else {
        return Err(InitError("the arguments are not ours".to_owned()));
    };
    close_strangers().trying("closing what was inherited")?;
    // A new session has no controlling terminal.
    setsid().trying("beginning a session")?;
    for group in groups {
        fs::write(Path::new(group).join("cgroup.procs"), "0").trying("joining the control group")?;
    }
    // If memory runs out, this process is killed first. Best effort.
    fs::write("/proc/self/oom_score_adj", "1000").ok();
    leave(whose == "root", net == "own-net")?;
    let mut inner = Command::new("/proc/self/exe")
        .arg0(NAME)
        .arg("inner")
        .env_clear()
        .current_dir("/")
        .spawn()
        .trying("starting the first process of the sandbox")?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).trying("hiding from other processes")?;
    let status = inner.wait().trying("waiting for the sandbox")?;
    Ok(status.code().unwrap_or(1))
}

/// Closes all descriptors except the socket and the two pipes. The daemon opens none that children inherit, but it may
/// have inherited some itself.
pub(super) fn close_strangers() -> io::Result<()> {
    let open: Vec<i32> = fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in open {
        // One descriptor was the listing itself, which is closed already.
        nix::unistd::close(fd).ok();
    }
    Ok(())
}

/// Enters new namespaces; the PID namespace applies to the next child. Root needs no user namespace for this, and
/// enters one later, after it has changed the user.
fn leave(from_root: bool, own_net: bool) -> Result<(), InitError> {
    let mut flags = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    flags.set(CloneFlags::CLONE_NEWNET, own_net);
    if from_root {
        return unshare(flags).trying("leaving the machine's namespaces");
    }
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    unshare(flags | CloneFlags::CLONE_NEWUSER).trying("entering a user namespace")?;
    let proc = Proc::open().trying("opening /proc")?;
    map(&proc, user, group)?;
    quota::set(&proc);
    keep_rights_over_exec().trying("keeping the namespace's rights for the next process")
}

/// Maps the user and the group to their own IDs in the new user namespace.
pub(super) fn map(proc: &Proc, user: u32, group: u32) -> Result<(), InitError> {
    proc.write("self/setgroups", "deny").trying("giving up other groups")?;
    proc.write("self/uid_map", &format!("{user} {user} 1")).trying("mapping the user")?;
    proc.write("self/gid_map", &format!("{group} {group} 1")).trying("mapping the group")
}

/// Only root keeps capabilities over exec; other users need ambient ones.
fn keep_rights_over_exec() -> rustix::io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.inheritable = sets.permitted;
    set_capabilities(None, sets)?;
    for right in sets.permitted.iter().filter(|right| CapabilitySet::all().contains(*right)) {
        configure_capability_in_ambient_set(right, true)?;
    }
    Ok(())
}
