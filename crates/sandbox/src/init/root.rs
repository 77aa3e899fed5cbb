//! Builds the file system of a command: a small tmpfs into which parts of the machine are mounted. Everything is
//! read-only except for devices, writable mounts such as the thread's folder, and folders in memory.

use super::{
    error::{InitError, Trying},
    mountinfo,
    wire::{JailPlan, Net},
};
use rustix::{
    fs::Mode,
    mount::{
        MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change,
        mount_remount, unmount,
    },
    process::pivot_root,
};
use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

/// Mount points of the new root file system and, until it is unmounted, of the machine's.
const NEW_ROOT: &str = "/new";
const OLD: &str = "/old";
/// Folders that machines have. The new root is built on the first existing one, invisibly to other processes.
const BUILD_FOLDERS: [&str; 4] = ["/tmp", "/run", "/var", "/mnt"];
/// Folders with programs and libraries. Those that are links are recreated as links.
const SYSTEM: [&str; 8] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix/store"];
/// Entries of `/etc` that programs need and that do not contain secrets.
const ETC: [&str; 24] = [
    "alternatives",
    "bash_completion.d",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "fonts",
    "gai.conf",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "libreoffice",
    "localtime",
    "magic",
    "mime.types",
    "os-release",
    "pki/ca-trust",
    "pki/tls",
    "protocols",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "timezone",
];
/// Configuration of name resolution, which is needed only with network access.
const ETC_NET: [&str; 3] = ["host.conf", "hosts", "resolv.conf"];
/// Devices that are safe for all users.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
/// Entries of a new `/proc` that describe the machine and are hidden from commands.
const PROC_HIDDEN: [&str; 8] =
    ["kcore", "keys", "key-users", "kallsyms", "kmsg", "sched_debug", "sysrq-trigger", "timer_list"];

/// Mount options of the file systems in memory (the root, `/dev/shm` and `/tmp`), with their maximum sizes.
const SMALL: &str = "mode=0755,size=16m,nr_inodes=16k";
const SHARED: &str = "mode=1777,size=64m,nr_inodes=4k";
const SCRATCH: &str = "mode=1777,size=512m,nr_inodes=100k";

const SAFE: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// Builds the file system and makes it the only one that the command has.
pub(super) fn build(plan: &JailPlan) -> Result<(), InitError> {
    let pieces = Pieces::from_plan(plan);
    step_aside()?;
    memory(NEW_ROOT, SMALL, MountFlags::empty())?;
    let mut bound = Vec::new();
    for MountPiece { from, to, read_only } in &pieces.0 {
        bind(from, to)?;
        bound.push((to.clone(), *read_only));
    }
    links()?;
    etc(plan)?;
    dev()?;
    memory("/new/tmp", SCRATCH, MountFlags::empty())?;
    proc()?;
    let mounts = fs::read("/old/proc/self/mountinfo").trying("cannot read the list of mounts")?;
    for mounted in mountinfo::parse(&mounts) {
        // The innermost part determines the flags.
        let piece = bound.iter().filter(|(to, _)| mounted.at.starts_with(to));
        if let Some((_, read_only)) = piece.max_by_key(|(to, _)| to.as_os_str().len()) {
            harden(&mounted, *read_only)?;
        }
    }
    let all = SAFE | MountFlags::BIND | MountFlags::RDONLY;
    mount_remount(NEW_ROOT, all, "").trying("cannot make the new root read-only")?;
    leave_the_machine().trying("cannot unmount the old root")
}

/// A part of the machine in the new file system.
struct MountPiece {
    from: PathBuf,
    to: PathBuf,
    read_only: bool,
}

struct Pieces(Vec<MountPiece>);

impl Pieces {
    /// Finds the parts while the machine's paths are still valid. Missing parts of the system are skipped; a missing
    /// mount is detected when it is bound.
    fn from_plan(plan: &JailPlan) -> Self {
        let mut pieces = Vec::new();
        let mut add = |from: &Path, to: &Path, read_only| {
            let real = from.canonicalize().unwrap_or_else(|_| from.to_owned());
            pieces.push(MountPiece { from: below(OLD, &real), to: below(NEW_ROOT, to), read_only });
        };
        let system = SYSTEM.iter().map(|name| Path::new("/").join(name));
        for path in system.filter(|path| path.is_dir() && !path.is_symlink()) {
            add(&path, &path, true);
        }
        let net: &[&str] = if plan.net == Net::Shared { &ETC_NET } else { &[] };
        let etc = ETC.iter().chain(net).map(|name| Path::new("/etc").join(name));
        for path in etc.filter(|path| path.exists()) {
            add(&path, &path, true);
        }
        for path in DEVICES.iter().map(|name| Path::new("/dev").join(name)).filter(|path| path.exists()) {
            pieces.push(MountPiece { from: below(OLD, &path), to: below(NEW_ROOT, &path), read_only: false });
        }
        for mount in &plan.mounts {
            let real = mount.host.canonicalize().unwrap_or_else(|_| mount.host.clone());
            let (from, to) = (below(OLD, &real), below(NEW_ROOT, Path::new(&mount.agent)));
            pieces.push(MountPiece { from, to, read_only: mount.read_only });
        }
        Self(pieces)
    }
}

/// Moves an absolute path below another root.
fn below(root: &str, path: &Path) -> PathBuf {
    Path::new(root).join(path.strip_prefix("/").unwrap_or(path))
}

/// Makes a small file system in memory the root, with the machine's root at `/old`. The machine's own namespace is not
/// affected.
fn step_aside() -> Result<(), InitError> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).trying("cannot make mounts private")?;
    let folder = BUILD_FOLDERS.iter().find(|folder| Path::new(folder).is_dir()).unwrap_or(&"/");
    mount("tmpfs", *folder, "tmpfs", SAFE, c"mode=0755,size=1m")
        .trying("cannot mount a tmpfs for the new root")?;
    let step = || -> io::Result<()> {
        std::env::set_current_dir(folder)?;
        fs::create_dir("new")?;
        fs::create_dir("old")?;
        pivot_root(".", "old")?;
        std::env::set_current_dir("/")
    };
    step().trying("cannot enter the new root")
}

fn memory(at: &str, options: &str, more: MountFlags) -> Result<(), InitError> {
    fs::create_dir_all(at).trying(format_args!("cannot create {at}"))?;
    let options = std::ffi::CString::new(options).trying("invalid mount options")?;
    mount("tmpfs", at, "tmpfs", SAFE | more, options.as_c_str())
        .trying(format_args!("cannot mount a tmpfs at {at}"))
}

/// Binds a folder or a file recursively, because a user namespace does not allow non-recursive bind mounts.
fn bind(from: &Path, to: &Path) -> Result<(), InitError> {
    let shown = to.strip_prefix(NEW_ROOT).unwrap_or(to).display();
    let step = || -> io::Result<()> {
        if from.metadata()?.is_dir() {
            fs::create_dir_all(to)?;
        } else {
            to.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::File::create(to)?;
        }
        Ok(mount_bind_recursive(from, to)?)
    };
    step().trying(format_args!("cannot bind-mount /{shown}"))
}

/// Sets the flags on a mount that restrict the command.
fn harden(mounted: &mountinfo::Mounted, read_only: bool) -> Result<(), InitError> {
    let device = mounted.at.starts_with("/new/dev");
    let mut flags = mounted.flags | MountFlags::BIND | MountFlags::NOSUID;
    flags.set(MountFlags::NODEV, !device || mounted.flags.contains(MountFlags::NODEV));
    if device {
        flags |= MountFlags::NOEXEC;
    }
    if read_only {
        flags |= MountFlags::RDONLY;
    }
    mount_remount(&mounted.at, flags, "").trying(format_args!("cannot remount {}", mounted.at.display()))
}

/// Creates the links from `/bin` and similar folders to `/usr` that the machine has, and `/var/tmp`.
fn links() -> Result<(), InitError> {
    let step = || -> io::Result<()> {
        for name in SYSTEM {
            if let Ok(target) = fs::read_link(Path::new(OLD).join(name)) {
                symlink(target, Path::new(NEW_ROOT).join(name))?;
            }
        }
        fs::create_dir_all("/new/var")?;
        fs::create_dir_all("/new/run")?;
        symlink("/tmp", "/new/var/tmp")
    };
    step().trying("cannot create the system's links")
}

/// Writes `passwd`, `group` and other small files that reveal nothing about the machine.
fn etc(plan: &JailPlan) -> Result<(), InitError> {
    let (user, group) = plan.identity;
    let home = "/mnt/user-data/workspace";
    let passwd = format!(
        "root:x:0:0:root:/:/usr/sbin/nologin\nagent:x:{user}:{group}:agent:{home}:/bin/bash\n\
         nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
    );
    let groups = format!("root:x:0:\nagent:x:{group}:\nnogroup:x:65534:\n");
    let mut files = vec![
        ("passwd", passwd.as_str()),
        ("group", groups.as_str()),
        ("hostname", "sandbox\n"),
        (
            "nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
        ),
    ];
    if plan.net != Net::Shared {
        files.push(("hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"));
    }
    let step = || -> io::Result<()> {
        fs::create_dir_all("/new/etc")?;
        files.iter().try_for_each(|(name, text)| fs::write(Path::new("/new/etc").join(name), text))
    };
    step().trying("cannot write /etc")
}

/// Creates the other parts of `/dev`: shared memory, links, and private terminals.
fn dev() -> Result<(), InitError> {
    memory("/new/dev/shm", SHARED, MountFlags::NOEXEC)?;
    let step = || -> io::Result<()> {
        for (name, target) in [
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
            ("ptmx", "pts/ptmx"),
        ] {
            symlink(target, Path::new("/new/dev").join(name))?;
        }
        fs::create_dir("/new/dev/pts")
    };
    step().trying("cannot create /dev")?;
    // If the kernel does not allow terminals, programs have to do without them.
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("devpts", "/new/dev/pts", "devpts", flags, c"newinstance,ptmxmode=0666,mode=0620").ok();
    Ok(())
}

/// Mounts a `/proc` that shows only the sandbox's processes. The kernel refuses this if parts of the machine's own
/// `/proc` are masked, as in containers; the command then has no `/proc`.
fn proc() -> Result<(), InitError> {
    let making = "cannot create /proc";
    fs::create_dir("/new/proc").trying(making)?;
    let flags = SAFE | MountFlags::NOEXEC;
    if mount("proc", "/new/proc", "proc", flags, None).is_err() {
        return Ok(());
    }
    for path in PROC_HIDDEN.map(|name| Path::new("/new/proc").join(name)) {
        if path.exists() {
            mount_bind_recursive("/new/dev/null", &path).trying(making)?;
        }
    }
    // All of `/proc` is read-only, because a process could otherwise lower its priority for the OOM killer.
    mount_remount("/new/proc", flags | MountFlags::BIND | MountFlags::RDONLY, "").trying(making)
}

/// Makes the new file system the root, and unmounts everything else.
fn leave_the_machine() -> io::Result<()> {
    unmount(OLD, UnmountFlags::DETACH)?;
    std::env::set_current_dir(NEW_ROOT)?;
    // This stacks the old root on top of the new one, from where it is unmounted.
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    std::env::set_current_dir("/")?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    Ok(())
}
