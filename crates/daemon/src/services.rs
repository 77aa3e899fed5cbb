//! Creates the services for conversations, in a daemon or in a command that runs without one.

use crate::daemon::schedule_rules;
use anyhow::{Context, Result};
use pudu_agent::Agent;
use pudu_base::ToolServers;
use pudu_config::{AccountConfig, Fixed, HotConfig};
use pudu_dispatch::{
    Account, Accounts, DispatchRules, PairedPeople, Refusals, Shared,
    bus::{Inbox, InboxItem, Outbox},
    connections,
    links::Links,
    local::{self, LocalChannel},
};
use pudu_people::Users;
use pudu_runs::RunManager;
use pudu_schedules::Schedules;
use pudu_store::Db;
use std::{
    path::Path,
    sync::{Arc, RwLock},
};
use tokio::sync::mpsc::Receiver;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Services, and the values needed only by a daemon.
pub(crate) struct Services {
    pub(crate) shared: Arc<Shared>,
    pub(crate) arrivals: Receiver<InboxItem>,
    /// Their background tasks, which run until stopped.
    pub(crate) tasks: TaskTracker,
}

/// The parts that the services use.
pub(crate) struct ServiceParts {
    pub(crate) agent: Agent,
    pub(crate) db: Db,
    /// The servers of the extensions file.
    pub(crate) servers: Arc<dyn ToolServers>,
}

/// Creates the services, with the local account and the `wanted` ones. The key for links is in the folder `keys`.
pub(crate) async fn services(
    ServiceParts { agent, db, servers }: ServiceParts,
    fixed: &Fixed,
    hot: &HotConfig,
    wanted: &[AccountConfig],
    keys: &Path,
    stop: &CancellationToken,
) -> Result<Services> {
    let (tasks, turns) = (TaskTracker::new(), TaskTracker::new());
    let (inbox, arrivals) =
        Inbox::new(db.clone(), fixed.capacity.inbound_queue_maxsize, &tasks, stop.clone());
    let outbox = Outbox::new(db.clone(), inbox.clone(), hot.timing.outbox_max_age, turns.clone());
    let schedules = Arc::new(Schedules::new(db.clone()));
    schedules.set_rules(schedule_rules(&hot.scheduler));
    agent.use_schedules(schedules.clone());
    let shared = Shared {
        runs: RunManager::new(agent.clone(), fixed.capacity.max_concurrency),
        agent,
        inbox,
        outbox,
        accounts: accounts(wanted, hot)?,
        rules: RwLock::new(Arc::new(DispatchRules::new(hot))),
        drain: CancellationToken::new(),
        tasks: turns,
        refusals: Refusals::default(),
        known: PairedPeople::read(&db).await.context("cannot read the known users")?,
        users: Users::read(&db).await.context("cannot read the users' platform identities")?,
        links: Links::open(keys, fixed.gateway.public_url.clone())?,
        extended: CancellationToken::new(),
        schedules,
        servers,
        home: fixed.home.clone(),
        db,
    };
    Ok(Services { shared: Arc::new(shared), arrivals, tasks })
}

/// Creates the accounts: the local one and the configured ones. Nothing is connected yet.
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
