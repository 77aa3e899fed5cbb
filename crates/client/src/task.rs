//! Task of a run: the input, the asker and the rights.

mod features;

pub use features::RunFeatures;

use crate::{RunSecrets, agents::AgentPlace};
use pudu_base::{Human, MessageId, RunId, Seq, Thinking, ThreadId, UserId};
use pudu_harness::WallClock;
use pudu_store::Spender;
use serde_json::Value;
use std::sync::Arc;

/// Task of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunTask {
    /// The thread.
    pub thread: ThreadId,
    /// The run; the same one again after a restart.
    pub run: RunId,
    /// Messages of people. Those that the thread has already are skipped.
    pub input: Vec<Human>,
    /// The message with which the run begins, also after a restart, when `input` may leave it out because it was stored
    /// before: skills requested since are active, and calls open since belong to the run.
    pub first: Option<MessageId>,
    /// Whether the run resumes after an orderly stop of the process, which its open calls did not cause.
    pub suspended: bool,
    /// If set, the thread's last question is asked again under this id, and its answer is removed. After a restart the
    /// id is there already and nothing is removed a second time.
    pub again: Option<MessageId>,
    /// If set, the goal of the thread's runs from now on.
    pub goal: Option<String>,
    /// If set, the thread so far is summarised and no message is answered.
    pub compact: bool,
    /// The time of the repeated question, with the time zone, in words for the model.
    pub at: Option<String>,
    /// The clock of the users who ask, if known.
    pub clock: Option<WallClock>,
    /// The model; that of the agent, or the default, if none or unknown.
    pub model: Option<String>,
    /// The thinking effort of the model; that of the agent or the model if none.
    pub thinking: Option<Thinking>,
    /// Name of the agent; the lead agent if `None`.
    pub agent: Option<String>,
    /// Whether the agent may be one of the user's own, or of the room's. The configuration means shared ones.
    pub finds_own_agents: bool,
    /// The run's rights to change custom agents.
    pub authoring: Authoring,
    /// The requester, asked for approvals; without one, nothing is approved.
    pub asker: Option<Asker>,
    /// The user whose memory, limits and usage the run counts for.
    pub user: UserId,
    /// The room in which the answer is posted; memory is then the room's.
    pub room: Option<UserId>,
    /// The user whose secrets its commands may find: always a person, and only where there is no `room`.
    pub secrets_of: UserId,
    /// Secrets that came with the request. They live in memory only: a run that resumes after a restart lacks them.
    pub own_secrets: RunSecrets,
    /// Parts of the agent that the request turns on or off.
    pub features: RunFeatures,
    /// Maximum number of model calls; the setup's limit if none.
    pub steps: Option<u32>,
    /// Whether an API client asked for it: it is in the store from then on, and its end is always stored.
    pub by_client: bool,
    /// Whether the run is resumed: the thread has data from before the process crashed or was stopped.
    pub resumed: bool,
    /// If set, the thread is first reset to its state at this position of its log.
    pub from: Option<Seq>,
    /// Fields of messages of `input` that the thread keeps for clients, JSON objects.
    pub client_fields: Vec<(MessageId, Arc<Value>)>,
}

impl RunTask {
    /// Makes the task of a new run without input.
    #[must_use]
    pub fn new(thread: ThreadId, run: RunId) -> Self {
        Self {
            thread,
            run,
            input: Vec::new(),
            first: None,
            suspended: false,
            goal: None,
            compact: false,
            again: None,
            at: None,
            clock: None,
            model: None,
            thinking: None,
            agent: None,
            finds_own_agents: false,
            authoring: Authoring::Nothing,
            asker: None,
            own_secrets: RunSecrets::default(),
            features: RunFeatures::default(),
            steps: None,
            user: UserId::local(),
            secrets_of: UserId::local(),
            room: None,
            by_client: false,
            resumed: false,
            from: None,
            client_fields: Vec::new(),
        }
    }
}

impl RunTask {
    /// Returns the spender of the run.
    #[must_use]
    pub fn spender(&self) -> Spender {
        let Asker { account, person, .. } = self.asker.clone().unwrap_or_default();
        Spender { account, person, user: self.user.clone(), room: self.room.clone() }
    }

    /// Returns the user whose agents it finds besides the shared ones.
    #[must_use]
    pub fn agents_of(&self) -> Option<&UserId> {
        self.finds_own_agents.then(|| self.skills_of())
    }

    /// Returns the user whose skills it has besides the shared ones: the room's, or else the user's.
    #[must_use]
    pub fn skills_of(&self) -> &UserId {
        self.room.as_ref().unwrap_or(&self.user)
    }
}

/// Rights of a run to change custom agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Authoring {
    /// No rights.
    #[default]
    Nothing,
    /// If an agent of the user's own answers, it may change itself.
    Own,
    /// If a custom agent answers, also a shared one, it may change itself.
    Itself,
    /// The run sets the lead agent's character and can do nothing else.
    Lead,
    /// The run creates an agent of this name: no other agent answers, and it can do nothing else.
    New(String),
}

impl Authoring {
    /// Returns whether an agent kept at this place may change itself.
    #[must_use]
    pub fn may_change(&self, place: AgentPlace) -> bool {
        match place {
            AgentPlace::Shared => *self == Self::Itself,
            AgentPlace::Own => matches!(self, Self::Itself | Self::Own),
            AgentPlace::Legacy => false,
        }
    }
}

/// The requester of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asker {
    /// The account through which the request came.
    pub account: String,
    /// The requester's id on the platform.
    pub person: String,
    /// The displayed name.
    pub name: String,
    /// Whether the requester may not approve the run's calls, and no approver sees them.
    pub cannot_approve: bool,
}
