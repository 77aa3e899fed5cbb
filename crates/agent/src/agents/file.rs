//! An agent's two files, as text: parsed, checked and rendered.
//!
//! When a `config.yaml` is changed, keys that this version does not know are kept; comments are not.

use super::profile::{AgentProfile, MAX_SOUL_BYTES};
use pudu_base::{Sampling, Thinking};
use serde_json::{Map, Value};
use serde_saphyr::{budget, options};
use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

const CONFIG: &str = "config.yaml";
const SOUL: &str = "SOUL.md";
/// Maximum size of a `config.yaml`, in bytes.
const MAX_CONFIG_BYTES: u64 = 64 * 1024;
/// The known keys, including `name`, which repeats the folder's name.
const KEYS: [&str; 8] = [
    "name",
    "description",
    "model",
    "model_settings",
    "thinking_enabled",
    "reasoning_effort",
    "tool_groups",
    "skills",
];
/// Maximum reply length that an agent may set, in tokens.
const MAX_TOKENS: u64 = 200_000;

/// A file to write: its name and its bytes.
pub(super) type AgentFile = (&'static str, Vec<u8>);

/// Returns whether a folder is an agent's.
pub(super) fn is_agent(folder: &Path) -> bool {
    [CONFIG, SOUL].iter().any(|name| folder.join(name).is_file())
}

/// Reads an agent's character, if it has one. The error describes the problem.
pub(super) fn character(folder: &Path) -> Result<Option<String>, String> {
    text(&soul_path(folder), MAX_SOUL_BYTES as u64).map_err(|why| format!("its {SOUL} {why}"))
}

/// Reads an agent and the problems in its file. The error describes the problem and the fix.
pub(super) fn read(folder: &Path) -> Result<(AgentProfile, Vec<String>), String> {
    let soul = character(folder)?;
    let config = mapping(folder)?;
    let wrong = |why: String| format!("its {CONFIG} cannot be used: {why}");
    let profile = AgentProfile {
        about: optional_text(&config, "description").map_err(wrong)?.unwrap_or_default(),
        model: optional_text(&config, "model").map_err(wrong)?,
        thinking: thinking(&config).map_err(wrong)?,
        sampling: sampling(&config).map_err(wrong)?,
        tool_groups: name_list(&config, "tool_groups").map_err(wrong)?,
        skills: name_list(&config, "skills").map_err(wrong)?,
        soul: soul.unwrap_or_default(),
    };
    Ok((profile, unknown_keys(&config).map_err(wrong)?))
}

/// Reads the thinking and sampling options of an agent's model, from `thinking_enabled`, `reasoning_effort` and
/// `model_settings`.
///
/// # Errors
/// Describes the invalid option.
pub fn read_options(options: &Map<String, Value>) -> Result<(Option<Thinking>, Sampling), String> {
    Ok((thinking(options)?, sampling(options)?))
}

/// Reads the whole `config.yaml`; a missing one is empty.
pub(super) fn mapping(folder: &Path) -> Result<Map<String, Value>, String> {
    let read = text(&folder.join(CONFIG), MAX_CONFIG_BYTES).map_err(|why| format!("its {CONFIG} {why}"))?;
    parse(read.as_deref().unwrap_or_default())
}

fn parse(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let budget = budget! { max_depth: 16, max_nodes: 2_000, max_documents: 1 };
    let options = options! { with_snippet: false, budget: budget };
    match serde_saphyr::from_str_with_options::<Value>(text, options) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err(format!("its {CONFIG} has no keys: write `key: value` lines")),
        Err(error) => {
            let words = error.to_string();
            let words: String = words.lines().next().unwrap_or_default().chars().take(200).collect();
            Err(format!("its {CONFIG} is not valid YAML: {words}"))
        }
    }
}

/// Renders a `config.yaml`, with the other keys of `kept`. Fails if reading it back would not give the same profile.
pub(super) fn config(
    name: &str,
    profile: &AgentProfile,
    kept: Option<Map<String, Value>>,
) -> Result<AgentFile, String> {
    let list = |names: &Option<Vec<String>>| names.clone().map_or(Value::Null, Value::from);
    let effort = profile.thinking.and_then(Thinking::effort);
    let thinks = profile.thinking.map(|thinking| thinking != Thinking::Off);
    let own = [
        ("name", name.into()),
        ("description", profile.about.clone().into()),
        ("model", profile.model.clone().map_or(Value::Null, Value::from)),
        ("model_settings", settings(&profile.sampling)),
        ("thinking_enabled", thinks.map_or(Value::Null, Value::from)),
        ("reasoning_effort", effort.map_or(Value::Null, Value::from)),
        ("tool_groups", list(&profile.tool_groups)),
        ("skills", list(&profile.skills)),
    ];
    let mut all = kept.unwrap_or_default();
    all.retain(|key, _| own.iter().all(|(known, _)| known != key));
    // JSON on one line is YAML.
    let line = |key: &str, value: &Value| format!("{key}: {value}\n");
    let rest: String =
        all.iter().map(|(key, value)| line(&Value::from(key.as_str()).to_string(), value)).collect();
    let own = own.into_iter().filter(|(_, value)| !value.is_null());
    let mut text = String::new();
    for (key, value) in own {
        text.push_str(&line(key, &value));
        all.insert(key.to_owned(), value);
    }
    text.push_str(&rest);
    if text.len() as u64 > MAX_CONFIG_BYTES {
        return Err(format!("its {CONFIG} would be larger than {} KiB", MAX_CONFIG_BYTES / 1024));
    }
    match parse(&text) {
        Ok(read) if read == all => Ok((CONFIG, text.into_bytes())),
        _ => Err("it contains characters that cannot be stored in a file".to_owned()),
    }
}

/// Renders the model's sampling; null if nothing is set.
fn settings(sampling: &Sampling) -> Value {
    let temperature = sampling.temperature.map(|temperature| ("temperature".to_owned(), temperature.into()));
    let max_tokens = sampling.max_tokens.map(|tokens| ("max_tokens".to_owned(), tokens.into()));
    let said: Map<String, Value> = temperature.into_iter().chain(max_tokens).collect();
    if said.is_empty() { Value::Null } else { Value::Object(said) }
}

/// Returns the path of an agent's character.
pub(super) fn soul_path(folder: &Path) -> PathBuf {
    folder.join(SOUL)
}

/// Renders a `SOUL.md`.
pub(super) fn soul(text: &str) -> AgentFile {
    (SOUL, format!("{}\n", text.trim_end()).into_bytes())
}

fn optional_text(config: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match config.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        Some(_) => Err(format!("`{key}` is not text; put it in quotes")),
    }
}

/// Reads DeerFlow's two options.
fn thinking(config: &Map<String, Value>) -> Result<Option<Thinking>, String> {
    let enabled = match config.get("thinking_enabled") {
        None | Some(Value::Null) => None,
        Some(Value::Bool(enabled)) => Some(*enabled),
        Some(_) => return Err("`thinking_enabled` must be true or false".to_owned()),
    };
    let effort = optional_text(config, "reasoning_effort")?;
    let thinking = Thinking::of_options(enabled, effort.as_deref());
    match (effort, thinking) {
        (Some(_), None) => Err("`reasoning_effort` must be low, medium or high".to_owned()),
        (_, thinking) => Ok(thinking),
    }
}

/// Reads the model's sampling.
fn sampling(config: &Map<String, Value>) -> Result<Sampling, String> {
    let settings = match config.get("model_settings") {
        None | Some(Value::Null) => return Ok(Sampling::default()),
        Some(Value::Object(settings)) => settings,
        Some(_) => return Err("`model_settings` has no keys: write `temperature` or `max_tokens`".to_owned()),
    };
    let mut sampling = Sampling::default();
    for (key, value) in settings.iter().filter(|(_, value)| !value.is_null()) {
        match key.as_str() {
            "temperature" => {
                let known = value.as_f64().filter(|value| (0.0..=2.0).contains(value));
                let wrong = || "`model_settings.temperature` must be a number from 0 to 2".to_owned();
                sampling.temperature = Some(known.ok_or_else(wrong)?);
            }
            "max_tokens" => {
                let known = value.as_u64().filter(|value| (1..=MAX_TOKENS).contains(value));
                let known = known.and_then(|value| u32::try_from(value).ok());
                let wrong =
                    || format!("`model_settings.max_tokens` must be a whole number from 1 to {MAX_TOKENS}");
                sampling.max_tokens = Some(known.ok_or_else(wrong)?);
            }
            other => {
                let other = other.escape_debug();
                return Err(format!(
                    "`model_settings.{other}` is unknown: use `temperature` or `max_tokens`"
                ));
            }
        }
    }
    Ok(sampling)
}

fn name_list(config: &Map<String, Value>, key: &str) -> Result<Option<Vec<String>>, String> {
    let wrong = || {
        format!("`{key}` must be a list of names: write `{key}: [a, b]`, `[]` for none, or omit it for all")
    };
    match config.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => {
            let name = |item: &Value| item.as_str().map(|name| name.trim().to_owned()).ok_or_else(wrong);
            items.iter().map(name).collect::<Result<_, _>>().map(Some)
        }
        Some(_) => Err(wrong()),
    }
}

/// Returns the unknown keys. One that looks like a misspelt restriction is an error, since ignoring it would lift the
/// restriction.
fn unknown_keys(config: &Map<String, Value>) -> Result<Vec<String>, String> {
    let mut unused_keys = Vec::new();
    for key in config.keys().filter(|key| !KEYS.contains(&key.as_str())) {
        let plain: String = key.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
        let shown = key.escape_debug();
        match plain.trim_end_matches('s') {
            "toolgroup" | "tool" | "group" => {
                return Err(format!("`{shown}` is not a known key; use `tool_groups`"));
            }
            "skill" => return Err(format!("`{shown}` is not a known key; use `skills`")),
            _ => unused_keys.push(format!("`{shown}` in its {CONFIG} has no effect")),
        }
    }
    Ok(unused_keys)
}

/// Reads a file; `None` if it does not exist.
fn text(path: &Path, max_bytes: u64) -> Result<Option<String>, String> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(max_bytes + 1).read_to_end(&mut bytes)) {
        Ok(_) if bytes.len() as u64 > max_bytes => Err(format!("is larger than {} KiB", max_bytes / 1024)),
        Ok(_) => String::from_utf8(bytes).map(Some).map_err(|_| "is not UTF-8 text".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot be read ({})", error.kind())),
    }
}
