//! Attempts to bypass the limits of this sandbox. Each is made by root with a control group, by root without one, and
//! by an ordinary user without one; these tests do not cover a delegated subtree of version 2.

use crate::house::{copy_fixture, jail};
use std::{
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// Memory limit of a command, and the amount that it may exceed the limit by before it is detected, in MiB.
const MEMORY: u64 = 192;
const SLACK: u64 = 128;

/// Beginning of all floods: `got` prints the amount taken so far, in MiB.
const BEGIN: &str = r#"
import ctypes, errno, mmap, os, select, socket, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
def got(mib): os.write(1, b"%d\n" % mib)
MOST, MIB = 700, 1 << 20
"#;

/// Each takes 700 MiB if it is not stopped.
const FLOODS: &[(&str, &str)] = &[
    (
        "files in memory",
        "for n in range(0, MOST, 16): os.write(os.memfd_create('x'), bytes(16 * MIB)); got(n + 16)",
    ),
    (
        "what waits in sockets",
        r"
keep, total = [], 0
try:
    while total < MOST * MIB:
        pair = socket.socketpair(); keep += pair
        for end in pair:
            end.setblocking(False)
            try:
                while True: total += end.send(bytes(32768))
            except BlockingIOError: pass
        got(total // MIB)
except OSError: pass
time.sleep(5)
",
    ),
    (
        "what waits in sockets that are on their way over others",
        r"
import array
a, b = socket.socketpair(); keep = [a, b]; total = 0
for n in range(4000):
    pair = socket.socketpair()
    for end in pair:
        end.setblocking(False)
        try:
            while True: total += end.send(bytes(32768))
        except BlockingIOError: pass
    for turn in range(2):
        try:
            a.setblocking(False)
            a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [end.fileno() for end in pair]))]); break
        except BlockingIOError: a, b = socket.socketpair(); keep += [a, b]
        except OSError: keep += pair; break
    for end in pair: end.close() if end not in keep else None
    if n % 16 == 0: got(total // MIB)
    if total > MOST * MIB: break
time.sleep(10)
",
    ),
    (
        "semaphores",
        "for n in range(0, MOST, 2):\n  if libc.semget(0, 32000, 0o1600) < 0: raise SystemExit\n  got(n + 2)\ntime.sleep(5)",
    ),
    (
        "watched files",
        r"
fds, keep, total = [], [], 0
try:
    while True: fds.append(os.dup(0))
except OSError: pass
half = len(fds) // 2
for fd in fds[half:]: os.close(fd)
r, w = os.pipe()
for fd in fds[:half]: os.dup2(r, fd)
try:
    while True:
        e = select.epoll(); keep.append(e)
        for fd in fds[:half]: e.register(fd, select.EPOLLIN)
        total += half; got(total * 200 // MIB)
except OSError: pass
time.sleep(5)
",
    ),
    (
        "processes whose first thread has ended",
        r"
for child in range(7):
    if os.fork() == 0:
        def hog():
            keep = bytearray(100 * MIB)
            for at in range(0, len(keep), 4096): keep[at] = 1
            got(100 * (child + 1)); time.sleep(20)
        threading.Thread(target=hog).start()
        libc.syscall(60, 0)
    time.sleep(0.3)
time.sleep(10)
",
    ),
    (
        "memory that somebody shares with himself, out of sight",
        r"
for n in range(0, MOST, 16):
    at = libc.mmap(None, 16 * MIB, 3, 0x21, -1, 0)
    ctypes.memset(at, 1, 16 * MIB)
    libc.munmap(at + 4096, 16 * MIB - 4096)
    got(n + 16)
time.sleep(10)
",
    ),
    (
        "tables of pages",
        r"
at = libc.mmap(None, 1 << 40, 1, 0x4022, -1, 0)
for n in range(MOST * 256):
    ctypes.c_char.from_address(at + (n << 21)).value
    if n % 2048 == 0: got(n // 256)
time.sleep(10)
",
    ),
    (
        "scratch files",
        "for n in range(0, 480, 16):\n  open('/tmp/x%d' % n, 'wb').write(bytes(16 * MIB)); got(n + 16)\ntime.sleep(5)",
    ),
];

/// Users for the attempts, and the mechanism that must be in use.
const WHO: &[(&str, &str, Way)] = &[
    ("root", "limits by cgroup v", Way::Root),
    ("root without a control group", "limits by process", Way::Covered),
    ("an ordinary user", "limits by process", Way::User),
];

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Root,
    Covered,
    User,
}

/// A home that is accessible to all users, with the program.
struct Home(tempfile::TempDir, PathBuf);

impl Home {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let program = home.path().join("fixture");
        copy_fixture(&program);
        for path in [home.path(), &program] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        Self(home, program)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, way: Way, args: &[&str]) -> Output {
        let mut command = match way {
            Way::Covered => {
                let mut command = Command::new("unshare");
                // No control group is mounted then.
                let script = "umount -l $(grep -o ' /sys/fs/cgroup[^ ]*' /proc/self/mountinfo | sort -r); exec \"$0\" \"$@\"";
                command.args(["-m", "sh", "-c", script]).arg(&self.1);
                command
            }
            _ => Command::new(&self.1),
        };
        if way == Way::User {
            chown(self.path(), Some(12_345), Some(12_345)).unwrap();
            command.uid(12_345).gid(12_345);
        }
        command.args(args).current_dir("/").output().unwrap()
    }
}

/// Returns the requested users that are available.
async fn ways() -> Vec<(&'static str, &'static str, Way)> {
    match jail().await {
        None => Vec::new(),
        Some(jail) if jail.owner().is_some() => WHO.to_vec(),
        Some(_) => {
            println!("skipped: only root can be everybody");
            Vec::new()
        }
    }
}

#[tokio::test]
async fn no_flood_of_memory_gets_around_the_limit() {
    let mut broken = Vec::new();
    for (who, in_force, way) in ways().await {
        for (what, flood) in FLOODS {
            let home = Home::new();
            let script = format!("python3 - <<'X'\n{BEGIN}{flood}\nX");
            let done =
                home.run(way, &["run", home.path().to_str().unwrap(), &script, &MEMORY.to_string(), "64"]);
            let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
            let took: u64 = out.lines().filter_map(|line| line.parse().ok()).max().unwrap_or(0);
            println!("{who}, {what}: {took} MiB, {}", err.lines().last().unwrap_or_default());
            if !err.contains(in_force) {
                println!("not seen: {who}");
                continue;
            }
            let held = err.contains("killed: Some(Memory") || took == 0 && !err.contains("killed: Some(Late");
            if took > MEMORY + SLACK || (!held && took > 0) {
                broken.push(format!("{who}, {what}: {took} MiB, {err}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Resources that the kernel counts per user, taken until none is left.
const GREED: &[(&str, &str)] = &[
    (
        "epoll",
        "import os,select,time\nfds=[os.dup(0) for n in range(300)]\nr,w=os.pipe()\nfor fd in fds: os.dup2(r,fd)\nkeep=[]\nfor c in range(250):\n  if os.fork()==0:\n    try:\n      while True:\n        e=select.epoll(); keep.append(e)\n        for fd in fds: e.register(fd,1)\n    except OSError: pass\n    time.sleep(20)\ntime.sleep(5)",
    ),
    (
        "inotify",
        "import ctypes,time\nlibc=ctypes.CDLL(None)\nfor n in range(4000): libc.inotify_init()\ntime.sleep(3)",
    ),
    (
        "pipe",
        "import os,time\nfor c in range(20):\n  if os.fork()==0:\n    keep=[]\n    try:\n      while True: keep.append(os.pipe())\n    except OSError: pass\n    time.sleep(20)\ntime.sleep(5)",
    ),
    (
        "command",
        "import array,os,socket,time\nkeep=[]\nfor c in range(8):\n  if os.fork()==0:\n    try:\n      while True:\n        a,b=socket.socketpair(); keep+=[a,b]\n        for n in range(4): a.sendmsg([b'x'],[(1,1,array.array('i',[0]*250))])\n    except OSError: pass\n    time.sleep(20)\ntime.sleep(4)",
    ),
];

#[tokio::test]
async fn no_command_takes_from_the_daemon_what_the_kernel_counts_by_user() {
    let mut broken = Vec::new();
    for (who, _, way) in ways().await.into_iter().filter(|(_, _, way)| *way != Way::Covered) {
        for (what, greed) in GREED {
            let home = Home::new();
            let script = format!("python3 - <<'X'\n{greed}\nX");
            let done = home.run(way, &["beside", home.path().to_str().unwrap(), &script]);
            let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
            println!("{who}, {what}:\n{out}{err}");
            // The detection takes a moment; then the command is killed.
            let failed = out.lines().find_map(|line| line.strip_prefix(what)?.trim().split_once(' '));
            let failed: Option<u64> = failed.and_then(|(failed, _)| failed.parse().ok());
            if failed.is_none_or(|failed| failed > 1000) {
                broken.push(format!("{who}: {what} failed for {failed:?} ms"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[tokio::test]
async fn no_command_makes_others_end_before_itself() {
    for (who, _, way) in ways().await {
        let home = Home::new();
        let script = "for n in 0 -500 500; do echo $n > /proc/self/oom_score_adj; done 2> /dev/null; \
                      echo 0 2> /dev/null > /proc/$$/oom_score_adj; cat /proc/self/oom_score_adj /proc/$$/oom_score_adj";
        let done = home.run(way, &["run", home.path().to_str().unwrap(), script]);
        assert_eq!(String::from_utf8_lossy(&done.stdout), "1000\n1000\n", "{who}");
    }
}

/// Counting such a number of files takes longer than writing beyond the limit.
#[tokio::test]
async fn a_folder_of_many_files_grows_no_further_than_one_of_few() {
    for (who, _, way) in ways().await.into_iter().filter(|(_, _, way)| *way != Way::Covered) {
        let home = Home::new();
        let workspace = home.path().join("users/default/threads/t/user-data/workspace");
        for folder in 0..100 {
            let folder = workspace.join(folder.to_string());
            std::fs::create_dir_all(&folder).unwrap();
            for file in 0..1000 {
                std::fs::File::create(folder.join(file.to_string())).unwrap();
            }
        }
        let everything = Command::new("chown").args(["-R", "12345:12345"]).arg(home.path()).status().unwrap();
        assert!(everything.success());
        if way == Way::Root {
            let all = Command::new("chown")
                .args(["-R", "65533:65533"])
                .arg(home.path().join("users/default/threads/t"))
                .status();
            assert!(all.unwrap().success());
        }
        let write = "for i in $(seq 100); do head -c 20M /dev/zero > f$i || exit 1; done; echo all";
        let done = home.run(way, &["run", home.path().to_str().unwrap(), write, "512", "64"]);
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        let mib: u64 = (1..=100)
            .filter_map(|n| std::fs::metadata(workspace.join(format!("f{n}"))).ok())
            .map(|meta| meta.len() >> 20)
            .sum();
        println!("{who}: {mib} MiB, {err}");
        assert!(mib <= 64 + 128 && out.is_empty(), "{who}: {mib} MiB, {out}{err}");
        assert!(err.contains("killed: Some(Disk"), "{who}: {err}");
    }
}
