//! Location and checks of the file `extensions_config.json`, which lists MCP servers and switches skills.

use crate::{HotConfig, LoadedConfig, Pos, Problem, Report, Start, is_own_tool, nearest, trust};
use pudu_kit::program;
use pudu_mcp::{McpConfig, UnknownKey, is_tool_name, tool_name_part};
use serde_json::{Map, Value};
use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// The file's names, newest first.
const NAMES: [&str; 2] = ["extensions_config.json", "mcp_config.json"];

/// Checks the file, if there is one, so that no entry is silently ignored. Then checks the names of the tools that the
/// configuration guards, which may be tools of the file's servers. Returns the problems of both.
pub fn check(start: &Start, loaded: &LoadedConfig) -> Vec<Report> {
    let beside = loaded.report.file.as_deref();
    let (mut reports, mut servers) = (Vec::new(), Some(Vec::new()));
    if let Some(path) = find(start, beside) {
        match read(&path, start) {
            Ok(config) => {
                // A server without name prefixes may have a tool of any name.
                servers = (!config.has_bare_names()).then(|| config.server_names().to_vec());
                let unknown = config.unknown_keys().iter().map(unknown).collect();
                reports.push(Report::new(Some(path), unknown));
            }
            // The names of tools are unknown then.
            Err(report) => return vec![report],
        }
    }
    let servers_tool = |name: &str, server: &String| {
        name.strip_prefix(&tool_name_part(server)).is_some_and(|rest| rest.starts_with('_'))
    };
    let known = |name: &String| match &servers {
        // A tool's original name on its server would guard nothing, because models use another name.
        _ if !is_tool_name(name) => false,
        Some(servers) => is_own_tool(name) || servers.iter().any(|server| servers_tool(name, server)),
        None => true,
    };
    let wrong = guarded(&loaded.config.hot).filter(|(_, _, name)| !known(name)).map(|(key, effect, name)| {
        let help = match is_tool_name(name) {
            true => "name a built-in tool, or SERVER_TOOL of a server in extensions_config.json; only servers with \
                     `\"tool_name_prefix\": false` have tools with other names"
                .to_owned(),
            false => format!(
                "tool names have at most 64 letters, digits, `_` and `-`; other characters in a server's tool name \
                 become `_`: did you mean \"{}\"?",
                tool_name_part(name)
            ),
        };
        Problem::error(loaded.place(key), key, format!("there is no tool \"{name}\": {effect}"), help)
    });
    reports.push(Report::new(loaded.report.file.clone(), wrong.collect()));
    reports
}

/// Returns the tools that the configuration guards, each with the key that names it and the effect if there is no such
/// tool.
fn guarded(hot: &HotConfig) -> impl Iterator<Item = (&'static str, &'static str, &String)> {
    let approvals =
        hot.approvals.tools.iter().map(|name| ("approvals.tools", "its calls would not need approval", name));
    let list = hot.guardrails.iter().filter_map(|guardrails| guardrails.allowlist.as_ref());
    let allowed = list.clone().flat_map(|list| list.allowed.iter().flatten());
    let allowed =
        allowed.map(|name| ("guardrails.provider.config.allowed_tools", "this would allow nothing", name));
    let denied = list.flat_map(|list| &list.denied);
    let denied =
        denied.map(|name| ("guardrails.provider.config.denied_tools", "this would deny nothing", name));
    approvals.chain(allowed).chain(denied)
}

fn unknown(UnknownKey { path, key, known }: &UnknownKey) -> Problem {
    let help = match nearest(key, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "remove it; docs/extensions.md lists the known keys".to_owned(),
    };
    Problem::warning(None, path, "unknown key", help)
}

/// Returns the path of the file, or the path for a new one in the home folder, which is always writable.
pub fn place(start: &Start, beside: Option<&Path>) -> PathBuf {
    find(start, beside).unwrap_or_else(|| start.home().join(NAMES[0]))
}

/// Reads the file. Returns `None` if there is none.
///
/// # Errors
/// When it cannot be read or parsed, or starts programs and does not belong to the operator.
pub fn load(start: &Start, beside: Option<&Path>) -> Result<Option<McpConfig>, Report> {
    find(start, beside).map(|path| read(&path, start)).transpose()
}

/// A version of the file: its path and the facts that an edit changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMark {
    path: PathBuf,
    /// Inode, size and time of the last change, in nanoseconds since 1970.
    facts: (u64, u64, i128),
}

/// Returns the current version of the file, if there is one.
pub fn mark(start: &Start, beside: Option<&Path>) -> Option<FileMark> {
    let path = find(start, beside)?;
    let facts = std::fs::metadata(&path).ok()?;
    let changed = i128::from(facts.mtime()) * 1_000_000_000 + i128::from(facts.mtime_nsec());
    Some(FileMark { path, facts: (facts.ino(), facts.len(), changed) })
}

/// Finds the file: the one named by a variable, or the first one next to the configuration, in the current folder, its
/// parent, or the home folder.
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

/// Reads the file. A file that starts programs must belong to the operator. pudu itself supervises those programs.
fn read(path: &Path, start: &Start) -> Result<McpConfig, Report> {
    let config = parse(&text(path)?, path, start)?.reserving(is_own_tool);
    // Supervision needs Linux.
    Ok(match program::path() {
        Ok(own) if cfg!(target_os = "linux") => config.guarded_by(&own),
        _ => config,
    })
}

/// Checks a file before it is copied. Its owner does not matter, because the copy belongs to the operator.
///
/// # Errors
/// Returns the problem of the file.
pub fn check_copied(path: &Path, start: &Start) -> Result<(), Report> {
    parse_foreign(&text(path)?, path, start).map(drop)
}

/// Checks servers before they are written into the file.
///
/// # Errors
/// Returns the problem of the servers, without their values.
pub fn check_servers(servers: &Map<String, Value>, start: &Start) -> Result<(), String> {
    let text = serde_json::json!({ "mcpServers": servers }).to_string();
    let checked = McpConfig::parse(&text, &start.env.all().collect());
    checked.map(drop).map_err(|error| format!("{}: {}", error.key, error.hint))
}

fn text(path: &Path) -> Result<String, Report> {
    std::fs::read_to_string(path).map_err(|error| {
        wrong(path, Problem::error(None, "", error.to_string(), "make it readable, or remove it"))
    })
}

fn parse_foreign(text: &str, path: &Path, start: &Start) -> Result<McpConfig, Report> {
    McpConfig::parse(text, &start.env.all().collect()).map_err(|error| {
        let at = Pos { line: error.line as u64, column: error.column as u64 };
        wrong(
            path,
            Problem::error(at, &error.key, error.hint, "fix it (docs/extensions.md), or remove the file"),
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

/// Checks whether the file may be changed. Refuses a file that starts programs and does not belong to the operator,
/// because rewriting it would make it the operator's.
///
/// # Errors
/// Returns its owner and the fix.
pub fn may_be_changed(path: &Path, start: &Start) -> Result<(), Report> {
    match std::fs::read_to_string(path) {
        Ok(text) if !text.trim().is_empty() => parse(&text, path, start).map(drop),
        // The file is absent or empty, so it contains no other user's entries.
        _ => Ok(()),
    }
}
