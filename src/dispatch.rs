//! From what came in to who answers it: access, then a command or a conversation, then a turn.
//!
//! What is deliberately absent: platforms' bytes and the agent's loop.

mod access;
mod account;
mod agent;
mod answer;
mod approval;
mod choice;
pub(crate) mod command;
mod conversation;
mod mode;
mod pairing;
mod place;
mod recover;
mod turn;
mod view;

pub(crate) use access::{Access, Refusals};
pub(crate) use account::{Account, AccountRules, Accounts, AgentSession};
pub(crate) use mode::FollowUpMode;
pub(crate) use pairing::{GOOD_FOR, PairedPeople};

use crate::{
    bus::{Inbox, InboxItem, Outbox},
    config::Uploads,
    links::Links,
};
use access::AccessVerdict;
use command::SlashCommand;
use conversation::{ConversationActor, ConversationEvent};
use pudu_channels::{FinalView, InboundKind};
use pudu_client::{Client, harness::middleware::named, store::Db};
use recover::Stranded;
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, Instant},
};
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// What holds for all accounts. Changes for the next message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DispatchRules {
    /// Follow-ups that come within this time of each other are answered together.
    pub(crate) follow_up_window: Duration,
    /// What of files is taken from people with one turn.
    pub(crate) uploads: Uploads,
}

/// What dispatching works with, shared by all conversations.
pub(crate) struct Shared {
    pub(crate) db: Db,
    pub(crate) client: Client,
    pub(crate) inbox: Inbox,
    pub(crate) outbox: Outbox,
    pub(crate) home: PathBuf,
    pub(crate) accounts: Accounts,
    /// Ends conversations: no new turns.
    pub(crate) drain: CancellationToken,
    /// Turns, deliveries and conversations.
    pub(crate) tasks: TaskTracker,
    pub(crate) rules: RwLock<Arc<DispatchRules>>,
    pub(crate) conversations: Conversations,
    pub(crate) refusals: Refusals,
    pub(crate) known: PairedPeople,
    pub(crate) links: Links,
    /// Turns of a process before this one whose account is not there.
    pub(crate) stranded: Mutex<Vec<Stranded>>,
    /// Cancelled when it is known which tools of extensions there are: turns that a restart cut wait for that.
    pub(crate) extended: CancellationToken,
    /// Events whose account is not there. They stay held, so that nobody hands them out again and again.
    pub(crate) homeless: Mutex<Vec<InboxItem>>,
}

/// The boxes of the conversations that are awake.
#[derive(Default)]
pub(crate) struct Conversations(Mutex<HashMap<String, mpsc::Sender<ConversationEvent>>>);

impl Shared {
    pub(crate) fn rules(&self) -> Arc<DispatchRules> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_rules(&self, rules: DispatchRules) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }

    /// Takes what arrives until the daemon drains. `refresh` is called before each, so that edits of the
    /// configuration count from the next message on.
    pub(crate) async fn run(self: Arc<Self>, mut arrivals: mpsc::Receiver<InboxItem>, refresh: impl Fn()) {
        loop {
            let arrival = tokio::select! {
                biased;
                () = self.drain.cancelled() => return,
                arrival = arrivals.recv() => arrival,
            };
            let Some(arrival) = arrival else { return };
            refresh();
            self.receive(arrival).await;
        }
    }

    /// Sends an arrival on its way.
    async fn receive(self: &Arc<Self>, arrival: InboxItem) {
        let Some(account) = self.accounts.get(&arrival.inbound.address.account) else {
            let account = arrival.inbound.address.account.clone();
            tracing::warn!(account, "an event waits for its account to be back");
            self.homeless.lock().unwrap_or_else(PoisonError::into_inner).push(arrival);
            return;
        };
        let policy = account.policy();
        let (name, person) = (&arrival.inbound.address.account, &arrival.inbound.sender.id);
        let known = policy.access.pairing && self.known.has(name, person);
        if policy.access.pairing
            && let Some(code) = pairing::shown(&arrival.inbound.kind)
        {
            if !policy.access.takes_code(&arrival.inbound) {
                self.ignore(&arrival);
            } else if policy.access.knows(person, known) {
                self.greet(&account, arrival);
            } else {
                // Not waited for: strangers hold nobody up.
                let shared = self.clone();
                self.tasks.spawn(async move { shared.connect(&account, arrival, &code).await });
            }
            return;
        }
        match policy.access.judge(&arrival.inbound, known) {
            AccessVerdict::Welcome => match approval::pressed(&arrival.inbound.kind) {
                Some((key, approve)) => {
                    let key = key.to_owned();
                    self.decide(&account, arrival, &key, approve).await;
                }
                None if self.choose(&account, &arrival).await => self.welcome(&account, arrival).await,
                None => self.ignore(&arrival),
            },
            AccessVerdict::Refuse => self.refuse(&account, arrival),
            AccessVerdict::Ignore => self.ignore(&arrival),
        }
    }

    /// Gives an event no sign. Not waited for: strangers hold nobody up.
    fn ignore(&self, arrival: &InboxItem) {
        let (inbox, id) = (self.inbox.clone(), arrival.id);
        self.tasks.spawn(async move { inbox.finish(&[id]).await });
    }

    async fn welcome(self: &Arc<Self>, account: &Arc<Account>, arrival: InboxItem) {
        let command = match &arrival.inbound.kind {
            InboundKind::Message { text, .. } => self.command(text).await,
            InboundKind::Press { action } => self.command(action).await,
            InboundKind::Edit { .. } | InboundKind::Recall => None,
        };
        let key = place::conversation(self, account, &arrival.inbound, command.as_ref()).await;
        let mail = match (&arrival.inbound.kind, command) {
            (_, Some(command)) => ConversationEvent::Command(Box::new(arrival), command),
            (InboundKind::Edit { .. } | InboundKind::Recall, None) => {
                ConversationEvent::Change(Box::new(arrival))
            }
            (_, None) => ConversationEvent::Say(Box::new(arrival)),
        };
        self.post(account, &key, mail);
    }

    /// Reads a command. What asks for a skill is none: it is talk. Where a skill has the name of a command, the
    /// command is meant.
    async fn command(&self, text: &str) -> Option<SlashCommand> {
        match SlashCommand::parse(text)? {
            SlashCommand::Unknown(name) if named(&self.client.catalog().await.enabled(), &name).is_some() => {
                None
            }
            command => Some(command),
        }
    }

    /// Tells a stranger, once an hour, that nothing will be answered.
    fn refuse(self: &Arc<Self>, account: &Arc<Account>, arrival: InboxItem) {
        let inbound = &arrival.inbound;
        if !self.refusals.due(&inbound.address.account, &inbound.sender.id, Instant::now()) {
            self.ignore(&arrival);
            return;
        }
        let help = match account.policy().access.pairing {
            true => "Ask whoever runs this bot for a code, and send me `/connect CODE`.".to_owned(),
            false => format!("Ask whoever runs this bot to add your id: {}", inbound.sender.id),
        };
        let text = format!("I do not know you yet, so I cannot answer. {help}");
        let view = FinalView { text, ..FinalView::default() };
        let stranger = ConversationActor::new(self.clone(), account.clone(), inbound.address.key());
        stranger.answer_with(arrival, view, Vec::new());
    }

    /// Puts mail into a conversation's box; wakes the conversation if it sleeps.
    fn post(self: &Arc<Self>, account: &Arc<Account>, key: &str, mail: ConversationEvent) {
        let mut conversations = self.conversations.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mailbox = conversations.entry(key.to_owned()).or_insert_with(|| self.wake(account, key));
        let sent = match mailbox.try_send(mail) {
            Err(mpsc::error::TrySendError::Closed(mail)) => {
                *mailbox = self.wake(account, key);
                mailbox.try_send(mail)
            }
            sent => sent,
        };
        if sent.is_err() {
            // The box has room for all that the inbox takes, so this is the end of the daemon.
            tracing::warn!(key, "an event is answered after a restart");
        }
    }

    fn wake(self: &Arc<Self>, account: &Arc<Account>, key: &str) -> mpsc::Sender<ConversationEvent> {
        let (mailbox, mail) = mpsc::channel(self.inbox.limit() + 1);
        let conversation = ConversationActor::new(self.clone(), account.clone(), key.to_owned());
        self.tasks.spawn(conversation.live(mail));
        mailbox
    }

    /// Lets an idle conversation go, unless mail came meanwhile.
    fn retire(&self, key: &str, mail: &mpsc::Receiver<ConversationEvent>) -> bool {
        let mut conversations = self.conversations.0.lock().unwrap_or_else(PoisonError::into_inner);
        let empty = mail.is_empty();
        if empty {
            conversations.remove(key);
            conversations.shrink_to_fit();
        }
        empty
    }
}
