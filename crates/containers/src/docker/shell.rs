//! Runs commands in a container of any image with a shell, each as a separate process of the engine.

use super::{
    DockerEngine,
    command::{BEGIN, MARK},
    kill::RunningExec,
    link::{failed, status},
};
use crate::{ContainerEngine, Order, Runner, random_word};
use bollard::{
    container::LogOutput,
    errors::Error,
    exec::{CreateExecOptions, StartExecOptions, StartExecResults},
};
use futures_util::{Stream, StreamExt};
use pudu_base::{BoxFuture, Exec, Killed, SandboxError, ShellCommand, Variable};
use pudu_sandbox::{Capture, DRAIN};
use std::{pin::pin, time::Duration};

/// Interval between checks for the end of a command, whose output background processes may keep open longer.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Timeout of one response from the engine.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum length of a command, in bytes. The kernel limits an argument to 128 KiB.
const MAX_COMMAND_BYTES: usize = 127 * 1024;

/// Runs commands in one container.
pub(super) struct ContainerShell {
    docker: DockerEngine,
    order: Order,
}

/// Outcome of a command.
enum ExecEnd {
    Itself(Option<i32>),
    Killed(Killed),
}

impl ContainerShell {
    pub(super) fn new(docker: DockerEngine, order: Order) -> Self {
        Self { docker, order }
    }

    async fn run(&self, command: &ShellCommand) -> Result<Exec, SandboxError> {
        if command.script.len() > MAX_COMMAND_BYTES {
            let text = "the command is too long; write it to a file with write_file and run the file";
            return Err(SandboxError::Refused(text.to_owned()));
        }
        let mark = random_word()?;
        let exec = self.prepare(command, &mark).await?;
        let running = RunningExec::new(self.docker.clone(), self.order.id.clone(), exec.clone(), mark);
        let engine = self.docker.0.link.docker().await?;
        let started = engine.start_exec(&exec, Some(StartExecOptions::default())).await;
        let StartExecResults::Attached { output, .. } =
            started.map_err(|error| failed("run the command", error))?
        else {
            return Err(SandboxError::Refused(
                "the container engine does not return the command's output".to_owned(),
            ));
        };
        let (mut out, mut err) = (Capture::default(), Capture::default());
        let (code, killed) = match self.follow(&exec, command.timeout, output, &mut out, &mut err).await? {
            ExecEnd::Itself(code) => {
                running.mark_ended();
                (code, None)
            }
            ExecEnd::Killed(why) => {
                running.kill().await;
                (None, Some(why))
            }
        };
        let cut = out.is_cut() || err.is_cut();
        Ok(Exec { stdout: out.text(), stderr: err.text(), code, killed, cut })
    }

    /// Prepares a command, in a new container if the old one is gone.
    async fn prepare(&self, command: &ShellCommand, mark: &str) -> Result<String, SandboxError> {
        match self.create(command, mark).await? {
            Ok(exec) => Ok(exec),
            Err(error) if matches!(status(&error), Some(404 | 409)) => {
                tracing::warn!(id = %self.order.id, "recreating lost sandbox");
                self.docker.start(&self.order).await?;
                self.create(command, mark).await?.map_err(|error| failed("run the command", error))
            }
            Err(error) => Err(failed("run the command", error)),
        }
    }

    async fn create(
        &self,
        command: &ShellCommand,
        mark: &str,
    ) -> Result<Result<String, Error>, SandboxError> {
        let own = command.variables.iter().map(|Variable { name, value }| format!("{name}={value}"));
        let options = CreateExecOptions {
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(["/bin/sh", "-c", BEGIN, "sh", &command.script].map(str::to_owned).into()),
            env: Some(own.chain([format!("{MARK}={mark}")]).collect()),
            ..CreateExecOptions::default()
        };
        let engine = self.docker.0.link.docker().await?;
        let created = engine.create_exec(&self.docker.name(&self.order.id), options).await;
        Ok(created.map(|created| created.id))
    }

    /// Reads the output until the command ends or has to be killed.
    async fn follow(
        &self,
        exec: &str,
        timeout: Duration,
        output: impl Stream<Item = Result<LogOutput, Error>> + Unpin,
        out: &mut Capture,
        err: &mut Capture,
    ) -> Result<ExecEnd, SandboxError> {
        let limit = self.docker.0.settings.limits.disk;
        let folder = self.order.mounts.first().map(|own| own.host.clone()).unwrap_or_default();
        let mut disk = pin!(pudu_sandbox::disk(folder, limit));
        let mut late = pin!(tokio::time::sleep(timeout));
        let mut asking = tokio::time::interval_at(tokio::time::Instant::now() + POLL_INTERVAL, POLL_INTERVAL);
        let mut reading = pin!(read(output, out, err));
        let mut read = false;
        loop {
            tokio::select! {
                biased;
                why = &mut disk => return Ok(ExecEnd::Killed(why)),
                () = &mut late => return Ok(ExecEnd::Killed(Killed::Late)),
                done = &mut reading, if !read => {
                    done?;
                    read = true;
                    asking.reset_immediately();
                }
                _ = asking.tick() => {
                    // A slow engine does not delay the command's timeout.
                    let Ok(asked) = tokio::time::timeout(RESPONSE_TIMEOUT, self.ended(exec)).await else { continue };
                    let Some(code) = asked? else { continue };
                    if !read {
                        // A timeout only means that a background process keeps the output open.
                        tokio::time::timeout(DRAIN, reading).await.ok();
                    }
                    return Ok(ExecEnd::Itself(code));
                }
            }
        }
    }

    /// Returns the exit code of a command; `None` if the command has not ended.
    async fn ended(&self, exec: &str) -> Result<Option<Option<i32>>, SandboxError> {
        let engine = self.docker.0.link.docker().await?;
        let state = engine.inspect_exec(exec).await.map_err(|error| match status(&error) {
            Some(404) => container_ended(),
            _ => failed("inspect the command", error),
        })?;
        if state.running.unwrap_or_default() {
            return Ok(None);
        }
        match state.exit_code {
            Some(code) => Ok(Some(i32::try_from(code).ok())),
            // The command has not started, or its container is gone.
            None if self.docker.alive(&self.order.id).await => Ok(None),
            None => Err(container_ended()),
        }
    }
}

fn container_ended() -> SandboxError {
    let text = "the container ended while the command was running; files under /mnt/user-data are kept, and \
                the next command runs in a new container";
    SandboxError::Refused(text.to_owned())
}

async fn read(
    mut output: impl Stream<Item = Result<LogOutput, Error>> + Unpin,
    out: &mut Capture,
    err: &mut Capture,
) -> Result<(), SandboxError> {
    while let Some(piece) = output.next().await {
        match piece.map_err(|error| failed("stream the command's output", error))? {
            LogOutput::StdErr { message } => err.push(&message),
            LogOutput::StdOut { message } | LogOutput::Console { message } => out.push(&message),
            LogOutput::StdIn { .. } => {}
        }
    }
    Ok(())
}

impl Runner for ContainerShell {
    fn exec<'a>(&'a self, command: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        Box::pin(self.run(command))
    }
}
