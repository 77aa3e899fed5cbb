//! Converts I/O errors of file operations to sandbox errors.

use pudu_base::SandboxError;
use std::io;

/// Returns the error for a failed operation on a path.
pub(crate) fn failed(path: &str, error: io::Error) -> SandboxError {
    let path = path.to_owned();
    match error.kind() {
        // Nothing can exist at a path that goes through a file or has a name that is too long.
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
            SandboxError::Missing { path }
        }
        // The directory handle's error for a path that leads outside.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => SandboxError::Outside { path },
        _ if error.raw_os_error() == Some(rustix::io::Errno::XDEV.raw_os_error()) => {
            SandboxError::Outside { path }
        }
        _ => SandboxError::Io { path, source: error },
    }
}

/// Returns the error for a path that is not a regular file.
pub(crate) fn no_file(path: &str) -> SandboxError {
    SandboxError::Refused(format!("{path} is not a file"))
}
