//! Checks whether the sandbox provisioner works and its sandboxes confine commands.

use super::{Check, verdict};
use pudu_client::{
    base::{Exec, Network, Sandbox, SandboxError, Shell, ShellCommand, ThreadFolder},
    sandbox::prove_in,
};
use pudu_config::HotConfig;
use pudu_daemon::machine::Machine;
use std::time::Duration;

/// ID of the thread used for the check.
const PATIENT: &str = "pudu-doctor";
/// Timeout to create a sandbox, including pulling an image.
const MAKING: Duration = Duration::from_secs(300);
/// Timeout of a command that only inspects the sandbox.
const LOOKING: Duration = Duration::from_secs(20);
const MEND: &str = "see docs/sandbox.md";

/// Checks the provisioner, creates a sandbox, runs a command in it, attempts to escape, and deletes the sandbox.
pub(super) async fn check(
    machine: &Machine,
    hot: &HotConfig,
    found: Result<String, SandboxError>,
) -> Vec<Check> {
    let words = machine.describe_sandbox(hot);
    let said = match found {
        Ok(said) => said,
        Err(error) => return vec![Check::bad("maker", format!("{words}: {error}"), MEND)],
    };
    let mut checks = vec![Check::good("shell", words), Check::good("maker", said)];
    checks.extend(try_sandbox(machine, hot).await);
    machine.close().await;
    let folder = machine.folders.home().join("users/default/threads").join(PATIENT);
    // A leftover folder is harmless.
    tokio::fs::remove_dir_all(folder).await.ok();
    checks
}

async fn try_sandbox(machine: &Machine, hot: &HotConfig) -> Vec<Check> {
    let (thread, sandboxes) = (ThreadFolder::from(PATIENT), machine.sandboxes(hot));
    let sandbox = match tokio::time::timeout(MAKING, sandboxes.acquire(&thread)).await {
        Ok(Ok(sandbox)) => sandbox,
        Ok(Err(error)) => return vec![Check::bad("sandbox", error.to_string(), MEND)],
        Err(_) => return vec![Check::bad("sandbox", "none was made in time", MEND)],
    };
    let network = match sandboxes.shell() {
        Some(Shell::Confined(network)) => network,
        _ => Network::Full,
    };
    let escape = match prove_in(&*sandbox, network).await {
        Ok(proofs) => verdict(&proofs),
        Err(error) => Check::bad("escape", error.to_string(), MEND),
    };
    let checks = vec![command(&*sandbox).await, escape];
    sandboxes.release(&thread).await;
    checks
}

async fn command(sandbox: &dyn Sandbox) -> Check {
    let command = ShellCommand::new("uname -sr; id -u".to_owned(), LOOKING);
    match sandbox.exec(&command).await {
        Ok(Exec { code: Some(0), stdout, .. }) => {
            let said: Vec<&str> = stdout.lines().collect();
            Check::good("command", format!("ran in one: {}", said.join(", as user ")))
        }
        Ok(done) => {
            Check::bad("command", format!("ended with {:?}: {}", done.code, done.stderr.trim()), MEND)
        }
        Err(error) => Check::bad("command", error.to_string(), MEND),
    }
}
