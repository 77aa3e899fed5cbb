//! The bots, and the rules of each.

use super::access::Access;
use jiff::tz::TimeZone;
use pudu_agent::{Authoring, RunFeatures, RunSecrets, agents::is_lead};
use pudu_base::{Thinking, UserId};
use pudu_channels::{Channel, Inbound};
use pudu_config::FollowUpMode;
use pudu_config::{self as config, Choosing, GroupContext};
use pudu_harness::WallClock;
use pudu_kit::clock;
use pudu_texts::Language;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError, RwLock},
};

/// Default maximum number of steps of a run, as in DeerFlow.
const MAX_STEPS: u32 = 1000;

/// A configured bot: its channel and its rules. Conversations keep the bot while its channel is replaced.
pub struct Account {
    channel: RwLock<Arc<dyn Channel>>,
    policy: RwLock<Arc<AccountRules>>,
}

/// Rules of a bot. A change takes effect with the next message.
#[derive(Clone, Debug, PartialEq)]
pub struct AccountRules {
    /// People and chats that may use the bot.
    pub access: Access,
    /// How a message that arrives during a run is handled.
    pub mode: FollowUpMode,
    /// The agent that answers, and its settings.
    pub session: config::SessionOverrides,
    /// Ids of the approvers. If empty, only the person that the run works for may approve.
    pub approvers: BTreeSet<String>,
    /// Whether people may choose the agent that answers; `None` if that is not configured.
    pub agent_choice: Option<Choosing>,
    /// Time zone of the account's users, which the model receives.
    pub timezone: TimeZone,
    /// Upper bound on a session's `recursion_limit`, the maximum number of model calls per run.
    pub max_steps: u32,
    /// The language of all answers, if the configuration sets one.
    pub language: Option<Language>,
    /// Recent messages of a group that the model gets together with a question.
    pub context: GroupContext,
}

/// Agent and settings for a person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSession {
    /// The agent; `None` is the lead agent.
    pub agent: Option<String>,
    /// The model, unless people chose another.
    pub model: Option<String>,
    /// The thinking effort, unless people chose another.
    pub thinking: Option<Thinking>,
    /// Maximum number of model calls of a run.
    pub steps: Option<u32>,
    /// Parts of the agent that the configuration switches on or off.
    pub features: RunFeatures,
    /// Secrets in the configuration that are available to commands in private chats.
    pub own_secrets: RunSecrets,
    /// The user (a person or a room) whose own agents are available in addition to the shared ones. `None` if the
    /// configuration selects the agent, because it selects a shared one.
    pub agents_of: Option<UserId>,
    /// Permission of a run to change agents.
    pub authoring: Authoring,
    /// The user that a run works for.
    pub user: UserId,
}

impl AccountRules {
    /// Returns rules without settings for runs.
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

    /// Returns the language for answering an event: the account's if configured, else the sender's if the platform
    /// reports it and it has a catalogue, else English.
    pub(super) fn language(&self, inbound: &Inbound) -> Language {
        let person = || inbound.sender.language.as_deref().and_then(Language::of_person);
        self.language.or_else(person).unwrap_or_default()
    }

    /// Returns the day, the time and the time zone, as text for the model.
    pub(super) fn now(&self) -> String {
        clock::for_model(clock::now(), &self.timezone)
    }

    /// Returns a clock that renders the current time like `now`.
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
            // The configuration refuses unreadable options, so the defaults are never used.
            features: RunFeatures::read(&session.context).unwrap_or_default(),
            own_secrets: RunSecrets::read(&session.context).unwrap_or_default(),
            agents_of: None,
            authoring,
            user: UserId::local(),
        }
    }

    /// Returns whether a person may change shared agents, including the lead agent. Only approvers may.
    pub fn may_change_shared(&self, person: &str) -> bool {
        self.approvers.contains(person)
    }

    /// Returns whether this person's requests can be approved only by others: approvers are named, and this person is
    /// not one.
    pub(super) fn has_others_decide(&self, person: &str) -> bool {
        !self.approvers.is_empty() && !self.approvers.contains(person)
    }

    /// Returns whether a person can choose or create agents. Unless configured otherwise, an account that names an
    /// agent fixes it, and any other account lets people choose and create agents.
    pub(super) fn choosing(&self, person: &str) -> Choosing {
        self.choosing_with(self.session(person).agent.is_some())
    }

    fn choosing_with(&self, named: bool) -> Choosing {
        self.agent_choice.unwrap_or(if named { Choosing::Fixed } else { Choosing::Create })
    }

    /// Returns the rules of a bot that is not configured.
    pub fn closed() -> Self {
        Self::open(Access::nobody(), FollowUpMode::Queue)
    }
}

impl Account {
    /// Creates a bot. Does not connect its channel.
    pub fn new(channel: Arc<dyn Channel>, policy: AccountRules) -> Self {
        Self { channel: RwLock::new(channel), policy: RwLock::new(Arc::new(policy)) }
    }

    /// Returns the channel in use.
    pub fn channel(&self) -> Arc<dyn Channel> {
        self.channel.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the channel. Open replies end on the old one.
    pub fn set_channel(&self, channel: Arc<dyn Channel>) {
        *self.channel.write().unwrap_or_else(PoisonError::into_inner) = channel;
    }

    /// Returns the current rules.
    pub fn policy(&self) -> Arc<AccountRules> {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the rules. They take effect with the next message.
    pub fn set_policy(&self, policy: AccountRules) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    /// Admits no further messages. Waiting messages are still answered.
    pub fn close(&self) {
        self.set_policy(AccountRules { access: Access::nobody(), ..(*self.policy()).clone() });
    }
}

/// All bots, by name.
#[derive(Default)]
pub struct Accounts(RwLock<BTreeMap<String, Arc<Account>>>);

impl Accounts {
    /// Returns a bot by its name in the configuration.
    pub fn get(&self, name: &str) -> Option<Arc<Account>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Lists all bots by name.
    pub fn all(&self) -> Vec<(String, Arc<Account>)> {
        let accounts = self.0.read().unwrap_or_else(PoisonError::into_inner);
        accounts.iter().map(|(name, account)| (name.clone(), account.clone())).collect()
    }

    /// Adds a bot, or replaces the one of that name.
    pub fn put(&self, name: &str, account: Arc<Account>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), account);
    }

    /// Removes a bot.
    pub fn remove(&self, name: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}
