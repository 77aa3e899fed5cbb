//! The warden: a process between the daemon and a server, which is this same program started under another name. It
//! starts the server, adopts orphaned descendants, and kills them all when the server ends or the daemon closes its end
//! of a pipe. This works even if the daemon was killed, and even for processes that have left the server's process
//! group and session.
//!
//! Deliberately absent: confinement of a server, which runs with the operator's rights.

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{Hold, guarded};
#[cfg(target_os = "linux")]
pub(crate) use linux::{Hold, guarded};

/// Becomes a warden if this program was started as one; otherwise returns immediately. Must be called first in `main`.
pub fn enter() {
    #[cfg(target_os = "linux")]
    linux::enter();
}

#[cfg(target_os = "linux")]
mod linux {
    use rustix::{
        io::{dup, retry_on_intr},
        pipe::{PipeFlags, pipe_with},
        process::{
            Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, test_kill_process, wait,
        },
    };
    use std::{
        collections::BTreeMap,
        env, fs,
        io::{self, Read},
        os::{
            fd::{AsRawFd, OwnedFd},
            unix::process::CommandExt,
        },
        path::Path,
        process::{Command, exit},
        thread,
    };

    /// The program's name (`argv[0]`) when it is started as a warden. A user's argument cannot be mistaken for it.
    const NAME: &str = "pudu-mcp-warden";

    /// The daemon's hold on a server, which may run while the daemon's end of the pipe is open.
    pub(crate) struct Hold {
        /// The daemon's end.
        _writer: OwnedFd,
        /// The warden's end, until the warden is started.
        _reader: Option<OwnedFd>,
    }

    impl Hold {
        /// Closes the end that only the warden needs.
        pub(crate) fn started(self) -> Self {
            Self { _reader: None, ..self }
        }
    }

    /// Returns a command that starts a program under a warden, and the hold on it.
    pub(crate) fn guarded(warden: &Path, program: &str) -> io::Result<(tokio::process::Command, Hold)> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        // The warden inherits this end. Another process that is started at the same moment cannot use it for anything.
        let reader = dup(&reader)?;
        let mut command = tokio::process::Command::new(warden);
        command.arg0(NAME).arg(reader.as_raw_fd().to_string()).arg(program);
        Ok((command, Hold { _writer: writer, _reader: Some(reader) }))
    }

    /// See [`super::enter`].
    pub(super) fn enter() {
        let mut args = env::args_os();
        if args.next().is_none_or(|name| name != NAME) {
            return;
        }
        let pipe = args.next().and_then(|pipe| pipe.into_string().ok()?.parse::<i32>().ok());
        let (Some(pipe), Some(program)) = (pipe, args.next()) else { exit(2) };
        let mut server = Command::new(program);
        server.args(args);
        exit(i32::from(work(pipe, server).is_err()))
    }

    fn work(pipe: i32, mut server: Command) -> io::Result<()> {
        let mut hold = fs::File::open(format!("/proc/self/fd/{pipe}"))?;
        // The server must not inherit the pipe.
        nix::unistd::close(pipe)?;
        set_child_subreaper(Some(getpid()))?;
        // In its own group, so that signals to that group do not reach the warden.
        let server = server.process_group(0).spawn().inspect_err(|error| {
            eprintln!("{} could not be started: {}", server.get_program().display(), error.kind());
        });
        let server = Pid::from_child(&server?);
        thread::spawn(move || {
            // After an end of file or an error, the daemon no longer holds the server.
            while let Ok(1..) = hold.read(&mut [0; 16]) {}
            end_all();
            exit(0);
        });
        loop {
            match retry_on_intr(|| wait(WaitOptions::empty())) {
                Ok(Some((pid, _))) if pid == server => break,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        end_all();
        Ok(())
    }

    /// Kills all descendants of this process until none is left.
    fn end_all() {
        loop {
            for pid in descendants() {
                kill_process(pid, Signal::KILL).ok();
            }
            // The other thread may wait for them as well.
            match retry_on_intr(|| wait(WaitOptions::empty())) {
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    /// Returns the descendants of this process, parents before their children.
    fn descendants() -> Vec<Pid> {
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            if let Some(parent) = parent(pid) {
                children.entry(parent).or_default().push(pid);
            }
        }
        let mut found = children.remove(&getpid().as_raw_nonzero().get()).unwrap_or_default();
        let mut next = 0;
        while let Some(pid) = found.get(next).copied() {
            found.extend(children.remove(&pid).unwrap_or_default());
            next += 1;
        }
        let alive = |pid: &Pid| test_kill_process(*pid).is_ok();
        found.into_iter().filter_map(Pid::from_raw).filter(alive).collect()
    }

    /// Reads the parent of a process. The process name, which may contain any character, ends at the last parenthesis.
    fn parent(pid: i32) -> Option<i32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::{io, path::Path};

    /// Holds nothing.
    pub(crate) struct Hold;

    impl Hold {
        pub(crate) fn started(self) -> Self {
            self
        }
    }

    /// Returns a command that starts the program without a warden: only Linux lets a process adopt orphaned
    /// descendants.
    pub(crate) fn guarded(_: &Path, program: &str) -> io::Result<(tokio::process::Command, Hold)> {
        Ok((tokio::process::Command::new(program), Hold))
    }
}
