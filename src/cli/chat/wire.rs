//! Interface to a conversation: sends a person's actions, and receives lines. `thread.rs` implements it over HTTP.

use futures_util::stream::BoxStream;
use pudu_channels::{BoxFuture, Choice};
use pudu_dispatch::view::RunView;
use serde::Deserialize;
use std::time::Duration;

/// Interface to a conversation.
pub(super) trait ChatWire: Send + Sync {
    /// Follows the conversation forever, and reconnects when necessary. The first news is [`ChatNews::Begun`]. Called
    /// once.
    fn follow(&self) -> BoxStream<'static, ChatNews>;

    /// Sends a letter, which is stored if this succeeds. A repeated letter counts once.
    fn send<'a>(&'a self, letter: &'a Letter) -> BoxFuture<'a, Result<(), Unsent>>;

    /// Returns the slash commands; none if they are unavailable.
    fn commands<'a>(&'a self) -> BoxFuture<'a, Vec<CommandEntry>>;
}

/// Change of a conversation or its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChatNews {
    /// The existing lines.
    Begun(Vec<TranscriptLine>),
    /// A new or changed line.
    Line(TranscriptLine),
    /// The daemon is temporarily unreachable.
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
    /// The text, as Markdown.
    pub(super) text: String,
    /// Length of the notes at the end of `text`, in bytes. They change while the line grows.
    pub(super) below: usize,
    /// The agent's current activity.
    pub(super) activity: Option<String>,
    /// Choices, each with a number to type.
    pub(super) choices: Vec<Choice>,
    /// Files that belong to the line.
    pub(super) files: Vec<LineFile>,
    /// Whether it will not change again.
    pub(super) done: bool,
    /// Whether the run failed, as stated in the text.
    pub(super) failed: bool,
    /// Title of the conversation.
    pub(super) title: Option<String>,
    /// Files changed by the run, as unified diffs, each after the name of its file.
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
    /// Its path or URL.
    pub(super) place: String,
}

impl TranscriptLine {
    /// Creates a person's line.
    pub(super) fn by_person(id: &str, text: &str) -> Self {
        Self { from: LineSpeaker::You, ..Self::by_agent(id, text, true) }
    }

    /// Creates the agent's line.
    pub(super) fn by_agent(id: &str, text: &str, done: bool) -> Self {
        Self { id: id.to_owned(), text: text.to_owned(), done, ..Self::default() }
    }

    /// Creates the line of a run.
    pub(super) fn of_run(view: RunView, files: Vec<LineFile>) -> Self {
        let RunView { run_id: id, text, below, activity, choices, done, failed, title, diff, files: _ } =
            view;
        let from = LineSpeaker::Pudu;
        Self { id, from, text, below, activity, choices, files, done, failed, title, diff }
    }
}

/// An action, with a key so that repetitions count once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Letter {
    pub(super) key: String,
    /// Whether it was sent before and may have been received.
    pub(super) is_repeated: bool,
    pub(super) act: Act,
}

/// A person's action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Send a message.
    Say(String),
    /// Select a choice.
    Choose(String),
}

/// Reason why a letter was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unsent {
    /// The letter should be sent again.
    #[error("{reason}")]
    Later {
        /// The cause.
        reason: String,
        /// Minimum delay, if the daemon named one.
        after: Option<Duration>,
    },
    /// Sending the letter again would not help.
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
