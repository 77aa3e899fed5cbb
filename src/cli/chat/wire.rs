//! The way to a conversation: actions of the person go in, lines come out. `thread.rs` goes by the HTTP API.

use futures_util::stream::BoxStream;
use pudu_channels::{BoxFuture, Choice};
use pudu_dispatch::view::RunView;
use serde::Deserialize;
use std::time::Duration;

/// The way to a conversation.
pub(super) trait ChatWire: Send + Sync {
    /// Follows the conversation for ever: a lost connection is made again. The first news is [`ChatNews::Begun`]. Called
    /// once.
    fn follow(&self) -> BoxStream<'static, ChatNews>;

    /// Sends a letter. It is stored when this succeeds; sent again, it counts once.
    fn send<'a>(&'a self, letter: &'a Letter) -> BoxFuture<'a, Result<(), Unsent>>;

    /// Returns the slash commands; none if they cannot be read.
    fn commands<'a>(&'a self) -> BoxFuture<'a, Vec<CommandEntry>>;
}

/// Change of a conversation or its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChatNews {
    /// The lines so far.
    Begun(Vec<TranscriptLine>),
    /// A line that is new or has changed.
    Line(TranscriptLine),
    /// The daemon cannot be reached for now.
    Lost,
    /// The daemon refuses this client, and a person has to act.
    Refused(String),
}

/// One line of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TranscriptLine {
    /// Its id: a line with the same id replaces the older one.
    pub(super) id: String,
    /// The speaker.
    pub(super) from: LineSpeaker,
    /// The words, Markdown.
    pub(super) text: String,
    /// Length of the notes at the end of `text`, in bytes. They change while the line grows.
    pub(super) below: usize,
    /// The agent's current activity.
    pub(super) activity: Option<String>,
    /// Choices, each with a number to type.
    pub(super) choices: Vec<Choice>,
    /// Files that belong to the line.
    pub(super) files: Vec<LineFile>,
    /// Whether it will not change any more.
    pub(super) done: bool,
    /// Whether the run failed, as the words say.
    pub(super) failed: bool,
    /// Title of the conversation.
    pub(super) title: Option<String>,
    /// Changes of files by the run, as unified diffs behind the name of each file.
    pub(super) diff: String,
}

/// The speaker of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LineSpeaker {
    /// The person.
    You,
    /// The agent.
    #[default]
    Pudu,
}

/// A file that belongs to a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LineFile {
    pub(super) name: String,
    /// Its path or its address.
    pub(super) place: String,
}

impl TranscriptLine {
    /// Makes a person's line.
    pub(super) fn by_person(id: &str, text: &str) -> Self {
        Self { from: LineSpeaker::You, ..Self::by_agent(id, text, true) }
    }

    /// Makes a line of the agent's.
    pub(super) fn by_agent(id: &str, text: &str, done: bool) -> Self {
        Self { id: id.to_owned(), text: text.to_owned(), done, ..Self::default() }
    }

    /// Makes the line of a run.
    pub(super) fn of_run(view: RunView, files: Vec<LineFile>) -> Self {
        let RunView { run_id: id, text, below, activity, choices, done, failed, title, diff, files: _ } =
            view;
        let from = LineSpeaker::Pudu;
        Self { id, from, text, below, activity, choices, files, done, failed, title, diff }
    }
}

/// An action, with the key under which it counts once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Letter {
    pub(super) key: String,
    /// Whether it was sent before, and perhaps taken.
    pub(super) is_repeated: bool,
    pub(super) act: Act,
}

/// Action of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Say something.
    Say(String),
    /// Take a choice.
    Choose(String),
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
