//! Creates a container, attempts to escape from it, and reports the results for `pudu doctor`. The tests make more
//! attempts, on a real engine if one is available.

use crate::{DockerEngine, DockerSettings, ExecMethod, Pool, PoolRules};
use pudu_base::{Network, SandboxError, SandboxProvider, ShellCommand, ThreadFolder};
use pudu_sandbox::{Folders, LocalSandboxes, Options, Proof};
use std::{path::Path, sync::Arc, time::Duration};

/// Timeout of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout for stopping the container.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(20);

/// Condition under which an attempt is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// Always.
    Always,
    /// If commands have no capabilities. In the all-in-one image, they may become root in their container.
    Plain,
    /// If, in addition to `Plain`, root in the container is not an ordinary user of the machine.
    Nobody,
    /// If there is no network access.
    Apart,
}

/// Attempts to escape, each with a command that prints `ESCAPED` on success. `SECRET` is replaced with the path of a
/// file of the daemon.
const ATTEMPTS: &[(&str, When, &str)] = &[
    ("read a file of the daemon", When::Always, "cat SECRET && echo ESCAPED"),
    ("find the engine's socket", When::Always, "test -S /var/run/docker.sock && echo ESCAPED"),
    ("open a device", When::Always, "test -e /dev/mem -o -e /dev/kmsg -o -b /dev/sda && echo ESCAPED"),
    (
        "change kernel settings",
        When::Plain,
        "{ echo 1 > /proc/sys/kernel/panic_on_oops; } 2>/dev/null && echo ESCAPED",
    ),
    ("read kernel memory", When::Always, "head -c1 /proc/kcore 2>/dev/null | grep -q . && echo ESCAPED"),
    ("write to the image", When::Plain, "touch /usr/pudu /etc/pudu /pudu 2>/dev/null && echo ESCAPED"),
    ("mount", When::Plain, "mount -t tmpfs none /mnt 2>/dev/null && echo ESCAPED"),
    ("create a namespace", When::Plain, "unshare -Ur true 2>/dev/null && echo ESCAPED"),
    ("have a capability", When::Plain, "grep -q 'Cap...:.*[1-9a-f]' /proc/self/status && echo ESCAPED"),
    ("gain privileges", When::Plain, "grep -q 'NoNewPrivs:.1' /proc/self/status || echo ESCAPED"),
    ("become root", When::Nobody, "test $(id -u) = 0 && echo ESCAPED"),
    ("reach the network", When::Apart, "test $(tail -n +3 /proc/net/dev | wc -l) -gt 1 && echo ESCAPED"),
];

/// Creates a container for a thread below an existing folder in the daemon's home, runs a command in it, makes each
/// attempt to escape, and removes the container.
///
/// # Errors
/// When the container cannot be created or does not run commands.
pub async fn prove(settings: DockerSettings, folder: &Path) -> Result<Vec<Proof>, SandboxError> {
    let secret = folder.join("secret");
    let failed = |source| SandboxError::Io { path: folder.display().to_string(), source };
    std::fs::write(&secret, "of the daemon").map_err(failed)?;
    let docker = DockerEngine::new(settings.clone());
    let rootless = docker.check_engine().await?.rootless;
    let own = rustix::process::geteuid().is_root();
    let folders = Folders::new(folder.to_owned(), own.then_some(settings.owner));
    let rules = PoolRules { idle_timeout: Duration::ZERO, replicas: 1, network: settings.network };
    let pool = Pool::new(Arc::new(docker), LocalSandboxes::new(folders, None, Options::default()), rules);
    let proofs = attempts(&pool, &settings, rootless, &secret).await;
    pool.close(SHUTDOWN_TIMEOUT).await;
    proofs
}

async fn attempts(
    pool: &Pool,
    settings: &DockerSettings,
    rootless: bool,
    secret: &Path,
) -> Result<Vec<Proof>, SandboxError> {
    let thread = ThreadFolder::from(format!("doctor-{}", std::process::id()).as_str());
    let sandbox = pool.acquire(&thread).await?;
    let run = async |script: String| sandbox.exec(&ShellCommand::new(script, ATTEMPT_TIMEOUT)).await;
    let works = run("echo works > file && cat file".to_owned()).await?;
    if works.stdout.trim() != "works" {
        let text = format!("a test command in the container failed: {} {}", works.stdout, works.stderr);
        return Err(SandboxError::Refused(text));
    }
    let counts = |when| match when {
        When::Always => true,
        When::Plain => settings.api == ExecMethod::Exec,
        When::Nobody => settings.api == ExecMethod::Exec && !rootless,
        When::Apart => settings.network == Network::None,
    };
    let mut proofs = Vec::new();
    for (attempt, _, script) in ATTEMPTS.iter().filter(|(_, when, _)| counts(*when)) {
        let done = run(script.replace("SECRET", &secret.to_string_lossy())).await?;
        let broken = done.stdout.contains("ESCAPED").then_some(done.stdout);
        proofs.push(Proof { attempt, broken });
    }
    Ok(proofs)
}
