//! Keeps each bot connected as configured. Only an edited bot reconnects.

use crate::{
    Access, Account, AccountRules, Dispatcher, Shared,
    commands::{self, CommandSpec},
    local,
};
use anyhow::{Context, Result, bail};
use pudu_channels::{Channel, ChannelError, ChatCommand, EventSink};
use pudu_config::{self as config, AccountPolicy, FollowUpMode, HotConfig};
use pudu_texts::Language;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::{sync::Mutex, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// How long a connection may take to close before it is aborted.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The connections of the bots.
pub struct Connections {
    shared: Arc<Shared>,
    dispatcher: Dispatcher,
    /// Closes all connections.
    stop: CancellationToken,
    /// Serialises changes to the connections.
    book: Mutex<ConnectionTable>,
}

/// Connections of the bots, open and retired.
#[derive(Default)]
struct ConnectionTable {
    open: HashMap<String, AccountConnection>,
    /// Bots that are no longer configured. Active conversations still use them.
    retired: HashMap<String, Arc<Account>>,
    /// Bots that failed to connect, with the fingerprint of their settings, so that each failure is reported once.
    failed: HashMap<String, u64>,
}

/// Connection of one bot.
struct AccountConnection {
    /// Fingerprint of the settings that it was opened with.
    print: u64,
    listener: Listener,
}

/// A channel that listens.
struct Listener {
    name: String,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Connections {
    /// Creates the table without connections. `stop` closes them all.
    pub fn new(shared: Arc<Shared>, dispatcher: Dispatcher, stop: CancellationToken) -> Self {
        Self { shared, dispatcher, stop, book: Mutex::default() }
    }

    /// Starts listening on every bot. `wanted` is the configuration that the bots were created from.
    pub async fn open(&self, wanted: &[config::AccountConfig]) {
        let mut book = self.book.lock().await;
        for account in wanted {
            if let Some(known) = self.shared.accounts.get(&account.name) {
                book.open.insert(account.name.clone(), self.line(account, known.channel()));
            }
        }
    }

    /// Applies an edited configuration to the bots. A bot whose channel cannot be created stays unchanged.
    pub async fn follow(&self, hot: &HotConfig) {
        let mut book = self.book.lock().await;
        let is_configured = |name: &str| hot.accounts.iter().any(|account| account.name == *name);
        let removed: Vec<String> = book.open.keys().filter(|name| !is_configured(name)).cloned().collect();
        for name in removed {
            tracing::info!(account = name, "disconnecting bot that is no longer configured");
            self.retire(&mut book, &name);
            if let Some(line) = book.open.remove(&name) {
                line.listener.close().await;
            }
        }
        for account in &hot.accounts {
            let same = book.open.get(&account.name).is_some_and(|line| line.print == account.print);
            let reported = book.failed.get(&account.name) == Some(&account.print);
            if !same
                && !reported
                && let Err(error) = self.connect(&mut book, account, hot).await
            {
                book.failed.insert(account.name.clone(), account.print);
                tracing::error!(account = account.name, "failed to apply edited bot: {error:#}");
            }
        }
    }

    /// Reconnects one bot; the others are not affected.
    pub async fn restart(&self, name: &str, hot: &HotConfig) -> Result<()> {
        let mut book = self.book.lock().await;
        match hot.accounts.iter().find(|account| account.name == name) {
            Some(account) => self.connect(&mut book, account, hot).await,
            None => bail!("there is no bot `{name}`"),
        }
    }

    async fn connect(
        &self,
        book: &mut ConnectionTable,
        account: &config::AccountConfig,
        hot: &HotConfig,
    ) -> Result<()> {
        let name = &account.name;
        let channel = channel(account)?;
        // The old connection closes first: with two, platforms deliver each event to either at random.
        if let Some(line) = book.open.remove(name) {
            line.listener.close().await;
        }
        match self.shared.accounts.get(name) {
            Some(known) => known.set_channel(channel.clone()),
            None => self.shared.accounts.put(name, engage(book, name, channel.clone(), hot)),
        }
        book.failed.remove(name);
        tracing::info!(account = name, "connecting");
        book.open.insert(name.clone(), self.line(account, channel));
        self.dispatcher.welcome_back(name).await;
        Ok(())
    }

    /// Retires a bot: it admits no further messages.
    fn retire(&self, book: &mut ConnectionTable, name: &str) {
        let Some(account) = self.shared.accounts.get(name) else { return };
        self.shared.accounts.remove(name);
        account.close();
        book.retired.insert(name.to_owned(), account);
    }

    fn line(&self, account: &config::AccountConfig, channel: Arc<dyn Channel>) -> AccountConnection {
        AccountConnection { print: account.print, listener: self.listen(channel) }
    }

    fn listen(&self, channel: Arc<dyn Channel>) -> Listener {
        let (name, stop) = (channel.account().to_owned(), self.stop.child_token());
        let span = tracing::info_span!("channel", account = name);
        let task = tokio::spawn(listen(channel, self.shared.clone(), stop.clone()).instrument(span));
        Listener { name, stop, task }
    }

    /// Closes all connections and waits until they are closed.
    pub async fn close(&self) {
        let ConnectionTable { open, .. } = std::mem::take(&mut *self.book.lock().await);
        let open = open.into_values().map(|line| line.listener);
        futures_util::future::join_all(open.map(Listener::close)).await;
    }
}

impl Listener {
    async fn close(mut self) {
        self.stop.cancel();
        if timeout(DISCONNECT_TIMEOUT, &mut self.task).await.is_err() {
            tracing::warn!(account = self.name, "aborted connection that did not close");
            self.task.abort();
        }
    }
}

async fn listen(channel: Arc<dyn Channel>, shared: Arc<Shared>, stop: CancellationToken) {
    let account = channel.account().to_owned();
    match channel.listen(&*shared as &dyn EventSink, stop).await {
        Ok(()) => tracing::debug!(account, "stopped channel"),
        Err(error @ ChannelError::Auth(_)) => {
            tracing::error!(account, %error, "gave up channel: check its credentials (pudu doctor)");
        }
        Err(error) => tracing::error!(account, %error, "gave up channel (pudu doctor)"),
    }
}

/// Returns the retired bot of this name, or creates a new one.
fn engage(
    book: &mut ConnectionTable,
    name: &str,
    channel: Arc<dyn Channel>,
    hot: &HotConfig,
) -> Arc<Account> {
    let Some(account) = book.retired.remove(name) else {
        return Arc::new(Account::new(channel, policy(hot, name)));
    };
    account.set_channel(channel);
    account.set_policy(policy(hot, name));
    account
}

/// Creates a bot's channel. Rejects malformed credentials, like `pudu config check`.
pub fn channel(account: &config::AccountConfig) -> Result<Arc<dyn Channel>> {
    let name = &account.name;
    if let Some((key, what, help)) = account.platform.doubts().first() {
        bail!("channels.{name}.{key}: {what}; {help}");
    }
    account.platform.channel(name, menu(account.language)).with_context(|| format!("channels.{name}"))
}

/// Returns the commands for a platform's menu: in the bot's language, or else in the language of each person.
fn menu(language: Option<Language>) -> config::Menu {
    let usual = language.unwrap_or_default();
    let command = |row: &CommandSpec| ChatCommand {
        name: row.name.to_owned(),
        argument: (row.argument)(usual).to_owned(),
        help: (row.about)(usual).to_owned(),
        // Set even if the bot has a language, to replace menus from before it had one.
        translations: Language::ALL
            .into_iter()
            .map(|own| (own, (row.about)(language.unwrap_or(own)).to_owned()))
            .filter(|(own, _)| *own != Language::default())
            .collect(),
    };
    commands::TABLE.iter().map(command).collect()
}

/// Returns the rules of a bot.
pub fn policy(hot: &HotConfig, name: &str) -> AccountRules {
    let open = |configured: &AccountPolicy| {
        let access = Access {
            users: configured.allowed_users.clone(),
            chats: configured.allowed_chats.clone(),
            pairing: configured.pairing,
        };
        let (session, approvers) = (configured.session.clone(), configured.approvers.clone());
        let (agent_choice, timezone) = (configured.agent_choice, configured.timezone.clone());
        let max_steps = hot.runs.max_recursion_limit;
        AccountRules {
            access,
            mode: configured.follow_ups,
            session,
            approvers,
            agent_choice,
            timezone,
            max_steps,
            language: configured.language,
            context: configured.context,
        }
    };
    hot.policies.get(name).map_or_else(AccountRules::closed, open)
}

/// Returns the rules of the page and the terminal.
pub fn own_policy(hot: &HotConfig) -> AccountRules {
    let (timezone, language) = (hot.timing.timezone.clone(), hot.timing.language);
    AccountRules { timezone, language, ..AccountRules::open(Access::everyone(), FollowUpMode::Queue) }
}

/// Applies edited rules. They take effect with the next message.
pub fn apply_policies(shared: &Shared, hot: &HotConfig) {
    for (name, account) in shared.accounts.all() {
        match hot.policies.contains_key(&name) {
            true => account.set_policy(policy(hot, &name)),
            false if name == local::ACCOUNT => account.set_policy(own_policy(hot)),
            // Its connection ends soon.
            false => account.close(),
        }
    }
}
