//! The services that the dispatcher uses, and the rules for all bots.

use super::{
    access::{Access, PairedPeople, Refusals},
    account::Accounts,
    speaker::SpeakerPlace,
};
use crate::{
    bus::{Inbox, InboxItem, Outbox},
    links::Links,
};
use pudu_agent::Agent;
use pudu_base::ToolServers;
use pudu_base::{Message, ThreadId, UserId};
use pudu_channels::Inbound;
use pudu_config::{HotConfig, Transcription, UnpairedPeople, Uploads};
use pudu_people::Users;
use pudu_runs::RunManager;
use pudu_schedules::Schedules;
use pudu_store::Db;
use std::{
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Maximum time that a request waits for an adoption to finish.
const ADOPTION_WAIT: Duration = Duration::from_secs(5);

/// Rules for all bots. A change takes effect with the next message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DispatchRules {
    /// Follow-up messages within this time of each other are answered together.
    pub follow_up_window: Duration,
    /// Limits of files that people send with one turn.
    pub uploads: Uploads,
    /// Treatment of people who are not linked to a user.
    pub unpaired: UnpairedPeople,
    /// The server that transcribes voice notes and videos.
    pub transcription: Option<Transcription>,
}

impl DispatchRules {
    /// Reads the rules from the configuration.
    pub fn new(hot: &HotConfig) -> Self {
        Self {
            follow_up_window: hot.timing.follow_up_window,
            uploads: hot.uploads.clone(),
            unpaired: hot.timing.unpaired,
            transcription: hot.transcription.clone(),
        }
    }
}

/// The services that all conversations share.
pub struct Shared {
    /// The store.
    pub db: Db,
    /// The agent.
    pub agent: Agent,
    /// Its runs.
    pub runs: RunManager,
    /// Accepted messages.
    pub inbox: Inbox,
    /// Replies to deliver.
    pub outbox: Outbox,
    /// The home folder.
    pub home: PathBuf,
    /// The bots.
    pub accounts: Accounts,
    /// Cancelled when conversations must not begin new turns.
    pub drain: CancellationToken,
    /// Turns, deliveries and conversations.
    pub tasks: TaskTracker,
    /// Settings that may change while the daemon runs.
    pub rules: RwLock<Arc<DispatchRules>>,
    /// Strangers who were refused within the hour.
    pub refusals: Refusals,
    /// People who paired with a bot.
    pub known: PairedPeople,
    /// Maps people on platforms to users.
    pub users: Users,
    /// Signed links to files.
    pub links: Links,
    /// Cancelled once the tools of extensions are ready, or are unlikely to become ready. Interrupted runs wait for
    /// this.
    pub extended: CancellationToken,
    /// Scheduled tasks.
    pub schedules: Arc<Schedules>,
    /// The servers of the extensions file, whose tools agents use.
    pub servers: Arc<dyn ToolServers>,
}

impl Shared {
    /// Returns the current settings.
    pub fn rules(&self) -> Arc<DispatchRules> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the settings. They take effect with the next message.
    pub fn set_rules(&self, rules: DispatchRules) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }

    /// Returns whether a person may use a bot. Other bots have no id, so only a bot that is open to everyone admits
    /// them.
    pub(super) fn admits(&self, access: &Access, account: &str, person: Option<&str>) -> bool {
        let paired = |person: &str| access.pairing && self.known.has(account, person);
        person.map_or(access.is_open(), |person| access.knows(person, paired(person)))
    }

    /// Returns the user that a bot's person belongs to.
    pub fn user(&self, account: &str, person: &str) -> UserId {
        self.users.user_for(account, person, self.rules().unpaired)
    }

    /// Returns the user whose skills and agents are available to a person in addition to the shared ones: the room in a
    /// room, otherwise the person.
    pub(super) fn owner_of<'s>(&self, speaker: impl Into<SpeakerPlace<'s>>) -> UserId {
        let SpeakerPlace { address, person, private } = speaker.into();
        match private {
            true => self.user(&address.account, person),
            false => UserId::room(&address.account, &address.chat),
        }
    }

    /// Returns the user whose secrets are available to a person's commands: never a shared user, except on the page and
    /// the terminal.
    pub(super) fn secrets_of(&self, account: &str, person: &str) -> UserId {
        self.users.own(account, person)
    }

    /// Returns the owner of a new thread. The person owns a private chat, a chain that their question begins and, with
    /// `threads`, a topic; the room owns any other thread.
    pub(super) fn owner(&self, key: &str, inbound: &Inbound, threads: bool) -> UserId {
        let Inbound { address, sender, private, .. } = inbound;
        let is_asked = threads && address.topic.is_some();
        let is_chain = address.topic.is_none() && key != address.key();
        match *private || is_asked || is_chain {
            true => self.user(&address.account, &sender.id),
            false => UserId::room(&address.account, &address.chat),
        }
    }

    /// Returns whether a question was asked on a thread.
    pub(super) async fn is_asked(&self, thread: &ThreadId) -> bool {
        let state = self.agent.state(thread).await.unwrap_or_default();
        state.messages.values().any(|message| matches!(**message, Message::Human(_)))
    }

    /// Transfers data to the user that takes it over. Memories may be in use, so they are merged in the background.
    pub async fn adopt(&self) {
        let runs = self.runs.clone();
        let adoption = self.tasks.spawn(async move { runs.adopt_threads().await });
        // With very many threads, the last ones become visible later.
        tokio::time::timeout(ADOPTION_WAIT, adoption).await.ok();
        let agent = self.agent.clone();
        self.tasks.spawn(async move { agent.merge_memories().await });
    }

    /// Marks an event as done without an answer, in the background, so that strangers cause no delay.
    pub(super) fn ignore(&self, arrival: &InboxItem) {
        let (inbox, id) = (self.inbox.clone(), arrival.id);
        self.tasks.spawn(async move { inbox.finish(&[id]).await });
    }
}
