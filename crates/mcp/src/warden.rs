//! The process between the daemon and a server that is its child: this same program, started under another name. It
//! starts the server, adopts orphaned descendants, and ends them all when the server ends or the daemon lets go:
//! even if the daemon was killed, and even if they have left the server's process group and session.
//!
//! Deliberately absent: confinement of a server. It runs as a program of the operator.

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{Hold, guarded};
#[cfg(target_os = "linux")]
pub(crate) use linux::{Hold, guarded};

/// Becomes a warden if this program was started as one; otherwise returns immediately. Has to be called first thing in
/// `main`.
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

    /// The name of this program when started as a warden. A user's argument cannot be mistaken for it.
    const NAME: &str = "pudu-mcp-warden";

    /// The daemon's end of a pipe: while it is open, the server may run.
    pub(crate) struct Hold {
        /// The daemon's end.
        _writer: OwnedFd,
        /// The warden's end; only until it is started.
        _reader: Option<OwnedFd>,
    }

    impl Hold {
        /// Closes the end that only the warden needs.
        pub(crate) fn started(self) -> Self {
            Self { _reader: None, ..self }
        }
    }

    /// Returns a command that starts a warden for a program, and the pipe that holds it.
    pub(crate) fn guarded(warden: &Path, program: &str) -> io::Result<(tokio::process::Command, Hold)> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        // This end is inherited. Another process started at the same moment can do nothing with it.
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
        // The server gets no end of the pipe.
        nix::unistd::close(pipe)?;
        set_child_subreaper(Some(getpid()))?;
        // In its own group, so that signals to that group do not reach the warden.
        let server = server.process_group(0).spawn().inspect_err(|error| {
            eprintln!("{} could not be started: {}", server.get_program().display(), error.kind());
        });
        let server = Pid::from_child(&server?);
        thread::spawn(move || {
            // The end of the pipe or an error: in both cases the daemon has let go of the server.
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

    /// Ends all descendants of this process, until none is left.
    fn end_all() {
        loop {
            for pid in descendants() {
                kill_process(pid, Signal::KILL).ok();
            }
            // Another thread may wait for them as well.
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

    /// Reads a process's parent. Its name, which may contain anything, ends with the last bracket.
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

    /// Starts the program itself: only Linux lets a process adopt orphaned descendants.
    pub(crate) fn guarded(_: &Path, program: &str) -> io::Result<(tokio::process::Command, Hold)> {
        Ok((tokio::process::Command::new(program), Hold))
    }
}
