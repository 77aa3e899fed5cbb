//! The second phase of a start: the parts are built from the configuration and connected. Nothing is received or run
//! yet.

use crate::{agent, daemon::Daemon, machine::Machine, open::Opened, scope::Scope};
use anyhow::{Context, Result};
use pudu_client::Client;
use pudu_config::{AccountConfig, AuthConfig, GatewayConfig, HotConfig, Start};
use pudu_dispatch::{
    Account, Accounts, DispatchRules, Dispatcher, PairedPeople, Refusals, Shared,
    bus::{Inbox, InboxItem, Outbox},
    connections::{self, Connections},
    links::Links,
    local::{self, LocalChannel},
};
use pudu_gateway::{self as gateway, GatewayToken};
use pudu_people::Users;
use std::{
    path::{Path, PathBuf},
    sync::{Arc, RwLock},
};
use tokio::{
    net::TcpListener,
    sync::{Notify, mpsc::Receiver},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// A daemon whose parts are connected, and the values that only its start needs.
pub(crate) struct Built {
    pub(crate) daemon: Daemon,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) arrivals: Receiver<InboxItem>,
    /// Socket of the HTTP API.
    pub(crate) listener: TcpListener,
    /// Token that the HTTP API requires.
    pub(crate) token: GatewayToken,
    pub(crate) auth: AuthConfig,
    pub(crate) hot: Arc<HotConfig>,
    pub(crate) start: Start,
    pub(crate) file: Option<PathBuf>,
    pub(crate) model: String,
    /// Path of the token that was made for the gateway, if one was.
    pub(crate) made_token: Option<PathBuf>,
    /// Description of the store.
    pub(crate) store: String,
}

impl Built {
    pub(crate) async fn build(opened: Opened, scope: Scope) -> Result<Self> {
        let Opened {
            start,
            file,
            fixed,
            hot,
            watcher,
            listener,
            mut home,
            skills,
            db,
            claim,
            machine,
            model,
        } = opened;
        let machine = Arc::new(machine);
        let setup = agent::setup(&hot, &machine, Vec::new())?;
        let is_guarded = scope == Scope::Local || !listener.local_addr()?.ip().is_loopback();
        let token = token(&fixed.gateway, is_guarded, &fixed.home, &machine)?;
        let is_made = fixed.gateway.token.is_none() && token.guards_all();
        let made_token = is_made.then(|| fixed.home.join(gateway::token::FILE));
        let client =
            Client::new(db.clone(), machine.folders.clone(), setup, skills, fixed.capacity.max_concurrency);
        client.settle_left().await.context("cannot settle what a process before this one left open")?;
        warn_of_small_budgets(&client).await;
        let (tasks, turns, stop) = (TaskTracker::new(), TaskTracker::new(), CancellationToken::new());
        let (inbox, arrivals) =
            Inbox::new(db.clone(), fixed.capacity.inbound_queue_maxsize, &tasks, stop.clone());
        let outbox = Outbox::new(db.clone(), inbox.clone(), hot.timing.outbox_max_age, turns.clone());
        let shared = Arc::new(Shared {
            client,
            inbox,
            outbox,
            accounts: accounts(scope.accounts(&hot), &hot)?,
            rules: RwLock::new(Arc::new(DispatchRules::new(&hot))),
            drain: CancellationToken::new(),
            tasks: turns,
            refusals: Refusals::default(),
            known: PairedPeople::read(&db).await.context("cannot read who is known")?,
            users: Users::read(&db).await.context("cannot read who is which user")?,
            links: Links::open(&fixed.home, fixed.gateway.public_url.clone())?,
            extended: CancellationToken::new(),
            reconnect_extensions: Notify::new(),
            home: fixed.home,
            db,
        });
        if scope == Scope::Whole {
            home.announce(&format!("http://{}", listener.local_addr()?))?;
        }
        let dispatcher = Dispatcher::new(shared.clone());
        let daemon = Daemon {
            _home: home,
            claim: Arc::new(claim.into()),
            dispossessed: CancellationToken::new(),
            lines: Arc::new(Connections::new(shared.clone(), dispatcher.clone(), stop.clone())),
            shared,
            watcher: Arc::new(watcher),
            extensions: Arc::default(),
            machine,
            stop,
            tasks,
        };
        let (auth, store) = (fixed.auth, crate::store::describe(&fixed.database.backend));
        Ok(Self {
            daemon,
            dispatcher,
            arrivals,
            listener,
            token,
            auth,
            hot,
            start,
            file,
            model,
            made_token,
            store,
        })
    }
}

/// Makes the accounts: the local one, and those that are configured. Nothing is connected yet.
fn accounts(wanted: &[AccountConfig], hot: &HotConfig) -> Result<Accounts> {
    let accounts = Accounts::default();
    let own = Arc::new(LocalChannel::default());
    accounts.put(local::ACCOUNT, Arc::new(Account::new(own, connections::own_policy(hot))));
    for account in wanted {
        let policy = connections::policy(hot, &account.name);
        accounts.put(&account.name, Arc::new(Account::new(connections::channel(account)?, policy)));
    }
    Ok(accounts)
}

/// Returns the token of the gateway: the operator's or its own. Every request requires it if the operator chose one, or
/// with `is_guarded`.
fn token(gateway: &GatewayConfig, is_guarded: bool, home: &Path, machine: &Machine) -> Result<GatewayToken> {
    let secret = match &gateway.token {
        Some(token) => token.clone(),
        None => gateway::token::kept(home)?,
    };
    let everywhere = is_guarded || gateway.token.is_some();
    Ok(GatewayToken { secret, everywhere, exposed: machine.exposed() })
}

/// Warns of budgets that refuse every answer.
async fn warn_of_small_budgets(client: &Client) {
    // Without a model there is no answer that could be refused.
    for used in client.small_budgets().await.unwrap_or_default() {
        tracing::warn!(key = %format!("budgets.{}", used.scope.as_str()), "found too small budget: {used}");
    }
}
