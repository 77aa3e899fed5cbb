//! The process between the daemon and a server that is its child: this very program, started anew under another name.
//! It starts the server, is the parent of all that loses its own, and ends every one of them when the server ends or
//! the daemon lets go: also a daemon that was killed, and also what has left the server's process group and session.
//!
//! Deliberately absent: anything that confines a server. It runs as the operator's program that it is.

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{Hold, guarded};
#[cfg(target_os = "linux")]
pub(crate) use linux::{Hold, guarded};

/// Becomes a warden if this program was started as one; otherwise returns at once. Has to be called first thing in
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

    /// The name under which this program is started as warden. An argument of a person's cannot be taken for it.
    const NAME: &str = "pudu-mcp-warden";

    /// The daemon's end of a pipe: as long as it is open, the server may run.
    pub(crate) struct Hold {
        /// Ours.
        _writer: OwnedFd,
        /// The warden's; only until it was started.
        _reader: Option<OwnedFd>,
    }

    impl Hold {
        /// Lets go of what only the warden needs.
        pub(crate) fn started(self) -> Self {
            Self { _reader: None, ..self }
        }
    }

    /// Returns a command that starts a warden, which is to start a program, and what holds it.
    pub(crate) fn guarded(warden: &Path, program: &str) -> io::Result<(tokio::process::Command, Hold)> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        // This one is inherited. Whoever else is started in this moment can do nothing with it.
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
        // The server gets no end of it.
        nix::unistd::close(pipe)?;
        set_child_subreaper(Some(getpid()))?;
        // A group of its own: what it does to its group is not done to the warden.
        let server = server.process_group(0).spawn().inspect_err(|error| {
            eprintln!("{} could not be started: {}", server.get_program().display(), error.kind());
        });
        let server = Pid::from_child(&server?);
        thread::spawn(move || {
            // The end of the pipe, or an error: in both cases there is nobody left who wants the server.
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

    /// Ends all that came from this process, until nobody is left.
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

    /// Returns who came from this process, children before their children.
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

    /// Reads a process's parent. Its name, which may hold anything, ends with the last bracket.
    fn parent(pid: i32) -> Option<i32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::{io, path::Path};

    /// Nothing is held.
    pub(crate) struct Hold;

    impl Hold {
        pub(crate) fn started(self) -> Self {
            self
        }
    }

    /// Starts the program itself: only Linux gives a process the children of its children.
    pub(crate) fn guarded(_: &Path, program: &str) -> io::Result<(tokio::process::Command, Hold)> {
        Ok((tokio::process::Command::new(program), Hold))
    }
}
