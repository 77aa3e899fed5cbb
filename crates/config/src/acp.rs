//! Agents of the Agent Client Protocol, with DeerFlow's keys and `mcp_servers`.

use super::{declaration::ValueKind, declare::Setting, env::Env, reader::Section};
use pudu_acp::AcpAgent;
use pudu_kit::program;
use pudu_mcp::child::{ServerCommand, inherited};
use pudu_net::scrub;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use std::{sync::Arc, time::Duration};

/// Default limit of an agent's work on a prompt, as in DeerFlow.
const TIMEOUT: Duration = Duration::from_secs(1800);
/// Maximum length of an agent's name, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Reads the agents.
pub(super) fn agents(top: &Section<'_>, env: &Env) -> Arc<[AcpAgent]> {
    let all = top
        .section("acp_agents")
        .about("Other agents, to which the agent gives tasks by the Agent Client Protocol. docs/acp.md describes them.");
    let agent_section = |name: &str| all.section_named(name, "claude_code").about("Name of the agent.");
    all.present().filter_map(|entry| agent(&agent_section(&entry.key), &entry.key, env)).collect()
}

fn agent(section: &Section<'_>, name: &str, env: &Env) -> Option<AcpAgent> {
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
        let help = format!("write a name of up to {MAX_NAME_CHARS} characters on one line");
        section.refuse_here(format!("{name:?} is not a valid name of an agent"), help);
    }
    settings! { section =>
        /// Program that starts the agent, which runs with the rights of pudu's user.
        command = text().eg("npx").required("write the program that starts the agent");
        /// Arguments of the program.
        args = texts().eg("[-y, \"@agentclientprotocol/claude-agent-acp\"]").or_described(Vec::new(), "none");
        /// Environment variables of the agent, besides `PATH`, `HOME` and `LANG`. A `$NAME` that is not set is empty.
        variables as "env" = variables().eg("{ANTHROPIC_API_KEY: $ANTHROPIC_API_KEY}").or_described(Map::new(), "none");
        /// Purpose of the agent; pudu's agent chooses by it.
        description = text().eg("Claude Code, for work on programs")
            .required("describe its purpose: the agent chooses by the description");
        /// Model of the agent.
        model = text().eg("opus").optional("the agent's own choice");
        /// Grants the agent's requests for permission without asking people.
        auto_approve as "auto_approve_permissions" = flag().or(false);
        /// Maximum time of the agent's work on a task, in seconds; time in which people decide does not count.
        timeout as "timeout_seconds" = seconds(1.0).or(TIMEOUT);
        /// Names of the MCP servers of the extensions file that the agent gets, with the secrets in their entries.
        mcp_servers = names().or_described(Vec::new(), "none");
    }
    let given: Vec<(String, SecretString)> =
        variables.into_iter().map(|(key, value)| (key, text(value))).collect();
    let is_secret = |(key, value): &&(String, SecretString)| scrub::is_secret(key, value.expose_secret());
    section.know_secret(given.iter().filter(is_secret).map(|(_, value)| value));
    let mut all: Vec<_> =
        inherited(&env.all().collect()).into_iter().map(|(key, value)| (key, value.into())).collect();
    all.retain(|(key, _)| !given.iter().any(|(own, _)| own == key));
    all.extend(given.iter().cloned());
    let program = command?;
    if program.contains(char::is_whitespace) && !program.contains('/') {
        let help = "write the program in `command`, and its arguments in `args`";
        section.refuse("command", "this is a command line, not a program", help);
    }
    let command = ServerCommand {
        program,
        args: args.into_iter().map(SecretString::from).collect(),
        env: all,
        folder: None,
        // Supervision needs Linux.
        warden: program::path().ok().filter(|_| cfg!(target_os = "linux")),
    };
    Some(AcpAgent {
        name: name.to_owned(),
        description: description?,
        command,
        given: given.into_iter().map(|(_, value)| value).collect(),
        model,
        auto_approve,
        timeout,
        mcp_servers,
    })
}

fn text(value: Value) -> SecretString {
    match value {
        Value::String(text) => text.into(),
        other => other.to_string().into(),
    }
}

impl<'r> Section<'r> {
    /// Reads environment variables. As in DeerFlow, a variable that is not set is empty.
    fn variables<'s>(&'s self, key: &'s str) -> Setting<'s, 'r, Map<String, Value>> {
        let value = self.clone().needed(false).map(key).foreign().map(|mut values| {
            for entry in self.entry(key).map(|entry| entry.node.entries()).unwrap_or_default() {
                values.entry(entry.key.clone()).or_insert_with(|| Value::from(""));
            }
            values
        });
        let show = |values: &Map<String, Value>| Value::from(values.clone()).to_string();
        let spoilt = value.is_none() && self.entry(key).is_some();
        Setting::new(self, key, ValueKind::Mapping, show, value, spoilt)
    }
}
