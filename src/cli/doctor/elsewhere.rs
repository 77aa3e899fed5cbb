//! Checks whether the sandbox provisioner works and its sandboxes confine commands.

use super::{Check, verdict};
use pudu_base::{Exec, Network, Sandbox, SandboxError, Shell, ShellCommand, ThreadFolder};
use pudu_config::HotConfig;
use pudu_daemon::machine::Machine;
use pudu_sandbox::prove_in;
use std::time::Duration;

/// ID of the thread used for the check.
const THREAD_ID: &str = "pudu-doctor";
/// Timeout to create a sandbox, including pulling an image.
const START_TIMEOUT: Duration = Duration::from_secs(300);
/// Timeout of a command that only inspects the sandbox.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);
const HELP: &str = "see docs/sandbox.md";

/// Checks the provisioner, creates a sandbox, runs a command in it, attempts to escape, and deletes the sandbox.
pub(super) async fn check(
    machine: &Machine,
    hot: &HotConfig,
    found: Result<String, SandboxError>,
) -> Vec<Check> {
    let words = machine.describe_sandbox(hot);
    let said = match found {
        Ok(said) => said,
        Err(error) => return vec![Check::bad("backend", format!("{words}: {error}"), HELP)],
    };
    let mut checks = vec![Check::good("shell", words), Check::good("backend", said)];
    checks.extend(try_sandbox(machine, hot).await);
    machine.close().await;
    let folder = machine.folders.home().join("users/default/threads").join(THREAD_ID);
    // A leftover folder is harmless.
    tokio::fs::remove_dir_all(folder).await.ok();
    checks
}

async fn try_sandbox(machine: &Machine, hot: &HotConfig) -> Vec<Check> {
    let (thread, sandboxes) = (ThreadFolder::from(THREAD_ID), machine.sandboxes(hot));
    let sandbox = match tokio::time::timeout(START_TIMEOUT, sandboxes.acquire(&thread)).await {
        Ok(Ok(sandbox)) => sandbox,
        Ok(Err(error)) => return vec![Check::bad("sandbox", error.to_string(), HELP)],
        Err(_) => return vec![Check::bad("sandbox", "timed out", HELP)],
    };
    let network = match sandboxes.shell() {
        Some(Shell::Confined(network)) => network,
        _ => Network::Full,
    };
    let escape = match prove_in(&*sandbox, network).await {
        Ok(proofs) => verdict(&proofs),
        Err(error) => Check::bad("escape", error.to_string(), HELP),
    };
    let checks = vec![command(&*sandbox).await, escape];
    sandboxes.release(&thread).await;
    checks
}

async fn command(sandbox: &dyn Sandbox) -> Check {
    let command = ShellCommand::new("uname -sr; id -u".to_owned(), COMMAND_TIMEOUT);
    match sandbox.exec(&command).await {
        Ok(Exec { code: Some(0), stdout, .. }) => {
            let said: Vec<&str> = stdout.lines().collect();
            Check::good("command", format!("ran in a sandbox: {}", said.join(", as user ")))
        }
        Ok(done) => {
            Check::bad("command", format!("ended with {:?}: {}", done.code, done.stderr.trim()), HELP)
        }
        Err(error) => Check::bad("command", error.to_string(), HELP),
    }
}
