//! Reads the terminal's size, sets its modes and restores them.

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr},
};
use std::io::{self, Write};

/// Columns and rows if the terminal's size is unknown.
const DEFAULT_SIZE: (usize, usize) = (80, 24);
/// Sequence that shows the cursor and disables bracketed paste.
const RESET_SEQUENCE: &str = "\x1b[?25h\x1b[?2004l";

/// Returns the number of columns and rows.
pub(super) fn size() -> (usize, usize) {
    match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => DEFAULT_SIZE,
    }
}

/// Returns whether a typed key is waiting to be read.
pub(super) fn has_pending_input() -> bool {
    let stdin = io::stdin();
    let mut keys = [PollFd::new(&stdin, PollFlags::IN)];
    poll(&mut keys, Some(&Timespec::default())).is_ok_and(|count| count > 0)
}

/// Restores the terminal on drop.
pub(super) struct TerminalGuard {
    modes: Termios,
}

impl TerminalGuard {
    /// Saves the state of the terminal.
    pub(super) fn save() -> io::Result<Self> {
        Ok(Self { modes: tcgetattr(io::stdin())? })
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        // Fails harmlessly if the terminal is closed.
        tcsetattr(io::stdin(), OptionalActions::Now, &self.modes).ok();
        io::stdout().write_all(RESET_SEQUENCE.as_bytes()).ok();
        io::stdout().flush().ok();
    }
}

/// Disables echo and line buffering until dropped. Ctrl-C still sends a signal.
pub(super) struct NoEcho {
    modes: Termios,
}

impl NoEcho {
    pub(super) fn new() -> io::Result<Self> {
        let modes = tcgetattr(io::stdin())?;
        let mut silent = modes.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
        tcsetattr(io::stdin(), OptionalActions::Now, &silent)?;
        Ok(Self { modes })
    }
}

impl Drop for NoEcho {
    fn drop(&mut self) {
        tcsetattr(io::stdin(), OptionalActions::Now, &self.modes).ok();
    }
}
