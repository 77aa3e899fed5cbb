//! Attempts to escape from a sandbox, for `pudu doctor`. The end-to-end tests make more attempts.

use crate::{CommandLimits, Folders, Jail, LocalSandboxes, Options};
use pudu_base::{Network, Sandbox, SandboxError, SandboxProvider, ShellCommand};
use std::{path::Path, sync::Arc, time::Duration};

/// Timeout of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(20);

/// Result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The attempt.
    pub attempt: &'static str,
    /// The output, if the attempt succeeded.
    pub broken: Option<String>,
}

/// Name of the attempt that is skipped if the operator allows full network access.
const NETWORK: &str = "reach the network";
/// Attempts to escape, each with a command that prints `ESCAPED` on success. `SECRET` is replaced with the path of a
/// file of the daemon outside of the thread.
const ATTEMPTS: &[(&str, &str)] = &[
    ("read a file of the daemon", "cat SECRET && echo ESCAPED"),
    ("read the machine's passwords", "cat /etc/shadow && echo ESCAPED"),
    ("see other processes", "ls -d /proc/[0-9]* | wc -l | { read n; test $n -gt 9 && echo ESCAPED; }"),
    ("read the daemon's environment", "cat /proc/1/environ | grep -q . && echo ESCAPED"),
    ("write to the system", "touch /usr/pudu-was-here /etc/pudu-was-here 2>/dev/null && echo ESCAPED"),
    ("mount", "mount -t tmpfs none /mnt 2>/dev/null && echo ESCAPED"),
    ("create a namespace", "unshare -Ur true 2>/dev/null && echo ESCAPED"),
    ("change kernel settings", "{ echo 1 > /proc/sys/kernel/panic_on_oops; } 2>/dev/null && echo ESCAPED"),
    ("become root", "test $(id -u) = 0 && echo ESCAPED"),
    ("have a capability", "grep -q 'Cap...:.*[1-9a-f]' /proc/self/status && echo ESCAPED"),
    ("trace the first process", "ls /proc/1/fd/* 2>/dev/null && echo ESCAPED"),
    ("open a device", "test -e /dev/mem -o -e /dev/kmsg -o -b /dev/sda && echo ESCAPED"),
    (NETWORK, "(exec 3<>/dev/tcp/1.1.1.1/53) 2>/dev/null && echo ESCAPED"),
];

/// Attempts to escape from a container, in which another program confines commands.
const CONTAINED: &[(&str, &str)] = &[
    ("read the machine's passwords", "cat /etc/shadow && echo ESCAPED"),
    ("write to the image", "touch /usr/pudu-was-here /etc/pudu-was-here 2>/dev/null && echo ESCAPED"),
    ("mount", "mount -t tmpfs none /mnt 2>/dev/null && echo ESCAPED"),
    ("create a namespace", "unshare -Ur true 2>/dev/null && echo ESCAPED"),
    ("change kernel settings", "{ echo 1 > /proc/sys/kernel/panic_on_oops; } 2>/dev/null && echo ESCAPED"),
    ("run as root", "test $(id -u) = 0 && echo ESCAPED"),
    ("have a capability", "grep -q 'Cap\\(Prm\\|Eff\\|Amb\\).*[1-9a-f]' /proc/self/status && echo ESCAPED"),
    ("gain privileges by exec", "grep -q 'NoNewPrivs:.1' /proc/self/status || echo ESCAPED"),
    ("run without a seccomp filter", "grep -q 'Seccomp:.2' /proc/self/status || echo ESCAPED"),
    ("open a device", "test -e /dev/mem -o -e /dev/kmsg -o -b /dev/sda && echo ESCAPED"),
    (
        "use a service account of the cluster",
        "test -e /var/run/secrets/kubernetes.io/serviceaccount/token && echo ESCAPED",
    ),
    (
        NETWORK,
        "timeout 5 bash -c 'exec 3<>/dev/tcp/1.1.1.1/53' 2>/dev/null && echo ESCAPED; \
         timeout 5 python3 -c 'import socket; socket.create_connection((\"1.1.1.1\", 53), 4)' 2>/dev/null && echo ESCAPED",
    ),
];

/// Makes each attempt in a container of another program.
///
/// # Errors
/// When an attempt cannot be made.
pub async fn prove_in(sandbox: &dyn Sandbox, network: Network) -> Result<Vec<Proof>, SandboxError> {
    try_each(sandbox, CONTAINED, network, "").await
}

async fn try_each(
    sandbox: &dyn Sandbox,
    attempts: &[(&'static str, &str)],
    network: Network,
    secret: &str,
) -> Result<Vec<Proof>, SandboxError> {
    let mut proofs = Vec::new();
    for (attempt, script) in attempts {
        if *attempt == NETWORK && network == Network::Full {
            continue;
        }
        let command = ShellCommand::new(script.replace("SECRET", secret), ATTEMPT_TIMEOUT);
        let done = sandbox.exec(&command).await?;
        let broken = done.stdout.contains("ESCAPED").then_some(done.stdout);
        proofs.push(Proof { attempt, broken });
    }
    Ok(proofs)
}

/// Makes each attempt in a sandbox below an existing folder of the daemon.
///
/// # Errors
/// When the sandbox cannot be created, or an attempt cannot be made.
pub async fn prove(jail: Arc<Jail>, folder: &Path, network: Network) -> Result<Vec<Proof>, SandboxError> {
    let failed = |source| SandboxError::Io { path: folder.display().to_string(), source };
    let secret = folder.join("secret");
    std::fs::write(&secret, "of the daemon").map_err(failed)?;
    let folders = Folders::new(folder.to_owned(), jail.owner());
    let options = Options { network, limits: CommandLimits::default(), ..Options::default() };
    let sandbox = LocalSandboxes::new(folders, Some(jail), options).acquire(&"doctor".into()).await?;
    try_each(&*sandbox, ATTEMPTS, network, &secret.to_string_lossy()).await
}
