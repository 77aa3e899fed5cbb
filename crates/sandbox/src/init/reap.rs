//! Main loop of process 1: reaps children, checks memory usage, and waits for the command to end.

use super::{
    error::{InitError, Trying},
    usage::UsageProbe,
    wire::{GO_ON, HOLD, InitMessage, JailPlan},
};
use nix::{
    errno::Errno,
    sys::{
        signal::{self, SigSet, Signal},
        signalfd::{SfdFlags, SignalFd},
    },
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, WaitOptions, WaitStatus, wait},
};
use std::{
    io::Read,
    os::{fd::AsFd, unix::net::UnixStream},
    process::Child,
    time::{Duration, Instant},
};

/// Bounds of the interval between memory checks, which grows with the remaining memory.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(10);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(150);
/// Maximum assumed allocation rate, in bytes per millisecond.
const MAX_ALLOC_BYTES_PER_MS: u64 = 4 << 20;
/// Minimum pause after a check, as a multiple of the check's duration.
const SHARE: u32 = 5;

/// Receives a signal when a child ends.
pub(super) struct Children(SignalFd);

impl Children {
    /// Starts watching. Must be called before the first child is started.
    pub(super) fn monitor() -> Result<Self, InitError> {
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGCHLD);
        signals.thread_block().trying("cannot watch child processes")?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        SignalFd::with_flags(&signals, flags).map(Self).trying("cannot watch child processes")
    }
}

/// Waits until the command ends or exceeds its memory limit, or the daemon closes the socket. The command's remaining
/// processes end with this process.
pub(super) fn until_the_end(
    control: &UnixStream,
    children: &Children,
    shell: &Child,
    plan: &JailPlan,
) -> Result<InitMessage, InitError> {
    let shell = i32::try_from(shell.id()).ok().and_then(Pid::from_raw);
    let mut usage = UsageProbe::begin(plan);
    let mut due = Instant::now();
    loop {
        let mut ready = [
            PollFd::new(&children.0, PollFlags::IN),
            PollFd::from_borrowed_fd(control.as_fd(), PollFlags::IN | PollFlags::RDHUP),
        ];
        let patience = due.saturating_duration_since(Instant::now()).min(MAX_POLL_INTERVAL);
        let patience = Timespec { tv_sec: 0, tv_nsec: patience.subsec_nanos().into() };
        match poll(&mut ready, Some(&patience)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).trying("cannot wait for the command"),
        }
        let [child, daemon] = ready.map(|fd| !fd.revents().is_empty());
        if daemon {
            on_message(control)?;
        }
        if child {
            while !matches!(children.0.read_signal(), Ok(None) | Err(Errno::EAGAIN)) {}
        }
        if let Some(status) = collect(shell) {
            return Ok(match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => InitMessage::Exited(code),
                (None, signal) => InitMessage::Signalled(signal.unwrap_or_default()),
            });
        }
        if Instant::now() >= due {
            let begin = Instant::now();
            let Some(left) = usage.left() else { return Ok(InitMessage::Memory) };
            let pause = Duration::from_millis(left / MAX_ALLOC_BYTES_PER_MS)
                .clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL)
                .max(begin.elapsed() * SHARE);
            due = Instant::now() + pause;
        }
    }
}

/// Handles the daemon's messages. A closed socket is an error, which ends the sandbox.
fn on_message(mut control: &UnixStream) -> Result<(), InitError> {
    let mut words = [0; 16];
    let count = control.read(&mut words).trying("cannot read from the daemon")?;
    if count == 0 {
        return Err(InitError("the daemon closed the connection".to_owned()));
    }
    for word in words.iter().take(count) {
        // -1 means all processes except this one. An error means that there are none.
        match *word {
            HOLD => signal::kill(nix::unistd::Pid::from_raw(-1), Signal::SIGSTOP).ok(),
            GO_ON => signal::kill(nix::unistd::Pid::from_raw(-1), Signal::SIGCONT).ok(),
            _ => return Err(InitError("unknown message from the daemon".to_owned())),
        };
    }
    Ok(())
}

/// Reaps all children that have ended. Returns the shell's status if it has ended too.
fn collect(shell: Option<Pid>) -> Option<WaitStatus> {
    let mut ended = None;
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if Some(pid) == shell {
            ended = Some(status);
        }
    }
    ended
}
