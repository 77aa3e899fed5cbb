//! The JSON schema of the file, for editors.
//!
//! It is generated from the keys that a reader requests, without a separate list of keys. Every value may also be
//! empty, or name an environment variable.

use super::{
    declaration::{KeyDeclaration, ValueKind},
    problem::join,
    raw,
    reader::{Effect, Key, Log},
    understand,
};
use crate::Start;
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};

/// A file with every section and one model of each protocol, so that every key is requested when it is read.
const SAMPLE: &str = "
models:
  - {name: a, model: a, base_url: http://localhost/v1}
  - {name: b, model: b, use: langchain_openai:AzureChatOpenAI}
  - {name: c, model: c, use_responses_api: true}
  - {name: d, model: d, use: langchain_anthropic:ChatAnthropic}
  - {name: e, model: e, use: langchain_google_genai:ChatGoogleGenerativeAI}
  - {name: f, model: f, use: langchain_ollama:ChatOllama}
tool_groups: [{name: a}]
tools: [{use: deerflow.community.ddg_search.tools:web_search_tool}]
loop_detection: {tool_freq_overrides: {bash: {warn: 1, hard_limit: 2}}}
acp_agents: {claude_code: {command: npx, description: a}}
subagents: {agents: {bash: {}}, custom_agents: {researcher: {description: a, system_prompt: b}}}
auth: {oidc: {providers: {company: {issuer: \"https://login.example.com\", client_id: pudu}}}}
sandbox:
  use: deerflow.community.aio_sandbox:AioSandboxProvider
  mounts: [{host_path: /srv, container_path: /mnt/srv}]
channels: {telegram: {}, feishu: {}, dingtalk: {}, slack: {}, discord: {}}
";

/// Sections and keys that also accept another type, and that type.
const ALSO: &[(&str, &str)] = &[("summarization.trigger", "array"), ("guardrails.passport", "object")];

/// Reads the sample, which requests every key.
pub(super) fn every_key() -> Log {
    let (root, _) = raw::parse(SAMPLE.as_bytes());
    root.map(|root| understand(&root, &Start::default()).1).unwrap_or_default()
}

/// Returns the JSON schema of the file.
pub fn schema() -> Json {
    let log = every_key();
    let mut known: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (path, keys) in &log.sections {
        known.entry(pattern(path)).or_default().extend(keys.iter().map(String::as_str));
    }
    let keys = log.keys.values().map(|key| (key.pattern.as_str(), key)).collect();
    let mut schema = Schema { log: &log, known, keys }.section("");
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("Configuration of pudu");
    schema["patternProperties"] = json!({ "^[xX]-": {} });
    schema
}

/// Returns a path with `[]` for each index in a list.
pub(super) fn pattern(path: &str) -> String {
    path.split('.')
        .map(|part| part.split_once('[').map_or(part.to_owned(), |(list, _)| format!("{list}[]")))
        .collect::<Vec<_>>()
        .join(".")
}

struct Schema<'l> {
    log: &'l Log,
    known: BTreeMap<String, BTreeSet<&'l str>>,
    keys: BTreeMap<&'l str, &'l Key>,
}

impl Schema<'_> {
    fn section(&self, path: &str) -> Json {
        let keys = self.known.get(path).into_iter().flatten();
        let properties: Map<_, _> =
            keys.map(|key| ((*key).to_owned(), self.value(&join(path, key)))).collect();
        let named =
            self.log.named.iter().find(|named| named.rsplit_once('.').is_some_and(|(list, _)| list == path));
        // Sections that pudu does not read, and bots with their own names, may have any keys.
        let has_declared = properties.values().any(|value| value != &json!({}));
        let rest = match named {
            Some(named) => self.section(named),
            None => json!(path == "channels" || !has_declared),
        };
        let properties = if named.is_some() { Map::new() } else { properties };
        let mut section = json!({ "type": types(path, &["object"]), "properties": properties, "additionalProperties": rest });
        if let Some(about) = self.log.about.get(path) {
            section["description"] = json!(about);
        }
        section
    }

    fn value(&self, path: &str) -> Json {
        let items = format!("{path}[]");
        if let Some(key) = self.keys.get(path) {
            return described(path, &key.declared, key.effect);
        }
        if self.known.contains_key(&items) {
            let about = self.log.about.get(path);
            return json!({ "type": ["array", "null"], "items": self.section(&items), "description": about });
        }
        match self.known.contains_key(path) {
            true => self.section(path),
            false => json!({}),
        }
    }
}

fn types(path: &str, usual: &[&'static str]) -> Vec<&'static str> {
    let also = ALSO.iter().filter(|(other, _)| *other == path).map(|(_, also)| *also);
    usual.iter().copied().chain(also).chain(["null"]).collect()
}

fn described(path: &str, declared: &KeyDeclaration, effect: Effect) -> Json {
    let effect = match effect {
        Effect::Restart => " A change needs a restart.",
        Effect::Reconnect => " A change reconnects the bot.",
        Effect::NextMessage => "",
    };
    let usual = match declared.default.as_str() {
        "required" | "" => String::new(),
        default => format!(" Default: {default}."),
    };
    let mut value = match &declared.kind {
        ValueKind::Text(_) => json!({ "type": types(path, &["string"]) }),
        ValueKind::Flag => json!({ "type": types(path, &["boolean", "string"]) }),
        ValueKind::Number { low, high, is_whole, .. } => {
            let end = |end: &str| end.parse().map_or(Json::Null, |end: f64| json!(end));
            let kind = if *is_whole { "integer" } else { "number" };
            json!({ "type": types(path, &[kind, "string"]), "minimum": end(low), "maximum": end(high) })
        }
        ValueKind::Choice(words) => {
            json!({ "anyOf": [{ "enum": words }, { "type": ["boolean", "null"] }, { "pattern": "^\\$" }] })
        }
        ValueKind::List(_) => json!({ "type": types(path, &["array", "string", "number"]) }),
        ValueKind::Mapping => json!({ "type": types(path, &["object"]) }),
    };
    value["description"] = json!(format!("{}{usual}{effect}", declared.about));
    value
}
