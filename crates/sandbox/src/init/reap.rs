//! What process 1 does while the command runs: collects children, watches the memory, and listens for the end.

use super::{Fault, Trying, wire::Word};
use crate::Limits;
use nix::{
    errno::Errno,
    sys::{
        signal::{SigSet, Signal},
        signalfd::{SfdFlags, SignalFd},
    },
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, WaitOptions, WaitStatus, wait},
};
use std::{
    fs,
    os::{fd::AsFd, unix::net::UnixStream},
    process::Child,
};

/// The memory is looked at this often, in nanoseconds.
const LOOK: i64 = 150_000_000;

/// Tells when a child has ended.
pub(super) struct Children(SignalFd);

impl Children {
    /// Begins to watch. Has to be done before there is a child.
    pub(super) fn watch() -> Result<Self, Fault> {
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGCHLD);
        signals.thread_block().trying("waiting for children")?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        SignalFd::with_flags(&signals, flags).map(Self).trying("waiting for children")
    }
}

/// Returns when the command ends, takes too much, or the daemon lets go of the socket. What the command left
/// running ends with this process.
pub(super) fn until_the_end(
    control: &UnixStream,
    children: &Children,
    shell: &Child,
    limits: &Limits,
) -> Result<Word, Fault> {
    let shell = i32::try_from(shell.id()).ok().and_then(Pid::from_raw);
    loop {
        let mut ready = [
            PollFd::new(&children.0, PollFlags::IN),
            PollFd::from_borrowed_fd(control.as_fd(), PollFlags::IN | PollFlags::RDHUP),
        ];
        let patience = Timespec { tv_sec: 0, tv_nsec: LOOK };
        match poll(&mut ready, Some(&patience)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).trying("waiting for the command"),
        }
        let [child, daemon] = ready.map(|fd| !fd.revents().is_empty());
        if daemon {
            return Err(Fault("the daemon let go".to_owned()));
        }
        if child {
            while !matches!(children.0.read_signal(), Ok(None) | Err(Errno::EAGAIN)) {}
        }
        if let Some(status) = collect(shell) {
            return Ok(match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => Word::Exited(code),
                (None, signal) => Word::Signalled(signal.unwrap_or_default()),
            });
        }
        if resident() > limits.memory {
            return Ok(Word::Memory);
        }
    }
}

/// Collects every child that has ended; returns how the shell did, if it is among them.
fn collect(shell: Option<Pid>) -> Option<WaitStatus> {
    let mut ended = None;
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if Some(pid) == shell {
            ended = Some(status);
        }
    }
    ended
}

/// How much memory all processes here have in use, in bytes. What processes share is looked at closer only where
/// the quick sum is large enough to matter.
fn resident() -> u64 {
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    let names = processes.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let pids = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    pids.map(|pid| fair_share(&pid).unwrap_or_else(|| pages(&pid) * page)).sum()
}

/// A process that shares nothing large is counted by what it has resident.
fn pages(pid: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0)
}

/// What a process has resident, with its share of what it has in common with others; `None` if it does not tell,
/// or is too small to be asked.
fn fair_share(pid: &str) -> Option<u64> {
    const SMALL: u64 = 4096;
    if pages(pid) < SMALL {
        return None;
    }
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kilobytes * 1024)
}
