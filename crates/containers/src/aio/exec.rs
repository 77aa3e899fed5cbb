//! Runs commands over the API. Each has its own session with a name chosen before the start, so that it can be killed
//! at any time.

use super::{
    Aio, CALL_TIMEOUT,
    wire::{CommandInfo, CommandStatus, ExecRequest, ExecResult, KillRequest, OutputRequest, OutputResult},
};
use pudu_base::{Exec, Killed, SandboxError, ShellCommand, Variable};
use pudu_sandbox::{Capture, END, ROOT};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

/// Timeout of one response. A command that takes longer is polled again.
const POLL_TIMEOUT: Duration = Duration::from_secs(25);
/// How long after a command's timeout the client waits for the API to kill it before killing it itself.
const KILL_GRACE_PERIOD: Duration = Duration::from_secs(5);

/// Runs a command.
pub(super) async fn run(aio: &Aio, command: &ShellCommand) -> Result<Exec, SandboxError> {
    let own = command.variables.iter().map(|Variable { name, value }| (name.as_str(), value.as_str()));
    let everybodys = aio.0.environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    // Variables set by the operator take precedence.
    run_with(aio, command, own.chain(everybodys).collect()).await
}

/// Runs a command with an environment.
pub(super) async fn run_with(
    aio: &Aio,
    command: &ShellCommand,
    env: BTreeMap<&str, &str>,
) -> Result<Exec, SandboxError> {
    run_at(aio, command, env, &format!("{ROOT}/workspace")).await
}

/// Runs a command in a folder other than the workspace.
pub(super) async fn run_at(
    aio: &Aio,
    command: &ShellCommand,
    env: BTreeMap<&str, &str>,
    folder: &str,
) -> Result<Exec, SandboxError> {
    let session = AioSession { aio: aio.clone(), id: crate::random_word()?, over: false };
    let limit = command.timeout + KILL_GRACE_PERIOD;
    match tokio::time::timeout(limit, session.run(command, env, folder)).await {
        Ok(done) => {
            session.close().await;
            done
        }
        // The API ignored its own timeout. Dropping the session kills the command.
        Err(_) => {
            let (stdout, stderr) = (String::new(), String::new());
            Ok(Exec { stdout, stderr, code: None, killed: Some(Killed::Late), cut: false })
        }
    }
}

/// Session of one command. Kills the command if it is dropped before the command has ended.
struct AioSession {
    aio: Aio,
    id: String,
    over: bool,
}

impl AioSession {
    async fn run(
        &self,
        command: &ShellCommand,
        env: BTreeMap<&str, &str>,
        folder: &str,
    ) -> Result<Exec, SandboxError> {
        let request = ExecRequest {
            command: &command.script,
            session_id: &self.id,
            exec_dir: folder,
            env,
            timeout: POLL_TIMEOUT.as_secs_f64(),
            hard_timeout: command.timeout.as_secs_f64(),
            max_output_length: 2 * END,
        };
        let first: ExecResult = self.aio.call("/v1/bash/exec", &request, POLL_TIMEOUT + CALL_TIMEOUT).await?;
        let (mut out, mut err) = (Capture::default(), Capture::default());
        out.push(first.stdout.as_deref().unwrap_or_default().as_bytes());
        err.push(first.stderr.as_deref().unwrap_or_default().as_bytes());
        let (mut status, mut code) = (first.status, first.exit_code);
        let mut at = (first.offset, first.stderr_offset);
        while matches!(status, CommandStatus::Pending | CommandStatus::Running) {
            let more = self.fetch_more_output(&first.command_id, at).await?;
            out.push(more.stdout.as_deref().unwrap_or_default().as_bytes());
            err.push(more.stderr.as_deref().unwrap_or_default().as_bytes());
            at = (more.offset.max(at.0), more.stderr_offset.max(at.1));
            if let Some(CommandInfo { status: now, exit_code }) = more.command {
                (status, code) = (now, exit_code);
            }
        }
        let killed = (status == CommandStatus::TimedOut).then_some(Killed::Late);
        let code = code.filter(|_| status == CommandStatus::Completed);
        let cut = out.is_cut() || err.is_cut();
        Ok(Exec { stdout: out.text(), stderr: err.text(), code, killed, cut })
    }

    async fn fetch_more_output(&self, command: &str, at: (u64, u64)) -> Result<OutputResult, SandboxError> {
        let request = OutputRequest {
            session_id: &self.id,
            command_id: command,
            offset: at.0,
            stderr_offset: at.1,
            wait: true,
            wait_timeout: POLL_TIMEOUT.as_secs_f64(),
        };
        self.aio.call("/v1/bash/output", &request, POLL_TIMEOUT + CALL_TIMEOUT).await
    }

    /// Deletes the session, which the API would otherwise keep. The command's background processes keep running.
    async fn close(mut self) {
        self.over = true;
        close(&self.aio, &self.id).await;
    }
}

impl Drop for AioSession {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let (aio, id) = (self.aio.clone(), self.id.clone());
        self.aio.0.tasks.spawn(async move {
            let request = KillRequest { session_id: &id, signal: "SIGKILL" };
            let killed: Result<Value, _> = aio.call("/v1/bash/kill", &request, CALL_TIMEOUT).await;
            if let Err(error) = killed {
                tracing::debug!(%error, "failed to kill abandoned command");
            }
            close(&aio, &id).await;
        });
    }
}

async fn close(aio: &Aio, id: &str) {
    let path = format!("/v1/bash/sessions/{id}/close");
    let closed: Result<Value, _> = aio.call(&path, &json!({}), CALL_TIMEOUT).await;
    if let Err(error) = closed {
        tracing::debug!(%error, "failed to close sandbox session");
    }
}
