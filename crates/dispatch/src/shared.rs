//! The services that dispatching works with, and the rules for all accounts.

use super::{
    access::{Access, PairedPeople, Refusals},
    account::Accounts,
    speaker::SpeakerPlace,
};
use crate::{
    bus::{Inbox, InboxItem, Outbox},
    links::Links,
};
use pudu_channels::Inbound;
use pudu_client::{
    Client,
    base::{Message, ThreadId, UserId},
    store::Db,
};
use pudu_config::{HotConfig, Transcription, UnpairedPeople, Uploads};
use pudu_people::Users;
use std::{
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};
use tokio::sync::Notify;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Time that a request waits for the end of an adoption.
const ADOPTION_WAIT: Duration = Duration::from_secs(5);

/// Rules for all accounts. A change takes effect with the next message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DispatchRules {
    /// Follow-ups that come within this time of each other are answered together.
    pub follow_up_window: Duration,
    /// Limits of files that people send with one turn.
    pub uploads: Uploads,
    /// Treatment of people who joined no user.
    pub unpaired: UnpairedPeople,
    /// The server that transcribes voice notes and videos.
    pub transcription: Option<Transcription>,
}

impl DispatchRules {
    /// Takes the rules out of the configuration.
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
    pub client: Client,
    /// Accepted messages.
    pub inbox: Inbox,
    /// Replies to deliver.
    pub outbox: Outbox,
    /// The home folder.
    pub home: PathBuf,
    /// The bots.
    pub accounts: Accounts,
    /// Ends conversations: no new turns.
    pub drain: CancellationToken,
    /// Turns, deliveries and conversations.
    pub tasks: TaskTracker,
    /// Settings that may change while the daemon runs.
    pub rules: RwLock<Arc<DispatchRules>>,
    /// Strangers who were refused within the hour.
    pub refusals: Refusals,
    /// People who paired with a bot.
    pub known: PairedPeople,
    /// Which person is which user.
    pub users: Users,
    /// Signed links to files.
    pub links: Links,
    /// Cancelled when the tools of extensions are there, or will probably not be: runs that a restart cut wait for that.
    pub extended: CancellationToken,
    /// Rings when the servers of extensions are to be reconnected.
    pub reconnect_extensions: Notify,
}

impl Shared {
    /// Returns the settings as configured now.
    pub fn rules(&self) -> Arc<DispatchRules> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the settings from the next message on.
    pub fn set_rules(&self, rules: DispatchRules) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }

    /// Returns whether a person may speak to an account. Another bot has no id; only an account without lists admits it.
    pub(super) fn admits(&self, access: &Access, account: &str, person: Option<&str>) -> bool {
        let paired = |person: &str| access.pairing && self.known.has(account, person);
        person.map_or(access.is_open(), |person| access.knows(person, paired(person)))
    }

    /// Returns which user a person of an account is.
    pub fn user(&self, account: &str, person: &str) -> UserId {
        self.users.user_for(account, person, self.rules().unpaired)
    }

    /// Returns the user whose skills and agents someone finds besides the shared ones: the room in a room, otherwise the
    /// person.
    pub(super) fn owner_of<'s>(&self, speaker: impl Into<SpeakerPlace<'s>>) -> UserId {
        let SpeakerPlace { address, person, private } = speaker.into();
        match private {
            true => self.user(&address.account, person),
            false => UserId::room(&address.account, &address.chat),
        }
    }

    /// Returns the user whose secrets commands may find that a person asks for: never one that several people share, but
    /// for the page and the terminal.
    pub(super) fn secrets_of(&self, account: &str, person: &str) -> UserId {
        self.users.own(account, person)
    }

    /// Returns the owner of a new thread: the person of a private chat, the person who asks the question that begins it
    /// (each does, where `threads`), or the room that talks in it.
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
        let state = self.client.state(thread).await.unwrap_or_default();
        state.messages.values().any(|message| matches!(**message, Message::Human(_)))
    }

    /// Transfers the data that an account takes over. Memories, which may be in use just now, follow in the background.
    pub async fn adopt(&self) {
        let client = self.client.clone();
        let given = self.tasks.spawn(async move { client.adopt_threads().await });
        // With very many threads, the last are seen later.
        tokio::time::timeout(ADOPTION_WAIT, given).await.ok();
        let client = self.client.clone();
        self.tasks.spawn(async move { client.merge_memories().await });
    }

    /// Gives an event no sign. Not waited for: strangers cause no delay.
    pub(super) fn ignore(&self, arrival: &InboxItem) {
        let (inbox, id) = (self.inbox.clone(), arrival.id);
        self.tasks.spawn(async move { inbox.finish(&[id]).await });
    }
}
