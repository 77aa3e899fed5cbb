//! Reasons why there is no configuration.

use super::{CLOSING, Report, trust::Untrusted};
use std::{io, path::PathBuf};

/// Why there is no configuration. The operator can fix each.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
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
    /// An edit removed all keys or all accounts, probably by mistake.
    #[error(
        "the file no longer has any key, or any account; to close an account write `enabled: false`, or restart pudu"
    )]
    Emptied,
    /// An edit removed the list of people who may use an account.
    #[error(
        "the edit would open `channels.{account}` to everyone: {CLOSING}; if all are meant, write `allowed_users: []`"
    )]
    Opened {
        /// The account.
        account: String,
    },
    /// The file was found, not named, and may not be the operator's.
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    /// The file says something that cannot be.
    #[error("{0}")]
    Wrong(Report),
}
