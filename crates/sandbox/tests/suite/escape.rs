//! Attempts to escape that were made on other sandboxes. Each fails, and leaves the daemon unharmed.

use crate::{
    attempts::ATTEMPTS,
    house::{House, confined, copy_fixture, fixture, gone, jail, processes},
};
use pudu_base::{Network, SandboxError, ShellCommand};
use pudu_sandbox::{Options, prove};
use std::{
    io::{Read, Write},
    os::{linux::net::SocketAddrExt, unix::net::SocketAddr},
    process,
    sync::Arc,
    time::Duration,
};

/// Attempts that a shell cannot express: system calls, by number where the architecture is known.
const CALLS: &str = r#"
import ctypes, os, socket, sys, errno, fcntl, platform
libc = ctypes.CDLL(None, use_errno=True)
for fd in range(3, 256):
    try: print("ESCAPED inherited", fd, os.readlink(f"/proc/self/fd/{fd}"), fcntl.fcntl(fd, fcntl.F_GETFL))
    except OSError: pass
def call(name, *args):
    ctypes.set_errno(0)
    result = libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    return result, ctypes.get_errno()
def refused(name, codes, *args):
    result, code = call(name, *args)
    if result != -1 or code not in codes: print("ESCAPED", name, result, errno.errorcode.get(code))
EPERM, ENOSYS = [errno.EPERM], [errno.ENOSYS]
if platform.machine() == "x86_64":
    refused("ptrace", EPERM, 101, 16, 1, 0, 0)
    refused("process_vm_readv", EPERM, 310, 1, 0, 0, 0, 0, 0)
    refused("unshare", EPERM, 272, 0x10000000)
    refused("setns", EPERM, 308, 0, 0)
    refused("clone, new user", EPERM, 56, 0x10000011, 0, 0, 0, 0)
    refused("clone, new mounts", EPERM, 56, 0x00020011, 0, 0, 0, 0)
    refused("clone3", ENOSYS, 435, 0, 0)
    refused("x32 getpid", ENOSYS, 0x40000000 + 39)
    refused("x32 ptrace", ENOSYS, 0x40000000 + 521, 0, 0, 0, 0)
    refused("bpf", EPERM, 321, 0, 0, 0)
    refused("perf_event_open", EPERM, 298, 0, 0, 0, 0, 0)
    refused("userfaultfd", EPERM, 323, 0)
    refused("io_uring_setup", EPERM, 425, 1, 0)
    refused("keyctl", EPERM, 250, 0, -3, 1)
    refused("add_key", EPERM, 248, 0, 0, 0, 0, 0)
    refused("open_by_handle_at", EPERM, 304, -100, 0, 0)
    refused("init_module", EPERM, 175, 0, 0, 0)
    refused("kexec_load", EPERM, 246, 0, 0, 0, 0)
    refused("reboot", EPERM, 169, 0, 0, 0, 0)
    refused("swapon", EPERM, 167, 0, 0)
    refused("mount_setattr", EPERM, 442, 0, 0, 0, 0, 0)
    refused("open_tree", EPERM, 428, -100, 0, 0)
    refused("fsopen", EPERM, 430, 0, 0)
    refused("pivot_root", EPERM, 155, 0, 0)
    refused("personality", EPERM, 135, 0x0008)
    refused("shmget", EPERM, 29, 0, 4096, 0o1600)
    refused("TIOCSTI", EPERM, 16, 0, 0x5412, 0)
    refused("TIOCSTI with high bits", EPERM, 16, 0, 0x100005412, 0)
    refused("setuid", [errno.EPERM, errno.EINVAL], 105, 0)
    refused("capset", EPERM, 126, (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(*[0xffffffff] * 6))
for name, family, kind in [("vsock", 40, 1), ("packet", 17, 3), ("alg", 38, 5), ("can", 29, 3), ("bluetooth", 31, 3)]:
    try: socket.socket(family, kind); print("ESCAPED socket", name)
    except OSError as error:
        if error.errno != errno.EPERM: print("ESCAPED socket", name, error)
for protocol in (9, 12, 16):
    try: socket.socket(16, 3, protocol); print("ESCAPED netlink", protocol)
    except OSError: pass
try: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); print("ESCAPED raw")
except OSError: pass
for path in ("\0ABSTRACT", "HOME/socket"):
    try: socket.socket(socket.AF_UNIX).connect(path); print("ESCAPED unix", repr(path))
    except OSError: pass
for address in ("127.0.0.1", "::1", "169.254.169.254", "8.8.8.8"):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        end = socket.socket(family, kind); end.settimeout(0.2)
        try:
            end.connect((address, PORT)); end.send(b"x"); end.recv(1); print("ESCAPED to", address)
        except OSError: pass
print("tried")
"#;

async fn attempts(house: &House) {
    let home = house.home.path().to_str().unwrap();
    let other = house.home.path().join("users/default/threads/other/user-data/workspace");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join("x"), "of another").unwrap();
    for (attempt, script) in ATTEMPTS {
        let script = script.replace("HOME", home).replace("PID", &process::id().to_string());
        let done = house.sh(&script).await;
        assert!(!done.stdout.contains("ESCAPED"), "{attempt}: {done:?}");
        assert!(
            !done.stdout.contains("of the host") && !done.stdout.contains("of another"),
            "{attempt}: {done:?}"
        );
    }
}

#[tokio::test]
async fn no_command_gets_out() {
    let Some(house) = confined(Options::default()).await else { return };
    attempts(&house).await;
}

#[tokio::test]
async fn no_command_gets_out_of_a_sandbox_with_a_network_but_to_the_network() {
    let options = Options { network: Network::Full, ..Options::default() };
    let Some(house) = confined(options).await else { return };
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let reached = house.sh(&format!("(: <> /dev/tcp/127.0.0.1/{port}) && echo reached")).await;
    assert_eq!(reached.stdout, "reached\n");
    for (attempt, script) in [
        ("read the daemon's home", "cat HOME/secret && echo ESCAPED"),
        ("kill the daemon", "kill -9 PID && echo ESCAPED"),
        ("change the machine's network", "ip link add x type dummy && echo ESCAPED"),
        ("listen to the network", "python3 -c 'import socket; socket.socket(17, 3)' && echo ESCAPED"),
    ] {
        let home = house.home.path().to_str().unwrap();
        let done = house.sh(&script.replace("HOME", home).replace("PID", &process::id().to_string())).await;
        assert!(!done.stdout.contains("ESCAPED"), "{attempt}: {done:?}");
    }
}

/// The calls of [`CALLS`], with servers outside that must not be reached.
#[tokio::test]
async fn no_call_into_the_kernel_leads_out() {
    let Some(house) = confined(Options::default()).await else { return };
    if house.sh("command -v python3").await.code != Some(0) {
        return println!("skipped: this machine has no python3");
    }
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let name = format!("pudu-escape-{}", process::id());
    let address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
    let _hidden = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
    let _named = std::os::unix::net::UnixListener::bind(house.home.path().join("socket")).unwrap();
    let script = CALLS
        .replace("HOME", house.home.path().to_str().unwrap())
        .replace("ABSTRACT", &name)
        .replace("PORT", &server.local_addr().unwrap().port().to_string());
    house.sandbox.write("/mnt/user-data/workspace/calls.py", script.as_bytes(), false).await.unwrap();
    let done = house.sh("python3 calls.py").await;
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("tried\n", ""));
}

/// Programs of another architecture would use other numbers for the same calls.
#[tokio::test]
async fn calls_of_another_architecture_are_not_answered() {
    let Some(house) = confined(Options::default()).await else { return };
    // int 0x80 with the 32-bit number of getpid; then exit by the 64-bit one.
    let program = r"\xb8\x14\x00\x00\x00\xcd\x80\xb8\x3c\x00\x00\x00\x31\xff\x0f\x05";
    let script = format!(
        "python3 - <<'X'\nimport ctypes, mmap, platform\nif platform.machine() != 'x86_64': raise SystemExit(0)\n\
         m = mmap.mmap(-1, 4096, prot=7)\nm.write(b\"{program}\")\n\
         ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()\nX\necho $?"
    );
    if std::env::consts::ARCH != "x86_64" || house.sh("command -v python3").await.code != Some(0) {
        return println!("skipped: no program to try it with");
    }
    let done = house.sh(&script).await;
    // Killed by SIGSYS.
    assert_eq!(done.stdout, "159\n", "{done:?}");
}

#[tokio::test]
async fn what_a_command_plants_for_the_daemon_leads_nowhere() {
    let Some(house) = confined(Options::default()).await else { return };
    let home = house.home.path().to_str().unwrap();
    let script = format!(
        "cd ../outputs; ln -s {home}/secret a; ln -s ../../../../../../secret b; ln -s /proc/self/environ c; \
         ln -s {home} d; ln {home}/secret e; mkfifo f; ln -s /mnt/user-data/../../{home}/secret g; mkdir h; \
         ln -s / h/slash; ls"
    );
    assert!(
        house.sh(&script).await.stdout.contains("slash") || house.on_host("outputs/h/slash").is_symlink()
    );
    for name in ["a", "b", "c", "d/secret", "e", "f", "g", "h/slash/etc/passwd"] {
        let path = format!("/mnt/user-data/outputs/{name}");
        assert!(house.read(&path).await.is_err(), "{name}");
        assert!(house.files.open(&path).await.is_err(), "{name}");
        assert!(house.kept(&path).await.is_err(), "{name}");
    }
    for path in ["/mnt/user-data/outputs/d/planted", "/mnt/user-data/outputs/h/slash/tmp/pudu-planted"] {
        let write = house.sandbox.write(path, b"x", false).await;
        assert!(matches!(write, Err(SandboxError::Outside { .. })), "{path}: {write:?}");
    }
    // A folder that the daemon itself uses, and the folder of its uploads.
    house.sh(&format!("cd ..; rm -r uploads outputs; ln -s {home} uploads; ln -s {home} outputs")).await;
    let incoming = house.home.path().join("incoming");
    std::fs::write(&incoming, "sent").unwrap();
    assert!(house.files.adopt(&incoming, "secret").await.is_err());
    assert!(house.sandbox.write("/mnt/user-data/outputs/secret", b"gone", false).await.is_err());
    let again = pudu_base::SandboxProvider::acquire(&house.local, &"t".into()).await.unwrap();
    again.write("/mnt/user-data/workspace/still", b"works", false).await.unwrap();
    assert_eq!(std::fs::read_to_string(house.home.path().join("secret")).unwrap(), "of the host");
}

#[tokio::test]
async fn nothing_outlives_its_command_whatever_it_does_to_stay() {
    let Some(house) = confined(Options::default()).await else { return };
    for (number, script) in [
        "setsid sleep NUMBER &",
        "nohup setsid sleep NUMBER > /dev/null 2>&1 < /dev/null & disown",
        "(setsid bash -c '(trap \"\" TERM HUP INT; sleep NUMBER; sleep NUMBER) &' &)",
        "python3 -c 'import os\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0: os.execlp(\"sleep\", \"sleep\", \"NUMBER\")'",
        "kill -9 -1; sleep NUMBER &",
    ]
    .into_iter()
    .enumerate()
    {
        let mark = format!("9876540{number}");
        house.sh(&script.replace("NUMBER", &mark)).await;
        assert_eq!(processes(&format!("sleep {mark}")), 0, "{script}");
    }
}

/// A killed daemon cannot clean up.
#[tokio::test]
async fn nothing_outlives_a_daemon_that_is_killed() {
    let Some(house) = confined(Options::default()).await else { return };
    let mut daemon = process::Command::new(fixture())
        .arg("run")
        .arg(house.home.path())
        .arg("setsid sleep 98765499 & echo begun; sleep 98765499")
        .spawn()
        .unwrap();
    while processes("sleep 98765499") < 2 {
        assert!(daemon.try_wait().unwrap().is_none(), "it ended by itself");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    gone("sleep 98765499").await;
    gone(house.home.path().to_str().unwrap()).await;
}

/// Runs as another user if the tests run as root, when the other tests create sandboxes as root.
#[tokio::test]
async fn no_command_of_a_daemon_without_rights_gets_out_either() {
    use std::os::unix::{fs::PermissionsExt, process::CommandExt};
    if jail().await.is_none_or(|jail| jail.owner().is_none()) {
        return println!("skipped: the tests run without rights already, or without namespaces");
    }
    let home = tempfile::tempdir().unwrap();
    let program = home.path().join("fixture");
    copy_fixture(&program);
    std::fs::write(home.path().join("secret"), "of the host").unwrap();
    for path in [home.path().to_owned(), program.clone()] {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    std::os::unix::fs::chown(home.path(), Some(12_345), Some(12_345)).unwrap();
    for (attempt, script) in ATTEMPTS {
        let path = home.path().to_str().unwrap();
        let script = script.replace("HOME", path).replace("PID", &process::id().to_string());
        let done = process::Command::new(&program)
            .args(["run", path, &format!("{script}; echo tried")])
            .uid(12_345)
            .gid(12_345)
            .current_dir("/")
            .output()
            .unwrap();
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        if err.contains("unconfined") && std::env::var_os("PUDU_REQUIRE_SANDBOX").is_none() {
            return println!("skipped: another user cannot make namespaces here: {err}");
        }
        assert!(
            out.ends_with("tried\n") && !out.contains("ESCAPED") && !out.contains("of the host"),
            "{attempt}: {out}{err}"
        );
    }
}

#[tokio::test]
async fn the_doctors_attempts_all_fail_and_would_tell_if_they_did_not() {
    let Some(jail) = jail().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let proofs = prove(Arc::clone(&jail), folder.path(), Network::None).await.unwrap();
    assert!(proofs.len() > 10);
    assert_eq!(proofs.iter().filter(|proof| proof.broken.is_some()).collect::<Vec<_>>(), Vec::<&_>::new());
    let full = prove(jail, folder.path(), Network::Full).await.unwrap();
    assert_eq!(full.len(), proofs.len() - 1);
}

/// Starting the program under the sandbox's name has no effect for a user.
#[test]
fn starting_the_program_under_the_sandboxs_name_does_nothing_for_anybody() {
    use std::os::unix::process::CommandExt;
    for (args, input) in [
        (&[][..], &b""[..]),
        (&["inner"], b"garbage"),
        (&["inner"], b"\xff\xff\xff\xff"),
        (&["outer"], b""),
        (&["outer", "root", "own-net", "/nowhere"], b""),
        (&["other"], b""),
    ] {
        let mut child = process::Command::new(fixture())
            .arg0("pudu-sandbox")
            .args(args)
            .stdin(process::Stdio::piped())
            .stdout(process::Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).ok();
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((child.wait().unwrap().success(), said.as_str()), (false, ""), "{args:?}");
    }
}

/// The tests above would pass with a shell that does nothing.
#[tokio::test]
async fn the_attempts_are_told_from_a_shell_that_does_nothing() {
    let Some(house) = confined(Options::default()).await else { return };
    let command = ShellCommand::new("cat /etc/passwd && echo ESCAPED".into(), Duration::from_secs(20));
    assert!(house.sandbox.exec(&command).await.unwrap().stdout.ends_with("ESCAPED\n"));
}
