//! The way to a chat: what is said goes in, what changes comes out. `remote.rs` goes by HTTP to a daemon that
//! runs, `inside.rs` to one in this process.

use futures_util::stream::BoxStream;
use pudu_channels::BoxFuture;
use pudu_dispatch::local::TranscriptChange;
use serde::Deserialize;
use std::time::Duration;

/// The way to a chat.
pub(super) trait ChatWire: Send + Sync {
    /// Follows the chat, for ever: it comes back by itself when the connection is lost.
    fn follow(&self) -> BoxStream<'static, ChatNews>;

    /// Sends a letter. It is kept for good when this succeeds; sent again, it counts once.
    fn send<'a>(&'a self, letter: &'a Letter) -> BoxFuture<'a, Result<(), Unsent>>;

    /// Returns the slash commands; none if they cannot be had.
    fn commands<'a>(&'a self) -> BoxFuture<'a, Vec<CommandEntry>>;

    /// Returns the path or address of a line's file.
    fn file(&self, line: &str, index: usize) -> Option<String>;
}

/// Change of a chat or its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChatNews {
    /// Something was said or has changed.
    Change(TranscriptChange),
    /// The daemon cannot be reached for now.
    Lost,
    /// The daemon does not let us in, and a person has to act.
    Refused(String),
}

/// An action, with the key under which it counts once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Letter {
    pub(super) key: String,
    pub(super) act: Act,
}

/// Action of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Say something.
    Say(String),
    /// Press what stands below a line.
    Press { line: String, action: String },
}

/// Why a letter was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unsent {
    /// Try again.
    #[error("{reason}")]
    Later {
        /// The cause.
        reason: String,
        /// Not before this time has passed, if the daemon said so.
        after: Option<Duration>,
    },
    /// Trying again does not help.
    #[error("{0}")]
    Refused(String),
}

/// A slash command, for completion.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct CommandEntry {
    /// Its name without the slash.
    pub(super) name: String,
    /// Placeholder for its argument.
    pub(super) argument: String,
    /// Its help text.
    pub(super) help: String,
}
