//! Reports unknown keys, which no part of pudu requested, suggests the intended ones, and decides whether startup must
//! fail.

use super::{
    problem::{Problem, Severity, join, nearest},
    raw::{Node, NodeValue},
    reader::Log,
};
use std::collections::BTreeSet;

/// Prefix of top-level keys for the operator's own use, such as YAML anchors.
const EXTENSION: &str = "x-";

/// Top-level keys that are common in other programs, with advice on pudu's equivalents.
const FOREIGN_KEYS: &[(&[&str], &str)] = &[
    (
        &[
            "telegram",
            "slack",
            "discord",
            "feishu",
            "dingtalk",
            "telegram_bot",
            "slack_bot",
            "discord_bot",
            "feishu_bot",
            "dingtalk_bot",
        ],
        "move accounts below `channels:`, each under its own name",
    ),
    (&["lark"], "write `channels:`, and below it `feishu:` with `domain: https://open.larksuite.com`"),
    (
        &["accounts", "bot", "bots", "integrations", "messengers", "platform", "platforms"],
        "write `channels:`, and below it a platform's name",
    ),
    (
        &[
            "ai",
            "anthropic",
            "gemini",
            "llm",
            "llms",
            "model_list",
            "ollama",
            "openai",
            "openrouter",
            "provider",
            "providers",
        ],
        "write `models:`, a list whose entries have `name`, `model` and `api_key`",
    ),
    (&["default_model"], "the first entry of `models:` is the default"),
    (
        &["mcp", "mcp_servers", "mcpservers"],
        "MCP servers are in extensions_config.json beside this file (docs/extensions.md)",
    ),
    (
        &["agent", "agents"],
        "agents are folders in the home folder (`pudu agent new`); sub-agents are below `subagents:`",
    ),
    (&["api", "http", "server", "web_server"], "write `gateway:`, with `host` and `port` below it"),
    (&["listen"], "write `gateway.host` and `gateway.port`"),
    (&["debug", "log", "verbose"], "write `log_level`"),
    (&["db", "storage", "store"], "write `database:`"),
    (
        &["env", "environment"],
        "put variables in `.env` next to this file, and variables for commands in `sandbox.environment`",
    ),
    (&["language", "locale"], "write `channels.language`"),
    (&["timezone", "tz"], "write `channels.timezone`"),
    (&["home", "data_dir"], "set PUDU_HOME in the environment"),
    (&["proxy"], "set HTTPS_PROXY in the environment"),
    (&["version"], "write `config_version`, or remove it"),
];

/// Returns advice on a key of other programs.
fn advice_for(key: &str) -> Option<&'static str> {
    let key = key.to_lowercase().replace('-', "_");
    FOREIGN_KEYS.iter().find(|(names, _)| names.contains(&key.as_str())).map(|(_, place)| *place)
}

/// Keys that restrict access. Ignoring a misspelt or misplaced one would leave a bot open.
const CLOSING_KEYS: &[&str] =
    &["allowed_chats", "allowed_guilds", "allowed_users", "approval", "approvers", "pairing"];
/// Sections whose keys restrict deletion, unapproved actions, sign-in or costs. A misspelt key would fall back to the
/// default unnoticed.
const CLOSING_SECTIONS: &[&str] =
    &["approvals", "budgets", "guardrails", "oidc", "retention", "token_budget"];
/// Maximum number of sections to suggest for a misplaced key. A key that occurs in more sections is too generic for a
/// suggestion, unless it restricts something.
const MAX_HOMES: usize = 3;

/// Returns the restricting key that this key equals or resembles.
fn restricting_key(key: &str) -> Option<&'static str> {
    nearest(key, CLOSING_KEYS.iter().copied())
}

/// Returns whether an unknown key must not be ignored, because it probably restricts something.
fn is_restricting(key: &str, path: &str, meant: &[String]) -> bool {
    restricting_key(key).is_some()
        || in_closing(path)
        || in_closing(key)
        || meant.iter().any(|key| in_closing(key))
}

/// Returns whether a path is or contains a restricting section.
fn in_closing(path: &str) -> bool {
    path.split('.').any(|part| CLOSING_SECTIONS.contains(&part))
}

/// Reports the keys of the file that were not requested. An unknown top-level key with an obvious intention is an
/// error, because it is hard to diagnose that a bot or model is missing due to a misspelling. A key that probably
/// restricts something is an error at any level.
pub(super) fn report(node: &Node, path: &str, homes: fn(&str) -> Vec<String>, log: &mut Log) {
    if let NodeValue::List(items) = &node.value {
        for (index, item) in items.iter().enumerate() {
            report(item, &format!("{path}[{index}]"), homes, log);
        }
    }
    for entry in node.entries() {
        let below = join(path, &entry.key);
        match log.sections.get(path) {
            Some(_) if path.is_empty() && entry.key.to_ascii_lowercase().starts_with(EXTENSION) => {}
            Some(known) if !known.contains(&entry.key) => {
                let habit = advice_for(&entry.key).filter(|_| path.is_empty());
                let meant = match habit {
                    Some(_) => Vec::new(),
                    None => suggestions(&entry.key, path, known, homes, log),
                };
                let help = match (habit, meant.as_slice()) {
                    (Some(place), _) => place.to_owned(),
                    (None, []) => "remove it; docs/configuration.md lists the known keys".to_owned(),
                    (None, names) => format!("did you mean `{}`?", names.join("` or `")),
                };
                let is_clear = path.is_empty() && (habit.is_some() || !meant.is_empty());
                let severity = match is_clear || is_restricting(&entry.key, path, &meant) {
                    true => Severity::Error,
                    false => Severity::Warning,
                };
                let problem = Problem::warning(entry.at, &below, "unknown key", help);
                log.problems.push(Problem { severity, ..problem });
            }
            _ => report(&entry.node, &below, homes, log),
        }
    }
}

/// Returns the keys that were probably meant by an unknown key: a similar one, longer ones that end with it, or the
/// same key in a deeper section.
fn suggestions(
    key: &str,
    path: &str,
    known: &BTreeSet<String>,
    homes: fn(&str) -> Vec<String>,
    log: &Log,
) -> Vec<String> {
    let known = || known.iter().map(String::as_str);
    let plain = key.to_lowercase().replace('-', "_");
    if let Some(near) = nearest(&plain, known()) {
        return vec![near.to_owned()];
    }
    let ends = |long: &str, short: &str| long.strip_suffix(short).is_some_and(|rest| rest.ends_with('_'));
    let related: Vec<_> =
        known().filter(|other| ends(other, key) || ends(key, other)).map(str::to_owned).collect();
    if !related.is_empty() || !matches!(path, "" | "channels") {
        return related;
    }
    let (key, restricts) = restricting_key(key).map_or((key, false), |known| (known, true));
    let path_in = |(section, keys): (&String, &BTreeSet<String>)| {
        (keys.contains(key) && !section.is_empty()).then(|| join(section, key))
    };
    let found: Vec<_> = log.sections.iter().filter_map(path_in).collect();
    let mut found = if found.is_empty() { homes(key) } else { found };
    if found.len() > MAX_HOMES {
        let restricts = restricts || found.iter().all(|path| in_closing(path));
        found.truncate(if restricts { MAX_HOMES } else { 0 });
    }
    found
}
