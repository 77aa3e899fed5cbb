//! Handles an event from arrival to answer: checks access, then runs a command or passes it to a conversation, which
//! answers in turns.
//!
//! `route` decides how to handle an event, without side effects; this file carries out the decision. Each bot has its
//! own task, so that no bot waits for another. Deliberately absent: the platforms' wire formats and the agent's loop.

mod absent;
mod access;
mod account;
mod agent;
mod answer;
mod approval;
mod basket;
mod budgets;
mod buffer;
pub mod bus;
mod changes;
mod choice;
mod command;
pub mod commands;
pub mod connections;
mod conversation;
mod forms;
mod goals;
pub mod input;
mod joining;
pub mod links;
pub mod local;
mod mailboxes;
mod pairing;
mod perform;
mod places;
mod pointed;
mod recover;
mod reply;
mod route;
mod running;
mod scheduled;
mod scope;
mod secrets;
pub mod sent;
mod shared;
mod speaker;
mod spending;
mod tasks;
mod todos;
mod turn;
pub mod view;
mod vision;
mod voice;

pub use access::{Access, PairedPeople, Refusals};
pub use account::{Account, AccountRules, Accounts};
pub use approval::decided_by;
pub use pairing::GOOD_FOR;
pub use scheduled::ScheduleLauncher;
pub use shared::{DispatchRules, Shared};

use crate::bus::InboxItem;
use absent::Absent;
use command::SlashCommand;
use conversation::{ConversationActor, ConversationEvent};
use mailboxes::Mailboxes;
use pudu_channels::{Inbound, InboundKind};
use route::{Converse, EventKind, Route, RouteFacts};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::{sync::mpsc, time::Instant};

/// Dispatches arrivals. Clones share their state.
#[derive(Clone)]
pub struct Dispatcher(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    accounts: Mailboxes<InboxItem>,
    conversations: Arc<Mailboxes<ConversationEvent>>,
    /// Events and turns of bots that are currently unavailable.
    absent: Mutex<Absent>,
}

impl Dispatcher {
    /// Creates a dispatcher without conversations.
    pub fn new(shared: Arc<Shared>) -> Self {
        let (accounts, conversations, absent) = Default::default();
        Self(Arc::new(Inner { shared, accounts, conversations, absent }))
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    fn absent(&self) -> MutexGuard<'_, Absent> {
        self.0.absent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives arrivals until the daemon drains. Calls `refresh` before each, so that configuration changes take
    /// effect with the next message.
    pub async fn run(self, mut arrivals: mpsc::Receiver<InboxItem>, refresh: impl Fn()) {
        let drain = self.shared().drain.clone();
        while let Some(Some(arrival)) = drain.run_until_cancelled(arrivals.recv()).await {
            refresh();
            let account = arrival.inbound.address.account.clone();
            self.0.accounts.post(&account, arrival, || self.attend());
        }
    }

    /// Starts a task that receives the arrivals of one bot, in order.
    fn attend(&self) -> mpsc::Sender<InboxItem> {
        let (mailbox, mut arrivals) = mpsc::channel(self.shared().inbox.limit() + 1);
        let (dispatcher, drain) = (self.clone(), self.shared().drain.clone());
        self.shared().tasks.spawn(async move {
            while let Some(Some(arrival)) = drain.run_until_cancelled(arrivals.recv()).await {
                dispatcher.receive(arrival).await;
            }
        });
        mailbox
    }

    /// Routes an arrival.
    async fn receive(&self, arrival: InboxItem) {
        let (shared, inbound) = (self.shared(), &arrival.inbound);
        let Some(account) = shared.accounts.get(&inbound.address.account) else {
            tracing::warn!(
                account = inbound.address.account,
                "holding event until its bot is available again"
            );
            self.absent().events.push(arrival);
            return;
        };
        let facts = RouteFacts {
            paired: shared.known.has(&inbound.address.account, &inbound.sender.id),
            command: self.command(inbound).await,
            threads: account.channel().limits().threads,
        };
        let route = route::route(&account.policy(), inbound, facts);
        if !matches!(route, Route::Converse(_)) {
            // No command will use the secret.
            shared.inbox.concealed(inbound);
            if let InboundKind::Scheduled { .. } = inbound.kind {
                return shared.refuse_scheduled(arrival);
            }
        }
        match route {
            Route::Ignore => shared.ignore(&arrival),
            Route::RefuseStranger => refuse(shared, &account, arrival),
            Route::GreetKnown => pairing::greet(shared, &account, arrival),
            Route::RedeemCode(code) => {
                // Runs in the background, so that strangers cause no delay.
                let shared = shared.clone();
                shared.clone().tasks.spawn(async move { shared.connect(&account, arrival, &code).await });
            }
            Route::Decide { approval, approve } => shared.decide(&account, arrival, &approval, approve).await,
            Route::Converse(converse) => self.converse(&account, arrival, converse).await,
        }
    }

    /// Parses the command of an event. A message that starts a skill or a prompt is an ordinary message, not a command. A
    /// command takes precedence over both.
    async fn command(&self, inbound: &Inbound) -> Option<SlashCommand> {
        let (shared, command) = (self.shared(), SlashCommand::from_event(&inbound.kind)?);
        let is_message = commands::is_message(&shared.agent, &shared.owner_of(inbound), &command).await;
        (!is_message).then_some(command)
    }

    async fn converse(&self, account: &Arc<Account>, arrival: InboxItem, converse: Converse) {
        let shared = self.shared();
        let presses = matches!(arrival.inbound.kind, InboundKind::Press { .. } | InboundKind::Submit { .. });
        if presses && !shared.choose(account, &arrival).await {
            shared.ignore(&arrival);
            return;
        }
        let key = places::find(shared, &arrival.inbound, &converse.candidates).await;
        if converse.remember {
            places::remember(shared, &arrival.inbound, &key);
        }
        let arrival = Box::new(arrival);
        let event = match converse.kind {
            EventKind::Say => ConversationEvent::Say(arrival),
            EventKind::Change(command) => ConversationEvent::Change(arrival, command),
            EventKind::Command(command) => ConversationEvent::Command(arrival, command),
        };
        self.post(account, &key, event);
    }

    /// Puts an event into a conversation's mailbox, and starts the conversation's actor if it is not running.
    fn post(&self, account: &Arc<Account>, key: &str, event: ConversationEvent) {
        let wake = || {
            let shared = self.shared();
            let (mailbox, events) = mpsc::channel(shared.inbox.limit() + 1);
            let conversation = ConversationActor::new(shared.clone(), account.clone(), key.to_owned());
            shared.tasks.spawn(conversation.live(events, self.0.conversations.clone()));
            mailbox
        };
        self.0.conversations.post(key, event, wake);
    }
}

/// Sends a stranger a refusal, at most once an hour.
fn refuse(shared: &Arc<Shared>, account: &Arc<Account>, arrival: InboxItem) {
    let inbound = &arrival.inbound;
    if !shared.refusals.due(&inbound.address.account, &inbound.sender.id, Instant::now()) {
        shared.ignore(&arrival);
        return;
    }
    let policy = account.policy();
    let language = policy.language(inbound);
    let text = match policy.access.pairing {
        true => language.stranger_by_code().to_owned(),
        false => language.stranger_by_id(&inbound.sender.id),
    };
    reply::say(shared, account, arrival, text);
}
