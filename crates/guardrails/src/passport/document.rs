//! A passport, and what it says on a call.

use super::limits::{COMMANDS, CapabilityLimits};
use crate::{GuardrailDecision, GuardrailRequest};
use jiff::Timestamp;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The code of a passport that cannot be read.
pub(super) const UNREADABLE: &str = "oap.passport_unreadable";
/// The code of a passport that is not active.
const SUSPENDED: &str = "oap.passport_suspended";
/// The code of a call for which the passport has no capability.
const UNKNOWN_CAPABILITY: &str = "oap.unknown_capability";

/// The version of the format that is understood.
const VERSION: &str = "oap/1.0";

const READS: &str = "data.file.read";
const WRITES: &str = "data.file.write";
const FETCHES: &str = "web.fetch";
/// Also of every tool that is none of pudu's own.
const SERVERS: &str = "mcp.tool.execute";

/// Which of pudu's tools need which capability. Those that need none are at the end.
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
    // They ask people, plan, find tools, and give work to sub-agents, whose calls are judged each by itself.
    ("", &["ask_clarification", "write_todos", "tool_search", "task"]),
];

/// An Open Agent Passport, as far as pudu looks at it.
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

/// Returns the capability that a tool needs; `None` if none.
fn needed(tool: &str) -> Option<&'static str> {
    let of = CAPABILITIES.iter().find(|(_, tools)| tools.contains(&tool));
    of.map_or(Some(SERVERS), |(capability, _)| Some(*capability)).filter(|capability| !capability.is_empty())
}

impl PassportDocument {
    /// Decides on a call.
    pub(super) fn decide(&self, request: &GuardrailRequest) -> GuardrailDecision {
        if let Err(why) = self.is_active() {
            return GuardrailDecision::denied(SUSPENDED, why);
        }
        let tool = request.tool_name.as_str();
        let Some(capability) = needed(tool) else { return GuardrailDecision::allowed() };
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
            return Err(format!("the agent's passport has another version than {VERSION}"));
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

    /// Returns in a few words what it allows; or else why it allows nothing.
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
