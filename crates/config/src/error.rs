//! Errors of loading the configuration.

use super::{CLOSING, Report, trust::Untrusted};
use std::{io, path::PathBuf};

/// An error of loading the configuration, which the operator can fix.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// An explicitly named file does not exist.
    #[error("{}, named by {by}, does not exist", path.display())]
    NotThere {
        /// The file.
        path: PathBuf,
        /// The flag or the variable that named it.
        by: &'static str,
    },
    /// The file is a symbolic link to a file that does not exist.
    #[error("{} is a symbolic link to {}, which does not exist", path.display(), target.display())]
    Dangling {
        /// The link.
        path: PathBuf,
        /// The path in the link.
        target: PathBuf,
    },
    /// The file cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
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
    /// An edit removed all keys or all bots, probably by mistake.
    #[error(
        "the file no longer has any key, or any account; to close an account write `enabled: false`, or restart pudu"
    )]
    Emptied,
    /// An edit removed the list of people who may use a bot.
    #[error(
        "the edit would open `channels.{account}` to everyone: {CLOSING}; to admit everyone, write `allowed_users: []`"
    )]
    Opened {
        /// The bot.
        account: String,
    },
    /// The file was found without being named, and another user may have written it.
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    /// The file has errors.
    #[error("{0}")]
    Wrong(Report),
}
