//! Sandbox settings of the agent's commands, limits of tool results, and the list of tools.

use super::{
    Start,
    class::{self, Class, ClassKind, Native},
    containers::{self, Keep, SandboxBackend},
    elsewhere,
    env::Env,
    quantity::NumberUnit,
    raw::NodeValue,
    reader::{Section, describe},
    web::{self, WebConfig},
};
use pudu_client::{
    base::Network,
    egress::Domain,
    sandbox::{CommandLimits, Mount},
};
use serde_json::Value as Json;
use std::time::Duration;

/// Rights in a sandbox, and how much of its output is shown to the model.
#[derive(Clone, Debug, PartialEq)]
pub struct SandboxConfig {
    /// Whether the shell of this very machine may be used where commands cannot be confined.
    pub allow_host_bash: bool,
    /// Network access of commands.
    pub network: Network,
    /// Which domains they reach through the proxy.
    pub allowed_domains: Vec<Domain>,
    /// Environment variables of commands, besides the usual.
    pub environment: Vec<(String, String)>,
    /// Folders of this machine that all threads find.
    pub mounts: Vec<Mount>,
    /// Resource limits of a command.
    pub limits: CommandLimits,
    /// How long containers are kept, where there are any.
    pub keep: Keep,
    /// How many characters of a command's output are shown.
    pub bash_output_max_chars: usize,
    /// How many characters of a file are shown.
    pub read_file_output_max_chars: usize,
    /// How many characters of a listing are shown.
    pub ls_output_max_chars: usize,
    /// After this long a command is killed.
    pub bash_command_timeout: Duration,
}

/// A tool that the agent has.
#[derive(Clone, Debug)]
pub struct ToolConfig {
    /// Which one.
    pub tool: Native,
    /// The group it belongs to; agents may have some groups only.
    pub group: String,
    /// Whether every call of the tool needs approval.
    pub approval: bool,
    /// For a tool of the web, how it is set up.
    pub web: Option<WebConfig>,
}

/// Variables that a command's environment has of its own, and that would change how its shell starts.
const NAMES_TAKEN: [&str; 4] = ["BASH_ENV", "ENV", "LD_PRELOAD", "LD_LIBRARY_PATH"];
const MIB: u64 = 1024 * 1024;

const NETWORKS: &[(&str, Network)] =
    &[("none", Network::None), ("proxy", Network::Proxy), ("full", Network::Full)];

const APPROVAL: &[(&str, bool)] = &[("required", true)];

const UNSUPPORTED_KEYS: &[&str] = &[
    "api_key",
    "base_url",
    "cpu_cores",
    "health_check_skip_seconds",
    "home_dir",
    "max_duration",
    "memory_mb",
    "memory_mib",
    "overflow_policy",
    "ownership",
    "project_id",
    "sticky",
    "workspace_id",
];

/// Reads where commands run.
pub(super) fn provider(top: &Section<'_>, start: &Start) -> SandboxBackend {
    let section = top.section("sandbox");
    section.note_unused(UNSUPPORTED_KEYS);
    let class =
        class::read(&section, ClassKind::Sandbox, Some("deerflow.sandbox.local:LocalSandboxProvider"));
    let provisioner = elsewhere::provisioner(&section, matches!(class, Some(Class::Containers)));
    let kubernetes = elsewhere::kubernetes(&section, matches!(class, Some(Class::Pods)));
    section.know_all(containers::KEYS);
    unchosen(&section);
    match (class, provisioner, kubernetes) {
        (Some(Class::Containers), Some(provisioner), _) => SandboxBackend::Provisioner(provisioner),
        (Some(Class::Containers), None, _) => SandboxBackend::Docker(containers::docker(&section, start)),
        #[cfg(feature = "kubernetes")]
        (Some(Class::Pods), _, Some(kubernetes)) => SandboxBackend::Kubernetes(Box::new(kubernetes)),
        #[cfg(not(feature = "kubernetes"))]
        (Some(Class::Pods), ..) => {
            section.refuse(
                "use",
                "this pudu was built without Kubernetes",
                "take one that was built with the feature",
            );
            SandboxBackend::Local
        }
        _ => SandboxBackend::Local,
    }
}

/// Warns of keys of a sandbox provider that is not chosen.
fn unchosen(section: &Section<'_>) {
    const CONTAINERS: &str = "set `use: deerflow.community.aio_sandbox:AioSandboxProvider`, or remove this";
    const PODS: &str = "set `use: pudu.sandbox:KubernetesProvider`, or remove this";
    let keys = [
        ("docker_host", CONTAINERS),
        ("image", CONTAINERS),
        ("provisioner_url", CONTAINERS),
        ("kubernetes", PODS),
    ];
    if section.entry("use").is_some() {
        return;
    }
    for (key, help) in keys.into_iter().filter(|(key, _)| section.entry(key).is_some()) {
        section.warn(key, "this has no effect: without `use`, commands run on this machine", help);
    }
}

/// Reads the limits of the sandbox.
pub(super) fn limits(top: &Section<'_>, provider: &SandboxBackend) -> SandboxConfig {
    let section = top.section("sandbox");
    let network = section
        .choice("network", NETWORKS)
        .or_told(provider.network(), "none; full for the all-in-one image");
    provider.check(&section, network);
    let network = if matches!(provider, SandboxBackend::Provisioner(_)) { Network::Full } else { network };
    let allowed_domains = domains(&section, network);
    let limits = provider.limits();
    let told = |limit: fn(CommandLimits) -> u64| {
        let [usual, aio] = [CommandLimits::COMMAND, CommandLimits::DESKTOP].map(limit);
        format!("{usual}; {aio} for the all-in-one image")
    };
    SandboxConfig {
        keep: containers::keep(&section, provider),
        allow_host_bash: section.flag("allow_host_bash").or(false),
        network,
        allowed_domains,
        environment: environment(&section),
        mounts: section.items("mounts").iter().filter_map(mount).collect(),
        limits: CommandLimits {
            memory: section
                .amount("memory_limit", NumberUnit::Bytes, 64 * MIB..=1 << 50)
                .or_told(limits.memory, &told(|limits| limits.memory)),
            processes: section
                .number("process_limit", 8..=100_000)
                .or_told(limits.processes, &told(|limits| limits.processes)),
            disk: section.amount("disk_limit", NumberUnit::Bytes, MIB..=1 << 50).or(limits.disk),
        },
        bash_output_max_chars: chars(&section, "bash_output_max_chars", 20_000),
        read_file_output_max_chars: chars(&section, "read_file_output_max_chars", 50_000),
        ls_output_max_chars: chars(&section, "ls_output_max_chars", 20_000),
        bash_command_timeout: section.seconds("bash_command_timeout", 1.0).or(Duration::from_secs(600)),
    }
}

fn domains(section: &Section<'_>, network: Network) -> Vec<Domain> {
    let show = |domains: &Vec<Domain>| domains.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let one = |value: &NodeValue| match value {
        NodeValue::Text(text) => Domain::parse(text),
        other => Err(format!("write names such as example.org or *.example.org, not {}", describe(other))),
    };
    let setting = section.list("allowed_domains", "domains", show, one);
    let spoilt = setting.is_spoilt();
    let domains = setting.or_told(Vec::new(), "none");
    match (network, domains.is_empty()) {
        (Network::Proxy, true) if !spoilt => {
            let what = "no domain is named, so none can be reached";
            section.warn("network", what, "name them in allowed_domains");
        }
        (Network::None | Network::Full, false) => {
            let what = "these count with `network: proxy` only";
            section.warn("allowed_domains", what, "set `network: proxy`, or remove them");
        }
        _ => {}
    }
    domains
}

fn environment(section: &Section<'_>) -> Vec<(String, String)> {
    let map = section.map("environment").or(serde_json::Map::new());
    let mut pairs = Vec::new();
    for (name, value) in map {
        let value = match value {
            Json::String(text) => text,
            Json::Null => String::new(),
            other => other.to_string(),
        };
        let plain = !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
        if !plain || NAMES_TAKEN.contains(&name.as_str()) || value.contains('\0') {
            let what = format!("a command cannot have {name} in its environment");
            section.refuse(
                "environment",
                what,
                "use letters, digits and `_`, and none of the shell's own names",
            );
            continue;
        }
        pairs.push((name, value));
    }
    pairs
}

/// DeerFlow's keys; a mount that cannot be is an error.
fn mount(section: &Section<'_>) -> Option<Mount> {
    let help = "name a folder of this machine and where the agent finds it";
    let host = section.text("host_path").required(help);
    let agent = section.text("container_path").required(help);
    let read_only = section.flag("read_only").or(false);
    match Mount::configured(host?.into(), &agent?, read_only) {
        Ok(mount) => Some(mount),
        Err(what) => {
            section.refuse("container_path", what, "choose another path, for example /mnt/data");
            None
        }
    }
}

/// Reads a limit in characters. DeerFlow's 0 means no limit; here it means the most that a model could ever take.
fn chars(section: &Section<'_>, key: &str, default: u32) -> usize {
    const MAX_CHARS: u32 = 10_000_000;
    match section.number(key, 0..=MAX_CHARS).or(default) {
        0 => MAX_CHARS as usize,
        limit => limit as usize,
    }
}

/// Reads the tools: the listed ones, or all where none is listed. Tools for people's files are always
/// present, as in DeerFlow.
pub(super) fn tools(top: &Section<'_>, env: &Env) -> Vec<ToolConfig> {
    let mut tools: Vec<ToolConfig> = Vec::new();
    for section in top.items("tools") {
        let Some(tool) = tool(&section, env) else { continue };
        // Of two with one name the first counts, as in DeerFlow.
        if !tools.iter().any(|other| other.tool.name() == tool.tool.name()) {
            tools.push(tool);
        }
    }
    let listed = top.entry("tools").is_some();
    for tool in Native::ALL {
        let missing = tools.iter().all(|other| other.tool != tool);
        if missing && (!listed || tool.is_built_in()) {
            let web = match tool {
                Native::Web(kind, provider) => Some(WebConfig::plain(kind, provider)),
                _ => None,
            };
            tools.push(ToolConfig { tool, group: tool.group().to_owned(), approval: false, web });
        }
    }
    tools
}

/// Reads which groups there are. Tools may name others as well.
pub(super) fn groups(top: &Section<'_>) -> Vec<String> {
    let name = |section: &Section<'_>| section.text("name").required("say what the group is called");
    top.items("tool_groups").iter().filter_map(name).collect()
}

fn tool(section: &Section<'_>, env: &Env) -> Option<ToolConfig> {
    let class = class::read(section, ClassKind::Tool, None);
    let name = section.text("name").or_told(String::new(), "the tool's own");
    let group = section.text("group").optional("the tool's usual one: web, file:read, file:write or bash");
    match class? {
        Class::Tool(tool) => {
            if !name.is_empty() && name != tool.name() {
                let what = format!("\"{name}\" has no effect");
                section.warn("name", what, format!("the tool is called {}", tool.name()));
            }
            let web = match tool {
                Native::Web(kind, provider) => Some(web::read(section, kind, provider, env)),
                _ => {
                    section.note_unused(&["max_results"]);
                    None
                }
            };
            let approval = section.choice("approval", APPROVAL).or_told(false, "as `approvals.tools` says");
            let group = group.unwrap_or_else(|| tool.group().to_owned());
            Some(ToolConfig { tool, group, approval, web })
        }
        _ => {
            let what = "this tool is not in this version; it is left out";
            section.warn("use", what, "nothing has to be done; the agent works without it");
            section.ignore_rest();
            None
        }
    }
}
