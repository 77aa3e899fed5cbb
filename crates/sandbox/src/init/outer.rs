//! The first process. Still as the daemon's user in the daemon's file system, it leaves the daemon's namespaces, starts
//! the second process, and waits for it.

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

/// Runs the first process. Its arguments are `root` or `user`, `own-net` or `host-net`, and the folders of the control
/// groups.
pub(super) fn main(args: &[&str]) -> i32 {
    match work(args) {
        Ok(code) => code,
        Err(InitError(why)) => {
            // There is no second process to report the error. If this report fails too, that is ignored.
            if let Ok(socket) = io::stdin().as_fd().try_clone_to_owned() {
                wire::send(&UnixStream::from(socket), &wire::InitMessage::Failed(why), None).ok();
            }
            1
        }
    }
}

fn work(args: &[&str]) -> Result<i32, InitError> {
    let &[daemon_user, net, ref groups @ ..] = args else {
        return Err(InitError("invalid arguments".to_owned()));
    };
    close_strangers().trying("cannot close inherited file descriptors")?;
    // A new session has no controlling terminal.
    setsid().trying("cannot start a session")?;
    for group in groups {
        fs::write(Path::new(group).join("cgroup.procs"), "0").trying("cannot join the control group")?;
    }
    // The kernel then kills this process first if memory runs out. Best effort.
    fs::write("/proc/self/oom_score_adj", "1000").ok();
    leave(daemon_user == "root", net == "own-net")?;
    let mut inner = Command::new("/proc/self/exe")
        .arg0(NAME)
        .arg("inner")
        .env_clear()
        .current_dir("/")
        .spawn()
        .trying("cannot start the sandbox's first process")?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).trying("cannot make the process undumpable")?;
    let status = inner.wait().trying("cannot wait for the sandbox")?;
    Ok(status.code().unwrap_or(1))
}

/// Closes all descriptors except the socket and the two pipes. The daemon does not open any that children inherit, but
/// it may have inherited some itself.
pub(super) fn close_strangers() -> io::Result<()> {
    let open: Vec<i32> = fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in open {
        // The listing itself used one of the descriptors, which is already closed.
        nix::unistd::close(fd).ok();
    }
    Ok(())
}

/// Enters new namespaces. The PID namespace takes effect for the next child. Root does not need a user namespace for
/// this, and enters one later, after changing the user.
fn leave(from_root: bool, own_net: bool) -> Result<(), InitError> {
    let mut flags = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    flags.set(CloneFlags::CLONE_NEWNET, own_net);
    if from_root {
        return unshare(flags).trying("cannot create namespaces");
    }
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    unshare(flags | CloneFlags::CLONE_NEWUSER).trying("cannot create a user namespace")?;
    let proc = Proc::open().trying("cannot open /proc")?;
    map(&proc, user, group)?;
    quota::set(&proc);
    keep_rights_over_exec().trying("cannot keep capabilities across exec")
}

/// Maps the user and the group to their own IDs in the new user namespace.
pub(super) fn map(proc: &Proc, user: u32, group: u32) -> Result<(), InitError> {
    proc.write("self/setgroups", "deny").trying("cannot disable setgroups")?;
    proc.write("self/uid_map", &format!("{user} {user} 1")).trying("cannot map the user")?;
    proc.write("self/gid_map", &format!("{group} {group} 1")).trying("cannot map the group")
}

/// Keeps the capabilities across exec, for which users other than root need ambient ones.
fn keep_rights_over_exec() -> rustix::io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.inheritable = sets.permitted;
    set_capabilities(None, sets)?;
    for right in sets.permitted.iter().filter(|right| CapabilitySet::all().contains(*right)) {
        configure_capability_in_ambient_set(right, true)?;
    }
    Ok(())
}
