//! The file `extensions_config.json`, which names MCP servers and switches skills: where it is, and whether it is
//! right.

use crate::{HotConfig, LoadedConfig, Pos, Problem, Report, Start, is_own_tool, nearest, trust};
use pudu_client::mcp::{McpConfig, UnknownKey, is_tool_name, tool_name_part};
use pudu_kit::program;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The file's names, newest first.
const NAMES: [&str; 2] = ["extensions_config.json", "mcp_config.json"];

/// Checks the file, if there is one, so that no entry is silently left out. Then checks the names of the tools that
/// the configuration guards, which only the file can explain. Returns the problems of both.
pub fn check(start: &Start, loaded: &LoadedConfig) -> Vec<Report> {
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

/// Returns where the file is, or is to be made: in the home, which can be written wherever pudu runs.
pub fn place(start: &Start, beside: Option<&Path>) -> PathBuf {
    find(start, beside).unwrap_or_else(|| start.home().join(NAMES[0]))
}

/// Reads the file. `None` if there is none, or if it names no servers.
///
/// # Errors
/// When it cannot be read or parsed, or names programs and is not the operator's.
pub fn load(start: &Start, beside: Option<&Path>) -> Result<Option<McpConfig>, Report> {
    let config = find(start, beside).map(|path| read(&path, start)).transpose()?;
    Ok(config.filter(|config| !config.is_empty()))
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
    // Only Linux has what a warden needs.
    Ok(match program::path() {
        Ok(own) if cfg!(target_os = "linux") => config.guarded_by(&own),
        _ => config,
    })
}

/// Checks whether a file that is to be copied can be read. Its owner does not matter: the copy is the operator's own.
///
/// # Errors
/// Returns the problem of the file.
pub fn check_copied(path: &Path, start: &Start) -> Result<(), Report> {
    parse_foreign(&text(path)?, path, start).map(drop)
}

/// Checks servers that are to be written into the file.
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

/// Checks whether the file may be changed. Refuses a file that names programs and is not the operator's, because
/// rewriting it would make it the operator's.
///
/// # Errors
/// Returns its owner and the remedy.
pub fn may_be_changed(path: &Path, start: &Start) -> Result<(), Report> {
    match std::fs::read_to_string(path) {
        Ok(text) if !text.trim().is_empty() => parse(&text, path, start).map(drop),
        // The file is absent or empty: no other user's entry is in it.
        _ => Ok(()),
    }
}
