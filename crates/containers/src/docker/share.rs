//! Lets the user of the all-in-one image into a thread's folders, where the daemon may not give them away.

use crate::Order;
use pudu_base::SandboxError;
use pudu_sandbox::THREAD_FOLDERS;
use rustix::fs::{Mode, OFlags};

/// Opens the thread's folders to all users of this machine. The home around them stays closed.
pub(crate) fn with_all(order: &Order) -> Result<(), SandboxError> {
    let Some(own) = order.mounts.first() else { return Ok(()) };
    for inner in [""].into_iter().chain(THREAD_FOLDERS) {
        // What a command put in a folder's place is not followed.
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(own.host.join(inner), flags, Mode::empty())
            .and_then(|folder| rustix::fs::fchmod(folder, Mode::from_raw_mode(0o777)));
        opened.map_err(|error| SandboxError::Io {
            path: format!("{}/{inner}", own.agent),
            source: error.into(),
        })?;
    }
    Ok(())
}
