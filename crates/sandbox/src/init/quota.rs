//! Kernel resources that are counted per user: if daemon and commands run as one user, commands take them from the
//! daemon. In its own user namespace, a command has its own share. Deliberately absent: resources that the kernel
//! counts per user over all namespaces; `usage.rs` checks those.

use rustix::{
    fs::{Mode, OFlags, open, openat},
    io,
};
use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
};

/// Limits of all commands together, each with its sysctl. A user usually has 128 inotify instances; nested namespaces
/// are forbidden anyway.
const SHARES: [(&str, u32); 4] = [
    (INSTANCES, MAX_INOTIFY_INSTANCES),
    ("sys/user/max_inotify_watches", 16_384),
    ("sys/user/max_fanotify_groups", 0),
    ("sys/user/max_user_namespaces", 0),
];
const INSTANCES: &str = "sys/user/max_inotify_instances";
const MAX_INOTIFY_INSTANCES: u32 = 16;

/// The machine's `/proc`, kept open while the sandbox is created: the sandbox's own is read-only. The settings in
/// `/proc` are those of the namespaces of the process that opens them.
pub(super) struct Proc(OwnedFd);

impl Proc {
    /// Opens it while it is still mounted.
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

/// Sets the shares. Best effort: [`are_set`] returns whether it succeeded.
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
