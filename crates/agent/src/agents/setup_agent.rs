//! Tool that creates an agent, or sets the lead agent's character. It is available only in a conversation started for
//! this purpose, where a person chooses the name of a new agent.

use super::{AgentProfile, Agents, LEAD};
use crate::audit::AuditLog;
use pudu_base::{ToolCx, ToolError, ToolOutput, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

/// Name of the tool that creates agents.
pub(crate) const SETUP_AGENT: &str = "setup_agent";

pub(crate) struct SetupAgent {
    pub(crate) agents: Agents,
    pub(crate) audit_log: AuditLog,
    /// The new agent's name.
    pub(crate) name: String,
    /// The existing skills.
    pub(crate) skills: Vec<String>,
}

/// Sets the lead agent's character.
pub(crate) struct SetupLead {
    pub(crate) agents: Agents,
    pub(crate) audit_log: AuditLog,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct LeadArgs {
    /// Character of the agent, in Markdown, addressed to it: its users, its way of working and speaking, and its
    /// limits. It becomes part of its system prompt.
    soul: String,
}

impl TypedTool for SetupLead {
    type Args = LeadArgs;
    const NAME: &'static str = SETUP_AGENT;
    const DESCRIPTION: &'static str = "Sets the character of the lead agent. Call it once, after people have agreed to it. From the next message on, \
         the lead agent answers here instead of you.";

    async fn run(&self, args: LeadArgs, _: &ToolCx) -> Result<ToolOutput, ToolError> {
        if args.soul.trim().is_empty() {
            return Err(ToolError("the soul may not be empty".to_owned()));
        }
        let (agents, soul) = (self.agents.clone(), args.soul);
        let detail = format!("{LEAD}: {soul}");
        let work = async move { blocking(move || agents.set_lead_soul(&soul)).await };
        self.audit_log.noted(Self::NAME, &detail, work).await?;
        Ok("The lead agent's character is set. It answers here from the next message on.".to_owned().into())
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// Identity of the agent, in Markdown, addressed to it: its purpose, its way of working and speaking, and its
    /// limits. It becomes part of its system prompt.
    soul: String,
    /// Purpose of the agent, in one line for the people who choose among agents.
    description: String,
    /// The names of its skills; omit it for all, or pass an empty list for none.
    skills: Option<Vec<String>>,
}

impl TypedTool for SetupAgent {
    type Args = Args;
    const NAME: &'static str = SETUP_AGENT;
    const DESCRIPTION: &'static str = "Creates the new agent. Call it once, after people have agreed to its character and purpose. From the \
         next message on, it answers here instead of you.";

    async fn run(&self, args: Args, _: &ToolCx) -> Result<ToolOutput, ToolError> {
        if args.soul.trim().is_empty() || args.description.trim().is_empty() {
            return Err(ToolError("neither the soul nor the description may be empty".to_owned()));
        }
        known_skills(args.skills.as_deref(), &self.skills)?;
        let Args { soul, description: about, skills } = args;
        let profile = AgentProfile { about, skills, soul, ..AgentProfile::default() };
        let (agents, name) = (self.agents.clone(), self.name.clone());
        let detail = format!("{name}: {}", profile.about);
        let work = async move { blocking(move || agents.create(&name, &profile)).await };
        let created = self.audit_log.noted(Self::NAME, &detail, work).await?;
        Ok(format!("The agent `{}` is created. It answers here from the next message on.", created.name)
            .into())
    }
}

/// Refuses unknown skills.
pub(super) fn known_skills(wanted: Option<&[String]>, known: &[String]) -> Result<(), ToolError> {
    match wanted.unwrap_or_default().iter().find(|name| !known.contains(name)) {
        Some(name) => Err(ToolError(format!("there is no skill {name}; there are: {}", known.join(", ")))),
        None => Ok(()),
    }
}

/// Runs blocking file I/O. The error is for the model.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, super::AgentError> + Send + 'static,
) -> Result<T, ToolError> {
    match pudu_kit::blocking::run(work).await {
        Ok(done) => done.map_err(|error| ToolError(error.public_message())),
        Err(_) => Err(ToolError(
            "an internal error occurred while the agent's files were read or written".to_owned(),
        )),
    }
}
