//! Runs commands in the host's shell, which is not a sandbox and has to be enabled explicitly. The shell gets nothing
//! from the daemon's environment, and is killed with its process group.

use crate::{capture::Capture, monitor};
use pudu_base::{Exec, Killed, SandboxError, ShellCommand};
use rustix::process::{Pid, Signal, kill_process_group};
use std::{io, path::Path, pin::pin, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process,
};

/// How long the remaining output is read after the shell has ended, in case background processes keep the pipes open.
pub const DRAIN: Duration = Duration::from_millis(200);

pub(crate) async fn run(
    command: &ShellCommand,
    environment: &[(String, String)],
    workspace: &Path,
    disk: u64,
) -> Result<Exec, SandboxError> {
    let mut child = spawn(&command.script, environment, workspace).map_err(failed)?;
    let group = ProcessGroup(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let (mut out, mut err) = (Capture::default(), Capture::default());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let ended = {
        let mut reading = pin!(async {
            tokio::join!(drain(stdout, &mut out), drain(stderr, &mut err));
        });
        let mut drained = false;
        let mut disk = pin!(monitor::disk(workspace.to_owned(), disk));
        let mut late = pin!(tokio::time::sleep(command.timeout));
        let ended = loop {
            tokio::select! {
                status = child.wait() => break Ok(status.map_err(failed)?.code()),
                () = &mut reading, if !drained => drained = true,
                why = &mut disk => break Err(why),
                () = &mut late => break Err(Killed::Late),
            }
        };
        if ended.is_ok() && !drained {
            // A timeout only means that a background process keeps the pipes open.
            tokio::time::timeout(DRAIN, reading).await.ok();
        }
        ended
    };
    drop(group);
    let (code, killed) = ended.map_or_else(|why| (None, Some(why)), |code| (code, None));
    let cut = out.is_cut() || err.is_cut();
    Ok(Exec { stdout: out.text(), stderr: err.text(), code, killed, cut })
}

fn spawn(script: &str, environment: &[(String, String)], workspace: &Path) -> io::Result<process::Child> {
    let shell = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" };
    process::Command::new(shell)
        .arg("-c")
        .arg(script)
        .current_dir(workspace)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", workspace)
        .env("LANG", "C.UTF-8")
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

/// Kills the process group on drop, which happens at the end, at the timeout, or when the call is cancelled.
struct ProcessGroup(Option<Pid>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            // An error means that the group is empty.
            kill_process_group(pid, Signal::KILL).ok();
        }
    }
}

/// Reads a pipe to its end.
pub(crate) async fn drain(pipe: Option<impl AsyncRead + Unpin>, capture: &mut Capture) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        capture.push(buffer.get(..count).unwrap_or_default());
    }
}

pub(crate) fn failed(source: io::Error) -> SandboxError {
    SandboxError::Io { path: "the shell".to_owned(), source }
}
