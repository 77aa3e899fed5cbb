//! The path of our own executable. Pudu starts it again as the first process of a sandbox, as the supervisor of an MCP
//! server, and as the reader of a document.
//!
//! Deliberately absent: an environment variable. It could make the daemon start any program.

use std::{
    env, io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Overrides the path, for tests, whose own executable is not pudu. Only the first call in a process counts.
pub fn set_path(program: PathBuf) {
    PROGRAM.set(program).ok();
}

/// Returns the path of the running executable, unless [`set_path`] overrode it. On Linux the path stays valid after
/// another version is installed over the file.
///
/// # Errors
/// If the system does not report the running executable.
pub fn path() -> io::Result<PathBuf> {
    if let Some(program) = PROGRAM.get() {
        return Ok(program.clone());
    }
    let running = Path::new("/proc/self/exe");
    if running.exists() { Ok(running.to_owned()) } else { env::current_exe() }
}
