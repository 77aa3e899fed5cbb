//! Builds everything from the configuration, runs it, and takes it down in order.

use crate::{
    agent,
    bus::{Inbox, InboxItem, Outbox},
    clock,
    config::{self, AuthConfig, CLOSING, Config, LoadedConfig, Start, Watcher},
    connections::{self, Connections},
    discover,
    dispatch::{Account, Accounts, DispatchRules, Dispatcher, PairedPeople, Refusals, Shared, Users},
    extensions::{self, Extensions},
    gateway::{self, GatewayState, GatewayToken, SignIn},
    home::Home,
    links::Links,
    local::{self, LocalChannel},
    machine::{Exposed, Machine},
    opened, sent, skills,
};
use anyhow::{Context, Result};
use pudu_channels::Channel;
use pudu_client::{
    Client, CutRun, Pruned,
    store::{Claim, crash},
};
use std::{
    io::ErrorKind,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};
use tokio::{
    net::TcpListener,
    sync::{Notify, mpsc::Receiver},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Housekeeping happens this often.
const TRIM: Duration = Duration::from_secs(30);
/// How often the configuration file is checked for changes.
const CONFIG_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Old rows are deleted this often.
const SWEEP: Duration = Duration::from_secs(15 * 60);
/// So long do runs that a restart cut wait for the tools of extensions.
const EXTENSIONS_TIMEOUT: Duration = Duration::from_secs(20);
/// How long channels and HTTP may take to close after the last turn.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// A daemon that runs.
pub(crate) struct Daemon {
    pub(crate) shared: Arc<Shared>,
    pub(crate) local: Arc<LocalChannel>,
    lines: Arc<Connections>,
    watcher: Arc<Watcher>,
    extensions: Arc<Extensions>,
    machine: Arc<Machine>,
    /// Keeps other processes out of the home.
    _home: Home,
    /// Keeps other processes out of the database.
    claim: Arc<tokio::sync::Mutex<Claim>>,
    /// Another process has the database.
    dispossessed: CancellationToken,
    /// Stops channels and HTTP.
    stop: CancellationToken,
    /// Channels, HTTP, housekeeping.
    tasks: TaskTracker,
}

/// Extent of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everything.
    Whole,
    /// The local chat only: no platform, no HTTP.
    Local,
}

/// Message of the daemon to the person who started it.
pub(crate) struct Greeting {
    /// Address of the page.
    pub(crate) address: Option<SocketAddr>,
    /// Which model answers, and why that one.
    pub(crate) model: String,
    /// Path of the token that was made for the gateway, if one was.
    pub(crate) token: Option<PathBuf>,
    /// Description of the store.
    pub(crate) store: String,
    /// Description of the sandbox.
    pub(crate) sandbox: String,
    /// The accounts.
    pub(crate) accounts: Vec<String>,
    /// Accounts that are open to everyone.
    pub(crate) open: Vec<String>,
}

impl Daemon {
    /// Builds and starts a daemon.
    pub(crate) async fn start(start: Start, loaded: LoadedConfig, scope: Scope) -> Result<(Self, Greeting)> {
        arm(&start);
        let watcher = Arc::new(Watcher::new(start.clone(), &loaded));
        let file = loaded.report.file.clone();
        for report in extensions::check(&start, &loaded) {
            if report.has_errors() {
                return Err(anyhow::Error::msg(report));
            }
            report.lines().for_each(|(_, line)| tracing::warn!("{line}"));
        }
        let Config { fixed, hot } = loaded.config;
        let listener = match scope {
            Scope::Whole => Some(listen(&fixed.gateway).await?),
            Scope::Local => None,
        };
        let mut home = Home::take(&fixed.home)?;
        let skills = skills::open(&start, &fixed, file.as_deref())?;
        let (db, (machine, model)) = tokio::join!(
            opened::open(&fixed.database, &fixed.home),
            Machine::look(&fixed.home, &fixed.provider, &hot)
        );
        let (db, machine) = (db?, Arc::new(machine));
        let claim = db.claim().await.context("cannot have the database alone")?;
        db.abandon_audit_entries(clock::now()).await.context("cannot write into the store")?;
        machine.tell(&hot);
        if scope == Scope::Whole && hot.models.is_empty() && machine.models.is_empty() {
            discover::tell_none();
        }
        skills::tidy(&skills);
        skills::unknown(&hot.subagents, &skills.read())
            .iter()
            .for_each(|line| tracing::warn!("found unknown skill: {line}"));
        let setup = agent::setup(&hot, &machine, Vec::new())?;
        let token = token(&fixed.gateway, listener.as_ref(), &fixed.home, machine.exposed())?;
        let made = token.as_ref().is_some_and(GatewayToken::guards_all) && fixed.gateway.token.is_none();
        let made = made.then(|| fixed.home.join(gateway::token::FILE));
        let client =
            Client::new(db.clone(), machine.folders.clone(), setup, skills, fixed.capacity.max_concurrency);
        client.settle_left().await.context("cannot settle what a process before this one left open")?;
        tell_small_budgets(&client).await;
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let (inbox, arrivals) =
            Inbox::new(db.clone(), fixed.capacity.inbound_queue_maxsize, &tasks, stop.clone());
        let local = Arc::new(LocalChannel::new(inbox.clone()));
        let wanted = if scope == Scope::Whole { hot.accounts.as_slice() } else { &[] };
        let accounts = accounts(wanted, &hot, &local)?;
        let links = Links::open(&fixed.home, fixed.gateway.public_url.clone())?;
        let known = PairedPeople::read(&db).await.context("cannot read who is known")?;
        let users = Users::read(&db).await.context("cannot read who is which user")?;
        let turns = TaskTracker::new();
        let outbox = Outbox::new(db.clone(), inbox.clone(), hot.timing.outbox_max_age, turns.clone());
        let store = opened::store_words(&fixed.database.backend);
        let shared = Arc::new(Shared {
            db,
            client,
            inbox,
            outbox,
            home: fixed.home,
            accounts,
            rules: RwLock::new(Arc::new(DispatchRules::new(&hot))),
            drain: CancellationToken::new(),
            tasks: turns,
            refusals: Refusals::default(),
            known,
            users,
            links,
            extended: CancellationToken::new(),
            reconnect_extensions: Notify::new(),
        });
        if let Some(listener) = &listener {
            home.announce(&format!("http://{}", listener.local_addr()?))?;
        }
        let dispatcher = Dispatcher::new(shared.clone());
        let lines = Arc::new(Connections::new(shared.clone(), dispatcher.clone(), stop.clone()));
        let extensions = Arc::default();
        let daemon = Self {
            _home: home,
            claim: Arc::new(claim.into()),
            dispossessed: CancellationToken::new(),
            shared,
            local,
            lines,
            watcher,
            extensions,
            machine: machine.clone(),
            stop,
            tasks,
        };
        // Before anything works on them.
        daemon.shared.client.adopt_threads().await;
        daemon.recover(&dispatcher).await?;
        let address = match listener.zip(token) {
            Some((listener, token)) => Some(daemon.serve(listener, token, &fixed.auth)?),
            None => None,
        };
        daemon.lines.open(wanted, daemon.local.clone()).await;
        daemon.extend(start, file, machine.clone());
        daemon.dispatch(dispatcher, arrivals, machine.clone(), scope);
        daemon.keep_house();
        let accounts = wanted.iter().map(|account| account.name.clone()).collect();
        let sandbox = machine.words(&daemon.watcher.current());
        let open = if scope == Scope::Whole { hot.open_to_the_world() } else { Vec::new() };
        for account in &open {
            tracing::warn!(account, "opened account to everyone: {CLOSING}");
        }
        let open = open.into_iter().map(str::to_owned).collect();
        Ok((daemon, Greeting { address, model, token: made, store, sandbox, accounts, open }))
    }

    /// Takes up what the process before left. What was at work on a thread has its place there before what waited.
    async fn recover(&self, dispatcher: &Dispatcher) -> Result<()> {
        let (client, extended) = (&self.shared.client, &self.shared.extended);
        let cut = gateway::cut_runs(&self.shared).await.context("cannot read the runs of clients")?;
        let (begun, waiting): (Vec<_>, Vec<_>) = cut.into_iter().partition(CutRun::has_begun);
        begun.into_iter().for_each(|run| client.resume(run, extended.clone()));
        dispatcher.recover().await?;
        waiting.into_iter().for_each(|run| client.resume(run, extended.clone()));
        Ok(())
    }

    fn serve(&self, listener: TcpListener, token: GatewayToken, auth: &AuthConfig) -> Result<SocketAddr> {
        let bound = listener.local_addr()?;
        let (shared, local) = (self.shared.clone(), self.local.clone());
        let gateway = GatewayState::new(
            shared,
            local,
            self.lines.clone(),
            self.watcher.clone(),
            bound,
            (token, SignIn::open(auth, &self.shared.home)?),
            self.stop.clone(),
        );
        self.tasks.spawn(async move { gateway.serve(listener).await });
        Ok(bound)
    }

    /// Takes what arrives, and follows edits of the configuration: each message counts with the newest one,
    /// and accounts that were edited connect anew.
    fn dispatch(
        &self,
        dispatcher: Dispatcher,
        arrivals: Receiver<InboxItem>,
        machine: Arc<Machine>,
        scope: Scope,
    ) {
        let (shared, watcher, extensions) =
            (self.shared.clone(), self.watcher.clone(), self.extensions.clone());
        let last = Mutex::new(watcher.current());
        let refresh = Arc::new(move || {
            let hot = watcher.current();
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if !Arc::ptr_eq(&last, &hot) {
                apply(&shared, &hot, &machine, &extensions);
                *last = hot.clone();
            }
            hot
        });
        let (lines, stop, look) = (self.lines.clone(), self.stop.clone(), refresh.clone());
        self.tasks.spawn(dispatcher.run(arrivals, move || drop(refresh())));
        if scope == Scope::Whole {
            self.tasks.spawn(async move {
                while stop.run_until_cancelled(tokio::time::sleep(CONFIG_POLL_INTERVAL)).await.is_some() {
                    lines.follow(&look()).await;
                }
            });
        }
    }

    /// Starts the MCP servers, and anew when asked to; their tools are there from the next run after that, and for what a
    /// restart cut, unless they are slow.
    fn extend(&self, start: Start, file: Option<PathBuf>, machine: Arc<Machine>) {
        let (shared, watcher, extensions) =
            (self.shared.clone(), self.watcher.clone(), self.extensions.clone());
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let count = |is_new: bool| {
                if is_new {
                    apply(&shared, &watcher.current(), &machine, &extensions);
                    // Said when it is true for whoever reads it: from here on runs have the tools.
                    tracing::info!(tools = extensions.lock().all().len(), "connected MCP servers");
                }
                shared.extended.cancel();
            };
            let place = (&start, file.as_deref());
            extensions.keep_connected(place, &shared.reconnect_extensions, &stop, count).await;
            shared.extended.cancel();
        });
        let extended = self.shared.extended.clone();
        self.tasks.spawn(async move {
            if tokio::time::timeout(EXTENSIONS_TIMEOUT, extended.cancelled()).await.is_err() {
                tracing::warn!("continuing without slow MCP servers");
                extended.cancel();
            }
        });
    }

    /// Forgets what nobody uses and deletes what is old.
    fn keep_house(&self) {
        let (machine, stop) = (self.machine.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            stop.run_until_cancelled(machine.keep()).await;
        });
        let (claim, stop, dispossessed) = (self.claim.clone(), self.stop.clone(), self.dispossessed.clone());
        self.tasks.spawn(async move {
            let keep = async { claim.lock().await.keep().await };
            if let Some(error) = stop.run_until_cancelled(keep).await {
                tracing::error!(%error, "lost the database; stopping at once");
                dispossessed.cancel();
            }
        });
        let (shared, stop) = (self.shared.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            let mut trim = tokio::time::interval(TRIM);
            while stop.run_until_cancelled(trim.tick()).await.is_some() {
                shared.client.trim();
                shared.client.adopt_threads().await;
                shared.inbox.sweep().await;
            }
        });
        let (shared, stop) = (self.shared.clone(), self.stop.clone());
        self.tasks.spawn(async move { shared.client.learn(stop).await });
        let (shared, watcher, stop) = (self.shared.clone(), self.watcher.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            let mut tick = tokio::time::interval(SWEEP);
            let sweeps = async {
                loop {
                    tick.tick().await;
                    sweep(&shared, &watcher.current()).await;
                }
            };
            stop.run_until_cancelled(sweeps).await;
        });
    }

    /// Takes the daemon down: no new turns, those at work get their grace, the rest goes on after a restart. Returns
    /// how many runs that is.
    pub(crate) async fn drain(&self) -> usize {
        let grace = self.watcher.current().timing.shutdown_grace_period;
        self.finish_turns(grace).await;
        self.shut_down().await
    }

    /// Takes the daemon down likewise, once what can be learnt from conversations that wait was learnt. Nobody waits for
    /// that at a terminal, whose next chat learns it.
    pub(crate) async fn learn_and_drain(&self) -> usize {
        let grace = self.watcher.current().timing.shutdown_grace_period;
        if self.finish_turns(grace).await && !grace.is_zero() {
            self.read_last().await;
        }
        self.shut_down().await
    }

    /// Waits until another process has the database, and then stops without any grace: whatever is at work here is at
    /// work there, too.
    pub(crate) async fn until_dispossessed(&self) {
        self.dispossessed.cancelled().await;
        self.finish_turns(Duration::ZERO).await;
        self.shut_down().await;
    }

    /// Waits until nothing can be stored any more, whatever is done: a new process can.
    pub(crate) async fn until_store_broke(&self) {
        self.shared.db.until_broken().await;
    }

    /// Lets no turn begin, and waits so long for those at work. Returns whether all are over.
    async fn finish_turns(&self, grace: Duration) -> bool {
        self.shared.drain.cancel();
        self.shared.tasks.close();
        let finished = tokio::time::timeout(grace, self.shared.tasks.wait()).await.is_ok();
        if !finished {
            let runs = self.shared.client.running();
            tracing::warn!(runs, ?grace, "ended drain: what is left goes on after a restart");
        }
        finished
    }

    async fn shut_down(&self) -> usize {
        let left = self.shared.client.running();
        // What a run would say of what is taken from it below would be wrong.
        let runs = self.shared.client.runs().into_iter().map(|(run, _)| run).collect();
        tokio::time::timeout(SHUTDOWN_TIMEOUT, self.shared.client.suspend()).await.ok();
        let db = self.shared.db.within(SHUTDOWN_TIMEOUT);
        for noted in [db.suspend_turns(runs).await, db.suspend_runs().await] {
            if let Err(error) = noted {
                tracing::warn!(%error, "failed to note that runs were stopped in order");
            }
        }
        self.stop.cancel();
        self.lines.close().await;
        self.tasks.close();
        tokio::time::timeout(SHUTDOWN_TIMEOUT, self.tasks.wait()).await.ok();
        tokio::time::timeout(SHUTDOWN_TIMEOUT, self.extensions.close()).await.ok();
        self.machine.close().await;
        self.shared.db.close().await;
        left
    }
}

impl Daemon {
    /// Reads the conversations that wait, as long as that may take. What is left is read after the next start.
    async fn read_last(&self) {
        let Some(rules) = &self.watcher.current().memory.rules else { return };
        let reading = self.shared.client.read_waiting();
        if tokio::time::timeout(rules.last_reading, reading).await.is_err() {
            tracing::info!("left conversations to learn from for the next start");
        }
    }
}

/// Deletes what is old or too much.
async fn sweep(shared: &Shared, hot: &config::HotConfig) {
    sent::sweep(&shared.home).await;
    match shared.db.sweep(clock::now()).await {
        Ok(swept) => tracing::debug!(?swept, "deleted old rows"),
        Err(error) => tracing::warn!(%error, "failed to delete old rows"),
    }
    if let Err(error) = shared.expire_buffered().await {
        tracing::warn!(%error, "failed to delete old messages of groups");
    }
    match shared.client.storage().prune(&hot.retention, clock::now()).await {
        Ok(pruned) if pruned != Pruned::default() => gateway::storage::report(&pruned),
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "failed to delete what `retention` does not keep"),
    }
}

/// Warns of budgets that refuse every answer.
async fn tell_small_budgets(client: &Client) {
    // Without a model there is no answer that could be refused.
    for used in client.small_budgets().await.unwrap_or_default() {
        tracing::warn!(key = %format!("budgets.{}", used.scope.as_str()), "found too small budget: {used}");
    }
}

/// Makes an edited configuration count from the next message on.
fn apply(shared: &Shared, hot: &config::HotConfig, machine: &Machine, extensions: &Extensions) {
    // Whoever comes later has seen what the one before has seen, and more.
    let tools = extensions.lock();
    match agent::setup(hot, machine, tools.all()) {
        Ok(setup) => shared.client.configure(setup),
        Err(error) => tracing::error!(%error, "refused edited models, those before stay"),
    }
    shared.set_rules(DispatchRules::new(hot));
    shared.outbox.set_oldest(hot.timing.outbox_max_age);
    connections::apply_policies(shared, hot);
}

/// Makes the accounts: the local one, and those that are configured. Nothing is connected yet.
fn accounts(
    wanted: &[config::AccountConfig],
    hot: &config::HotConfig,
    local: &Arc<LocalChannel>,
) -> Result<Accounts> {
    let accounts = Accounts::default();
    let own = local.clone() as Arc<dyn Channel>;
    accounts.put(local::ACCOUNT, Arc::new(Account::new(own, connections::own_policy(hot))));
    for account in wanted {
        let policy = connections::policy(hot, &account.name);
        accounts.put(&account.name, Arc::new(Account::new(connections::channel(account)?, policy)));
    }
    Ok(accounts)
}

/// Returns the token that the gateway asks for: the operator's or one of its own, and everywhere where one was
/// chosen or other machines can reach it.
fn token(
    gateway: &config::GatewayConfig,
    listener: Option<&TcpListener>,
    home: &Path,
    exposed: Exposed,
) -> Result<Option<GatewayToken>> {
    let Some(listener) = listener else { return Ok(None) };
    let open = !listener.local_addr()?.ip().is_loopback();
    let secret = match &gateway.token {
        Some(token) => token.clone(),
        None => gateway::token::kept(home)?,
    };
    Ok(Some(GatewayToken { secret, everywhere: open || gateway.token.is_some(), exposed }))
}

async fn listen(gateway: &config::GatewayConfig) -> Result<TcpListener> {
    let (host, port) = (gateway.host.as_str(), gateway.port);
    TcpListener::bind((host, port)).await.map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::AddrInUse => "; is pudu running already? `--bind :PORT` takes another port",
            _ => "",
        };
        anyhow::Error::new(error).context(format!("cannot listen on {host}:{port}{hint}"))
    })
}

/// Arms the crash point that a test asks for. Does nothing in a release build.
pub(crate) fn arm(start: &Start) {
    let Some(wanted) = start.env.get("PUDU_CRASH_AT").filter(|wanted| !wanted.is_empty()) else { return };
    let (name, nth) = wanted.rsplit_once('#').unwrap_or((wanted, "1"));
    crash::arm(name, nth.parse().unwrap_or(1));
}
