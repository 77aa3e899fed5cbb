//! The lock of a user's memory: DeerFlow's `flock` on `.memory.lock`, so that pudu and DeerFlow wait for each other.

use super::folder::UserFolder;
use crate::error::MemoryError;
use std::{
    fs::{File, TryLockError},
    time::{Duration, Instant},
};

const LOCK_FILE: &str = ".memory.lock";
/// Pause between two attempts, as in DeerFlow.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The lock, released on drop.
pub(crate) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Waits for the lock. The clock is only used to measure the wait.
    pub(crate) fn acquire(folder: &UserFolder, timeout: Duration) -> Result<Self, MemoryError> {
        let file = folder.lock_file(LOCK_FILE)?;
        let path = || folder.path(LOCK_FILE);
        let deadline = Instant::now() + timeout;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    return Err(MemoryError::Busy { path: path(), seconds: timeout.as_secs() });
                }
                Err(TryLockError::WouldBlock) => pause(),
                Err(TryLockError::Error(why)) => return Err(MemoryError::Io { path: path(), why }),
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is blocking file work, off the runtime; flock has no wait with a limit"
)]
fn pause() {
    std::thread::sleep(POLL_INTERVAL);
}
