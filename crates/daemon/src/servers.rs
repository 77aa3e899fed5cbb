//! Connects the MCP servers in the background, so that a slow one does not delay the start. Their tools are available
//! from the next run on. An edit of the extensions file reconnects the servers whose entries changed.

use crate::logins::LoginFile;
use pudu_base::{BoxFuture, NamedPrompt, Tool, ToolServerReport, ToolServers};
use pudu_config::Start;
use pudu_config::extensions::{self, FileMark};
use pudu_mcp::{LoginVault, McpConfig, PassedServers, Servers, Skipped, ToolNote};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, watch::Receiver},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

/// Interval at which the file is checked for changes.
const FILE_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The MCP servers of a process. They are not connected at first.
pub struct Extensions {
    start: Start,
    /// Operators' logins at servers.
    logins: Arc<dyn LoginVault>,
    /// The configuration file, beside which the extensions file may be.
    beside: Option<PathBuf>,
    servers: Mutex<Option<Arc<Servers>>>,
    /// Notified when all servers are to be reconnected.
    again: Notify,
}

/// Why the tools may have changed.
enum Change {
    /// The file changed, or all servers are to be reconnected.
    Entries {
        /// Whether servers whose entries did not change reconnect as well.
        all: bool,
    },
    /// A server came back, or changed its tools.
    Tools,
}

impl Extensions {
    /// Creates the servers of a process with this configuration file, and the logins of a home.
    pub fn new(start: Start, beside: Option<PathBuf>, home: &Path) -> Self {
        let logins = Arc::new(LoginFile::new(home.to_owned()));
        Self { start, logins, beside, servers: Mutex::default(), again: Notify::new() }
    }

    fn mark(&self) -> Option<FileMark> {
        extensions::mark(&self.start, self.beside.as_deref())
    }

    fn load(&self) -> Result<Option<McpConfig>, String> {
        let loaded = extensions::load(&self.start, self.beside.as_deref());
        let loaded = loaded.map_err(|report| report.to_string())?;
        Ok(loaded.map(|config| config.with_logins(&self.logins)))
    }

    /// Returns the servers of these names, for agents that connect to servers themselves.
    pub fn pass(&self, names: &[String]) -> PassedServers {
        match self.load() {
            Ok(config) => config.unwrap_or_default().pass(names),
            Err(report) => {
                tracing::error!("failed to load extensions: {report}");
                let omitted =
                    vec!["no MCP server is available: the extensions file cannot be used".to_owned()];
                PassedServers { servers: Vec::new(), omitted }
            }
        }
    }

    /// Waits for a change.
    async fn change(&self, mark: &mut Option<FileMark>, changes: Option<&mut Receiver<u64>>) -> Change {
        let edited = async {
            let mut before = None;
            loop {
                sleep(FILE_POLL_INTERVAL).await;
                let now = self.mark();
                // An editor may not have finished writing.
                if now != *mark && before.as_ref() == Some(&now) {
                    *mark = now;
                    return;
                }
                before = Some(now);
            }
        };
        let changed = async {
            match changes {
                Some(changes) => drop(changes.changed().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = edited => Change::Entries { all: false },
            () = self.again.notified() => Change::Entries { all: true },
            () = changed => Change::Tools,
        }
    }

    /// Connects the servers, follows edits of the file, and reconnects all servers on request, until `stop` is
    /// cancelled. `count` makes their tools available to runs that begin afterwards; its argument is whether the tools
    /// may have changed.
    pub async fn keep_connected(&self, stop: &CancellationToken, count: impl Fn(bool)) {
        let mut mark = self.mark();
        let Some(any) = stop.run_until_cancelled(self.connect()).await else { return };
        let mut changes = self.current().map(|servers| servers.changes());
        count(any);
        let work = async {
            loop {
                let change = self.change(&mut mark, changes.as_mut()).await;
                if let Change::Entries { all } = change {
                    self.reload(all).await;
                }
                // Marked as seen before they are used, so that no later change is missed.
                changes = self.current().map(|servers| servers.changes());
                count(true);
            }
        };
        stop.run_until_cancelled(work).await;
    }

    /// Reads the file, if it exists, and starts the servers that it names. Returns whether there are any tools.
    pub async fn connect(&self) -> bool {
        self.reload(false).await;
        self.current().is_some_and(|servers| !servers.tools().is_empty())
    }

    /// Reads the file again. Servers whose entries did not change keep their sessions, unless `all` reconnect, and runs keep the
    /// sessions that they use. If the file cannot be used, all servers stay.
    async fn reload(&self, all: bool) {
        let config = match self.load() {
            Ok(config) => config,
            Err(report) => return tracing::error!("failed to load extensions: {report}"),
        };
        let servers = match (self.current(), &config) {
            (Some(servers), _) => servers,
            (None, None) => return,
            // Stored before they start, so that reports show which ones are starting.
            (None, Some(_)) => {
                let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
                Arc::clone(servers.get_or_insert_default())
            }
        };
        servers.replace(config.unwrap_or_default(), all).await;
    }

    fn current(&self) -> Option<Arc<Servers>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Orders the uses of the list of tools: a later use never has an older list.
    pub fn lock(&self) -> ExtensionTools<'_> {
        ExtensionTools(self.servers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stops the servers.
    pub async fn close(&self) {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(servers) = servers {
            servers.close().await;
        }
    }
}

impl ToolServers for Extensions {
    fn report(&self) -> Vec<ToolServerReport> {
        match self.current() {
            Some(servers) => servers.reports(),
            None => self.load().ok().flatten().map(|config| config.reports()).unwrap_or_default(),
        }
    }

    fn reconnect(&self) {
        self.again.notify_one();
    }

    fn test<'a>(&'a self, name: Option<&'a str>) -> BoxFuture<'a, Result<Vec<ToolServerReport>, String>> {
        Box::pin(async move {
            let config = self.load()?.unwrap_or_default();
            let config = match name {
                Some(name) => config.only(name),
                None => config,
            };
            let servers = Servers::connect(config).await;
            let reports = servers.reports();
            servers.close().await;
            Ok(reports)
        })
    }
}

/// Access to the servers' tools, for one user at a time.
pub struct ExtensionTools<'a>(MutexGuard<'a, Option<Arc<Servers>>>);

impl ExtensionTools<'_> {
    /// Returns all tools.
    pub fn all(&self) -> Vec<Arc<dyn Tool>> {
        self.0.as_ref().map(|servers| servers.tools()).unwrap_or_default()
    }

    /// Returns all prompts.
    pub fn prompts(&self) -> Vec<Arc<dyn NamedPrompt>> {
        self.0.as_ref().map(|servers| servers.prompts()).unwrap_or_default()
    }
}

/// Results of starting the servers for a test.
pub struct TriedServers {
    /// Number of their tools.
    pub tools: usize,
    /// The servers that could not be used.
    pub skipped: Vec<Skipped>,
    /// Problems with the tools of the other servers.
    pub notes: Vec<ToolNote>,
}

/// Starts the servers for a test. `None` if none are configured.
pub async fn try_servers(
    start: &Start,
    beside: Option<&Path>,
    home: &Path,
) -> Option<Result<TriedServers, String>> {
    let config = match extensions::load(start, beside) {
        Ok(config) => config.filter(|config| !config.is_empty())?,
        Err(report) => return Some(Err(report.to_string())),
    };
    let logins: Arc<dyn LoginVault> = Arc::new(LoginFile::new(home.to_owned()));
    let servers = Servers::connect(config.with_logins(&logins)).await;
    let (skipped, notes) = (servers.skipped(), servers.notes());
    let tried = TriedServers { tools: servers.tools().len(), skipped, notes };
    servers.close().await;
    Some(Ok(tried))
}
