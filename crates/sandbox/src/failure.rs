//! Maps I/O errors of file operations to sandbox errors.

use pudu_base::SandboxError;
use std::io;

/// Returns the error for a failed operation on a path.
pub(crate) fn failed(path: &str, error: io::Error) -> SandboxError {
    let path = path.to_owned();
    match error.kind() {
        // A name that is too long, or a path through a file, does not exist either.
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
            SandboxError::Missing { path }
        }
        // The directory handle's error for a symlink that leads outside.
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
