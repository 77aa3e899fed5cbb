//! Task of a run: the input, the requester and the rights.

mod features;

pub use features::RunFeatures;

use crate::{RunSecrets, agents::AgentPlace};
use pudu_base::{Human, MessageId, RunId, Seq, Thinking, ThreadId, UserId};
use pudu_harness::WallClock;
use pudu_store::{ScheduledChat, Spender};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Task of a run. It is stored with a client's run, so that the run can resume after a restart.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct RunTask {
    /// The thread.
    pub thread: ThreadId,
    /// The run. It is the same after a restart.
    pub run: RunId,
    /// Messages of people. Ones that are already in the thread are skipped.
    pub input: Vec<Human>,
    /// The run's first message. After a restart, `input` may omit it because it is already stored. Skills requested
    /// since this message are active, and calls open since then belong to the run.
    pub first: Option<MessageId>,
    /// Whether the run resumes after an orderly shutdown, which its open calls did not cause.
    #[serde(skip)]
    pub suspended: bool,
    /// If set, the thread's last question is asked again under this id, and its answer is removed. After a restart, the
    /// id is already in the thread, and nothing is removed a second time.
    pub again: Option<MessageId>,
    /// If set, the new goal of the thread.
    pub goal: Option<String>,
    /// If set, the thread so far is summarised and no message is answered.
    pub compact: bool,
    /// The time of the repeated question, with the time zone, as text for the model.
    pub at: Option<String>,
    /// The clock of the requesting users, if known.
    #[serde(skip)]
    pub clock: Option<WallClock>,
    /// The model; the agent's, or the default, if `None` or unknown.
    pub model: Option<String>,
    /// The thinking effort of the model; the agent's or the model's if `None`.
    pub thinking: Option<Thinking>,
    /// Name of the agent; the lead agent if `None`.
    pub agent: Option<String>,
    /// Whether the agent may be one of the user's or the group's own. Names in the configuration mean shared agents.
    pub finds_own_agents: bool,
    /// The run's rights to change custom agents.
    pub authoring: Authoring,
    /// The requester, to be asked for approvals. Without a requester, nothing is approved.
    pub asker: Option<Asker>,
    /// The user whose memory the run uses, and whose limits and usage it counts towards.
    pub user: UserId,
    /// The group chat in which the answer is posted, if any. The run then uses the group's memory.
    pub room: Option<UserId>,
    /// The user whose secrets are available to commands: always a person, and only if there is no `room`.
    pub secrets_of: UserId,
    /// Secrets in the request. They are kept only in memory, so a run that resumes after a restart lacks them.
    #[serde(skip)]
    pub own_secrets: RunSecrets,
    /// Parts of the agent that the request enables or disables.
    pub features: RunFeatures,
    /// Maximum number of model calls; the setup's limit if `None`.
    pub steps: Option<u32>,
    /// Where tasks that the run schedules belong. A resumed run of a client schedules none.
    #[serde(skip)]
    pub schedule: Option<SchedulePlace>,
    /// Maximum number of tokens of the run, in addition to the setup's limits.
    pub budget: Option<u64>,
    /// Whether an API client requested the run. It is then stored from the request on, and its end is always stored.
    #[serde(skip)]
    pub by_client: bool,
    /// Whether the run is resumed: the thread has data from before the process crashed or was stopped.
    #[serde(skip)]
    pub resumed: bool,
    /// If set, the thread is first reset to its state at this position of its log.
    pub from: Option<Seq>,
    /// Opaque fields of messages of `input`, as JSON objects, that the thread keeps for clients.
    pub client_fields: Vec<(MessageId, Arc<Value>)>,
}

impl RunTask {
    /// Creates the task of a new run without input.
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
            budget: None,
            schedule: None,
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

    /// Returns the user whose agents it can use in addition to the shared ones.
    #[must_use]
    pub fn agents_of(&self) -> Option<&UserId> {
        self.finds_own_agents.then(|| self.skills_of())
    }

    /// Returns the owner of the skills that it has in addition to the shared ones: the group, or else the user.
    #[must_use]
    pub fn skills_of(&self) -> &UserId {
        self.room.as_ref().unwrap_or(&self.user)
    }
}

/// Place of the tasks that a run schedules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulePlace {
    /// The chat that gets the answers; `None` keeps them in threads.
    pub chat: Option<ScheduledChat>,
    /// IANA name of the requester's time zone, if it has one.
    pub zone: Option<String>,
}

/// Rights of a run to change custom agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Authoring {
    /// No rights.
    #[default]
    Nothing,
    /// If one of the user's own agents answers, it may change itself.
    Own,
    /// If a custom agent answers, even a shared one, it may change itself.
    Itself,
    /// The run sets the lead agent's character and can do nothing else.
    Lead,
    /// The run creates an agent with this name and can do nothing else.
    New(String),
}

impl Authoring {
    /// Returns whether an agent stored in `place` may change itself.
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Asker {
    /// The bot that received the request.
    pub account: String,
    /// The requester's id on the platform.
    pub person: String,
    /// The displayed name.
    pub name: String,
    /// Whether the requester may not approve the run's calls, and no approver sees them.
    pub cannot_approve: bool,
}
