//! The program that this one starts again: as the first process of a sandbox, as the warden of an MCP server, and as the
//! reader of a document.
//!
//! Deliberately absent: an environment variable. It could make the daemon start any program.

use std::{
    env, io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Replaces the running program by another one, for tests, whose program is not pudu. The first call in a process counts.
pub fn set_path(program: PathBuf) {
    PROGRAM.set(program).ok();
}

/// Returns the program to start: the running one, unless [`set_path`] named another. On Linux it is still found after
/// another version was installed over it.
///
/// # Errors
/// When the system does not name the running program.
pub fn path() -> io::Result<PathBuf> {
    if let Some(program) = PROGRAM.get() {
        return Ok(program.clone());
    }
    let running = Path::new("/proc/self/exe");
    if running.exists() { Ok(running.to_owned()) } else { env::current_exe() }
}
