//! Kills a command with a second process in its container, because the engine cannot kill single processes. If that
//! fails, the container is removed.

use super::{
    DockerEngine,
    command::{KILL, MARK},
    link::failed,
};
use crate::{BoxId, random_word};
use bollard::{
    container::LogOutput,
    exec::{CreateExecOptions, StartExecOptions, StartExecResults},
};
use futures_util::StreamExt;
use pudu_base::SandboxError;
use std::time::Duration;

/// Timeout for killing a command. When it expires, the container is removed.
const KILL_TIMEOUT: Duration = Duration::from_secs(20);

/// A running command. Dropping it kills the command.
pub(super) struct RunningExec {
    docker: DockerEngine,
    id: BoxId,
    exec: String,
    mark: String,
    over: bool,
}

impl RunningExec {
    pub(super) fn new(docker: DockerEngine, id: BoxId, exec: String, mark: String) -> Self {
        Self { docker, id, exec, mark, over: false }
    }

    /// Marks the command as ended.
    pub(super) fn mark_ended(mut self) {
        self.over = true;
    }

    /// Kills the command and waits until none of its processes is left.
    pub(super) async fn kill(mut self) {
        kill(&self.docker, &self.id, &self.exec, &self.mark).await;
        // Set only now: if this future is dropped earlier, a background task kills the command.
        self.over = true;
    }
}

impl Drop for RunningExec {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let (docker, id) = (self.docker.clone(), self.id.clone());
        let (exec, mark) = (std::mem::take(&mut self.exec), std::mem::take(&mut self.mark));
        self.docker.0.tasks.spawn(async move { kill(&docker, &id, &exec, &mark).await });
    }
}

async fn kill(docker: &DockerEngine, id: &BoxId, exec: &str, mark: &str) {
    let killing = async {
        try_kill(docker, id, mark).await?;
        // A command that was abandoned during its start may still start afterwards.
        while runs(docker, exec).await? {
            try_kill(docker, id, mark).await?;
        }
        Ok::<(), SandboxError>(())
    };
    let why = match tokio::time::timeout(KILL_TIMEOUT, killing).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "timed out".to_owned(),
    };
    tracing::warn!(%id, why, "removing container, because its command cannot be killed separately");
    if let Err(error) = docker.remove(id).await {
        tracing::error!(%id, %error, "failed to remove container");
    }
}

/// Returns whether the engine reports a command as running; `false` if the container has been removed.
async fn runs(docker: &DockerEngine, exec: &str) -> Result<bool, SandboxError> {
    let engine = docker.0.link.docker().await?;
    match engine.inspect_exec(exec).await {
        Ok(state) => Ok(state.running.unwrap_or_default()),
        Err(error) if super::status(&error) == Some(404) => Ok(false),
        Err(error) => Err(failed("inspect the command", error)),
    }
}

async fn try_kill(docker: &DockerEngine, id: &BoxId, mark: &str) -> Result<(), SandboxError> {
    let engine = docker.0.link.docker().await?;
    let options = CreateExecOptions {
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        cmd: Some(["/bin/sh", "-c", KILL, "kill", mark].map(str::to_owned).into()),
        env: Some(vec![format!("{MARK}={}", random_word()?)]),
        ..CreateExecOptions::default()
    };
    let exec = match engine.create_exec(&docker.name(id), options).await {
        Ok(exec) => exec,
        // Nothing runs in a removed container.
        Err(error) if matches!(super::status(&error), Some(404 | 409)) => return Ok(()),
        Err(error) => return Err(failed("kill the command", error)),
    };
    let started = engine.start_exec(&exec.id, Some(StartExecOptions::default())).await;
    let mut said = String::new();
    if let StartExecResults::Attached { mut output, .. } =
        started.map_err(|error| failed("kill the command", error))?
    {
        while let Some(Ok(LogOutput::StdErr { message } | LogOutput::StdOut { message })) =
            output.next().await
        {
            said.push_str(&String::from_utf8_lossy(&message));
            said.truncate(said.floor_char_boundary(500));
        }
    }
    loop {
        let state = engine.inspect_exec(&exec.id).await.map_err(|error| failed("kill the command", error))?;
        match (state.running, state.exit_code) {
            (Some(true), _) => tokio::time::sleep(Duration::from_millis(20)).await,
            (_, Some(0)) => return Ok(()),
            (_, code) => return Err(SandboxError::Refused(format!("processes are left ({code:?}): {said}"))),
        }
    }
}
