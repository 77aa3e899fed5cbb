//! Edits of MCP servers by a caller that cannot see secrets: masked values stay unchanged, and no program is started
//! unless the operator allowed it.
//!
//! A web page or a stolen session must not become a shell: a server that runs a program on this machine must come from
//! the operator's file, or its program must be listed in `gateway.mcp_commands`. A secret that the caller cannot see is
//! never sent to a different destination than before, and no environment variable of the daemon is written into a
//! server.

use crate::ApiError;
use pudu_net::scrub;
use serde_json::{Map, Value, json};
use url::Url;

/// Text in place of a secret.
const MASK: &str = "***";
/// Maximum number of servers.
const MAX_SERVERS: usize = 100;
/// Maximum length of a server's name, in bytes.
const MAX_NAME_BYTES: usize = 64;
/// Keys that are shown for every server, and their defaults.
const DEFAULTS: [(&str, Default); 15] = [
    ("enabled", Default::True),
    ("type", Default::Kind),
    ("command", Default::Null),
    ("args", Default::List),
    ("env", Default::Map),
    ("url", Default::Null),
    ("headers", Default::Map),
    ("oauth", Default::Null),
    ("description", Default::Text),
    ("routing", Default::Routing),
    ("tools", Default::Map),
    ("tool_name_prefix", Default::True),
    ("tool_call_timeout", Default::Null),
    ("session_init_timeout", Default::Null),
    ("task_toolsets", Default::List),
];
/// Keys that neither start a program nor change a destination: they may be changed for any server.
const HARMLESS: [&str; 8] = [
    "enabled",
    "description",
    "routing",
    "tools",
    "tool_name_prefix",
    "tool_call_timeout",
    "session_init_timeout",
    "task_toolsets",
];
/// Keys of an `oauth` object that are never shown.
const OAUTH_SECRETS: [&str; 2] = ["client_secret", "refresh_token"];
/// Keys of an `oauth` object that are not secrets, despite their names.
const OAUTH_PLAIN: [&str; 5] =
    ["token_field", "token_type_field", "expires_in_field", "default_token_type", "token_url"];
/// Types of servers that do not run a program on this machine.
const REMOTE: [&str; 4] = ["http", "streamable_http", "streamable-http", "sse"];
/// Programs that download other programs. For these, `-p` names a package.
const LAUNCHERS: [&str; 2] = ["npx", "uvx"];
/// Options that make a program execute their value as code.
const CODE_OPTIONS: [&str; 6] = ["--call", "--eval", "--print", "--shell", "--node-arg", "--node-options"];
/// Environment variables that make a program load code.
const CODE_VARIABLES: [&str; 11] = [
    "BASH_ENV",
    "DYLD_INSERT_LIBRARIES",
    "ENV",
    "LD_AUDIT",
    "LD_PRELOAD",
    "NODE_OPTIONS",
    "PERL5OPT",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYOPT",
];

/// Default of a key.
#[derive(Clone, Copy)]
enum Default {
    True,
    Kind,
    Null,
    Text,
    List,
    Map,
    Routing,
}

/// Renders a server for display: with every key and without secrets.
pub(crate) fn display_json(server: &Value) -> Value {
    let mut shown = masked(server);
    let kind = kind(server).to_owned();
    if let Value::Object(shown) = &mut shown {
        shown.remove("transport");
        for (key, default) in DEFAULTS {
            let value = match default {
                Default::True => json!(true),
                Default::Kind => json!(kind),
                Default::Null => Value::Null,
                Default::Text => json!(""),
                Default::List => json!([]),
                Default::Map => json!({}),
                Default::Routing => json!({ "mode": "off", "priority": 0, "keywords": [] }),
            };
            let entry = shown.entry(key).or_insert(Value::Null);
            if entry.is_null() {
                *entry = value;
            }
        }
    }
    shown
}

/// Returns the effective type of a server.
fn kind(server: &Value) -> &str {
    let text = |key: &str| server.get(key).and_then(Value::as_str);
    let implied = if text("command").is_none() && text("url").is_some() { "http" } else { "stdio" };
    text("type").or_else(|| text("transport")).unwrap_or(implied)
}

/// Masks a server's secrets.
fn masked(server: &Value) -> Value {
    let Value::Object(server) = server else { return Value::Null };
    let each = |(key, value): (&String, &Value)| {
        let value = match key.as_str() {
            "env" | "headers" => all_masked(value),
            "oauth" => oauth(value),
            "args" => arguments(value),
            "url" => value.as_str().map_or(Value::Null, |url| json!(address(url))),
            key => extra(key, value),
        };
        (key.clone(), value)
    };
    Value::Object(server.iter().map(each).collect())
}

fn all_masked(value: &Value) -> Value {
    let keys = value.as_object().into_iter().flat_map(Map::keys);
    Value::Object(keys.map(|key| (key.clone(), json!(MASK))).collect())
}

fn oauth(value: &Value) -> Value {
    let Value::Object(oauth) = value else { return Value::Null };
    Value::Object(oauth.iter().map(|(key, value)| (key.clone(), oauth_value(key, value))).collect())
}

fn oauth_value(key: &str, value: &Value) -> Value {
    match value {
        _ if OAUTH_SECRETS.contains(&key) => Value::Null,
        Value::String(text) if OAUTH_PLAIN.contains(&key) => json!(address(text)),
        _ => extra(key, value),
    }
}

/// Masks a value whose key names a secret, and the secrets nested in a value.
fn extra(key: &str, value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let each = |(key, value): (&String, &Value)| (key.clone(), extra(key, value));
            if names_secret(key) { json!(MASK) } else { Value::Object(map.iter().map(each).collect()) }
        }
        Value::Array(items) if !names_secret(key) => items.iter().map(|item| extra("", item)).collect(),
        Value::Bool(_) | Value::Null => value.clone(),
        _ if names_secret(key) => json!(MASK),
        Value::String(text) if hides(text) => json!(MASK),
        _ => value.clone(),
    }
}

/// Returns whether a key names a secret, judging by its words.
fn names_secret(key: &str) -> bool {
    const WORDS: [&str; 9] = [
        "apikey",
        "secret",
        "token",
        "password",
        "passwd",
        "credential",
        "credentials",
        "authorization",
        "bearer",
    ];
    const PAIRS: [(&str, &str); 3] = [("api", "key"), ("access", "key"), ("private", "key")];
    let mut plain = String::new();
    let mut before = ' ';
    for c in key.chars() {
        if c.is_uppercase() && (before.is_lowercase() || before.is_ascii_digit()) {
            plain.push('_');
        }
        plain.extend(c.to_lowercase());
        before = c;
    }
    let words: Vec<&str> = plain.split(|c: char| !c.is_alphanumeric()).collect();
    let pair = |pair: &[&str]| PAIRS.iter().any(|(one, other)| pair == [*one, *other]);
    words.iter().any(|word| WORDS.contains(word)) || words.windows(2).any(pair)
}

/// Returns whether a text contains a secret, which is recognised by its shape or known to pudu.
fn hides(text: &str) -> bool {
    scrub::hide(text) != text
}

/// Masks arguments that are secrets, or values of options that name a secret.
fn arguments(value: &Value) -> Value {
    let Value::Array(items) = value else { return json!([]) };
    let mut next_is_secret = false;
    let each = |item: &Value| {
        let Some(text) = item.as_str() else { return item.clone() };
        let (option, inline) = text.split_once('=').map_or((text, false), |(option, _)| (option, true));
        let is_option = option.starts_with('-');
        let secret = std::mem::replace(&mut next_is_secret, is_option && !inline && names_secret(option))
            && !is_option;
        match secret || hides(text) || (inline && names_secret(option)) {
            true => json!(MASK),
            false => json!(text),
        }
    };
    Value::Array(items.iter().map(each).collect())
}

/// Masks the password of a URL and the secrets in its query.
fn address(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else {
        return if hides(text) { MASK.to_owned() } else { text.to_owned() };
    };
    let is_secret = |name: &str, value: &str| scrub::is_secret(name, value);
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    if url.password().is_none() && !pairs.iter().any(|(name, value)| is_secret(name, value)) && !hides(text) {
        return text.to_owned();
    }
    if url.password().is_some() {
        url.set_password(Some(MASK)).ok();
    }
    if !pairs.is_empty() {
        let mut query = url.query_pairs_mut();
        query.clear();
        for (name, value) in &pairs {
            query.append_pair(name, if is_secret(name, value) { MASK } else { value });
        }
    }
    let shown = url.to_string();
    if hides(&shown) { MASK.to_owned() } else { shown }
}

/// Returns the new set of servers: `wanted` instead of the stored ones.
pub(crate) fn replaced(
    wanted: &Map<String, Value>,
    stored: &Map<String, Value>,
    commands: &[String],
) -> Result<Map<String, Value>, ApiError> {
    if wanted.len() > MAX_SERVERS {
        return Err(ApiError::bad_request(format!("the limit is {MAX_SERVERS} servers")));
    }
    let one = |(name, server): (&String, &Value)| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(plain) {
            return Err(ApiError::bad_request(
                "a server name must have 1 to 64 characters of A-Z a-z 0-9 _ -",
            ));
        }
        let Value::Object(server) = server else {
            return Err(ApiError::bad_request(format!("MCP server '{name}' must be a JSON object")));
        };
        let old = stored.get(name);
        let merged = merged(name, server, old)?;
        check(name, &merged, old, commands)?;
        Ok((name.clone(), merged))
    };
    wanted.iter().map(one).collect()
}

/// Restores masked values, keeps keys that a client does not know, and omits defaults that were not written.
fn merged(name: &str, wanted: &Map<String, Value>, old: Option<&Value>) -> Result<Value, ApiError> {
    let (none, masks) = (json!({}), old.map(masked).unwrap_or_else(|| json!({})));
    let (old, display) = (old.unwrap_or(&none), old.map(display_json).unwrap_or_else(|| json!({})));
    let mut merged = Map::new();
    for (key, value) in wanted {
        let stored = old.get(key);
        // A default that is missing in the file stays missing; the client's copy is not a change.
        if stored.is_none() && display.get(key) == Some(value) {
            continue;
        }
        let value = match (key.as_str(), stored) {
            (_, Some(stored)) if masks.get(key) == Some(value) => stored.clone(),
            ("oauth", stored) => kept_oauth(name, value, stored)?,
            (_, Some(stored)) => restored(name, key, value, stored, masks.get(key).unwrap_or(&Value::Null))?,
            (_, None) => fresh(name, key, value)?,
        };
        if !value.is_null() {
            merged.insert(key.clone(), value);
        }
    }
    let is_known = |key: &str| DEFAULTS.iter().any(|(known, _)| *known == key);
    for (key, value) in old.as_object().into_iter().flatten() {
        let is_kept = matches!(key.as_str(), "routing" | "tools") || !is_known(key);
        if is_kept && !wanted.contains_key(key) && (key != "transport" || !merged.contains_key("type")) {
            merged.insert(key.clone(), value.clone());
        }
    }
    Ok(Value::Object(merged))
}

/// Returns a value whose masked parts are replaced by the stored ones.
fn restored(name: &str, key: &str, value: &Value, stored: &Value, mask: &Value) -> Result<Value, ApiError> {
    if value == mask {
        return Ok(stored.clone());
    }
    match (value, stored, mask) {
        (Value::Object(map), Value::Object(old), Value::Object(masks)) => {
            let each = |(key, value): (&String, &Value)| {
                let value = match (old.get(key), masks.get(key)) {
                    (Some(old), Some(mask)) => restored(name, key, value, old, mask)?,
                    _ => fresh(name, key, value)?,
                };
                Ok((key.clone(), value))
            };
            map.iter().map(each).collect::<Result<Map<_, _>, _>>().map(Value::Object)
        }
        (Value::Array(items), Value::Array(old), Value::Array(masks)) if items.len() == old.len() => {
            let each = items.iter().zip(old.iter().zip(masks));
            let each = each.map(|(value, (old, mask))| restored(name, key, value, old, mask));
            each.collect::<Result<Vec<_>, _>>().map(Value::Array)
        }
        _ => fresh(name, key, value),
    }
}

/// Accepts a new value: it must not contain a mask or name an environment variable of the daemon.
fn fresh(name: &str, key: &str, value: &Value) -> Result<Value, ApiError> {
    match value {
        Value::String(text) if text.contains(MASK) => Err(ApiError::bad_request(format!(
            "MCP server '{name}': '{key}' cannot be set to the masked value '***'; send the actual value"
        ))),
        Value::String(text) if text.trim_start().starts_with('$') => Err(ApiError::bad_request(format!(
            "MCP server '{name}': '{key}' refers to an environment variable of the daemon, which only the extensions file may do"
        ))),
        Value::Array(items) => items.iter().map(|item| fresh(name, key, item)).collect(),
        Value::Object(map) => {
            let each = |(key, value): (&String, &Value)| Ok((key.clone(), fresh(name, key, value)?));
            map.iter().map(each).collect::<Result<Map<_, _>, _>>().map(Value::Object)
        }
        _ => Ok(value.clone()),
    }
}

/// Returns an `oauth` object in which a null secret keeps its stored value and an empty one is removed.
fn kept_oauth(name: &str, value: &Value, stored: Option<&Value>) -> Result<Value, ApiError> {
    let Value::Object(wanted) = value else { return Ok(value.clone()) };
    let mut merged = Map::new();
    for (key, value) in wanted {
        let old = stored.and_then(|stored| stored.get(key));
        let is_secret = OAUTH_SECRETS.contains(&key.as_str());
        let value = match (value, old) {
            (Value::Null, Some(old)) if is_secret => old.clone(),
            (Value::String(text), _) if is_secret && text.is_empty() => continue,
            (value, Some(old)) => restored(name, key, value, old, &oauth_value(key, old))?,
            (value, None) => fresh(name, key, value)?,
        };
        if !value.is_null() {
            merged.insert(key.clone(), value);
        }
    }
    Ok(Value::Object(merged))
}

/// Refuses a server that starts a program that the operator did not allow, or that sends a secret to a new destination.
fn check(name: &str, new: &Value, old: Option<&Value>, commands: &[String]) -> Result<(), ApiError> {
    let is_same = |key: &str, old: &Value| new.get(key) == old.get(key);
    let weighty = |server: &Value| -> Map<String, Value> {
        let all = server.as_object().into_iter().flatten();
        let all = all.filter(|(key, _)| !HARMLESS.contains(&key.as_str()));
        all.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    if let Some(old) = old {
        if weighty(new) == weighty(old) && kind(new) == kind(old) {
            return Ok(());
        }
        let token_url =
            |server: &Value| server.get("oauth").and_then(|oauth| oauth.get("token_url")).cloned();
        let moved = kind(new) != kind(old)
            || !["command", "args", "url"].iter().all(|key| is_same(key, old))
            || token_url(new) != token_url(old);
        if moved && keeps_secret(new, old) {
            return Err(ApiError::bad_request(format!(
                "MCP server '{name}' has a new address or command: send its masked values again"
            )));
        }
    }
    if REMOTE.contains(&kind(new)) { Ok(()) } else { check_program(name, new, commands) }
}

/// Returns whether `new` keeps a masked secret of `old`.
fn keeps_secret(new: &Value, old: &Value) -> bool {
    let masks = masked(old);
    fn kept(new: &Value, old: &Value, mask: &Value) -> bool {
        match (new, old, mask) {
            (Value::Object(new), Value::Object(old), Value::Object(masks)) => new.iter().any(|(key, new)| {
                old.get(key).zip(masks.get(key)).is_some_and(|(old, mask)| kept(new, old, mask))
            }),
            (Value::Array(new), Value::Array(old), Value::Array(masks)) => {
                new.iter().zip(old.iter().zip(masks)).any(|(new, (old, mask))| kept(new, old, mask))
            }
            _ => new == old && old != mask,
        }
    }
    kept(new, old, &masks)
}

/// Refuses a program that the operator did not allow, and options that make it execute code.
fn check_program(name: &str, server: &Value, commands: &[String]) -> Result<(), ApiError> {
    let refuse = |why: &str| Err(ApiError::bad_request(format!("MCP server '{name}' {why}")));
    let command = server.get("command").and_then(Value::as_str).unwrap_or_default();
    if !commands.iter().any(|allowed| allowed == command) {
        return refuse(
            "starts a program on this machine: add it to the extensions file, or its command to \
             `gateway.mcp_commands`",
        );
    }
    let is_launcher = LAUNCHERS.contains(&command);
    let args = server.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    for arg in args {
        let option = arg.split_once('=').map_or(arg, |(option, _)| option);
        if CODE_OPTIONS.contains(&option) || is_code_letter(arg, is_launcher) {
            return refuse("has an option that runs text as code");
        }
    }
    let variables = server.get("env").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    for variable in variables {
        if CODE_VARIABLES.contains(&variable.to_ascii_uppercase().as_str()) {
            return refuse(&format!("sets {variable}, which makes a program load code"));
        }
    }
    Ok(())
}

/// Returns whether an argument contains `-c` or `-e`, or `-p` for a program that is not a launcher, alone or combined.
fn is_code_letter(arg: &str, is_launcher: bool) -> bool {
    let Some(letters) = arg.strip_prefix('-').filter(|letters| !letters.starts_with('-')) else {
        return false;
    };
    let codes: &[char] = if is_launcher { &['c', 'e'] } else { &['c', 'e', 'p'] };
    letters.starts_with(codes) || (letters.len() <= 4 && letters.contains(codes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_of_secrets_are_recognised_by_their_words() {
        for name in ["token", "API_KEY", "apiKey", "clientSecret", "x-access-key", "bearer", "my.password"] {
            assert!(names_secret(name), "{name}");
        }
        for name in ["", "key", "tokens_per_day", "monkey", "keyboard", "author", "secretary", "access"] {
            assert!(!names_secret(name), "{name}");
        }
    }

    #[test]
    fn secrets_in_arguments_and_addresses_are_masked() {
        let args = json!([
            "--token",
            "abc",
            "--token=abc",
            "-v",
            "--api-key",
            "--x",
            "sk-proj-abcdefghijklmnop0123",
            7
        ]);
        let shown = json!(["--token", "***", "***", "-v", "--api-key", "--x", "***", 7]);
        assert_eq!(arguments(&args), shown);
        for (text, expect) in [
            ("https://a.example/mcp", "https://a.example/mcp"),
            ("https://a.example/mcp?page=2", "https://a.example/mcp?page=2"),
            ("https://a.example/mcp?api_key=x&page=2", "https://a.example/mcp?api_key=***&page=2"),
            ("$URL", "$URL"),
        ] {
            assert_eq!(address(text), expect);
        }
        assert!(!address("https://ada:hunter2@a.example/mcp").contains("hunter2"));
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<u8>().prop_map(Value::from),
            "[a-z$*:/?=]{0,9}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            let key = "[a-z_]{1,8}|token|client_secret";
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map(key, inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn server() -> impl Strategy<Value = Value> {
        let key = proptest::sample::select(vec![
            "enabled",
            "type",
            "command",
            "args",
            "env",
            "url",
            "headers",
            "oauth",
            "description",
            "routing",
            "tools",
            "tool_call_timeout",
            "task_toolsets",
            "team",
            "api_token",
            "extra",
        ]);
        proptest::collection::btree_map(key.prop_map(str::to_owned), value(), 0..8)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    proptest! {
        /// A page that sends back the servers as shown changes nothing, whatever the file contains.
        #[test]
        fn sending_back_shown_servers_changes_nothing(server in server()) {
            let stored: Map<String, Value> = [("a".to_owned(), server.clone())].into_iter().collect();
            let seen = [("a".to_owned(), display_json(&server))].into_iter().collect();
            prop_assert_eq!(replaced(&seen, &stored, &[]), Ok(stored));
        }

        /// No edit writes a program that the operator did not allow.
        #[test]
        fn no_edit_adds_a_program(server in server()) {
            let wanted: Map<String, Value> = [("a".to_owned(), server)].into_iter().collect();
            if let Ok(written) = replaced(&wanted, &Map::new(), &[]) {
                prop_assert!(written.values().all(|server| REMOTE.contains(&kind(server))), "{written:?}");
            }
        }
    }
}
