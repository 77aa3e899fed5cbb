//! Reasons why there is no configuration.

use super::{CLOSING, Report, trust::Untrusted};
use std::{io, path::PathBuf};

/// Why there is no configuration. All are for the operator to mend.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// A file that was named does not exist.
    #[error("{}, named by {by}, is not there", path.display())]
    NotThere {
        /// The file.
        path: PathBuf,
        /// The flag or the variable that named it.
        by: &'static str,
    },
    /// The file cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is a folder.
    #[error(
        "{} is a folder, not a file. Name the file in it; if Docker made the folder because the file to mount was \
         missing, remove it and make the file first", path.display()
    )]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// An edit took out more than anybody means to.
    #[error(
        "the file has lost everything that it said, or all its accounts; to close an account write `enabled: false`, \
         or restart pudu"
    )]
    Emptied,
    /// An edit took out who may use an account.
    #[error(
        "the edit would let everybody in the world use `channels.{account}`: {CLOSING}; if all are meant, write \
         `allowed_users: []`"
    )]
    Opened {
        /// The account.
        account: String,
    },
    /// The file, which nobody named, may not be the operator's.
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    /// The file says something that cannot be.
    #[error("{0}")]
    Wrong(Report),
}
