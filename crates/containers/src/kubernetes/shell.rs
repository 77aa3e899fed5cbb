//! Runs commands in a Pod, and kills their processes, which carry a mark in their environment.
//!
//! The API server does not end a process that it started by exec: processes survive a closed connection, and an exec
//! waits for every background process that holds its streams. Each command therefore reports its own exit code.

use super::{
    KubernetesEngine,
    exec::{ExecTarget, PodExec},
    pod::MARK,
    trouble::ClusterError,
};
use crate::{Order, Runner};
use pudu_base::{BoxFuture, Exec, Killed, SandboxError, ShellCommand};
use pudu_sandbox::Capture;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::Mutex,
};

/// Maximum length of a script for a shell's `-c`, in bytes.
const MAX_SCRIPT_BYTES: usize = 100 * 1024;
/// How long the output may pause after a command's end. Later output belongs to background processes.
const DRAIN: Duration = Duration::from_millis(500);
/// Timeout for killing a command.
const KILL_TIMEOUT: Duration = Duration::from_secs(20);

/// Reads a command of `$2` bytes, runs it with the mark `$1`, kills its remaining processes (its process group, and
/// processes with the mark in their environment), and reports its exit code. Killing takes two consecutive scans
/// without a match, because the environment of a process is not visible during exec. The `x` preserves trailing
/// newlines, which the shell would drop.
const RUN: &str = r#"
script=$(head -c "$2"; printf x); script=${script%x}
cd /mnt/user-data/workspace || exit 125
shell=/bin/sh; [ ! -x /bin/bash ] || shell=/bin/bash
own=; command -v setsid >/dev/null 2>&1 && own=setsid
PUDU_COMMAND=$1 $own "$shell" -c "$script" </dev/null &
wait $!
code=$?
[ -z "$own" ] || kill -9 -- "-$!" 2>/dev/null
clear=0 turn=0
while [ "$clear" -lt 2 ] && [ "$turn" -lt 50 ]; do
  clear=$((clear + 1)) turn=$((turn + 1))
  for at in $(grep -ls "PUDU_COMMAND=$1" /proc/[0-9]*/environ); do
    at=${at%/environ}; kill -9 "${at#/proc/}" 2>/dev/null && clear=0
  done
done
printf '\n%s %s\n' "$1" "$code" >&2
exit "$code"
"#;

/// Kills the processes with the mark `$1` until two scans find none; if `$2` is `all`, kills all but the first process.
/// Nothing is killed unless the first process's environment contains `$3`, as it does in a sandbox.
const KILL: &str = r#"
tr '\0' '\n' </proc/1/environ | grep -qx "$3=1" || exit 97
clear=0 turn=0
while [ "$turn" -lt 50 ]; do
  if [ "$2" = all ]; then
    kill -9 -1 2>/dev/null
    # The first process, what it waits with, and this one.
    set -- "$1" all "$3" /proc/[0-9]*
    [ $# -gt 6 ] || exit 0
  fi
  clear=$((clear + 1))
  for at in $(grep -ls "PUDU_COMMAND=$1" /proc/[0-9]*/environ); do
    at=${at%/environ}; kill -9 "${at#/proc/}" 2>/dev/null && clear=0
  done
  [ "$clear" -lt 2 ] || [ "$2" = all ] || exit 0
  turn=$((turn + 1))
done
exit 98
"#;

/// Runs commands in one thread's Pod. Files are accessed on this machine.
pub(crate) struct PodShell {
    kubernetes: KubernetesEngine,
    order: Order,
    target: ExecTarget,
    /// Held while a command starts and while processes are killed, so that no new command is killed.
    door: Arc<Mutex<()>>,
    live: Arc<AtomicUsize>,
}

/// How a command's stream ended.
enum StreamEnd {
    /// The command reported its exit code.
    Said(i32),
    /// The exec ended without a report from the command.
    Silent(Result<i32, ClusterError>),
}

impl PodShell {
    pub(crate) fn new(kubernetes: KubernetesEngine, order: Order, target: ExecTarget) -> Self {
        Self { kubernetes, order, target, door: Arc::default(), live: Arc::default() }
    }

    /// Kills all processes that an earlier daemon left in the Pod.
    pub(crate) async fn clear(&self) -> Result<(), ClusterError> {
        kill(&self.target, "-", true).await
    }

    /// Starts a command. If the Pod is lost, replaces it once.
    async fn start(&self, mark: &str, size: usize) -> Result<(PodExec, Leash), ClusterError> {
        match self.open(mark, size).await {
            Err(trouble @ (ClusterError::Missing(_) | ClusterError::Broken(_))) => {
                if self.kubernetes.again(&self.order).await? {
                    self.open(mark, size).await
                } else {
                    Err(trouble)
                }
            }
            opened => opened,
        }
    }

    async fn open(&self, mark: &str, size: usize) -> Result<(PodExec, Leash), ClusterError> {
        let _door = self.door.lock().await;
        let leash = Leash::new(self, mark);
        let running = self.target.start(&["/bin/sh", "-c", RUN, "pudu", mark, &size.to_string()]).await;
        match running {
            Ok(running) => Ok((running, leash)),
            // An exec that timed out may have started nevertheless.
            Err(trouble @ ClusterError::Late(_)) => Err(trouble),
            Err(trouble) => {
                leash.done();
                Err(trouble)
            }
        }
    }

    async fn run(&self, command: &ShellCommand) -> Result<Exec, SandboxError> {
        let script = command.script.as_bytes();
        if script.len() > MAX_SCRIPT_BYTES {
            let text = "the command is too long; write it to a file and run the file";
            return Err(SandboxError::Refused(text.to_owned()));
        }
        let mark = crate::random_word()?;
        let (mut running, leash) = self.start(&mark, script.len()).await?;
        let (mut out, mut err) = (Capture::default(), Trailer::new(&mark));
        let work = async {
            running.feed(script).await?;
            Ok(follow(&mut running, &mut out, &mut err).await)
        };
        let ended = tokio::time::timeout(command.timeout, work).await;
        let (code, killed) = match ended {
            Ok(Ok(StreamEnd::Said(code))) => {
                leash.done();
                (by_itself(code), None)
            }
            Ok(Ok(StreamEnd::Silent(Ok(code)))) => {
                leash.kill().await;
                (by_itself(code), None)
            }
            Ok(Ok(StreamEnd::Silent(Err(trouble))) | Err(trouble)) => {
                leash.kill().await;
                match self.kubernetes.out_of_memory(&self.order.id).await {
                    true => (None, Some(Killed::Memory(self.kubernetes.limits().memory))),
                    false => return Err(command_lost(&trouble)),
                }
            }
            Err(_) => {
                leash.kill().await;
                (None, Some(Killed::Late))
            }
        };
        running.cut();
        let cut = out.is_cut() || err.kept.is_cut();
        Ok(Exec { stdout: out.text(), stderr: err.text(), code, killed, cut })
    }
}

/// Returns the exit code; `None` for a signal, which shells report as 128 plus the signal's number.
fn by_itself(code: i32) -> Option<i32> {
    Some(code).filter(|code| !(129..=192).contains(code))
}

fn command_lost(trouble: &ClusterError) -> SandboxError {
    SandboxError::Refused(format!(
        "{trouble}; the command was killed, and it is unknown whether it completed"
    ))
}

/// Reads both outputs until the command ends.
async fn follow(running: &mut PodExec, out: &mut Capture, err: &mut Trailer) -> StreamEnd {
    let (mut from_out, mut from_err) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    let (mut out_open, mut err_open, mut end) = (true, true, None);
    while out_open || err_open {
        let rest = err.code.is_some() || matches!(end, Some(Err(_)));
        tokio::select! {
            count = read(&mut running.stdout, &mut from_out), if out_open => match count {
                Some(count) => out.push(from_out.get(..count).unwrap_or_default()),
                None => out_open = false,
            },
            count = read(&mut running.stderr, &mut from_err), if err_open => match count {
                Some(count) => err.push(from_err.get(..count).unwrap_or_default()),
                None => err_open = false,
            },
            ended = &mut running.end, if end.is_none() => end = Some(ended),
            () = tokio::time::sleep(DRAIN), if rest => break,
        }
    }
    match (err.code, end) {
        (Some(code), _) => StreamEnd::Said(code),
        (None, Some(end)) => StreamEnd::Silent(end),
        (None, None) => StreamEnd::Silent((&mut running.end).await),
    }
}

/// Reads a chunk; `None` at the end.
async fn read(from: &mut (impl AsyncRead + Unpin), into: &mut [u8]) -> Option<usize> {
    from.read(into).await.ok().filter(|count| *count > 0)
}

/// Kills processes by their mark, or all processes of a Pod.
async fn kill(target: &ExecTarget, mark: &str, all: bool) -> Result<(), ClusterError> {
    let answer = target.call(KILL, &[mark, if all { "all" } else { "" }, MARK], 4096, KILL_TIMEOUT).await?;
    match answer.code {
        0 => Ok(()),
        code => {
            Err(ClusterError::Broken(format!("failed to kill the remaining processes of a command ({code})")))
        }
    }
}

/// Guards a command: kills it unless it is marked as done.
struct Leash {
    hold: Option<PodHold>,
    tasks: tokio_util::task::TaskTracker,
}

struct PodHold {
    target: ExecTarget,
    mark: String,
    door: Arc<Mutex<()>>,
    live: Arc<AtomicUsize>,
}

impl Leash {
    fn new(shell: &PodShell, mark: &str) -> Self {
        shell.live.fetch_add(1, Ordering::Relaxed);
        let hold = PodHold {
            target: shell.target.clone(),
            mark: mark.to_owned(),
            door: shell.door.clone(),
            live: shell.live.clone(),
        };
        Self { hold: Some(hold), tasks: shell.kubernetes.tasks() }
    }

    fn done(mut self) {
        if let Some(hold) = self.hold.take() {
            hold.live.fetch_sub(1, Ordering::Relaxed);
        }
    }

    async fn kill(mut self) {
        if let Some(hold) = self.hold.take() {
            hold.kill().await;
        }
    }
}

impl PodHold {
    async fn kill(self) {
        let _door = self.door.lock().await;
        let alone = self.live.fetch_sub(1, Ordering::Relaxed) == 1;
        match kill(&self.target, &self.mark, alone).await {
            // The processes of a lost Pod are gone.
            Ok(()) | Err(ClusterError::Missing(_)) => {}
            Err(error) => tracing::warn!(pod = self.target.pod, %error, "failed to kill command in Pod"),
        }
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        // If the daemon exits before that, the next one clears the Pod.
        if let (Some(hold), Ok(runtime)) = (self.hold.take(), tokio::runtime::Handle::try_current()) {
            self.tasks.spawn_on(hold.kill(), &runtime);
        }
    }
}

/// Collects a command's output up to the line that reports the exit code.
struct Trailer {
    kept: Capture,
    waiting: Vec<u8>,
    needle: Vec<u8>,
    code: Option<i32>,
}

impl Trailer {
    fn new(mark: &str) -> Self {
        let needle = format!("\n{mark} ").into_bytes();
        Self { kept: Capture::default(), waiting: Vec::new(), needle, code: None }
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.code.is_some() {
            return;
        }
        self.waiting.extend_from_slice(bytes);
        while let Some(at) = self.waiting.windows(self.needle.len()).position(|window| window == self.needle)
        {
            let rest = self.waiting.get(at + self.needle.len()..).unwrap_or_default();
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            match rest.get(digits) {
                Some(b'\n') if digits > 0 => {
                    let number = String::from_utf8_lossy(rest.get(..digits).unwrap_or_default());
                    self.code = number.parse().ok();
                    self.keep(at);
                    self.waiting.clear();
                    return;
                }
                // The line is not yet complete.
                None if digits < 4 => return self.keep(at),
                // A false match.
                _ => self.keep(at + 1),
            }
        }
        // The end of the output may be the beginning of that line.
        self.keep(self.waiting.len().saturating_sub(self.needle.len()));
    }

    /// Keeps the first `count` bytes of the buffered output.
    fn keep(&mut self, count: usize) {
        self.kept.push(self.waiting.get(..count).unwrap_or_default());
        self.waiting.drain(..count);
    }

    fn text(mut self) -> String {
        self.kept.push(&self.waiting);
        self.kept.text()
    }
}

impl Runner for PodShell {
    fn exec<'a>(&'a self, command: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        let command = command.exported();
        Box::pin(async move { self.run(&command).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_found_for_any_chunking() {
        let output = b"one\ntwo\nM 3\nlate";
        for size in 1..output.len() {
            let mut trailer = Trailer::new("M");
            output.chunks(size).for_each(|piece| trailer.push(piece));
            assert_eq!((trailer.code, trailer.text().as_str()), (Some(3), "one\ntwo"), "{size}");
        }
        let mut trailer = Trailer::new("M");
        trailer.push(b"a\nM and more\nM");
        assert_eq!((trailer.code, trailer.text().as_str()), (None, "a\nM and more\nM"));
    }
}
