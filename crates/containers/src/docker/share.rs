//! Grants the all-in-one image's user access to a thread's folders if the daemon cannot change their owner.

use crate::Order;
use pudu_base::SandboxError;
use pudu_sandbox::THREAD_FOLDERS;
use rustix::fs::{Mode, OFlags};

/// Makes the thread's folders accessible to all users of this machine. The home that contains them stays closed.
pub(crate) fn with_all(order: &Order) -> Result<(), SandboxError> {
    let Some(own) = order.mounts.first() else { return Ok(()) };
    for inner in [""].into_iter().chain(THREAD_FOLDERS) {
        // A symlink that a command has put in place of a folder is not followed.
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
