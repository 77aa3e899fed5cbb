//! The terminal itself: its size, its modes, and leaving it as it was found.

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr},
};
use std::io::{self, Write};

/// Columns and rows of a terminal whose size is unknown.
const USUAL: (usize, usize) = (80, 24);
/// Shows the cursor, and takes pasted text as typed again.
const AS_FOUND: &str = "\x1b[?25h\x1b[?2004l";

/// Returns columns and rows.
pub(super) fn size() -> (usize, usize) {
    match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => USUAL,
    }
}

/// Returns whether a typed key is unread.
pub(super) fn key_waits() -> bool {
    let stdin = io::stdin();
    let mut keys = [PollFd::new(&stdin, PollFlags::IN)];
    poll(&mut keys, Some(&Timespec::default())).is_ok_and(|count| count > 0)
}

/// Leaves the terminal as it was found, whatever happens meanwhile.
pub(super) struct TerminalGuard {
    modes: Termios,
}

impl TerminalGuard {
    /// Remembers how the terminal is.
    pub(super) fn now() -> io::Result<Self> {
        Ok(Self { modes: tcgetattr(io::stdin())? })
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        tcsetattr(io::stdin(), OptionalActions::Now, &self.modes).ok();
        io::stdout().write_all(AS_FOUND.as_bytes()).ok();
        io::stdout().flush().ok();
    }
}

/// While it lives, typed keys are not shown and come at once; they wait to be read. Ctrl-C stays a signal.
pub(super) struct Hush {
    modes: Termios,
}

impl Hush {
    pub(super) fn new() -> io::Result<Self> {
        let modes = tcgetattr(io::stdin())?;
        let mut hushed = modes.clone();
        hushed.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
        tcsetattr(io::stdin(), OptionalActions::Now, &hushed)?;
        Ok(Self { modes })
    }
}

impl Drop for Hush {
    fn drop(&mut self) {
        tcsetattr(io::stdin(), OptionalActions::Now, &self.modes).ok();
    }
}
