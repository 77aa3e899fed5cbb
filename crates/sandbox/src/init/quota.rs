//! Kernel resources counted by user: if daemon and commands are one user, the daemon lacks the resources that a command
//! takes. In a user namespace of its own a command has a share of its own. Deliberately absent: resources
//! that the kernel counts by user over all namespaces; `usage.rs` looks at those.

use rustix::{
    fs::{Mode, OFlags, open, openat},
    io,
};
use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
};

/// Limits of all commands together, each with its sysctl. A user usually has 128 inotify instances; nested
/// namespaces are forbidden anyway.
const SHARES: [(&str, u32); 4] = [
    (INSTANCES, MAX_INOTIFY_INSTANCES),
    ("sys/user/max_inotify_watches", 16_384),
    ("sys/user/max_fanotify_groups", 0),
    ("sys/user/max_user_namespaces", 0),
];
const INSTANCES: &str = "sys/user/max_inotify_instances";
const MAX_INOTIFY_INSTANCES: u32 = 16;

/// The machine's `/proc`, kept open for as long as the sandbox is made: its own cannot be written to. The settings in
/// `/proc` are those of the namespaces of the process that opens them.
pub(super) struct Proc(OwnedFd);

impl Proc {
    /// Opens it, as long as it is there.
    pub(super) fn open() -> io::Result<Self> {
        open("/proc", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map(Self)
    }

    /// Writes one of its files.
    pub(super) fn write(&self, name: &str, text: &str) -> std::io::Result<()> {
        self.file(name, OFlags::WRONLY)?.write_all(text.as_bytes())
    }

    fn file(&self, name: &str, access: OFlags) -> io::Result<File> {
        openat(&self.0, name, access | OFlags::CLOEXEC, Mode::empty()).map(File::from)
    }
}

/// Sets the shares. Best effort: [`are_set`] returns whether it worked.
pub(super) fn set(proc: &Proc) {
    for (name, most) in SHARES {
        proc.write(name, &most.to_string()).ok();
    }
}

/// Returns whether commands have their own share of the resources that the daemon would lack first.
pub(super) fn are_set(proc: &Proc) -> bool {
    let mut text = String::new();
    let read =
        proc.file(INSTANCES, OFlags::RDONLY).ok().and_then(|mut file| file.read_to_string(&mut text).ok());
    read.is_some() && text.trim().parse().is_ok_and(|most: u32| most <= MAX_INOTIFY_INSTANCES)
}
