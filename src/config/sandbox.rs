//! Where the agent's commands run, what a tool may return, and which tools there are.

use super::{
    class::{self, Class, Kind, Native},
    reader::Section,
};
use std::time::Duration;

/// What may be done in a sandbox, and how much of it is shown to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sandbox {
    /// Whether the shell of this very machine may be used.
    pub(crate) allow_host_bash: bool,
    /// How many characters of a command's output are shown.
    pub(crate) bash_output_max_chars: usize,
    /// How many characters of a file are shown.
    pub(crate) read_file_output_max_chars: usize,
    /// How many characters of a listing are shown.
    pub(crate) ls_output_max_chars: usize,
    /// After this long a command is killed.
    pub(crate) bash_command_timeout: Duration,
}

/// A tool that the agent has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolConfig {
    /// Which one.
    pub(crate) tool: Native,
    /// The group it belongs to, or empty.
    pub(crate) group: String,
}

const LATER: &[&str] = &[
    "api_key",
    "base_url",
    "container_prefix",
    "cpu_cores",
    "cpus",
    "environment",
    "health_check_skip_seconds",
    "home_dir",
    "idle_timeout",
    "image",
    "max_duration",
    "memory_mb",
    "memory_mib",
    "mounts",
    "overflow_policy",
    "ownership",
    "port",
    "project_id",
    "provisioner_api_key",
    "provisioner_url",
    "replicas",
    "sticky",
    "thread_data_mounts",
    "workspace_id",
];

/// Checks that the sandbox is the one that pudu has; there is nothing to choose yet.
pub(super) fn provider(top: &Section<'_>) {
    let section = top.section("sandbox");
    section.later(LATER);
    class::read(&section, Kind::Sandbox, Some("deerflow.sandbox.local:LocalSandboxProvider"));
}

/// Reads what may be done in it.
pub(super) fn limits(top: &Section<'_>) -> Sandbox {
    let section = top.section("sandbox");
    Sandbox {
        allow_host_bash: section.flag("allow_host_bash").or(false),
        bash_output_max_chars: chars(&section, "bash_output_max_chars", 20_000),
        read_file_output_max_chars: chars(&section, "read_file_output_max_chars", 50_000),
        ls_output_max_chars: chars(&section, "ls_output_max_chars", 20_000),
        bash_command_timeout: section.seconds("bash_command_timeout", 1.0).or(Duration::from_secs(600)),
    }
}

/// DeerFlow's 0 stands for no limit at all; here it stands for the most that a model could ever take.
fn chars(section: &Section<'_>, key: &str, default: u32) -> usize {
    const MOST: u32 = 10_000_000;
    match section.number(key, 0..=MOST).or(default) {
        0 => MOST as usize,
        limit => limit as usize,
    }
}

/// Reads which tools there are: those listed, or all where none is listed. What shows files to people is
/// always there, as in DeerFlow.
pub(super) fn tools(top: &Section<'_>) -> Vec<ToolConfig> {
    let mut tools: Vec<ToolConfig> = Vec::new();
    for section in top.items("tools") {
        let Some(tool) = tool(&section) else { continue };
        if !tools.iter().any(|other| other.tool == tool.tool) {
            tools.push(tool);
        }
    }
    let listed = top.entry("tools").is_some();
    for tool in Native::ALL {
        let missing = tools.iter().all(|other| other.tool != tool);
        if missing && (!listed || tool == Native::PresentFiles) {
            tools.push(ToolConfig { tool, group: String::new() });
        }
    }
    tools
}

fn tool(section: &Section<'_>) -> Option<ToolConfig> {
    let class = class::read(section, Kind::Tool, None);
    let name = section.text("name").or_told(String::new(), "the tool's own");
    let group = section.text("group").or(String::new());
    match class? {
        Class::Tool(tool) => {
            if !name.is_empty() && name != tool.name() {
                let what = format!("\"{name}\" has no effect");
                section.warn("name", what, format!("the tool is called {}", tool.name()));
            }
            Some(ToolConfig { tool, group })
        }
        _ => {
            let what = "this tool is not in this version; it is left out";
            section.warn("use", what, "nothing has to be done; the agent works without it");
            section.ignore_rest();
            None
        }
    }
}
