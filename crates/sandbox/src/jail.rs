//! Runs commands in their own namespaces: the daemon's side of `init.rs`.

use crate::{
    CommandLimits, Unconfined,
    capture::Capture,
    group::{CommandGroup, CommandGroups},
    init::{
        COMMAND_USER, InitError, NAME,
        wire::{self, GO_ON, HOLD, InitMessage, JailPlan, Net},
    },
    jail_spec::JailSpec,
    monitor::{FullFolders, ResourceMonitor, WriteHold},
    shell::{DRAIN, drain, failed},
};
use pudu_base::{BoxFuture, Exec, Killed, Network, SandboxError, ShellCommand};
use rustix::{
    io::IoSliceMut,
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg},
    process::{getegid, geteuid},
};
use std::{
    io::{self, Write},
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::PathBuf,
    pin::{Pin, pin},
    process::Stdio,
    time::Duration,
};
use tokio::{
    io::{AsyncWriteExt, Interest},
    net::{TcpListener, UnixStream},
    process::{self, Child},
};

/// Maximum length of a script, in bytes. The kernel limits an argument to 128 KiB.
const MAX_SCRIPT_BYTES: usize = 120_000;
/// How long a sandbox may take to end before its outer process is killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout of the probe's command.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// Note in the error output of a failed command that could remove files but not write any.
const CLEANUP_ONLY_NOTE: &str = "\nThe files under /mnt/user-data exceed their limit, so this command could only \
                             remove files.\n";

/// This machine's mechanisms for confining commands, which have been checked.
#[derive(Debug)]
pub struct Jail {
    init: PathBuf,
    identity: (u32, u32),
    from_root: bool,
    groups: Result<CommandGroups, String>,
    proc: bool,
    full: FullFolders,
}

impl Jail {
    /// Checks the kernel's features. Sandboxes run this program, whose `main` must call [`crate::enter`].
    ///
    /// # Errors
    /// When commands cannot be confined here.
    pub async fn probe() -> Result<Self, Unconfined> {
        Self::probe_with(PathBuf::from("/proc/self/exe")).await
    }

    /// Like [`Self::probe`], but sandboxes run the program `init`, whose `main` must call [`crate::enter`].
    ///
    /// # Errors
    /// When commands cannot be confined here.
    pub async fn probe_with(init: PathBuf) -> Result<Self, Unconfined> {
        let from_root = geteuid().is_root();
        let identity = if from_root { COMMAND_USER } else { (geteuid().as_raw(), getegid().as_raw()) };
        let groups = CommandGroups::open().map_err(|error| error.to_string());
        let mut jail = Self { init, identity, from_root, groups, proc: false, full: FullFolders::default() };
        let environment = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        let spec = JailSpec {
            environment: &environment,
            mounts: Vec::new(),
            network: Network::None,
            limits: CommandLimits::default(),
            disk: None,
            egress: None,
        };
        let script = "test -e /proc/self/status && echo proc; echo works".to_owned();
        let done = jail.run(&ShellCommand::new(script, PROBE_TIMEOUT), spec).await;
        let why = match done {
            Ok(done) if done.stdout.ends_with("works\n") => {
                jail.proc = done.stdout.starts_with("proc");
                return Ok(jail);
            }
            Ok(done) => {
                format!("a test command failed: {} {}", done.stdout.trim(), done.stderr.trim())
            }
            Err(error) => error.to_string(),
        };
        Err(Unconfined { help: help(from_root), why })
    }

    /// Returns the user and group that must own the threads' files, if they differ from the daemon's.
    #[must_use]
    pub fn owner(&self) -> Option<(u32, u32)> {
        self.from_root.then_some(self.identity)
    }

    /// Returns a description of the mechanisms in use.
    #[must_use]
    pub fn describe(&self) -> String {
        let limits = match &self.groups {
            Ok(groups) => format!("limits by cgroup v{}", groups.version()),
            Err(why) => format!("limits by process ({why})"),
        };
        let who = match self.from_root {
            true => format!("as user {}", self.identity.0),
            false => "in a user namespace".to_owned(),
        };
        let proc = if self.proc { "" } else { ", without /proc (parts of this machine's /proc are masked)" };
        format!("namespaces and seccomp, {who}, {limits}{proc}")
    }

    /// Runs a command in its own sandbox. Dropping the future kills all its processes.
    pub(crate) async fn run(&self, command: &ShellCommand, spec: JailSpec<'_>) -> Result<Exec, SandboxError> {
        if command.script.len() > MAX_SCRIPT_BYTES || command.script.contains('\0') {
            let text = "the command is too long or contains a NUL byte; write it to a file and run the file";
            return Err(SandboxError::Refused(text.to_owned()));
        }
        let cleaning = match spec.disk {
            Some(folder) => self.full.is_still_full(folder, spec.limits.disk).await,
            None => false,
        };
        let watched = self.begin_to_watch(&spec, cleaning).await;
        let group = self.groups.as_ref().ok().and_then(|groups| groups.open_one(&spec.limits));
        let net = net(&spec);
        let (mut child, control, reins) = self.spawn(net, group.as_ref()).map_err(failed)?;
        let counted = group.as_ref().is_some_and(CommandGroup::counts_kernel_memory);
        let plan = JailPlan { counted, ..self.plan(command, &spec, net, cleaning) };
        let (mut out, mut err) = (Capture::default(), Capture::default());
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let end = {
            let mut reading = pin!(async {
                tokio::join!(drain(stdout, &mut out), drain(stderr, &mut err));
            });
            let mut drained = false;
            let output = (reading.as_mut(), &mut drained);
            let limits = monitor(watched, reins, group.as_ref(), spec.limits.memory);
            let end = supervise(&plan, control, &spec, command.timeout, output, limits).await;
            reap(&mut child).await;
            if !drained {
                tokio::time::timeout(DRAIN, reading).await.ok();
            }
            end
        };
        let (code, mut killed) = match end {
            CommandEnd::Word(InitMessage::Exited(code)) => (Some(code), None),
            CommandEnd::Word(InitMessage::Memory) => (None, Some(Killed::Memory(spec.limits.memory))),
            CommandEnd::Word(InitMessage::Failed(why)) => return Err(broken(&why)),
            CommandEnd::NeverReady => return Err(broken("it exited during startup")),
            CommandEnd::Word(_) | CommandEnd::Gone => (None, None),
            CommandEnd::Killed(why) => (None, Some(why)),
        };
        if group.is_some_and(|group| group.out_of_memory()) {
            killed = killed.or(Some(Killed::Memory(spec.limits.memory)));
        }
        let (cut, mut stderr) = (out.is_cut() || err.is_cut(), err.text());
        if cleaning && code != Some(0) {
            stderr.push_str(CLEANUP_ONLY_NOTE);
        }
        Ok(Exec { stdout: out.text(), stderr, code, killed, cut })
    }

    /// Measures the command's folder before the command starts.
    async fn begin_to_watch<'a>(
        &'a self,
        spec: &JailSpec<'a>,
        cleaning: bool,
    ) -> Option<ResourceMonitor<'a>> {
        let folder = spec.disk?;
        Some(ResourceMonitor::begin(folder.to_owned(), spec.limits.disk, cleaning, &self.full).await)
    }

    fn plan(&self, command: &ShellCommand, spec: &JailSpec<'_>, net: Net, cleaning: bool) -> JailPlan {
        JailPlan {
            script: command.script.clone(),
            environment: spec.environment.to_vec(),
            mounts: spec.mounts.clone(),
            // A command that may only clean up must not write to any file.
            limits: CommandLimits { disk: if cleaning { 0 } else { spec.limits.disk }, ..spec.limits },
            identity: self.identity,
            from_root: self.from_root,
            net,
            counted: false,
        }
    }

    /// Starts the outer process, which uses only the socket and the two pipes of the daemon.
    fn spawn(&self, net: Net, group: Option<&CommandGroup>) -> io::Result<(Child, UnixStream, Reins)> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let reins = Reins(ours.try_clone()?);
        let mut start = process::Command::new(&self.init);
        start
            .arg0(NAME)
            .arg("outer")
            .arg(if self.from_root { "root" } else { "user" })
            .arg(if net == Net::Shared { "host-net" } else { "own-net" })
            .args(group.map(CommandGroup::folders).unwrap_or_default())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let child = start.spawn()?;
        Ok((child, UnixStream::from_std(ours)?, reins))
    }
}

/// Pauses and resumes a command.
struct Reins(std::os::unix::net::UnixStream);

impl WriteHold for Reins {
    fn hold(&mut self, still: bool) {
        // An error means that the sandbox has ended and there is nothing to pause.
        self.0.write_all(&[if still { HOLD } else { GO_ON }]).ok();
    }
}

/// Waits until a command exceeds the disk limit, or the kernel kills one of its processes because memory ran out.
async fn monitor(
    disk: Option<ResourceMonitor<'_>>,
    reins: Reins,
    group: Option<&CommandGroup>,
    memory: u64,
) -> Killed {
    let disk = async {
        match disk {
            Some(disk) => disk.run(reins).await,
            None => std::future::pending().await,
        }
    };
    let starved = async {
        match group {
            Some(group) => group.wait_for_oom().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        why = disk => why,
        () = starved => Killed::Memory(memory),
    }
}

fn net(spec: &JailSpec<'_>) -> Net {
    match spec.network {
        Network::None => Net::Loopback,
        Network::Proxy => Net::Served,
        Network::Full => Net::Shared,
    }
}

fn broken(why: &str) -> SandboxError {
    SandboxError::Refused(format!("cannot create the sandbox: {why}"))
}

fn help(from_root: bool) -> String {
    let text = if from_root {
        "run pudu as a user other than root, or give it CAP_SYS_ADMIN; in a container also allow the system \
         calls mount, pivot_root and unshare"
    } else {
        "allow this user to create user namespaces: set the sysctl user.max_user_namespaces and, on Debian \
         and Ubuntu, kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0; \
         under systemd or in a container, see docs/sandbox.md"
    };
    text.to_owned()
}

/// Outcome of a command, as observed by the daemon.
enum CommandEnd {
    /// The sandbox reported the end.
    Word(InitMessage),
    /// The sandbox ended before the command began.
    NeverReady,
    /// The sandbox ended while the command was running.
    Gone,
    /// The daemon killed the command.
    Killed(Killed),
}

/// Sends the plan to the sandbox and waits for the end. Returning closes the socket, which ends the sandbox.
async fn supervise(
    plan: &JailPlan,
    mut control: UnixStream,
    spec: &JailSpec<'_>,
    timeout: Duration,
    (mut reading, drained): (Pin<&mut impl Future<Output = ()>>, &mut bool),
    limits: impl Future<Output = Killed>,
) -> CommandEnd {
    let mut limits = pin!(limits);
    let mut serving: BoxFuture<'static, ()> = Box::pin(std::future::pending());
    let mut late = pin!(tokio::time::sleep(timeout));
    let mut ready = false;
    let mut words = InitMessages { buffer: Vec::new(), fd: None };
    let sent = async {
        let bytes = wire::framed(plan)?;
        // If the sandbox does not read the plan, it reports the reason.
        control.write_all(&bytes).await.ok();
        Ok::<_, InitError>(())
    };
    tokio::select! {
        sent = sent => if let Err(InitError(why)) = sent { return CommandEnd::Word(InitMessage::Failed(why)) },
        () = &mut late => return CommandEnd::Killed(Killed::Late),
    }
    loop {
        tokio::select! {
            word = words.next(&control) => match word {
                Some(InitMessage::Ready) => ready = true,
                Some(InitMessage::Listening) => {
                    if let (Some(egress), Some(listener)) = (spec.egress, words.listener()) {
                        serving = egress.serve(listener);
                    }
                }
                Some(word) => return CommandEnd::Word(word),
                None if ready => return CommandEnd::Gone,
                None => return CommandEnd::NeverReady,
            },
            () = &mut serving => serving = Box::pin(std::future::pending()),
            () = &mut reading, if !*drained => *drained = true,
            why = &mut limits => return CommandEnd::Killed(why),
            () = &mut late => return CommandEnd::Killed(Killed::Late),
        }
    }
}

/// Waits until the whole sandbox has ended. Its outer process ends last, when the kernel has killed all others.
async fn reap(child: &mut Child) {
    if tokio::time::timeout(KILL_TIMEOUT, child.wait()).await.is_err() {
        child.start_kill().ok();
        tokio::time::timeout(KILL_TIMEOUT, child.wait()).await.ok();
    }
}

/// The bytes and the descriptor received over the socket.
struct InitMessages {
    buffer: Vec<u8>,
    fd: Option<OwnedFd>,
}

impl InitMessages {
    /// Returns the next message; `None` at the end or after an error. An invalid message is returned as a failure.
    ///
    /// # Cancel safety
    /// Dropping the future loses no data.
    async fn next(&mut self, control: &UnixStream) -> Option<InitMessage> {
        loop {
            match wire::take_message(&mut self.buffer) {
                Ok(Some(word)) => return Some(word),
                Ok(None) => {}
                Err(InitError(why)) => return Some(InitMessage::Failed(why)),
            }
            if self.receive(control).await.ok()? == 0 {
                return None;
            }
        }
    }

    async fn receive(&mut self, control: &UnixStream) -> io::Result<usize> {
        control
            .async_io(Interest::READABLE, || {
                let mut bytes = [0; 4096];
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
                let mut ancillary = RecvAncillaryBuffer::new(&mut space);
                let mut slices = [IoSliceMut::new(&mut bytes)];
                let got = recvmsg(control, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
                for message in ancillary.drain() {
                    if let RecvAncillaryMessage::ScmRights(fds) = message {
                        self.fd = fds.last().or(self.fd.take());
                    }
                }
                self.buffer.extend(bytes.iter().take(got.bytes));
                Ok(got.bytes)
            })
            .await
    }

    /// Returns the listener that was received with a message.
    fn listener(&mut self) -> Option<TcpListener> {
        let listener = std::net::TcpListener::from(self.fd.take()?);
        listener.set_nonblocking(true).ok()?;
        TcpListener::from_std(listener).ok()
    }
}
