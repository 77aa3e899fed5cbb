//! Each section of DeerFlow's configuration, switched on: it is obeyed, refused with the fix, or named as unused.

use super::*;
use raw::{MappingEntry, Node, NodeValue};
use std::collections::BTreeSet;

/// The result of a file that switches a section on.
enum Outcome {
    /// The start reports nothing: every key is read.
    Obeyed,
    /// The start lists these keys as unused.
    Unused(&'static [&'static str]),
    /// The start fails with an error about this key.
    Refused(&'static str),
    /// The start warns about this key.
    Warned(&'static str),
}
use Outcome::{Obeyed, Refused, Unused, Warned};

/// A section, a file that switches it on, and the result.
const SECTIONS: &[(&str, &str, Outcome)] = &[
    ("config_version", "", Obeyed),
    ("log_level", "log_level: debug", Obeyed),
    ("logging", "logging: {enhance: {enabled: true, format: json}}", Unused(&["logging"])),
    ("extensions", "extensions: {middlewares: ['team.parts:Guard']}", Refused("extensions.middlewares")),
    ("plugins", "plugins: [{use: 'team.parts:install'}]", Unused(&["plugins"])),
    ("token_usage", "token_usage: {enabled: true}", Obeyed),
    ("token_budget", "token_budget: {enabled: true, max_tokens: 5000}", Obeyed),
    ("max_recursion_limit", "max_recursion_limit: 400", Obeyed),
    ("models", "models: [{name: m, use: 'langchain_openai:ChatOpenAI', model: m, api_key: k}]", Obeyed),
    (
        "models",
        "models: [{name: m, use: 'deerflow.models.openai_codex_provider:CodexChatModel', model: m}]",
        Refused("models[0].use"),
    ),
    ("tool_groups", "tool_groups: [{name: web}]", Obeyed),
    ("tools", "tools: [{name: ls, group: files, use: 'deerflow.sandbox.tools:ls_tool'}]", Obeyed),
    ("tools", "tools: [{name: own, group: files, use: 'team.parts:own_tool'}]", Refused("tools[0].use")),
    ("tool_search", "tool_search: {enabled: true}", Obeyed),
    (
        "tool_search",
        "tool_search: {enabled: true, auto_promote_top_k: 3}",
        Unused(&["tool_search.auto_promote_top_k"]),
    ),
    ("tool_output", "tool_output: {enabled: true}", Obeyed),
    ("tool_progress", "tool_progress: {enabled: true}", Obeyed),
    ("suggestions", "suggestions: {enabled: true}", Obeyed),
    ("input_polish", "input_polish: {enabled: true}", Obeyed),
    ("loop_detection", "loop_detection: {enabled: true}", Obeyed),
    ("read_before_write", "read_before_write: {enabled: true}", Obeyed),
    ("read_before_write", "read_before_write: {enabled: false}", Warned("read_before_write.enabled")),
    ("safety_finish_reason", "safety_finish_reason: {enabled: true}", Obeyed),
    (
        "safety_finish_reason",
        "safety_finish_reason: {detectors: [{use: 'team.parts:Own'}]}",
        Refused("safety_finish_reason.detectors"),
    ),
    ("uploads", "uploads: {auto_convert_documents: true}", Obeyed),
    ("uploads", "uploads: {pdf_converter: pymupdf4llm}", Unused(&["uploads.pdf_converter"])),
    ("sandbox", "sandbox: {use: 'deerflow.sandbox.local:LocalSandboxProvider'}", Obeyed),
    ("sandbox", "sandbox: {use: 'deerflow.community.boxlite:BoxliteProvider'}", Refused("sandbox.use")),
    ("subagents", "subagents: {timeout_seconds: 60}", Obeyed),
    ("acp_agents", "acp_agents: {coder: {command: npx, description: Writes code}}", Obeyed),
    ("acp_agents", "acp_agents: {coder: {command: npx}}", Refused("acp_agents.coder.description")),
    ("skills", "skills: {path: ../skills, deferred_discovery: true}", Obeyed),
    ("skills", "skills: {use: 'team.parts:Skills'}", Unused(&["skills.use"])),
    ("skill_scan", "skill_scan: {enabled: true}", Obeyed),
    ("skill_scan", "skill_scan: {enabled: true, own: 1}", Unused(&["skill_scan.own"])),
    ("skill_scan", "skill_scan: {enabled: false}", Warned("skill_scan.enabled")),
    ("skill_evolution", "skill_evolution: {enabled: true}", Obeyed),
    ("title", "title: {enabled: true}", Obeyed),
    ("summarization", "summarization: {enabled: true}", Obeyed),
    ("memory", "memory: {enabled: true}", Obeyed),
    ("memory", "memory: {manager_class: mem0}", Refused("memory.manager_class")),
    ("agents_api", "agents_api: {enabled: true}", Obeyed),
    ("agent_storage", "agent_storage: {backend: db}", Unused(&["agent_storage"])),
    ("checkpointer", "checkpointer: {type: sqlite, connection_string: a.db}", Obeyed),
    ("database", "database: {backend: sqlite}", Obeyed),
    ("database", "database: {backend: memory}", Obeyed),
    ("dedupe_storage", "dedupe_storage: {backend: postgres}", Unused(&["dedupe_storage"])),
    ("run_events", "run_events: {backend: db}", Unused(&["run_events"])),
    ("stream_bridge", "stream_bridge: {type: redis}", Unused(&["stream_bridge"])),
    ("run_ownership", "run_ownership: {heartbeat_enabled: true}", Unused(&["run_ownership"])),
    ("scheduler", "scheduler: {enabled: true}", Obeyed),
    ("scheduler", "scheduler: {multi_instance: true}", Unused(&["scheduler.multi_instance"])),
    ("mcp_tasks", "mcp_tasks: {enabled: true}", Unused(&["mcp_tasks"])),
    ("llm_call", "llm_call: {max_concurrent_calls: 4}", Obeyed),
    ("circuit_breaker", "circuit_breaker: {failure_threshold: 5}", Obeyed),
    (
        "guardrails",
        "guardrails: {enabled: true, provider: {use: 'deerflow.guardrails.builtin:AllowlistProvider', config: {denied_tools: [bash]}}}",
        Obeyed,
    ),
    (
        "guardrails",
        "guardrails: {enabled: true, provider: {use: 'team.parts:Guard'}}",
        Refused("guardrails.provider.use"),
    ),
    (
        "authorization",
        "authorization: {enabled: true, provider: {use: 'deerflow.authz.rbac:RbacAuthorizationProvider'}}",
        Refused("authorization.enabled"),
    ),
    ("auth", "auth: {local: {allow_registration: true}}", Obeyed),
    ("channel_connections", "channel_connections: {enabled: true}", Refused("channel_connections.enabled")),
    (
        "channel_connections",
        "channel_connections: {enabled: true, require_bound_identity: false, slack: {enabled: true}}",
        Unused(&["channel_connections.slack"]),
    ),
    ("channels", "channels: {telegram: {enabled: true, bot_token: '1:x', allowed_users: [1]}}", Obeyed),
    ("channels", "channels: {wecom: {enabled: true, bot_id: a, bot_secret: b}}", Warned("channels.wecom")),
];

const EXAMPLE: &str = include_str!("deerflow.yaml");

#[test]
fn each_section_switched_on_is_obeyed_refused_with_the_fix_or_named() {
    for (section, text, outcome) in SECTIONS {
        let messages = messages(&format!("{text}\n"), []);
        match outcome {
            Obeyed => assert_eq!(messages, "", "{section}"),
            Unused(keys) => assert_eq!(
                messages,
                format!("config.yaml: note: not used by this version: {}", keys.join(", ")),
                "{section}"
            ),
            Refused(key) => {
                let names_fix = messages.contains("\n  help: ") || messages.contains(", expected one of ");
                assert!(messages.contains(&format!("error: {key}: ")) && names_fix, "{section}: {messages}");
            }
            Warned(key) => {
                assert!(
                    messages.contains(&format!("warning: {key}: ")) && messages.contains("\n  help: "),
                    "{section}: {messages}"
                );
                assert!(!messages.contains("error"), "{section}: {messages}");
            }
        }
    }
}

#[test]
fn no_section_of_deerflow_is_left_out() {
    let (root, _) = raw::parse(EXAMPLE.as_bytes());
    let root = root.unwrap();
    let sections: BTreeSet<&str> = root.entries().iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(SECTIONS.iter().map(|(section, ..)| *section).collect::<BTreeSet<_>>(), sections);
}

/// Keys of DeerFlow's example that are neither among the read ones nor reported, each with the reason.
const UNRECORDED: &[(&str, &str)] = &[
    ("models[2].reasoning", "it is sent to the model, as `think`"),
    ("read_before_write.enabled", "the protection is always on"),
    ("safety_finish_reason.enabled", "the protection is always on"),
    ("sandbox.image", "it is of containers, which the file does not use"),
    ("sandbox.port", "it is of containers, which the file does not use"),
    ("sandbox.replicas", "it is of containers, which the file does not use"),
    ("sandbox.container_prefix", "it is of containers, which the file does not use"),
    ("sandbox.idle_timeout", "it is of containers, which the file does not use"),
    ("skill_scan.enabled", "the protection is always on"),
];

#[test]
fn no_key_of_deerflow_is_ignored_silently() {
    let on = |text: String, off: &str| text.replace(&format!("enabled: {off}"), "enabled: true");
    let text = ["false", "no", "off"].into_iter().fold(EXAMPLE.to_owned(), on);
    let (root, _) = raw::parse(text.as_bytes());
    let root = root.unwrap();
    let env = Env::from([("TEST_KEY", "k"), ("TEST_BOT", "1:x"), ("NOT_SET_AND_NOT_NEEDED", "x")]);
    let (_, log) = understand(&root, &Start { env, dir: "/d".into(), ..Start::default() });
    let listed: Vec<&str> = UNRECORDED.iter().map(|(key, _)| *key).collect();
    assert_eq!(silent(&root, "", &log), listed);
}

/// Returns the keys of a part of the file that were neither read nor reported. Empty values say nothing.
fn silent(node: &Node, path: &str, log: &reader::Log) -> Vec<String> {
    if let NodeValue::List(items) = &node.value {
        let items = items.iter().enumerate();
        return items.flat_map(|(index, item)| silent(item, &format!("{path}[{index}]"), log)).collect();
    }
    let left = |MappingEntry { key, node, .. }: &MappingEntry| {
        let below = problem::join(path, key);
        let is_read = |(read, known): (&String, &Key)| {
            let is_alias = read.strip_suffix(known.pattern.rsplit('.').next().unwrap_or_default());
            known.said
                && (*read == below
                    || known.aliases.contains(&key.as_str()) && is_alias == Some(below.trim_end_matches(key)))
        };
        let switch = problem::join(path, "enabled");
        let places = [below.as_str(), path, switch.as_str()];
        let is_reported =
            |problem: &Problem| !problem.key.is_empty() && places.contains(&problem.key.as_str());
        if log.keys.iter().any(is_read)
            || log.unused.contains(&schema::pattern(&below))
            || log.problems.iter().any(is_reported)
        {
            return Vec::new();
        }
        match &node.value {
            NodeValue::Null => Vec::new(),
            NodeValue::Text(text) if text.is_empty() => Vec::new(),
            NodeValue::Map(_) | NodeValue::List(_) => silent(node, &below, log),
            _ => vec![below],
        }
    };
    node.entries().iter().flat_map(left).collect()
}
