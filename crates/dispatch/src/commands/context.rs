//! State of a conversation that commands read and change, in a chat or on a thread of the HTTP API.

use crate::{account::AgentSession, scope::ConversationScope};
use pudu_agent::Agent;
use pudu_base::{BoxFuture, Skill, ThreadId, UserId};
use pudu_channels::{FinalView, Inbound};
use pudu_store::{ConversationRow, Db, InboxItemId, StoreError};
use pudu_texts::Language;
use secrecy::SecretString;
use std::{sync::Arc, time::Duration};

/// A conversation in which a command was given.
pub(crate) struct CommandContext<'a> {
    pub(crate) scope: ConversationScope,
    /// The event with the command.
    pub(crate) inbound: Inbound,
    /// The secret that was removed from the event.
    pub(crate) secret: Option<SecretString>,
    /// The running work of the conversation.
    pub(crate) live: &'a mut dyn LiveConversation,
}

/// The running work of a conversation: its run, and the messages that wait for it.
pub(crate) trait LiveConversation: Send + Sync {
    /// Returns the current activity.
    fn activity(&self) -> ConversationActivity;

    /// Returns the thread if it belongs to the HTTP API. A chat's conversation has its thread in its record.
    fn thread(&self) -> Option<ThreadId>;

    /// Stops the run and drops waiting messages.
    fn stop(&mut self) -> BoxFuture<'_, Result<StoppedWork, StoreError>>;

    /// Returns whether a message sets a goal whose run has not begun.
    fn has_goal_ahead(&self) -> bool;

    /// Clears the goal, including that of a waiting message.
    fn clear_goal<'a>(&'a mut self, thread: Option<&'a ThreadId>) -> BoxFuture<'a, GoalClearing>;

    /// Begins the next conversation and returns its thread. In a chat, the run is stopped. On the HTTP API, the run
    /// continues: the new thread is a different conversation, so the address of `inbound` is changed to it.
    fn begin_anew<'a>(&'a mut self, inbound: &'a mut Inbound) -> BoxFuture<'a, ThreadId>;
}

/// The clearing of a goal. It may wait for a run without blocking the conversation.
pub(crate) struct GoalClearing(pub(crate) BoxFuture<'static, Result<(), StoreError>>);

/// Current activity of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConversationActivity {
    pub(crate) state: ActivityState,
    /// Number of messages that wait for the run.
    pub(crate) waiting: usize,
}

/// State of the run of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActivityState {
    Idle,
    /// A run has been active for this long.
    Working(Duration),
    /// A reply is being delivered.
    Delivering,
}

/// Work that was stopped.
#[derive(Debug, Default)]
pub(crate) struct StoppedWork {
    /// Whether a run or a delivery was stopped.
    pub(crate) stopped: bool,
    /// Waiting messages that were dropped.
    pub(crate) dropped: Vec<InboxItemId>,
}

/// Answer to a command.
pub(crate) enum CommandAnswer {
    /// A text, perhaps with buttons and files.
    View(Box<FinalView>),
    /// The same, but computed in the background.
    Later(BoxFuture<'static, FinalView>),
    /// A text that also marks these waiting messages as done.
    Dropped(String, Vec<InboxItemId>),
    /// No answer: the message with the pressed button shows the outcome.
    Nothing,
    /// The command is a message to the agent.
    Message,
    /// The command is the first message of the conversation that it began.
    FirstMessage,
    /// A run answers the last question again.
    Retry,
    /// A run summarises the conversation.
    Compact,
}

impl From<FinalView> for CommandAnswer {
    fn from(view: FinalView) -> Self {
        Self::View(Box::new(view))
    }
}

impl From<String> for CommandAnswer {
    fn from(text: String) -> Self {
        FinalView { text, ..FinalView::default() }.into()
    }
}

impl From<&str> for CommandAnswer {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl CommandContext<'_> {
    pub(super) fn language(&self) -> Language {
        self.scope.language(&self.inbound)
    }

    pub(super) fn agent(&self) -> &Agent {
        &self.scope.shared.agent
    }

    pub(super) fn db(&self) -> &Db {
        &self.scope.shared.db
    }

    pub(super) async fn record(&self) -> Option<ConversationRow> {
        self.scope.record().await
    }

    /// Returns the current thread of the conversation, if it has one.
    pub(super) async fn thread(&self) -> Option<ThreadId> {
        match self.live.thread() {
            Some(thread) => Some(thread),
            None => self.record().await.map(|record| record.thread),
        }
    }

    /// Returns the agent and its settings for the sender of the command.
    pub(super) async fn session(&self) -> AgentSession {
        self.scope.session(&self.inbound).await
    }

    /// Returns the skills of the agent that answers the sender.
    pub(super) async fn skills(&self) -> Arc<[Skill]> {
        self.scope.skills(&self.inbound).await
    }

    /// Returns the user whose skills and agents are available to the sender in addition to the shared ones.
    pub(super) fn owner(&self) -> UserId {
        self.scope.shared.owner_of(&self.inbound)
    }

    /// Returns whether the command was given in a chat rather than on a thread of the HTTP API.
    pub(super) fn is_chat(&self) -> bool {
        self.live.thread().is_none()
    }

    /// Returns the platform's id of the sender.
    pub(super) fn person(&self) -> &str {
        &self.inbound.sender.id
    }

    /// Binds the conversation to a thread, if it has none yet.
    pub(super) async fn ensure_thread(&self) {
        self.scope.ensure_thread(&self.inbound, self.live.thread()).await;
    }

    /// Gives the conversation a new thread. In a chat, the run on the old one is stopped.
    pub(super) async fn begin_anew(&mut self) {
        let thread = self.live.begin_anew(&mut self.inbound).await;
        if self.is_chat() {
            self.scope.bind(&self.inbound, thread).await;
        } else {
            // On the HTTP API, a thread is stored with its first run or choice.
            self.scope.key = self.inbound.address.key().into();
        }
    }
}
