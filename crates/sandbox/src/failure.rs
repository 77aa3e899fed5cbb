//! Failures of work on files, in the words of the port.

use pudu_base::SandboxError;
use std::io;

/// Error for the system's answer to work on a path.
pub(crate) fn failed(path: &str, error: io::Error) -> SandboxError {
    let path = path.to_owned();
    match error.kind() {
        // A name that is too long for any file, and a path through a file, are of nothing either.
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
            SandboxError::Missing { path }
        }
        // The directory handle's error for a symlink that leads out.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => SandboxError::Outside { path },
        _ if error.raw_os_error() == Some(rustix::io::Errno::XDEV.raw_os_error()) => {
            SandboxError::Outside { path }
        }
        _ => SandboxError::Io { path, source: error },
    }
}

/// Error for a path to something else than a plain file.
pub(crate) fn no_file(path: &str) -> SandboxError {
    SandboxError::Refused(format!("{path} is not a file"))
}
