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
use pudu_agent::egress::Domain;
use pudu_base::Network;
use pudu_sandbox::{CommandLimits, Mount};
use serde_json::Value as Json;
use std::time::Duration;

/// Permissions in a sandbox, and limits of the output for the model.
#[derive(Clone, Debug, PartialEq)]
pub struct SandboxConfig {
    /// Whether the shell of this machine may be used if commands cannot be confined.
    pub allow_host_bash: bool,
    /// Network access of commands.
    pub network: Network,
    /// Domains that commands reach through the proxy.
    pub allowed_domains: Vec<Domain>,
    /// Additional environment variables of commands.
    pub environment: Vec<(String, String)>,
    /// Folders of this machine that are mounted for all threads.
    pub mounts: Vec<Mount>,
    /// Resource limits of a command.
    pub limits: CommandLimits,
    /// Limits of containers.
    pub keep: Keep,
    /// Maximum length of a command's output for the model, in characters.
    pub bash_output_max_chars: usize,
    /// Maximum length of a file's text for the model, in characters.
    pub read_file_output_max_chars: usize,
    /// Maximum length of a listing for the model, in characters.
    pub ls_output_max_chars: usize,
    /// Maximum duration of a command; then it is killed.
    pub bash_command_timeout: Duration,
}

/// A tool that the agent has.
#[derive(Clone, Debug)]
pub struct ToolConfig {
    /// The tool.
    pub tool: Native,
    /// Its group. Agents may be limited to some groups.
    pub group: String,
    /// Whether every call of the tool needs approval.
    pub approval: bool,
    /// Settings of a web tool.
    pub web: Option<WebConfig>,
}

/// Reserved variables, which would change how a command's shell starts.
const NAMES_TAKEN: [&str; 4] = ["BASH_ENV", "ENV", "LD_PRELOAD", "LD_LIBRARY_PATH"];
const MIB: u64 = 1024 * 1024;
/// Maximum limit of an output, in characters.
const MAX_CHARS: usize = 10_000_000;

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

/// Reads the sandbox backend.
pub(super) fn provider(top: &Section<'_>, start: &Start) -> SandboxBackend {
    let section = top
        .section("sandbox")
        .about("Sandbox of the agent's commands, and the limits of the output that the model sees.");
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
                "this build does not support Kubernetes",
                "use a build with the feature `kubernetes`",
            );
            SandboxBackend::Local
        }
        _ => SandboxBackend::Local,
    }
}

/// Warns about keys of a sandbox provider that is not selected.
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
    settings! { section =>
        /// Allows the agent the shell of this machine if the kernel cannot confine commands; only safe if every user who can
        /// write to the agent is trusted.
        allow_host_bash = flag().or(false);
        /// Network access of commands: none; proxy for `allowed_domains`, not in containers; full for every address that
        /// this machine reaches, including its own.
        network = choice(NETWORKS).eg("none").or_described(provider.network(), "none; full for the all-in-one image");
    }
    provider.check(&section, network);
    let network = if matches!(provider, SandboxBackend::Provisioner(_)) { Network::Full } else { network };
    let allowed_domains = domains(&section, network);
    let usual = provider.limits();
    let default_text = |limit: fn(CommandLimits) -> u64| {
        let [usual, aio] = [CommandLimits::COMMAND, CommandLimits::DESKTOP].map(limit);
        format!("{usual}; {aio} for the all-in-one image")
    };
    let environment = environment(&section);
    section.about_list("mounts", "Folders of this machine that the agent finds in all threads.");
    let mounts = section.items("mounts").iter().filter_map(mount).collect();
    settings! { section =>
        /// Maximum memory of a command with its processes, in bytes; in containers, of the whole container.
        memory as "memory_limit" = amount(NumberUnit::Bytes, 64 * MIB..=1 << 50)
            .eg("2147483648").or_described(usual.memory, &default_text(|limits| limits.memory));
        /// Maximum number of simultaneous processes and threads of a command; in containers, of the whole container.
        processes as "process_limit" = number(8..=100_000)
            .eg("256").or_described(usual.processes, &default_text(|limits| limits.processes));
        /// Maximum size of a thread's folder, in bytes.
        disk as "disk_limit" = amount(NumberUnit::Bytes, MIB..=1 << 50).or(usual.disk);
        /// Maximum length of a command's output that the model sees, in characters; 0 shows all.
        bash_output_max_chars = number(0..=MAX_CHARS).or(20_000);
        /// Maximum length of a file's text that the model sees, in characters; 0 shows all.
        read_file_output_max_chars = number(0..=MAX_CHARS).or(50_000);
        /// Maximum length of a listing that the model sees, in characters; 0 shows all.
        ls_output_max_chars = number(0..=MAX_CHARS).or(20_000);
        /// Maximum duration of a command, in seconds; then it is killed.
        bash_command_timeout = seconds(1.0).or(Duration::from_secs(600));
    }
    // 0 means the maximum.
    let chars = |limit: usize| if limit == 0 { MAX_CHARS } else { limit };
    SandboxConfig {
        keep: containers::keep(&section, provider),
        allow_host_bash,
        network,
        allowed_domains,
        environment,
        mounts,
        limits: CommandLimits { memory, processes, disk },
        bash_output_max_chars: chars(bash_output_max_chars),
        read_file_output_max_chars: chars(read_file_output_max_chars),
        ls_output_max_chars: chars(ls_output_max_chars),
        bash_command_timeout,
    }
}

fn domains(section: &Section<'_>, network: Network) -> Vec<Domain> {
    let one = |value: &NodeValue| match value {
        NodeValue::Text(text) => Domain::parse(text),
        other => Err(format!("use names such as example.org or *.example.org, not {}", describe(other))),
    };
    let about = "Domains for `network: proxy`: example.org, *.example.org for all its subdomains, example.org:8443 for a \
                 non-standard port.";
    let setting = section.list("allowed_domains", "domains", one).about(about);
    let spoilt = setting.spoilt;
    let domains = setting.or_described(Vec::new(), "none");
    match (network, domains.is_empty()) {
        (Network::Proxy, true) if !spoilt => {
            let what = "the list of domains is empty, so none can be reached";
            section.warn("network", what, "add them to allowed_domains");
        }
        (Network::None | Network::Full, false) => {
            let what = "these apply only with `network: proxy`";
            section.warn("allowed_domains", what, "set `network: proxy`, or remove them");
        }
        _ => {}
    }
    domains
}

fn environment(section: &Section<'_>) -> Vec<(String, String)> {
    settings! { section =>
        /// Additional environment variables of commands. Every user who writes to the agent can read them.
        environment = map().or(serde_json::Map::new());
    }
    let mut pairs = Vec::new();
    for (name, value) in environment {
        let value = match value {
            Json::String(text) => text,
            Json::Null => String::new(),
            other => other.to_string(),
        };
        let plain = !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
        if !plain || NAMES_TAKEN.contains(&name.as_str()) || value.contains('\0') {
            let what = format!("{name} is not allowed in the environment of commands");
            section.refuse("environment", what, "use letters, digits and `_`, but not the shell's own names");
            continue;
        }
        pairs.push((name, value));
    }
    pairs
}

/// Reads a mount, with DeerFlow's keys. An impossible mount is an error.
fn mount(section: &Section<'_>) -> Option<Mount> {
    let help = "set a folder of this machine and its path for the agent";
    settings! { section =>
        /// Path of the folder on this machine.
        host as "host_path" = text().eg("/srv/data").required(help);
        /// Path of the folder for the agent.
        agent as "container_path" = text().eg("/mnt/data").required(help);
        /// Restricts the agent to reading.
        read_only = flag().or(false);
    }
    match Mount::configured(host?.into(), &agent?, read_only) {
        Ok(mount) => Some(mount),
        Err(what) => {
            section.refuse("container_path", what, "choose another path, for example /mnt/data");
            None
        }
    }
}

/// Reads the tools: the listed ones, or all if none is listed. Tools for people's files are always included, as in
/// DeerFlow.
pub(super) fn tools(top: &Section<'_>, env: &Env) -> Vec<ToolConfig> {
    top.about_list(
        "tools",
        "Tools of the agent. Without this list it has all tools of pudu; of the web tools, those that need no key.",
    );
    let mut tools: Vec<ToolConfig> = Vec::new();
    for section in top.items("tools") {
        let Some(tool) = tool(&section, env) else { continue };
        // The first of two tools with the same name counts, as in DeerFlow.
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

/// Reads the tool groups. Tools may also have other groups.
pub(super) fn groups(top: &Section<'_>) -> Vec<String> {
    top.about_list(
        "tool_groups",
        "Groups of tools, for agents that have only some groups. A tool may also name a group that is not listed here.",
    );
    let name = |section: &Section<'_>| {
        settings! { section =>
            /// Name of the group.
            name = text().eg("web").required("set the name of the group");
        }
        name
    };
    top.items("tool_groups").iter().filter_map(name).collect()
}

fn tool(section: &Section<'_>, env: &Env) -> Option<ToolConfig> {
    let class = class::read(section, ClassKind::Tool, None);
    settings! { section =>
        /// Name of the tool, for readers of this file.
        name = text().eg("web_search").or_described(String::new(), "the tool's own");
        /// Group of the tool; agents may have only some groups.
        group = text().eg("web").optional("the tool's default: web, file:read, file:write or bash");
    }
    match class? {
        Class::Tool(tool) => {
            if !name.is_empty() && name != tool.name() {
                let what = format!("\"{name}\" has no effect");
                section.warn("name", what, format!("the tool's name is {}", tool.name()));
            }
            let web = match tool {
                Native::Web(kind, provider) => Some(web::read(section, kind, provider, env)),
                _ => {
                    section.note_unused(&["max_results"]);
                    None
                }
            };
            settings! { section =>
                /// Approval policy; "required" asks in the chat before every call.
                approval = choice(APPROVAL).eg("required").or_described(false, "as in `approvals.tools`");
            }
            let group = group.unwrap_or_else(|| tool.group().to_owned());
            Some(ToolConfig { tool, group, approval, web })
        }
        _ => {
            let what = "this version does not have this tool; it is ignored";
            section.warn("use", what, "no action is needed; the agent works without it");
            section.ignore_rest();
            None
        }
    }
}
