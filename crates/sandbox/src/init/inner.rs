//! The second process, which is process 1 of the new namespaces: builds the file system, drops privileges, starts the
//! command, and reaps its processes.

use super::{
    error::{InitError, Trying},
    loopback, outer, privileges,
    quota::{self, Proc},
    reap, root, seccomp,
    wire::{self, InitMessage, JailPlan, Net},
};
use nix::sched::{CloneFlags, unshare};
use rustix::{
    process::{DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal},
    system::sethostname,
};
use std::{
    io,
    net::{Ipv4Addr, TcpListener},
    os::{fd::AsFd, unix::net::UnixStream},
    path::Path,
    process::{Child, Command, Stdio},
};

/// Address of the daemon's proxy, as seen by the command.
pub(crate) const PROXY: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 3128);
/// Working directory of commands.
const WORKSPACE: &str = "/mnt/user-data/workspace";

pub(super) fn main() -> i32 {
    let Ok(socket) = io::stdin().as_fd().try_clone_to_owned() else { return 1 };
    let control = UnixStream::from(socket);
    let word = match work(&control) {
        Ok(word) => word,
        Err(InitError(why)) => InitMessage::Failed(why),
    };
    // If the message cannot be sent, the daemon still notices the closed socket.
    i32::from(wire::send(&control, &word, None).is_err())
}

fn work(control: &UnixStream) -> Result<InitMessage, InitError> {
    die_with_parent()?;
    let plan: JailPlan = wire::read(control)?;
    // The name is optional, because some service managers do not allow setting it.
    sethostname(b"sandbox").ok();
    privileges::raise_open_files();
    if let Some(listener) = network(plan.net)? {
        wire::send(control, &InitMessage::Listening, Some(listener.as_fd()))?;
    }
    let proc = Proc::open().trying("cannot open /proc")?;
    root::build(&plan)?;
    give_up(&plan, proc)?;
    let children = reap::Children::monitor()?;
    wire::send(control, &InitMessage::Ready, None)?;
    let shell = start(&plan)?;
    reap::until_the_end(control, &children, &shell, &plan)
}

/// Makes the kernel kill this process when the outer one ends. Has to be repeated whenever the user changes.
fn die_with_parent() -> Result<(), InitError> {
    set_parent_process_death_signal(Some(Signal::KILL)).trying("cannot set the parent-death signal")
}

fn network(net: Net) -> Result<Option<TcpListener>, InitError> {
    if net != Net::Shared {
        loopback::enable().trying("cannot enable the loopback interface")?;
        loopback::limit_buffers();
    }
    let listen = || TcpListener::bind(PROXY).trying("cannot listen on the proxy's port");
    (net == Net::Served).then(listen).transpose()
}

/// Drops all privileges that the command must not have. The order matters, because each step needs fewer privileges
/// than the previous one.
fn give_up(plan: &JailPlan, proc: Proc) -> Result<(), InitError> {
    let (user, group) = plan.identity;
    privileges::empty_bounding_set().trying("cannot clear the capability bounding set")?;
    if plan.from_root {
        // Root created the pipes, which are reopened when a command opens `/dev/stdout`.
        privileges::give(io::stdout(), user, group).trying("cannot change the owner of the output")?;
        privileges::give(io::stderr(), user, group).trying("cannot change the owner of the output")?;
        privileges::become_user(user, group)?;
        // Changing the user made root the owner of this process's files in /proc, but the map has to be written.
        set_dumpable_behavior(DumpableBehavior::Dumpable).trying("cannot prepare the user mapping")?;
        // A user namespace, if the kernel supports it, is an additional barrier: other users' IDs do not exist in it.
        if unshare(CloneFlags::CLONE_NEWUSER).is_ok() {
            outer::map(&proc, user, group)?;
            quota::set(&proc);
            // A new user namespace restores all capabilities.
            privileges::empty_bounding_set().trying("cannot clear the capability bounding set")?;
        }
    }
    // If the daemon is root, commands run as another user and cannot use up its inotify quota.
    let inotify = plan.from_root || quota::are_set(&proc);
    drop(proc);
    privileges::limit(&plan.limits, plan.counted)?;
    privileges::drop_all().trying("cannot drop capabilities")?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).trying("cannot make the process undumpable")?;
    die_with_parent()?;
    seccomp::install(&seccomp::Filter { net: plan.net, counted: plan.counted, inotify })
}

fn start(plan: &JailPlan) -> Result<Child, InitError> {
    let shell = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" };
    let environment = plan.environment.iter().map(|(name, value)| (name, value));
    // The agent may have removed its own workspace.
    let folder = if Path::new(WORKSPACE).is_dir() { WORKSPACE } else { "/" };
    Command::new(shell)
        .arg("-c")
        .arg(&plan.script)
        .env_clear()
        .envs(environment)
        .current_dir(folder)
        .stdin(Stdio::null())
        .spawn()
        .trying(format_args!("cannot start {shell}"))
}
