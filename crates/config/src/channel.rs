//! The bots under `channels:`, the people who may use them, and the bots' behaviour.
//!
//! A bot's name is its key; its platform is `type:`, or the key if there is no `type:`, so two bots of one platform are
//! two entries. A bot is on with `enabled: true` and off with `enabled: false`. Without `enabled` it is on if it has
//! credentials. A bot that is off has no required keys.
//!
//! To add a platform, add a file next to `telegram.rs` with its [`Platform`] and its [`PlatformReader`], add its line
//! to [`READERS`], and remove its line from `other.rs`.

mod context;
mod dingtalk;
mod discord;
mod feishu;
mod follow_up;
mod other;
mod session;
mod slack;
mod telegram;

use super::{
    problem::nearest,
    quantity::NumberUnit,
    raw::{MappingEntry, NodeValue},
    reader::{Effect, Key, Section},
    retention,
};
pub use context::{GroupContext, GroupHistory};
pub use follow_up::FollowUpMode;
use indexmap::IndexMap;
use jiff::tz::TimeZone;
use pudu_agent::RetentionRules;
use pudu_channels::{Channel, ChannelError, ChatCommand};
use pudu_langgraph::thread::API_ACCOUNT;
use pudu_texts::Language;
use secrecy::{ExposeSecret, SecretString};
pub use session::SessionOverrides;
use std::{
    collections::BTreeSet,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

/// A bot on a platform.
#[derive(Clone, Debug)]
pub struct AccountConfig {
    /// Its key under `channels:`.
    pub name: String,
    /// Its platform, with the settings to connect to it.
    pub platform: Arc<dyn Platform>,
    /// The configured language of its menus.
    pub language: Option<Language>,
    /// Fingerprint that changes whenever an edit requires a reconnection.
    pub print: u64,
}

impl AccountConfig {
    /// Stores the fingerprint of the values that affect the bot's connection.
    pub(super) fn stamped(self, keys: &IndexMap<String, Key>) -> Self {
        let below = format!("channels.{}.", self.name);
        let mut hasher = DefaultHasher::new();
        self.language.hash(&mut hasher);
        let own =
            keys.iter().filter(|(path, key)| key.effect == Effect::Reconnect && path.starts_with(&below));
        own.for_each(|(path, key)| (path, key.value).hash(&mut hasher));
        Self { print: hasher.finish(), ..self }
    }
}

/// Platform of a bot, with the settings to connect to it.
pub trait Platform: fmt::Debug + Send + Sync {
    /// Returns the platform's name.
    fn name(&self) -> &'static str;

    /// Returns the name of the event transport.
    fn transport(&self) -> &'static str;

    /// Returns the secrets to keep out of logs. The first one identifies the bot on the platform.
    fn secrets(&self) -> Vec<&SecretString>;

    /// Returns whether the bot is open to everyone if no list restricts it.
    fn is_public(&self) -> bool {
        false
    }

    /// Returns the obviously wrong credentials, each with its key, the problem and the fix.
    fn doubts(&self) -> Vec<(&'static str, &'static str, &'static str)> {
        Vec::new()
    }

    /// Creates the bot's channel. Nothing is sent before it listens or replies.
    fn channel(&self, account: &str, menu: Menu) -> Result<Arc<dyn Channel>, ChannelError>;
}

/// Commands for the platform's own menu.
pub type Menu = Vec<ChatCommand>;

/// Reader of the settings of a platform's bots.
struct PlatformReader {
    /// The platform's name.
    name: &'static str,
    /// The required keys.
    credentials: &'static [&'static str],
    /// Reads a bot. Returns `None` if something is missing, which is reported if the bot is on.
    read: fn(&Section<'_>) -> Option<Arc<dyn Platform>>,
    /// Parses the id of a person. The error describes valid ids.
    user: ReadId,
    /// Parses the id of a chat. The error describes valid ids.
    chat: ReadId,
    /// Short description of the id format.
    ids: &'static str,
    /// A sentence that describes the platform's bots.
    about: &'static str,
    /// Source of the recent messages of a group.
    history: GroupHistory,
}

type ReadId = fn(&NodeValue) -> Result<String, String>;

/// The supported platforms.
const READERS: &[&PlatformReader] =
    &[&telegram::READER, &feishu::READER, &dingtalk::READER, &slack::READER, &discord::READER];

/// Behaviour of a bot, looked up for each message.
#[derive(Clone, Debug, PartialEq)]
pub struct AccountPolicy {
    /// People who may use it.
    pub allowed_users: Allow,
    /// Chats in which it may be used.
    pub allowed_chats: Allow,
    /// Whether people can pair with a code.
    pub pairing: bool,
    /// Ids of the approvers. If empty, the run's requester approves.
    pub approvers: BTreeSet<String>,
    /// Handling of messages that arrive during a run.
    pub follow_ups: FollowUpMode,
    /// The agent that answers, and its settings.
    pub session: SessionOverrides,
    /// Whether users choose the agent. If unset, they choose it unless `session` names one.
    pub agent_choice: Option<Choosing>,
    /// The time zone of the bot's users, which is given to the model.
    pub timezone: TimeZone,
    /// The language of its answers. If not set, each person's language.
    pub language: Option<Language>,
    /// Recent group messages added to a question as context.
    pub context: GroupContext,
}

impl AccountPolicy {
    /// Returns whether the bot is open to everyone.
    pub fn admits_everybody(&self) -> bool {
        !self.pairing && self.allowed_users == Allow::Everyone && self.allowed_chats == Allow::Everyone
    }
}

/// Advice on how to restrict a bot that is open to everyone.
pub const CLOSING: &str = "list its users in `allowed_users` or `allowed_chats`, or admit users by a code with \
                           `pairing: true`";

/// A list of allowed ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allow {
    /// Everyone, because the list is empty.
    Everyone,
    /// Only these ids.
    Only(BTreeSet<String>),
}

impl Allow {
    /// Returns the allowed ids of a list; an empty list allows everyone.
    fn listed(ids: Vec<String>) -> Self {
        if ids.is_empty() { Self::Everyone } else { Self::Only(ids.into_iter().collect()) }
    }

    /// Returns whether this id is allowed.
    pub fn permits(&self, id: &str) -> bool {
        match self {
            Self::Everyone => true,
            Self::Only(ids) => ids.contains(id),
        }
    }
}

/// Whether people choose the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choosing {
    /// They do not.
    Fixed,
    /// They choose among the existing agents.
    Choose,
    /// They can also create agents and have them changed.
    Create,
}

/// Treatment of platform identities that are not linked to a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnpairedPeople {
    /// Each is a separate user.
    #[default]
    Own,
    /// All are the local user.
    Shared,
}

const UNPAIRED_PEOPLE: &[(&str, UnpairedPeople)] =
    &[("own", UnpairedPeople::Own), ("shared", UnpairedPeople::Shared)];

settings! {
    /// Settings of all bots that apply from the next message on.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Timing(section) {
        /// Time for active runs to finish at shutdown, in seconds; the others resume at the next start.
        shutdown_grace_period as "shutdown_grace_period_seconds": Duration = seconds(0.0)
            .or(Duration::from_secs(3));
        /// Time within which successive messages become one run, in milliseconds.
        follow_up_window as "follow_up_window_ms": Duration = span(NumberUnit::Milliseconds, 0..=60_000)
            .or(Duration::from_millis(500));
        /// Maximum age of an undelivered reply, in seconds; older replies are not sent.
        outbox_max_age as "outbox_max_age_seconds": Duration = seconds(1.0).or(Duration::from_secs(6 * 3600));
        /// Platform users that are not linked with /connect: own (each is a user with own memory, limits and files) or
        /// shared (all are one user, as in DeerFlow).
        unpaired as "unpaired_people": UnpairedPeople = choice(UNPAIRED_PEOPLE).or(UnpairedPeople::Own);
        /// Time zone of the users, such as Europe/Berlin, for the day and time in the agent's prompt. The default is the
        /// system's.
        timezone: TimeZone = timezone().eg("Europe/Berlin").or_described(TimeZone::system(), "the system's");
        /// Language of pudu's own texts (commands, buttons, notes): en or zh (Simplified Chinese). If unset, each user's
        /// language if the platform reports it, else English.
        language: Option<Language> = language().applies(Effect::Reconnect).eg("en")
            .optional("the user's, else English");
    }
}

settings! {
    /// Limits of waiting messages and concurrent runs, set at the start.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Capacity(section) {
        /// Maximum number of a bot's messages that wait for their answers; the bot refuses more, and the platform redelivers
        /// them. Other bots are not affected.
        inbound_queue_maxsize: usize = number(1..=1_000_000).or(1000);
        /// Maximum number of concurrent runs; a run waits for the network, so this is far above DeerFlow's 5 workers.
        max_concurrency: usize = number(1..=100_000).or(1_024);
    }
}

const CHOOSING: &[(&str, Choosing)] =
    &[("fixed", Choosing::Fixed), ("choose", Choosing::Choose), ("create", Choosing::Create)];

/// Reads the limits of waiting messages and concurrent runs.
pub(super) fn capacity(top: &Section<'_>) -> Capacity {
    let section = top.section("channels").about("Chat platforms.");
    section.note_unused(&["gateway_url", "langgraph_url"]);
    let capacity = Capacity::read(&section);
    if capacity.max_concurrency != 1_024 {
        section.differs("max_concurrency", "runs of the whole daemon at once");
    }
    capacity
}

/// Reads the timing settings of all bots.
pub(super) fn timing(top: &Section<'_>) -> Timing {
    Timing::read(&top.section("channels"))
}

fn own_language(section: &Section<'_>, common: Option<Language>) -> Option<Language> {
    settings! { section =>
        /// Override of `channels.language` for this bot.
        language = language().eg("en").optional("`channels.language`").or(common);
    }
    language
}

/// Reads the bots that are on.
pub(super) fn accounts(top: &Section<'_>) -> Vec<AccountConfig> {
    let language = top.section("channels").language("language").foreign();
    let found: Vec<_> = find(top).into_iter().filter_map(|found| account(found, language)).collect();
    refuse_twins(&found);
    found.into_iter().map(|(account, _)| account).collect()
}

fn account(found: AccountSection<'_>, common: Option<Language>) -> Option<(AccountConfig, Section<'_>)> {
    let ours = matches!(found.kind, SectionKind::Ours(_));
    let language = ours.then(|| own_language(&found.section, common)).flatten();
    let platform = match found.kind {
        SectionKind::Ours(reader) => (reader.read)(&found.section),
        SectionKind::Other(other) => {
            other::read(&found.section, other);
            None
        }
    };
    let account = AccountConfig { name: found.name.to_owned(), platform: platform?, language, print: 0 };
    found.section.is_needed().then_some((account, found.section))
}

/// Refuses a second entry for the same bot: the two would take each other's messages.
fn refuse_twins(found: &[(AccountConfig, Section<'_>)]) {
    let same = |a: &AccountConfig, b: &AccountConfig| {
        let proof = |account: &AccountConfig| {
            account.platform.secrets().first().map(|s| s.expose_secret().to_owned())
        };
        a.platform.name() == b.platform.name() && proof(a) == proof(b)
    };
    for (at, (account, section)) in found.iter().enumerate() {
        if let Some((first, _)) = found.iter().take(at).find(|(first, _)| same(first, account)) {
            let what = format!("this bot is already configured as `channels.{}`", first.name);
            section.refuse_here(what, "remove one of the two, or use a separate bot for each");
        }
    }
}

/// Reads the behaviour of each bot, by its name.
pub(super) fn policies(top: &Section<'_>) -> IndexMap<String, AccountPolicy> {
    let wide = top.section("channels");
    settings! { wide =>
        /// Handling of a message that arrives during a run: queue, steer or interrupt.
        follow_ups = choice(FollowUpMode::NAMES).or(FollowUpMode::Queue);
        /// Choice of the agent by users: fixed, choose (among existing agents) or create (also create and change agents). The
        /// default is create, or fixed if `session` names an agent.
        choosing as "agent_choice" = choice(CHOOSING).eg("create")
            .optional("create; fixed if `session` names an agent");
    }
    let session = "Agent that answers, and its settings. A bot's own `session` overrides this.";
    let (common, times) = (session::read(&wide, session), timing(top));
    let one = |AccountSection { name, kind, section }: AccountSection<'_>| {
        let SectionKind::Ours(reader) = kind else { return None };
        settings! { section =>
            /// Ids of the users who may write to the bot. An empty list admits all.
            allowed_users = list(reader.ids, reader.user).or_described(Vec::new(), "everyone");
            /// Ids of the chats in which users may write to the bot. An empty list admits all.
            allowed_chats = list(reader.ids, reader.chat).or_described(Vec::new(), "everyone");
            /// Admits unlisted users by a code: `pudu connect` makes one, valid for ten minutes.
            pairing = flag().or(false);
            /// Ids of the users who approve restricted actions; if empty, the user who sent the message decides.
            approvers = list(reader.ids, reader.user).or_described(Vec::new(), "the sender of the message");
            /// Override of `channels.follow_ups` for this bot.
            follow_ups = choice(FollowUpMode::NAMES).eg("queue").or_described(follow_ups, "`channels.follow_ups`");
            /// Override of `channels.agent_choice` for this bot.
            agent_choice = choice(CHOOSING).eg("create").optional("`channels.agent_choice`").or(choosing);
            /// Override of `channels.timezone` for this bot.
            timezone = timezone().eg("Europe/Berlin")
                .or_described(times.timezone.clone(), "`channels.timezone`");
        }
        let session = session::read(&section, "Overrides of `channels.session` for this bot.");
        let policy = AccountPolicy {
            allowed_users: Allow::listed(allowed_users),
            allowed_chats: Allow::listed(allowed_chats),
            pairing,
            approvers: approvers.into_iter().collect(),
            follow_ups,
            session: session.merged_over(&common),
            agent_choice,
            timezone,
            language: own_language(&section, times.language),
            context: GroupContext::OFF,
        };
        let context = context::read(&section, &policy, reader.history);
        let policy = AccountPolicy { context, ..policy };
        section.is_needed().then(|| (name.to_owned(), policy))
    };
    find(top).into_iter().filter_map(one).collect()
}

/// Reads the retention of the bots' data, including that of bots that are off.
pub(super) fn retention(top: &Section<'_>) -> RetentionRules {
    let usual = retention::read(top, None);
    let ours = find(top).into_iter().filter(|found| matches!(found.kind, SectionKind::Ours(_)));
    let own = ours.map(|found| (found.name.to_owned(), retention::read(&found.section, Some(&usual))));
    let accounts = own.filter(|(_, retention)| *retention != usual).collect();
    RetentionRules { usual, accounts, memory: retention::memory(top) }
}

/// A bot's section. Its required keys are enforced if the bot is on.
struct AccountSection<'r> {
    name: &'r str,
    kind: SectionKind,
    section: Section<'r>,
}

#[derive(Clone, Copy)]
enum SectionKind {
    Ours(&'static PlatformReader),
    Other(&'static other::Other),
}

/// The account name of the page and the terminal.
pub const LOCAL: &str = "local";

/// Reserved names that no bot may have, and their owners.
const TAKEN: [(&str, &str); 2] =
    [(LOCAL, "the page and the terminal"), (API_ACCOUNT, "clients of the HTTP API")];

/// The keys of `channels:` that are not bots.
const WIDE: &[&str] = &[
    "agent_choice",
    "follow_up_window_ms",
    "follow_ups",
    "gateway_url",
    "inbound_queue_maxsize",
    "langgraph_url",
    "language",
    "max_concurrency",
    "outbox_max_age_seconds",
    "session",
    "shutdown_grace_period_seconds",
    "timezone",
    "unpaired_people",
];

/// Finds the bots. A key that is neither a bot nor a known setting is left for the report of unknown keys.
fn find<'r>(top: &Section<'r>) -> Vec<AccountSection<'r>> {
    let wide = top.section("channels");
    let accounts = wide.present().filter(|entry| !WIDE.contains(&entry.key.as_str()));
    accounts.filter_map(|entry| open(&wide, entry)).collect()
}

fn open<'r>(wide: &Section<'r>, entry: &'r MappingEntry) -> Option<AccountSection<'r>> {
    if let Some((_, owner)) = TAKEN.iter().find(|(name, _)| *name == entry.key) {
        let help = "rename the account, and set its platform in `type:`";
        wide.refuse(&entry.key, format!("this name is reserved for {owner}"), help);
        wide.section(&entry.key).ignore_rest();
        return None;
    }
    let typed = match entry.node.entry("type").map(|entry| &entry.node.value) {
        Some(NodeValue::Text(text)) => Some(text.as_str()),
        _ => None,
    };
    let name = typed.unwrap_or(&entry.key);
    let Some((kind, pattern, credentials)) = platform(name) else {
        let meant =
            entry.node.entry("enabled").is_some_and(|entry| entry.node.value == NodeValue::Bool(true));
        if typed.is_some() || meant {
            refuse(wide, entry, name);
        } else if let Some(near) = nearest(name, platforms()).filter(|_| !entry.node.entries().is_empty()) {
            let what = format!("unknown platform \"{name}\"; the account is ignored");
            wide.warn(&entry.key, what, format!("did you mean `{near}`? Or add `type: {near}`"));
        } else if READERS
            .iter()
            .flat_map(|reader| reader.credentials)
            .any(|key| entry.node.entry(key).is_some())
        {
            let what = format!("this looks like an account, but \"{name}\" is not a supported platform");
            wide.refuse(&entry.key, what, "set its platform, such as `type: telegram`");
            wide.section(&entry.key).ignore_rest();
        }
        return None;
    };
    let mut section = wide.section_like(&entry.key, pattern);
    if let SectionKind::Ours(reader) = kind {
        section = section.about(reader.about);
    }
    let default = credentials.iter().any(|key| section.entry(key).is_some());
    let unsaid = section.entry("enabled").is_none();
    settings! { section =>
        /// Platform of the bot.
        _type as "type" = text().or_described(name.to_owned(), "the account's name");
        /// Enables the bot; if unset, it is enabled if it has credentials.
        enabled = flag().or_described(default, "true if there are credentials");
    }
    let whole = matches!(entry.node.value, NodeValue::Map(_) | NodeValue::Null);
    if unsaid && whole && !default && matches!(kind, SectionKind::Ours(_)) {
        let what = format!("this account is disabled: no `{}`", credentials.join("`, no `"));
        section.warn_here(what, "set the missing keys, or `enabled: false` to disable it");
    }
    Some(AccountSection { name: &entry.key, kind, section: section.needed(enabled) })
}

fn platform(name: &str) -> Option<(SectionKind, &'static str, &'static [&'static str])> {
    match READERS.iter().find(|reader| reader.name == name) {
        Some(reader) => Some((SectionKind::Ours(reader), reader.name, reader.credentials)),
        None => other::find(name).map(|other| (SectionKind::Other(other), other.name, other.credentials)),
    }
}

fn platforms() -> impl Iterator<Item = &'static str> {
    READERS.iter().map(|reader| reader.name)
}

/// Keys that all bots have and no other section has.
const OF_ACCOUNTS: &[&str] = &["allowed_chats", "allowed_users", "approvers", "pairing", "require_mention"];

/// Returns the paths where a bot's key would belong, for a file that does not have such a bot yet.
pub(super) fn homes(key: &str) -> Vec<String> {
    let has = |reader: &&&PlatformReader| reader.credentials.contains(&key) || OF_ACCOUNTS.contains(&key);
    let all: Vec<_> =
        READERS.iter().filter(has).map(|reader| format!("channels.{}.{key}", reader.name)).collect();
    match all.len() {
        count if count == READERS.len() => vec![format!("channels.ACCOUNT.{key}")],
        _ => all,
    }
}

fn refuse(wide: &Section<'_>, entry: &MappingEntry, name: &str) {
    let help = match nearest(name, platforms()) {
        Some(near) => format!("did you mean `type: {near}`?"),
        None => format!("write `type:` with one of {}", platforms().collect::<Vec<_>>().join(", ")),
    };
    wide.refuse(&entry.key, format!("unknown platform \"{name}\""), help);
}
