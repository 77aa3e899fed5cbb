//! Processes with another root file system, their own process IDs and no network: the base of a simulated container. It
//! uses Linux's own tools (`unshare`, `mount`, `nsenter`, `setpriv`), so that a test sees the kernel's real behavior.
//!
//! Deliberately absent: limits of memory and processors, and the image's own files: every container has this machine's
//! programs, read-only.

use std::{
    collections::BTreeMap,
    io,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

/// Builds the root, and waits for the container's own process.
const SETUP: &str = include_str!("cell.sh");
/// Joins the user namespace of the container's own process, the child of the first one.
const JOIN: &str = "read child rest < /proc/1/task/1/children
while [ \"$(readlink /proc/$child/ns/user)\" = \"$(readlink /proc/self/ns/user)\" ]; do sleep 0.01; done
exec nsenter --target \"$child\" --user --preserve-credentials \"$@\"";
/// Environment of every image.
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Specification of a cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// Source, target, and whether it is read-only.
    pub(crate) binds: Vec<(String, String, bool)>,
    /// The first process.
    pub(crate) command: Vec<String>,
    pub(crate) environment: Vec<String>,
    /// User and group, `1000:1000`; root if empty.
    pub(crate) user: String,
    pub(crate) folder: String,
    pub(crate) network: bool,
    pub(crate) read_only: bool,
    /// Whether its processes have root's capabilities.
    pub(crate) capable: bool,
    /// Whether the command is the first process itself, instead of the child of a reaper.
    pub(crate) first: bool,
}

/// A container's processes. They end with it.
#[derive(Debug)]
pub(crate) struct Cell {
    outer: Child,
    /// PID of the first process on this machine.
    pub(crate) pid: u32,
    _root: tempdir::Folder,
}

impl Cell {
    /// Starts a cell; returns when its root is built.
    pub(crate) async fn start(plan: &Plan) -> io::Result<Self> {
        let root = tempdir::Folder::make()?;
        // It ends with the thread that started it, in any case.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig=KILL", "unshare"]);
        command.args([
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--propagation",
            "private",
            "--uts",
            "--ipc",
        ]);
        if !plan.network {
            command.arg("--net");
        }
        if !is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        let binds: String = plan
            .binds
            .iter()
            .map(|(source, target, read_only)| {
                format!("{}\t{source}\t{target}\n", if *read_only { "ro" } else { "rw" })
            })
            .collect();
        command.args(["--", "/bin/sh", "-c", SETUP, "cell", &root.0.to_string_lossy(), &binds]);
        command.arg(if plan.read_only { "ro" } else { "rw" });
        command.arg(if plan.first { "first" } else { "child" });
        command.args(enter(plan, &plan.environment, &plan.user, &plan.folder, true)).args(&plan.command);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut outer = command.spawn()?;
        let ready = read_line(&mut outer).await?;
        if ready != "ready" {
            let said = outer.wait_with_output().await?;
            let said = String::from_utf8_lossy(&said.stderr).into_owned();
            return Err(io::Error::other(format!("the container's root cannot be built: {said}")));
        }
        let pid = child_of(outer.id().unwrap_or_default())?;
        Ok(Self { outer, pid, _root: root })
    }

    /// Returns whether its first process is running.
    pub(crate) fn runs(&mut self) -> bool {
        matches!(self.outer.try_wait(), Ok(None))
    }

    /// Ends it with all its processes.
    pub(crate) async fn end(&mut self) -> Option<ExitStatus> {
        self.outer.start_kill().ok();
        let status = self.outer.wait().await.ok();
        // The kernel then ends the other processes of the namespace.
        while std::path::Path::new(&format!("/proc/{}", self.pid)).exists() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        status
    }

    /// Returns a command that starts another process in it.
    pub(crate) fn command(
        pid: u32,
        plan: &Plan,
        environment: &[String],
        user: &str,
        folder: &str,
        words: &[String],
    ) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &pid.to_string(), "--mount", "--pid", "--uts", "--ipc", "--root", "--wd"]);
        if !plan.network {
            command.arg("--net");
        }
        if !is_root() {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.arg("--").args(enter(plan, environment, user, folder, false)).args(words);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }
}

/// Returns the arguments that set a process's capabilities, environment and folder.
fn enter(plan: &Plan, environment: &[String], user: &str, folder: &str, first: bool) -> Vec<String> {
    let mut words = Vec::new();
    if let Some((own, group)) = user.split_once(':').filter(|_| !is_root()) {
        // An unprivileged user cannot change the user but can map it to another name; all processes of one container
        // use the same mapping, so that they see each other.
        if first || user != plan.user {
            words.extend(["unshare", "--user"].map(str::to_owned));
            words.extend([format!("--map-user={own}"), format!("--map-group={group}")]);
        } else {
            words.extend(["/bin/sh", "-c", JOIN, "join"].map(str::to_owned));
        }
    }
    // Changing the user clears the signal that is sent when `unshare` ends.
    words.extend(["setpriv", "--pdeathsig=keep"].map(str::to_owned));
    if let Some((user, group)) = user.split_once(':').filter(|_| is_root()) {
        words.extend([format!("--reuid={user}"), format!("--regid={group}"), "--clear-groups".to_owned()]);
    }
    if !plan.capable {
        words.extend(["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"].map(str::to_owned));
    }
    // Later values take precedence, as in an engine.
    let mut named = BTreeMap::new();
    for pair in [PATH.to_owned()].iter().chain(environment) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        named.insert(name.to_owned(), value.to_owned());
    }
    words.extend(["env".to_owned(), "-i".to_owned()]);
    words.extend(named.into_iter().map(|(name, value)| format!("{name}={value}")));
    let folder = if folder.is_empty() { "/" } else { folder };
    words.extend(["/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", folder].map(str::to_owned));
    words
}

pub(crate) fn is_root() -> bool {
    // The owner of a process's folder is its user.
    std::fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0)
}

async fn read_line(child: &mut Child) -> io::Result<String> {
    let mut line = String::new();
    if let Some(out) = child.stdout.as_mut() {
        BufReader::new(out).read_line(&mut line).await?;
    }
    Ok(line.trim().to_owned())
}

fn child_of(pid: u32) -> io::Result<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    let first = children.split_whitespace().next().and_then(|child| child.parse().ok());
    first.ok_or_else(|| io::Error::other("the container has no process"))
}

mod tempdir {
    //! A folder that is removed on drop.

    use std::{io, path::PathBuf};

    #[derive(Debug)]
    pub(crate) struct Folder(pub(crate) PathBuf);

    impl Folder {
        pub(crate) fn make() -> io::Result<Self> {
            let name = format!("pudu-sim-{}-{:016x}", std::process::id(), fastrand::u64(..));
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir(&path)?;
            Ok(Self(path))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            std::fs::remove_dir(&self.0).ok();
        }
    }
}
