//! Tools from MCP servers, as `extensions_config.json` names them, and where that file is: skills are switched
//! there too.
//!
//! Servers start in the background: a slow one must not hold the daemon up. Their tools are there from the
//! next run on.

use crate::config::{HotConfig, LoadedConfig, Pos, Problem, Report, Start, is_own_tool, nearest, trust};
use pudu_client::{
    base::Tool,
    mcp::{McpConfig, Servers, Skipped, ToolNote, UnknownKey, is_tool_name, tool_name_part},
};
use serde_json::{Map, Value};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The file's names, newest first.
const NAMES: [&str; 2] = ["extensions_config.json", "mcp_config.json"];

/// The MCP servers of the daemon.
#[derive(Default)]
pub(crate) struct Extensions {
    servers: Mutex<Option<Servers>>,
}

impl Extensions {
    /// Connects the servers, and anew whenever `again` rings, until `stop`. `count` makes their tools count for runs that
    /// begin from then on; it is told whether that is needed.
    pub(crate) async fn keep_connected(
        &self,
        (start, beside): (&Start, Option<&Path>),
        again: &Notify,
        stop: &CancellationToken,
        count: impl Fn(bool),
    ) {
        let mut is_first = true;
        while let Some(connected) = stop.run_until_cancelled(self.connect(start, beside)).await {
            count(connected.any || !is_first);
            // Runs that began before lose the tools that they have of these.
            connected.close_former().await;
            is_first = false;
            if stop.run_until_cancelled(again.notified()).await.is_none() {
                return;
            }
        }
    }

    /// Reads the file, if there is one, and starts the servers that it names, in place of those before. Where the file
    /// cannot be used those before stay.
    pub(crate) async fn connect(&self, start: &Start, beside: Option<&Path>) -> ConnectedServers {
        let config = match find(start, beside).map(|path| read(&path, start)) {
            None => None,
            Some(Ok(config)) => Some(config).filter(|config| !config.is_empty()),
            Some(Err(report)) => {
                tracing::error!("failed to load extensions: {report}");
                return ConnectedServers { any: false, former: None };
            }
        };
        let servers = match config {
            Some(config) => Some(Servers::connect(config).await),
            None => None,
        };
        let any = servers.as_ref().is_some_and(|servers| !servers.tools().is_empty());
        let mut kept = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        ConnectedServers { any, former: std::mem::replace(&mut *kept, servers) }
    }

    /// Holds the servers' tools still while something is made of them.
    pub(crate) fn lock(&self) -> ExtensionTools<'_> {
        ExtensionTools(self.servers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the servers.
    pub(crate) async fn close(&self) {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(servers) = servers {
            servers.close().await;
        }
    }
}

/// Outcome of connecting.
pub(crate) struct ConnectedServers {
    /// Whether there are tools.
    pub(crate) any: bool,
    /// The servers before.
    former: Option<Servers>,
}

impl ConnectedServers {
    /// Ends the servers that were there before, once nobody is given their tools any more.
    pub(crate) async fn close_former(self) {
        if let Some(former) = self.former {
            former.close().await;
        }
    }
}

/// The servers' tools, which do not change as long as this lives.
pub(crate) struct ExtensionTools<'a>(MutexGuard<'a, Option<Servers>>);

impl ExtensionTools<'_> {
    /// Returns all tools.
    pub(crate) fn all(&self) -> Vec<Arc<dyn Tool>> {
        self.0.as_ref().map(|servers| servers.tools().to_vec()).unwrap_or_default()
    }
}

/// Checks the file, if there is one: what it says must not be left out in silence. Then the tools that
/// the configuration guards, which the file alone can explain. Returns what is wrong with each of both.
pub(crate) fn check(start: &Start, loaded: &LoadedConfig) -> Vec<Report> {
    let beside = loaded.report.file.as_deref();
    let (mut reports, mut servers) = (Vec::new(), Some(Vec::new()));
    if let Some(path) = find(start, beside) {
        match read(&path, start) {
            Ok(config) => {
                // A server without prefixes may have a tool of any name.
                servers = (!config.has_bare_names()).then(|| config.server_names().to_vec());
                let unknown = config.unknown_keys().iter().map(unknown).collect();
                reports.push(Report::new(Some(path), unknown));
            }
            // Which tools there will be is not known then.
            Err(report) => return vec![report],
        }
    }
    let servers_tool = |name: &str, server: &String| {
        name.strip_prefix(&tool_name_part(server)).is_some_and(|rest| rest.starts_with('_'))
    };
    let known = |name: &String| match &servers {
        // A server's own name of a tool would guard nothing: models call the tool by another one.
        _ if !is_tool_name(name) => false,
        Some(servers) => is_own_tool(name) || servers.iter().any(|server| servers_tool(name, server)),
        None => true,
    };
    let wrong = guarded(&loaded.config.hot).filter(|(_, _, name)| !known(name)).map(|(key, effect, name)| {
        let help = match is_tool_name(name) {
            true => "name a tool of pudu's, or SERVER_TOOL of a server in extensions_config.json; only servers with \
                     `\"tool_name_prefix\": false` have others"
                .to_owned(),
            false => format!(
                "names have letters, digits, `_` and `-`, 64 at most, and other characters of a server's name of a tool \
                 become `_`: \"{}\", perhaps",
                tool_name_part(name)
            ),
        };
        Problem::error(loaded.place(key), key, format!("there is no tool \"{name}\": {effect}"), help)
    });
    reports.push(Report::new(loaded.report.file.clone(), wrong.collect()));
    reports
}

/// Returns the tools that the configuration guards, with the key that names each and the effect if there is none.
fn guarded(hot: &HotConfig) -> impl Iterator<Item = (&'static str, &'static str, &String)> {
    let asked =
        hot.approvals.tools.iter().map(|name| ("approvals.tools", "its calls would be made unasked", name));
    let list = hot.guardrails.iter().filter_map(|guardrails| guardrails.allowlist.as_ref());
    let allowed = list.clone().flat_map(|list| list.allowed.iter().flatten());
    let allowed =
        allowed.map(|name| ("guardrails.provider.config.allowed_tools", "this would allow nothing", name));
    let denied = list.flat_map(|list| &list.denied);
    let denied =
        denied.map(|name| ("guardrails.provider.config.denied_tools", "this would deny nothing", name));
    asked.chain(allowed).chain(denied)
}

fn unknown(UnknownKey { path, key, known }: &UnknownKey) -> Problem {
    let help = match nearest(key, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "remove it, or see docs/extensions.md for the keys there are".to_owned(),
    };
    Problem::warning(None, path, "pudu does not know this key", help)
}

/// Servers that were started for a moment.
pub(crate) struct TriedServers {
    /// Number of their tools.
    pub(crate) tools: usize,
    /// The servers that are not there.
    pub(crate) skipped: Vec<Skipped>,
    /// Everything odd about the tools of the others.
    pub(crate) notes: Vec<ToolNote>,
}

/// Starts the servers for a moment. `None` if there are no servers.
pub(crate) async fn try_servers(
    start: &Start,
    beside: Option<&Path>,
) -> Option<Result<TriedServers, String>> {
    let config = match read(&find(start, beside)?, start) {
        Ok(config) if config.is_empty() => return None,
        Ok(config) => config,
        Err(report) => return Some(Err(report.to_string())),
    };
    let servers = Servers::connect(config).await;
    let (skipped, notes) = (servers.skipped().to_vec(), servers.notes().to_vec());
    let tried = TriedServers { tools: servers.tools().len(), skipped, notes };
    servers.close().await;
    Some(Ok(tried))
}

/// Returns where the file is, or is to be made: in the home, which can be written wherever pudu runs.
pub(crate) fn place(start: &Start, beside: Option<&Path>) -> PathBuf {
    find(start, beside).unwrap_or_else(|| start.home().join(NAMES[0]))
}

/// Finds the file: the one that is named, or the one beside the configuration, here, one folder above, or in
/// the home.
fn find(start: &Start, beside: Option<&Path>) -> Option<PathBuf> {
    if let Some((_, named)) = start.env.first(&["PUDU_EXTENSIONS_CONFIG", "DEER_FLOW_EXTENSIONS_CONFIG_PATH"])
    {
        return Some(start.dir.join(named));
    }
    let folders = beside.and_then(Path::parent).map(Path::to_owned).into_iter().chain([
        start.dir.clone(),
        start.dir.join(".."),
        start.home(),
    ]);
    folders.flat_map(|folder| NAMES.map(|name| folder.join(name))).find(|path| path.is_file())
}

/// Reads the file. One that names programs has to be the operator's word. They are watched over by this very program.
fn read(path: &Path, start: &Start) -> Result<McpConfig, Report> {
    let config = parse(&text(path)?, path, start)?.reserving(is_own_tool);
    // Also where another version has been installed over it since.
    let own = Path::new("/proc/self/exe");
    Ok(if own.exists() { config.guarded_by(own) } else { config })
}

/// Checks whether a file that is to be copied can be read; the copy is the operator's own, whoever has the file.
///
/// # Errors
/// Returns what is wrong with it.
pub(crate) fn check_copied(path: &Path, start: &Start) -> Result<(), Report> {
    parse_foreign(&text(path)?, path, start).map(drop)
}

/// Checks servers that are to be written into the file.
///
/// # Errors
/// Returns what is wrong with them, without their values.
pub(crate) fn check_servers(servers: &Map<String, Value>, start: &Start) -> Result<(), String> {
    let text = serde_json::json!({ "mcpServers": servers }).to_string();
    let checked = McpConfig::parse(&text, &start.env.all().collect());
    checked.map(drop).map_err(|error| format!("{}: {}", error.key, error.hint))
}

fn text(path: &Path) -> Result<String, Report> {
    std::fs::read_to_string(path).map_err(|error| {
        wrong(path, Problem::error(None, "", error.to_string(), "make it readable, or take it away"))
    })
}

fn parse_foreign(text: &str, path: &Path, start: &Start) -> Result<McpConfig, Report> {
    McpConfig::parse(text, &start.env.all().collect()).map_err(|error| {
        let at = Pos { line: error.line as u64, column: error.column as u64 };
        wrong(
            path,
            Problem::error(at, &error.key, error.hint, "mend it (docs/extensions.md), or take the file away"),
        )
    })
}

fn parse(text: &str, path: &Path, start: &Start) -> Result<McpConfig, Report> {
    let config = parse_foreign(text, path, start)?;
    if config.starts_programs() {
        trust::check(path).map_err(|error| wrong(path, Problem::error(None, "", error.to_string(), "")))?;
    }
    Ok(config)
}

fn wrong(path: &Path, problem: Problem) -> Report {
    Report::new(Some(path.to_owned()), vec![problem])
}

/// Refuses to have the file changed where it names programs and is not the operator's: written anew it would be.
///
/// # Errors
/// Returns its owner and the remedy.
pub(crate) fn may_be_changed(path: &Path, start: &Start) -> Result<(), Report> {
    match std::fs::read_to_string(path) {
        Ok(text) if !text.trim().is_empty() => parse(&text, path, start).map(drop),
        // There is nothing in it that anybody could have written.
        _ => Ok(()),
    }
}
