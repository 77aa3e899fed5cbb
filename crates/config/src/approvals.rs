//! Actions of the agent that need approval.

use super::{reader::Section, sandbox::ToolConfig};
use pudu_agent::agents::UPDATE_AGENT;
use pudu_harness::{ACP_TASK, DESCRIBE_SKILL, Dangerous, SEARCH, SKILL_MANAGE, TASK};
use pudu_tools::NAMES;
use std::{collections::BTreeSet, time::Duration};

settings! {
    /// Actions of the agent that need approval.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ApprovalsConfig(section, dangerous: Dangerous) {
        /// Policy for commands that look dangerous: allow, ask or block.
        dangerous: Dangerous = choice(DANGEROUS)
            .or_described(dangerous, "allow; block with `sandbox.allow_host_bash`");
        /// Policy for calls by which an agent changes its definition for all users: ask or allow.
        agent_changes: bool = choice(CHANGES).or(true);
        /// Policy for calls by which an agent creates or changes a skill: ask or allow.
        skill_changes: bool = choice(CHANGES).or(true);
        /// Tools whose every call needs approval, including those of MCP servers. If update_agent is listed, an approved
        /// call may also give an agent more tools and skills.
        tools: BTreeSet<String> = names().or_described(Vec::new(), "none").into_iter().collect();
        /// Time to decide, in seconds; then the call is denied.
        timeout as "timeout_seconds": Duration = seconds(1.0).or(Duration::from_secs(600));
    }
}

const DANGEROUS: &[(&str, Dangerous)] =
    &[("allow", Dangerous::Allow), ("ask", Dangerous::Ask), ("block", Dangerous::Block)];

const CHANGES: &[(&str, bool)] = &[("ask", true), ("allow", false)];

/// Reads the `approvals` section. Dangerous commands are blocked by default if they run in the host's shell. A tool's
/// entry in `tools` can also require approval.
pub(super) fn approvals(top: &Section<'_>, host_shell: bool, tools: &[ToolConfig]) -> ApprovalsConfig {
    let section = top.section("approvals").about(
        "Actions that need approval, given by a button or a number. docs/threads-and-runs.md describes approvals by \
         HTTP clients.",
    );
    let default = if host_shell { Dangerous::Block } else { Dangerous::Allow };
    let mut approvals = ApprovalsConfig::read(&section, default);
    approvals.tools.iter().for_each(|name| check_name(&section, "tools", name));
    let own = tools.iter().filter(|tool| tool.approval).map(|tool| tool.tool.name().to_owned());
    approvals.tools.extend(own);
    approvals
}

/// Names of pudu's tools besides [`NAMES`].
const MORE_NAMES: [&str; 16] = [
    "web_search",
    "web_fetch",
    "image_search",
    SEARCH,
    TASK,
    ACP_TASK,
    "setup_agent",
    UPDATE_AGENT,
    DESCRIBE_SKILL,
    SKILL_MANAGE,
    "memory_search",
    "memory_add",
    "memory_update",
    "memory_delete",
    "schedule_task",
    "scheduled_tasks",
];

/// Returns whether pudu has a tool of this name, even if it is not configured.
pub fn is_own_tool(name: &str) -> bool {
    NAMES.contains(&name) || MORE_NAMES.contains(&name)
}

/// Minimum length of a known tool name for a comparison. Shorter names resemble too many others.
const MIN_LETTERS: usize = 4;
/// Maximum length of a tool's name. Models do not accept longer ones.
const MAX_LETTERS: usize = 64;

/// Refuses a name that no tool can have, or that is probably a misspelling: otherwise the calls that the entry should
/// guard or deny would be made. The tools of MCP servers are unknown here.
pub(super) fn check_name(section: &Section<'_>, key: &str, name: &str) {
    if is_own_tool(name) {
        return;
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.len() > MAX_LETTERS || !name.chars().all(plain) {
        let help = "write each tool's own name, of up to 64 letters, digits, _ and -; there are no wildcards";
        section.refuse(key, format!("\"{name}\" is not a valid tool name"), help);
        return;
    }
    let folded = name.to_lowercase().replace('-', "_");
    // In DeerFlow the functions have names such as `bash_tool`, but the tools do not.
    let bare = folded.strip_suffix("_tool").unwrap_or(&folded);
    // Allows for a single typing error. By looser measures `jira_search` would resemble one of our names, but it may be
    // a server's tool.
    let slip = |known: &str| known.len() >= MIN_LETTERS && strsim::damerau_levenshtein(bare, known) <= 1;
    let slipped = |known: &&str| *known == bare || slip(known);
    if let Some(near) = NAMES.into_iter().chain(MORE_NAMES).find(slipped) {
        let what = format!("unknown tool \"{name}\"");
        section.refuse(
            key,
            what,
            format!("did you mean `{near}`? A tool of an MCP server is called SERVER_TOOL"),
        );
    }
}
