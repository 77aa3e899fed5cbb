//! `mcpServers` of an `extensions_config.json`, in DeerFlow's format. Keys that this crate does not use are ignored,
//! but the types of `skills` are checked: if its switches could not be parsed, disabled skills would be unknown. In the
//! resulting configuration, all variables and defaults are resolved.

use crate::{
    ServerFailure, Skipped,
    expand::Expand,
    oauth::OauthEntry,
    server::{Endpoint, McpServer, ServerCommand, ServerLabel, Transport},
};
use indexmap::IndexMap;
use pudu_base::{ToolServerReport, ToolServerState};
use pudu_net::scrub::{self, SecretWords};
use secrecy::SecretString;
use serde::{Deserialize, Deserializer, de};
use serde_json::{Value, error::Category};
use std::{
    collections::{HashMap, HashSet},
    fmt,
    marker::PhantomData,
    path::Path,
    time::Duration,
};

/// Environment variables that a child process inherits, each with the value to use if the daemon does not have it.
const INHERITED: [(&str, &str); 3] =
    [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/"), ("LANG", "C.UTF-8")];

/// Returns the environment variables that a child process inherits from a daemon with these variables.
#[must_use]
pub fn inherited(vars: &HashMap<String, String>) -> IndexMap<String, String> {
    let value = |&(key, default): &(&str, &str)| {
        (key.to_owned(), vars.get(key).map_or(default, String::as_str).to_owned())
    };
    INHERITED.iter().map(value).collect()
}

/// DeerFlow's variable that lists the programs that servers may run in addition to [`LAUNCHERS`]. If it is set, it also
/// applies to the servers in the file.
const PROGRAMS: &str = "DEER_FLOW_MCP_STDIO_COMMAND_ALLOWLIST";
/// Programs that may always be started.
const LAUNCHERS: [&str; 2] = ["npx", "uvx"];

/// Default startup timeout of a server.
const DEFAULT_SESSION_TIMEOUT: Duration = Duration::from_secs(60);
/// Default timeout of a call to a server.
const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// The enabled servers of a configuration.
#[derive(Debug)]
pub struct McpConfig {
    pub(crate) servers: Vec<McpServer>,
    pub(crate) unusable: Vec<Skipped>,
    /// Names of the disabled servers.
    pub(crate) disabled: Vec<String>,
    unknown: Vec<UnknownKey>,
    /// Whether the tools of a server in the file have no prefix.
    bare_names: bool,
    /// Names of all servers in the file.
    names: Vec<String>,
    /// Returns whether a name is reserved, and therefore not available for a server's tool.
    pub(crate) is_reserved: fn(&str) -> bool,
}

impl Default for McpConfig {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            unusable: Vec::new(),
            disabled: Vec::new(),
            unknown: Vec::new(),
            bare_names: false,
            names: Vec::new(),
            is_reserved: |_| false,
        }
    }
}

/// An unknown key of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKey {
    /// The key's path, with dots.
    pub path: String,
    /// The key itself.
    pub key: String,
    /// Known keys at the same level.
    pub known: &'static [&'static str],
}

/// Keys of the file.
const FILE_KEYS: &[&str] = &["mcpServers", "skills", "mcpInterceptors", "middlewares"];
/// Keys of a server. The last two are DeerFlow's and have no effect here, but a `routing` with the mode `prefer` is
/// logged.
const SERVER_KEYS: &[&str] = &[
    "enabled",
    "type",
    "transport",
    "command",
    "args",
    "env",
    "url",
    "headers",
    "oauth",
    "tool_name_prefix",
    "tools",
    "tool_call_timeout",
    "session_init_timeout",
    "description",
    "routing",
];
/// Keys of the entry of a skill or a tool.
const SWITCH_KEYS: &[&str] = &["enabled"];

/// The other keys of an object.
type OtherKeys = IndexMap<String, de::IgnoredAny>;

/// Error for a file that cannot be parsed as a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}{}: {hint}", key_of(.key))]
pub struct McpConfigError {
    /// The line, starting at 1.
    pub line: usize,
    /// The column, starting at 1.
    pub column: usize,
    /// The key, with dots; empty if the text is not JSON.
    pub key: String,
    /// The expected value.
    pub hint: String,
}

fn key_of(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!(", key {key}") }
}

impl McpConfig {
    /// Parses the text of an `extensions_config.json`. Values that begin with `$` come from `vars`, as do `PATH`,
    /// `HOME` and `LANG` for child processes; no other variables reach a server. An invalid entry is reported by
    /// [`Servers::skipped`](crate::Servers::skipped) and does not affect others.
    ///
    /// # Errors
    /// When the text is not JSON, or a key has the wrong type.
    pub fn parse(text: &str, vars: &HashMap<String, String>) -> Result<Self, McpConfigError> {
        let raw = read(text)?;
        let bare_names = raw.servers.values().any(|Object(entry)| !entry.tool_name_prefix);
        let names = raw.servers.keys().cloned().collect();
        let mut config = Self { unknown: raw.unknown_keys(), bare_names, names, ..Self::default() };
        let servers = raw.servers.into_iter().map(|(name, Object(entry))| (name, entry));
        for (name, entry) in servers {
            if !entry.enabled {
                config.disabled.push(name);
                continue;
            }
            match entry.resolve(&name, vars) {
                Ok(server) => config.servers.push(server),
                Err(hint) => {
                    config.unusable.push(Skipped { server: name, failure: ServerFailure::Config(hint) });
                }
            }
        }
        Ok(config)
    }

    /// Sets the program that supervises servers in child processes, so that none outlives the daemon. Its `main` must
    /// call [`crate::enter`]. Without a supervisor, only the processes in a server's process group are killed, and only
    /// while the daemon is running.
    #[must_use]
    pub fn guarded_by(mut self, warden: &Path) -> Self {
        for server in &mut self.servers {
            if let Transport::Stdio(command) = &mut server.transport {
                command.warden = Some(warden.to_owned());
            }
        }
        self
    }

    /// Reserves tool names for the program. A server's tool with a reserved name is renamed.
    #[must_use]
    pub fn reserving(mut self, is_reserved: fn(&str) -> bool) -> Self {
        self.is_reserved = is_reserved;
        self
    }

    /// Reports the servers without starting them.
    #[must_use]
    pub fn reports(&self) -> Vec<ToolServerReport> {
        self.names
            .iter()
            .map(|name| match self.unusable.iter().find(|skipped| skipped.server == *name) {
                Some(Skipped { failure, .. }) => ToolServerReport {
                    problem: Some(failure.to_string()),
                    fix: Some(failure.fix().to_owned()),
                    ..ToolServerReport::new(name, ToolServerState::Away)
                },
                None if self.disabled.contains(name) => {
                    ToolServerReport::new(name, ToolServerState::Disabled)
                }
                None => ToolServerReport::new(name, ToolServerState::Stopped),
            })
            .collect()
    }

    /// Keeps only the server of this name.
    #[must_use]
    pub fn only(mut self, name: &str) -> Self {
        self.servers.retain(|server| server.name() == name);
        self.unusable.retain(|skipped| skipped.server == name);
        self.disabled.retain(|disabled| disabled == name);
        self
    }

    /// Returns whether any server would be started as a local program.
    #[must_use]
    pub fn starts_programs(&self) -> bool {
        self.servers.iter().any(|server| matches!(server.transport, Transport::Stdio(_)))
    }

    /// Returns the unknown keys of the file, including those of disabled servers.
    #[must_use]
    pub fn unknown_keys(&self) -> &[UnknownKey] {
        &self.unknown
    }

    /// Returns whether the tools of any server keep their original names, including disabled and invalid servers.
    #[must_use]
    pub fn has_bare_names(&self) -> bool {
        self.bare_names
    }

    /// Returns the names of the servers in the file, including disabled and invalid ones.
    #[must_use]
    pub fn server_names(&self) -> &[String] {
        &self.names
    }

    /// Returns whether there are no enabled servers, not even invalid ones.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.unusable.is_empty()
    }
}

#[derive(Deserialize)]
struct RawConfig {
    #[serde(default, rename = "mcpServers")]
    servers: IndexMap<String, Object<ServerEntry>>,
    #[serde(default)]
    skills: IndexMap<String, Object<SkillSwitch>>,
    /// Interceptors of calls, which are not supported here.
    #[serde(default, rename = "mcpInterceptors", deserialize_with = "require_empty")]
    _interceptors: (),
    #[serde(default, rename = "middlewares", deserialize_with = "require_empty")]
    _middlewares: (),
    #[serde(flatten)]
    others: OtherKeys,
}

impl RawConfig {
    fn unknown_keys(&self) -> Vec<UnknownKey> {
        let mut found = Vec::new();
        let mut add = |place: String, others: &OtherKeys, known: &'static [&'static str]| {
            let unknown = others.keys().filter(|key| !known.contains(&key.as_str()));
            found.extend(unknown.map(|key| UnknownKey {
                path: format!("{place}{key}"),
                key: key.clone(),
                known,
            }));
        };
        add(String::new(), &self.others, FILE_KEYS);
        for (name, Object(server)) in &self.servers {
            add(format!("mcpServers.{name}."), &server.others, SERVER_KEYS);
            for (tool, entry) in &server.tools {
                add(format!("mcpServers.{name}.tools.{tool}."), &entry.others, SWITCH_KEYS);
            }
        }
        for (name, Object(skill)) in &self.skills {
            add(format!("skills.{name}."), &skill.others, SWITCH_KEYS);
        }
        found
    }
}

/// Whether a skill is enabled.
#[derive(Deserialize)]
struct SkillSwitch {
    #[serde(rename = "enabled")]
    _enabled: Option<bool>,
    #[serde(flatten)]
    others: OtherKeys,
}

/// A JSON object. A list of its values, which serde would accept as well, is rejected.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Keys<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> de::Visitor<'de> for Keys<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object in braces, `{…}`,")
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(de::value::MapAccessDeserializer::new(map)).map(Object)
            }
        }
        json.deserialize_map(Keys(PhantomData))
    }
}

/// Accepts only an empty list, because settings that may protect users must not be silently ignored.
fn require_empty<'de, D: Deserializer<'de>>(value: D) -> Result<(), D::Error> {
    match Option::<Vec<de::IgnoredAny>>::deserialize(value)?.unwrap_or_default().as_slice() {
        [] => Ok(()),
        _ => Err(de::Error::custom(
            "code in Python, expected an empty list (pudu runs no Python; what guards calls is `approvals.tools` in \
             config.yaml)",
        )),
    }
}

#[derive(Deserialize)]
struct ServerEntry {
    #[serde(default = "yes")]
    enabled: bool,
    #[serde(rename = "type", alias = "transport")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: IndexMap<String, String>,
    url: Option<String>,
    #[serde(default)]
    headers: IndexMap<String, String>,
    oauth: Option<OauthEntry>,
    #[serde(default = "yes")]
    tool_name_prefix: bool,
    #[serde(default)]
    tools: IndexMap<String, Override>,
    tool_call_timeout: Option<f64>,
    session_init_timeout: Option<f64>,
    #[serde(default)]
    routing: Value,
    #[serde(flatten)]
    others: OtherKeys,
}

/// Settings of one tool.
#[derive(Deserialize)]
struct Override {
    #[serde(default = "yes")]
    enabled: bool,
    #[serde(flatten)]
    others: OtherKeys,
}

fn yes() -> bool {
    true
}

fn read(text: &str) -> Result<RawConfig, McpConfigError> {
    let mut json = serde_json::Deserializer::from_str(text);
    let read: Result<Object<RawConfig>, _> = serde_path_to_error::deserialize(&mut json);
    read.map(|Object(raw)| raw).map_err(|error| {
        let key = error.path().to_string();
        let key = key.trim_end_matches(['.', '?']).to_owned();
        let error = error.into_inner();
        McpConfigError { line: error.line(), column: error.column(), key, hint: hint(&error) }
    })
}

/// Returns the expected type or value. The actual value is omitted because it may be a secret.
fn hint(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    match error.classify() {
        Category::Data => {
            let wanted = match text.split_once("expected ").map(|(_, what)| what) {
                Some("a boolean") => "`true` or `false`, without quotes,",
                what => what.unwrap_or("not usable"),
            };
            format!("{wanted} is expected here")
        }
        _ => text.to_owned(),
    }
}

impl ServerEntry {
    fn resolve(self, name: &str, vars: &HashMap<String, String>) -> Result<McpServer, String> {
        let mut expand = Expand::new(vars);
        let session_timeout = seconds("session_init_timeout", self.session_init_timeout)?;
        let call_timeout = seconds("tool_call_timeout", self.tool_call_timeout)?;
        let prefix = self.tool_name_prefix;
        if self.routing.get("mode").is_some_and(|mode| mode == "prefer") {
            tracing::warn!(
                server = name,
                "ignored `routing` of MCP server: its tools are offered like all others"
            );
        }
        let off = self.tools.iter().filter(|(_, tool)| !tool.enabled).map(|(name, _)| name.clone()).collect();
        let transport = self.transport(name, &mut expand)?;
        if !expand.missing.is_empty() {
            tracing::warn!(server = name, missing = ?expand.missing, "found unset variables of MCP server");
        }
        let given = SecretWords::of_program(expand.given.iter().map(String::as_str));
        scrub::remember(expand.secrets);
        Ok(McpServer {
            label: ServerLabel::new(name, given),
            transport,
            prefix,
            off,
            session_timeout: session_timeout.unwrap_or(DEFAULT_SESSION_TIMEOUT),
            call_timeout: call_timeout.unwrap_or(DEFAULT_CALL_TIMEOUT),
        })
    }

    fn transport(self, name: &str, expand: &mut Expand<'_>) -> Result<Transport, String> {
        // DeerFlow's default is stdio, but other clients' files have a `url` without a type.
        let implied = if self.command.is_none() && self.url.is_some() { "http" } else { "stdio" };
        match self.kind.as_deref().unwrap_or(implied) {
            "stdio" => self.stdio(expand),
            "http" | "streamable_http" | "streamable-http" => self.http(name, expand),
            "sse" => {
                Err("the sse transport is not in this version; most servers also speak http at another \
                          path: set `type` to http and `url` to it"
                    .to_owned())
            }
            other => Err(format!("`type` is {other}; it can be stdio or http")),
        }
    }

    fn stdio(self, expand: &mut Expand<'_>) -> Result<Transport, String> {
        let program = expand.value(&self.command.unwrap_or_default());
        if program.is_empty() {
            return Err("a stdio server needs a `command`".to_owned());
        }
        if let Some(listed) = expand.var(PROGRAMS).filter(|listed| !listed.trim().is_empty()) {
            let may: HashSet<&str> = listed.split(',').map(str::trim).chain(LAUNCHERS).collect();
            if !may.contains(program.as_str()) {
                return Err(format!("its `command` is neither npx nor uvx nor listed in {PROGRAMS}"));
            }
        }
        let mut env = inherited(expand.vars);
        env.extend(self.env.iter().map(|(key, value)| (key.clone(), expand.named(key, value))));
        let args = self.args.iter().map(|arg| expand.value(arg).into()).collect();
        let env = env.into_iter().map(|(key, value)| (key, SecretString::from(value))).collect();
        Ok(Transport::Stdio(ServerCommand { program, args, env, folder: None, warden: None }))
    }

    fn http(self, name: &str, expand: &mut Expand<'_>) -> Result<Transport, String> {
        let url = expand.value(&self.url.unwrap_or_default());
        if url.is_empty() {
            return Err("an http server needs a `url`".to_owned());
        }
        let headers = self.headers.iter().map(|(key, value)| (key.clone(), expand.named(key, value)));
        let headers = headers.collect::<Vec<_>>();
        let oauth = self.oauth.map(|oauth| oauth.resolve(expand)).transpose()?.flatten();
        let endpoint = Endpoint::new(name, &url, headers, oauth)?;
        let query = endpoint.url.query_pairs().filter(|(name, value)| scrub::is_secret(name, value));
        expand.secrets.extend(query.map(|(_, value)| value.into_owned()));
        expand.secrets.extend(endpoint.url.password().map(str::to_owned));
        expand.given.extend(endpoint.url.password().map(str::to_owned));
        expand.given.extend(endpoint.url.query_pairs().map(|(_, value)| value.into_owned()));
        Ok(Transport::Http(endpoint))
    }
}

fn seconds(key: &str, value: Option<f64>) -> Result<Option<Duration>, String> {
    let Some(value) = value else { return Ok(None) };
    match Duration::try_from_secs_f64(value) {
        Ok(time) if !time.is_zero() => Ok(Some(time)),
        _ => Err(format!("`{key}` must be a number of seconds above 0")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_has_a_time_limit() {
        let check = |limit: &str, expect: u64| {
            let text = format!("{{\"mcpServers\": {{\"s\": {{\"command\": \"x\"{limit}}}}}}}");
            let config = McpConfig::parse(&text, &HashMap::new()).unwrap();
            assert_eq!(config.servers[0].call_timeout, Duration::from_secs(expect), "{limit}");
        };
        check("", 120);
        check(", \"tool_call_timeout\": null", 120);
        check(", \"tool_call_timeout\": 900", 900);
    }
}
