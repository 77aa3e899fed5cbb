//! A user at a terminal: types, reads, presses Ctrl-C.

use crate::house::SOON;
use rustix::{
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use std::{
    fs::File,
    io::{Read, Write},
    path::Path,
    process::{Child, Command, ExitStatus},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// A program in its own terminal.
pub struct Pty {
    child: Child,
    keys: File,
    seen: Arc<Mutex<Vec<u8>>>,
    read: usize,
}

impl Pty {
    /// Starts `pudu` with these arguments; `None` if the system has no pseudo-terminals.
    pub fn start(dir: &Path, args: &[&str]) -> Option<Self> {
        if Command::new("setsid").arg("--version").output().is_err() {
            println!("skipped: there is no `setsid` to give the program a terminal");
            return None;
        }
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = File::from(rustix::fs::open(name, flags, Mode::empty()).unwrap());
        let child = Command::new("setsid")
            .args(["--ctty", env!("CARGO_BIN_EXE_pudu")])
            .args(args)
            .current_dir(dir)
            .env_clear()
            .envs([
                ("PATH", "/usr/bin:/bin"),
                ("TERM", "xterm-256color"),
                ("GATEWAY_PORT", "0"),
                ("NO_COLOR", "1"),
            ])
            .stdin(slave.try_clone().unwrap())
            .stdout(slave.try_clone().unwrap())
            .stderr(slave)
            .spawn()
            .unwrap();
        let keys = File::from(master);
        let seen = Arc::new(Mutex::new(Vec::new()));
        listen(keys.try_clone().unwrap(), seen.clone());
        Some(Self { child, keys, seen, read: 0 })
    }

    /// Types keys.
    pub fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for this output after the previously awaited output.
    pub async fn shows(&mut self, text: &str) {
        let deadline = Instant::now() + SOON;
        loop {
            let all = plain(&self.seen.lock().unwrap());
            let rest = all.get(self.read..).unwrap_or_default();
            if let Some(at) = rest.find(text) {
                self.read += at + text.len();
                return;
            }
            assert!(Instant::now() < deadline, "{text:?} is not shown: {rest:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits for the program to exit.
    pub async fn ends(&mut self) -> ExitStatus {
        let deadline = Instant::now() + SOON;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Collects the output until the terminal is closed.
fn listen(mut from: File, seen: Arc<Mutex<Vec<u8>>>) {
    std::thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut part) {
            seen.lock().unwrap().extend_from_slice(&part[..count]);
        }
    });
}

/// Removes escape sequences that move the cursor or set styles.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        plain.push_str(&part[end..]);
    }
    plain
}
