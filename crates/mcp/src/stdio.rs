//! A server as a child process. It is started with its own environment and killed on drop, together with all its
//! descendants if it has a warden, or else with its process group.

use crate::{
    server::{ServerCommand, ServerLabel},
    warden::{self, Hold},
};
use rustix::process::{Pid, Signal, kill_process_group};
use secrecy::ExposeSecret;
use std::{
    io,
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;

/// How long a child may take to exit after its input is closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout for reading the remaining error output of a child that has ended.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// Maximum length of a line of error output, in bytes. A longer line is split.
const LINE: u64 = 2 * 1024;

/// A running child.
pub struct Process {
    child: Child,
    group: ServerProcesses,
    stderr: AbortOnDropHandle<()>,
    complaint: Arc<Mutex<String>>,
}

/// Pipes for communicating with a child.
pub type Pipes = (ChildStdout, ChildStdin);

/// Starts a server.
///
/// # Errors
/// When the program cannot be started. The error contains the reason.
pub fn start(command: &ServerCommand, server: &ServerLabel) -> Result<(Process, Pipes), String> {
    let (mut child, group) = spawn(command).map_err(|error| refused(&command.program, &error))?;
    let (Some(stdout), Some(stdin), Some(stderr)) =
        (child.stdout.take(), child.stdin.take(), child.stderr.take())
    else {
        return Err("it has no pipes".to_owned());
    };
    let complaint = Arc::default();
    let reading = listen(stderr, server.clone(), Arc::clone(&complaint));
    let stderr = AbortOnDropHandle::new(tokio::spawn(reading));
    Ok((Process { child, group, stderr, complaint }, (stdout, stdin)))
}

fn spawn(command: &ServerCommand) -> io::Result<(Child, ServerProcesses)> {
    let (mut start, hold) = match &command.warden {
        Some(warden) => {
            // Checked first, because the warden's error would be less concise.
            if !command.is_installed() {
                return Err(io::ErrorKind::NotFound.into());
            }
            let (start, hold) = warden::guarded(warden, &command.program)?;
            (start, Some(hold))
        }
        None => (tokio::process::Command::new(&command.program), None),
    };
    if let Some(folder) = &command.folder {
        start.current_dir(folder);
    }
    let child = start
        .args(command.args.iter().map(ExposeSecret::expose_secret))
        .env_clear()
        .envs(command.env.iter().map(|(key, value)| (key, value.expose_secret())))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        // Killing the warden would leave the server running.
        .kill_on_drop(hold.is_none())
        .spawn()?;
    let held = hold.is_some();
    let number = child.id().filter(|_| !held).and_then(|id| Pid::from_raw(id.cast_signed()));
    let group = ServerProcesses { hold: hold.map(Hold::started), number };
    Ok((child, group))
}

impl ServerCommand {
    /// Returns whether the program exists.
    #[must_use]
    pub fn is_installed(&self) -> bool {
        let path = self.env.iter().find(|(key, _)| key == "PATH").map(|(_, value)| value.expose_secret());
        match self.program.contains('/') {
            true => Path::new(&self.program).is_file(),
            false => {
                std::env::split_paths(path.unwrap_or_default()).any(|at| at.join(&self.program).is_file())
            }
        }
    }
}

fn refused(program: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            format!("there is no program {program} in its PATH: install it, or give its whole path")
        }
        kind => format!("{program} could not be started: {kind}"),
    }
}

impl Process {
    /// Waits until the child ends, and kills the processes that it left behind.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn ended(&mut self) {
        // An error means that there is no child to wait for.
        self.child.wait().await.ok();
        // Killed immediately, because the number of an empty group may be reused.
        self.group.kill();
    }

    /// Gives the child, whose input is closed, time to exit. Then kills it and its descendants.
    pub async fn close(mut self) {
        if timeout(EXIT_TIMEOUT, self.ended()).await.is_err() {
            self.group.kill();
            timeout(EXIT_TIMEOUT, self.child.wait()).await.ok();
        }
    }

    /// Kills the child and returns the last line of its error output.
    pub async fn complaint(mut self) -> String {
        self.group.kill();
        timeout(LAST_WORDS, &mut self.stderr).await.ok();
        self.complaint.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Ends a server and its descendants on drop, either through its warden, which ends them all once the hold is dropped,
/// or through its process group.
struct ServerProcesses {
    hold: Option<Hold>,
    number: Option<Pid>,
}

impl ServerProcesses {
    fn kill(&mut self) {
        self.hold = None;
        if let Some(pid) = self.number.take() {
            // An error means that the group is empty.
            kill_process_group(pid, Signal::KILL).ok();
        }
    }
}

impl Drop for ServerProcesses {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Logs a child's error output without secrets and keeps the last line.
async fn listen(stderr: ChildStderr, server: ServerLabel, last: Arc<Mutex<String>>) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut stderr).take(LINE).read_until(b'\n', &mut line).await {
        let text = server.hide_and_cut(&String::from_utf8_lossy(&line));
        if !text.is_empty() {
            tracing::debug!(server = server.name(), "{text}");
            *last.lock().unwrap_or_else(PoisonError::into_inner) = text;
        }
        line.clear();
    }
}
