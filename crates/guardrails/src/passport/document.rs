//! A passport and its decision on a call.

use super::limits::{COMMANDS, CapabilityLimits};
use crate::{GuardrailDecision, GuardrailRequest};
use jiff::Timestamp;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Code for an unreadable passport.
pub(super) const UNREADABLE: &str = "oap.passport_unreadable";
/// Code for an inactive passport.
const SUSPENDED: &str = "oap.passport_suspended";
/// Code for a call without a capability in the passport.
const UNKNOWN_CAPABILITY: &str = "oap.unknown_capability";

/// Supported version of the format.
const VERSION: &str = "oap/1.0";

const READS: &str = "data.file.read";
const WRITES: &str = "data.file.write";
const FETCHES: &str = "web.fetch";
/// Capability to call tools of MCP servers, which any other unknown tool needs as well.
const MCP_CAPABILITY: &str = "mcp.tool.execute";

/// Capabilities with the built-in tools that need them. Tools that need no capability come last.
const CAPABILITIES: &[(&str, &[&str])] = &[
    (COMMANDS, &["bash"]),
    (
        READS,
        &[
            "read_file",
            "ls",
            "glob",
            "grep",
            "view_image",
            "list_uploaded_files",
            "present_files",
            "describe_skill",
            "memory_search",
        ],
    ),
    (
        WRITES,
        &[
            "write_file",
            "str_replace",
            "setup_agent",
            "update_agent",
            "skill_manage",
            "memory_add",
            "memory_update",
            "memory_delete",
        ],
    ),
    (FETCHES, &["web_fetch", "web_search", "image_search"]),
    // These tools ask users, plan, find tools, or delegate to sub-agents, whose calls are checked separately.
    ("", &["ask_clarification", "write_todos", "tool_search", "task"]),
];

/// The fields of an Open Agent Passport that are used here.
#[derive(Debug, Deserialize)]
pub(super) struct PassportDocument {
    spec_version: String,
    status: String,
    #[serde(default)]
    expires_at: Option<String>,
    capabilities: Vec<Capability>,
    #[serde(default)]
    limits: BTreeMap<String, CapabilityLimits>,
}

#[derive(Debug, Deserialize)]
struct Capability {
    id: String,
}

/// Returns the capability that a tool needs, if any.
fn required_capability(tool: &str) -> Option<&'static str> {
    let of = CAPABILITIES.iter().find(|(_, tools)| tools.contains(&tool));
    of.map_or(Some(MCP_CAPABILITY), |(capability, _)| Some(*capability))
        .filter(|capability| !capability.is_empty())
}

impl PassportDocument {
    /// Decides on a call.
    pub(super) fn decide(&self, request: &GuardrailRequest) -> GuardrailDecision {
        if let Err(why) = self.is_active() {
            return GuardrailDecision::denied(SUSPENDED, why);
        }
        let tool = request.tool_name.as_str();
        let Some(capability) = required_capability(tool) else { return GuardrailDecision::allowed() };
        if !self.capabilities.iter().any(|has| has.id == capability) {
            let why = format!("the agent's passport has no capability {capability}, which {tool} needs");
            return GuardrailDecision::denied(UNKNOWN_CAPABILITY, why);
        }
        match self.limits.get(capability) {
            None => GuardrailDecision::allowed(),
            Some(limits) => limits.decide(tool, &request.tool_input),
        }
    }

    fn is_active(&self) -> Result<(), String> {
        if self.spec_version != VERSION {
            return Err(format!("the agent's passport does not have version {VERSION}"));
        }
        if self.status != "active" {
            return Err("the agent's passport is not active".to_owned());
        }
        match self.expires_at.as_deref().map(str::parse::<Timestamp>) {
            None => Ok(()),
            Some(Ok(end)) if end > Timestamp::now() => Ok(()),
            Some(_) => Err("the agent's passport has expired".to_owned()),
        }
    }

    /// Describes the allowed capabilities. The error is the reason why calls are denied.
    pub(super) fn describe(&self) -> Result<String, String> {
        self.is_active()?;
        let ids: Vec<&str> = self.capabilities.iter().map(|capability| capability.id.as_str()).collect();
        let limited = |id: &&str| self.capabilities.iter().any(|has| has.id == **id);
        for id in self.limits.keys().map(String::as_str).filter(limited) {
            if let Some(unknown) = self.limits.get(id).and_then(CapabilityLimits::unknown) {
                return Err(format!(
                    "pudu cannot check the limit `{unknown}` of {id}, so calls that need it are refused"
                ));
            }
        }
        Ok(format!("active, for {}", if ids.is_empty() { "nothing".to_owned() } else { ids.join(", ") }))
    }
}
