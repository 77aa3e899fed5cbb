//! Kernel resources that are counted per user. Commands with the same user as the daemon can use up the daemon's share,
//! but in its own user namespace, a command has a share of its own. Deliberately absent: resources that the kernel
//! counts per user across all namespaces, which `usage.rs` checks.

use rustix::{
    fs::{Mode, OFlags, open, openat},
    io,
};
use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
};

/// The sysctls, each with its limit. A user usually has 128 inotify instances. Nested namespaces are forbidden anyway.
const SHARES: [(&str, u32); 4] = [
    (INSTANCES, MAX_INOTIFY_INSTANCES),
    ("sys/user/max_inotify_watches", 16_384),
    ("sys/user/max_fanotify_groups", 0),
    ("sys/user/max_user_namespaces", 0),
];
const INSTANCES: &str = "sys/user/max_inotify_instances";
const MAX_INOTIFY_INSTANCES: u32 = 16;

/// The machine's `/proc`, kept open while the sandbox is created, because the sandbox's own is read-only. A process
/// that opens a setting in `/proc` gets that of its own namespaces.
pub(super) struct Proc(OwnedFd);

impl Proc {
    /// Opens `/proc` while it is still mounted.
    pub(super) fn open() -> io::Result<Self> {
        open("/proc", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map(Self)
    }

    /// Writes a file in `/proc`.
    pub(super) fn write(&self, name: &str, text: &str) -> std::io::Result<()> {
        self.file(name, OFlags::WRONLY)?.write_all(text.as_bytes())
    }

    fn file(&self, name: &str, access: OFlags) -> io::Result<File> {
        openat(&self.0, name, access | OFlags::CLOEXEC, Mode::empty()).map(File::from)
    }
}

/// Sets the limits. Best effort; [`are_set`] returns whether it succeeded.
pub(super) fn set(proc: &Proc) {
    for (name, most) in SHARES {
        proc.write(name, &most.to_string()).ok();
    }
}

/// Returns whether commands have their own share of inotify instances, which the daemon would run out of first.
pub(super) fn are_set(proc: &Proc) -> bool {
    let mut text = String::new();
    let read =
        proc.file(INSTANCES, OFlags::RDONLY).ok().and_then(|mut file| file.read_to_string(&mut text).ok());
    read.is_some() && text.trim().parse().is_ok_and(|most: u32| most <= MAX_INOTIFY_INSTANCES)
}
