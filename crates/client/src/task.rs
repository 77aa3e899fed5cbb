//! Task of a run: what is asked, by whom, and with which rights.

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
    /// The message with which the run begins, also after a restart, when `input` may leave it out as said already:
    /// skills that were asked for since are at work, and calls that are open since are its own.
    pub first: Option<MessageId>,
    /// Whether it goes on after the process was stopped in order: its open calls are not to blame for that.
    pub suspended: bool,
    /// If set, the thread's last question is asked again under this id, and what was answered is taken
    /// back. After a restart the id is there already and nothing is taken back a second time.
    pub again: Option<MessageId>,
    /// If set, the goal of the thread's runs from now on.
    pub goal: Option<String>,
    /// If set, nobody is answered: the thread so far is summarised.
    pub compact: bool,
    /// When it is asked again, with the time zone, in words for the model.
    pub at: Option<String>,
    /// The clock of the people who ask, if one is known.
    pub clock: Option<WallClock>,
    /// The model; that of the agent, or the default, if none or unknown.
    pub model: Option<String>,
    /// How hard the model thinks; as the agent or the model has it if none.
    pub thinking: Option<Thinking>,
    /// Name of the agent; the lead agent if `None`.
    pub agent: Option<String>,
    /// Whether the agent may be one of the user's own, or of the room's. The configuration means shared ones.
    pub finds_own_agents: bool,
    /// The run's rights to change custom agents.
    pub authoring: Authoring,
    /// For whom it is done, who is asked to approve what needs it; if nobody, nothing is approved.
    pub asker: Option<Asker>,
    /// The user for whom it works: whose memory, limits and usage count.
    pub user: UserId,
    /// The room in which people hear its answer; what is remembered is the room's then.
    pub room: Option<UserId>,
    /// The user whose secrets its commands may find: always a person, and only where there is no `room`.
    pub secrets_of: UserId,
    /// Secrets that came with the request. They live in memory only: a run that resumes after a restart lacks them.
    pub own_secrets: RunSecrets,
    /// Parts of the agent that the request switches.
    pub features: RunFeatures,
    /// How many model calls it may take; as many as the setup allows if none.
    pub steps: Option<u32>,
    /// Whether a client of the API asked for it: it is in the store from then on, and ends there whatever happens.
    pub by_client: bool,
    /// Whether it goes on: the thread has something of it from before the process died or was stopped.
    pub resumed: bool,
    /// If set, the thread is first brought to how it was behind this position of its log.
    pub from: Option<Seq>,
    /// Fields of messages of `input` that the thread keeps for clients, JSON objects.
    pub client_fields: Vec<(MessageId, Arc<Value>)>,
}

impl RunTask {
    /// Makes the task of a new run on which nothing is said yet.
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
    /// Returns for whom it spends.
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

    /// Returns whose skills it has besides everybody's: the room's, or else the user's.
    #[must_use]
    pub fn skills_of(&self) -> &UserId {
        self.room.as_ref().unwrap_or(&self.user)
    }
}

/// Rights of a run to change custom agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Authoring {
    /// Nothing.
    #[default]
    Nothing,
    /// If an agent of the user's own answers, it may change what it is.
    Own,
    /// If a custom agent answers, a shared one too, it may change what it is.
    Itself,
    /// It gives the lead agent its character: nothing else can be done.
    Lead,
    /// It makes a new agent of this name: nobody else answers, and nothing else can be done.
    New(String),
}

impl Authoring {
    /// Returns whether an agent that is kept there may change what it is.
    #[must_use]
    pub fn may_change(&self, place: AgentPlace) -> bool {
        match place {
            AgentPlace::Shared => *self == Self::Itself,
            AgentPlace::Own => matches!(self, Self::Itself | Self::Own),
            AgentPlace::Legacy => false,
        }
    }
}

/// The one for whom a run works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asker {
    /// The account by which they came.
    pub account: String,
    /// The platform's id of them.
    pub person: String,
    /// The name that people see.
    pub name: String,
    /// Whether they may not approve what they ask for, and nobody who may sees it.
    pub cannot_approve: bool,
}
