//! The accounts that there are, and how each treats people.

use super::access::Access;
use jiff::tz::TimeZone;
use pudu_channels::{Channel, Inbound};
use pudu_client::{
    Authoring, RunFeatures, RunSecrets,
    agents::is_lead,
    base::{Thinking, UserId},
    harness::WallClock,
};
use pudu_config::FollowUpMode;
use pudu_config::{self as config, Choosing, GroupContext};
use pudu_kit::clock;
use pudu_texts::Language;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError, RwLock},
};

/// DeerFlow's ceiling for a run's steps, where the configuration sets none.
const MAX_STEPS: u32 = 1000;

/// One account: its channel and the people that it listens to. Conversations keep it while its channel is replaced.
pub struct Account {
    channel: RwLock<Arc<dyn Channel>>,
    policy: RwLock<Arc<AccountRules>>,
}

/// How an account treats people. Changes for the next message.
#[derive(Clone, Debug, PartialEq)]
pub struct AccountRules {
    /// People and chats that may use the bot.
    pub access: Access,
    /// Effect of a message during a run.
    pub mode: FollowUpMode,
    /// The agent that answers, and how.
    pub session: config::SessionOverrides,
    /// Ids of the approvers; if empty, the person that the run works for.
    pub approvers: BTreeSet<String>,
    /// Whether people choose the agent that answers, where the configuration says so.
    pub agent_choice: Option<Choosing>,
    /// The time zone of its people, which the model receives.
    pub timezone: TimeZone,
    /// Maximum number of model calls that a session may set for a run.
    pub max_steps: u32,
    /// The language of all answers, where the configuration says one.
    pub language: Option<Language>,
    /// Recent messages of a group that the model reads beside a question.
    pub context: GroupContext,
}

/// Agent and settings for a person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSession {
    /// The agent; `None` is the lead agent.
    pub agent: Option<String>,
    /// The model, unless people chose another.
    pub model: Option<String>,
    /// How hard the model thinks, unless people chose that.
    pub thinking: Option<Thinking>,
    /// How many model calls a run may take.
    pub steps: Option<u32>,
    /// Parts of the agent that the configuration switches.
    pub features: RunFeatures,
    /// Secrets of the configuration that commands of private chats find.
    pub own_secrets: RunSecrets,
    /// The user, a person or a room, whose own agents are found besides the shared ones. The configuration means shared
    /// ones.
    pub agents_of: Option<UserId>,
    /// Rights of a run to change agents.
    pub authoring: Authoring,
    /// The user that a run works for.
    pub user: UserId,
}

impl AccountRules {
    /// A policy without settings for runs.
    pub fn open(access: Access, mode: FollowUpMode) -> Self {
        let (session, approvers) = (config::SessionOverrides::default(), BTreeSet::new());
        Self {
            access,
            mode,
            session,
            approvers,
            agent_choice: None,
            timezone: TimeZone::system(),
            max_steps: MAX_STEPS,
            language: None,
            context: GroupContext::OFF,
        }
    }

    /// Returns the language of the answer to an event: the account's, or else the person's, if the platform reports it
    /// and there is a catalogue, or else English.
    pub(super) fn language(&self, inbound: &Inbound) -> Language {
        let person = || inbound.sender.language.as_deref().and_then(Language::of_person);
        self.language.or_else(person).unwrap_or_default()
    }

    /// Returns the day, the time and the time zone of its people, in words for the model.
    pub(super) fn now(&self) -> String {
        clock::for_model(clock::now(), &self.timezone)
    }

    /// Returns a clock that yields the same as `now`.
    pub(super) fn clock(&self) -> WallClock {
        let zone = self.timezone.clone();
        WallClock::new(move || clock::for_model(clock::now(), &zone))
    }

    /// Returns the settings of runs that answer a person.
    pub fn session(&self, person: &str) -> AgentSession {
        let session = self.session.of_user(person);
        let text = |key| session.context.get(key).and_then(Value::as_str).map(str::to_owned);
        let agent = session.assistant_id.clone().or_else(|| text("agent_name"));
        let steps = session.config.get("recursion_limit").and_then(Value::as_u64);
        let agent = agent.filter(|name| !is_lead(name));
        let authoring = match self.choosing_with(agent.is_some()) {
            Choosing::Create if self.may_change_shared(person) => Authoring::Itself,
            Choosing::Create => Authoring::Own,
            Choosing::Fixed | Choosing::Choose => Authoring::Nothing,
        };
        AgentSession {
            agent,
            model: text("model_name"),
            thinking: Thinking::of_options(
                session.context.get("thinking_enabled").and_then(Value::as_bool),
                text("reasoning_effort").as_deref(),
            ),
            steps: steps.and_then(|steps| u32::try_from(steps.clamp(1, self.max_steps.into())).ok()),
            // The configuration refuses options that cannot be read.
            features: RunFeatures::read(&session.context).unwrap_or_default(),
            own_secrets: RunSecrets::read(&session.context).unwrap_or_default(),
            agents_of: None,
            authoring,
            user: UserId::local(),
        }
    }

    /// Returns whether a person may change shared agents, the lead agent among them: approvers may.
    pub fn may_change_shared(&self, person: &str) -> bool {
        self.approvers.contains(person)
    }

    /// Returns whether approvers other than this person decide.
    pub(super) fn has_others_decide(&self, person: &str) -> bool {
        !self.approvers.is_empty() && !self.approvers.contains(person)
    }

    /// Returns whether a person can choose the agent. An account that names an agent means that one.
    pub(super) fn choosing(&self, person: &str) -> Choosing {
        self.choosing_with(self.session(person).agent.is_some())
    }

    fn choosing_with(&self, named: bool) -> Choosing {
        self.agent_choice.unwrap_or(if named { Choosing::Fixed } else { Choosing::Create })
    }

    /// That of an account which the configuration does not name.
    pub fn closed() -> Self {
        Self::open(Access::nobody(), FollowUpMode::Queue)
    }
}

impl Account {
    /// Connects nothing yet.
    pub fn new(channel: Arc<dyn Channel>, policy: AccountRules) -> Self {
        Self { channel: RwLock::new(channel), policy: RwLock::new(Arc::new(policy)) }
    }

    /// Returns the connection that is used now.
    pub fn channel(&self) -> Arc<dyn Channel> {
        self.channel.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts another channel in place of the one there. Replies that are open end on the old one.
    pub fn set_channel(&self, channel: Arc<dyn Channel>) {
        *self.channel.write().unwrap_or_else(PoisonError::into_inner) = channel;
    }

    /// Returns the rules as configured now.
    pub fn policy(&self) -> Arc<AccountRules> {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the rules from the next message on.
    pub fn set_policy(&self, policy: AccountRules) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    /// Admits no further messages. Waiting messages are still answered.
    pub fn close(&self) {
        self.set_policy(AccountRules { access: Access::nobody(), ..(*self.policy()).clone() });
    }
}

/// All accounts, by their name.
#[derive(Default)]
pub struct Accounts(RwLock<BTreeMap<String, Arc<Account>>>);

impl Accounts {
    /// Returns an account by its name in the configuration.
    pub fn get(&self, name: &str) -> Option<Arc<Account>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Lists them by name.
    pub fn all(&self) -> Vec<(String, Arc<Account>)> {
        let accounts = self.0.read().unwrap_or_else(PoisonError::into_inner);
        accounts.iter().map(|(name, account)| (name.clone(), account.clone())).collect()
    }

    /// Adds an account, or replaces the one of that name.
    pub fn put(&self, name: &str, account: Arc<Account>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), account);
    }

    /// Removes an account.
    pub fn remove(&self, name: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}
