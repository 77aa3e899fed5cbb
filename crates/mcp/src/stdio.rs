//! A server as a child process: started with its own environment, and ended with all its descendants when it is
//! dropped, by its warden if it has one.

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

/// Timeout of a child's exit after its input was closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout for the rest of a child's error output after its end.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// Maximum number of bytes of an error line that are read at once.
const LINE: u64 = 2 * 1024;

/// A running child.
pub(crate) struct Process {
    child: Child,
    group: ServerProcesses,
    stderr: AbortOnDropHandle<()>,
    complaint: Arc<Mutex<String>>,
}

/// Pipes for communicating with it.
pub(crate) type Pipes = (ChildStdout, ChildStdin);

/// Starts a server.
pub(crate) fn start(command: &ServerCommand, server: &ServerLabel) -> Result<(Process, Pipes), String> {
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
            is_there(command)?;
            let (start, hold) = warden::guarded(warden, &command.program)?;
            (start, Some(hold))
        }
        None => (tokio::process::Command::new(&command.program), None),
    };
    let child = start
        .args(command.args.iter().map(ExposeSecret::expose_secret))
        .env_clear()
        .envs(command.env.iter().map(|(key, value)| (key, value.expose_secret())))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        // Killing the warden would leave its server running.
        .kill_on_drop(hold.is_none())
        .spawn()?;
    let held = hold.is_some();
    let number = child.id().filter(|_| !held).and_then(|id| Pid::from_raw(id.cast_signed()));
    let group = ServerProcesses { hold: hold.map(Hold::started), number };
    Ok((child, group))
}

/// Fails like the start would if the program does not exist.
fn is_there(command: &ServerCommand) -> io::Result<()> {
    let path = command.env.iter().find(|(key, _)| key == "PATH").map(|(_, value)| value.expose_secret());
    let there = match command.program.contains('/') {
        true => Path::new(&command.program).is_file(),
        false => {
            std::env::split_paths(path.unwrap_or_default()).any(|at| at.join(&command.program).is_file())
        }
    };
    if there { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
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
    /// Waits for the child's end, and ends the processes that it left behind.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn ended(&mut self) {
        // An error means that there is no child to wait for.
        self.child.wait().await.ok();
        // Immediately: once the group is empty, its number may be reused.
        self.group.kill();
    }

    /// Gives the child, whose input was closed, time to exit; then kills its whole group.
    pub(crate) async fn close(mut self) {
        if timeout(EXIT_TIMEOUT, self.ended()).await.is_err() {
            self.group.kill();
            timeout(EXIT_TIMEOUT, self.child.wait()).await.ok();
        }
    }

    /// Ends the child and returns the last line of its error output.
    pub(crate) async fn complaint(mut self) -> String {
        self.group.kill();
        timeout(LAST_WORDS, &mut self.stderr).await.ok();
        self.complaint.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Ends a server and its descendants when dropped: through its warden, which ends them all once it is not held any
/// more, or by the number of their process group.
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

/// Logs a child's error output, without secrets, and keeps the last line.
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
