//! Tool that lets an agent change itself at a user's request.
//!
//! A page that the agent reads may trick it into a call, and a change of a shared agent affects all users. So each
//! change needs approval, unless configured otherwise (`approvals.agent_changes`). The agent may give up tools and
//! skills. It can gain some only if an operator edits its file, or lists the tool in `approvals.tools`.

use super::{AgentChange, AgentProfile, Agents, notes::unknown_groups, setup_agent};
use crate::{audit::AuditLog, setup::ToolGroups};
use pudu_base::{ToolCx, ToolError, ToolOutput, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool's name.
pub const UPDATE_AGENT: &str = "update_agent";

pub(crate) struct UpdateAgent {
    pub(crate) agents: Agents,
    pub(crate) audit_log: AuditLog,
    /// The agent's name.
    pub(crate) name: String,
    /// The agent's current profile.
    pub(crate) now: AgentProfile,
    /// The existing models, tool groups and skills.
    pub(crate) known: AgentOptions,
    /// Whether an approved change may add tools and skills.
    pub(crate) approved: bool,
}

/// Available models, tool groups and skills.
pub(crate) struct AgentOptions {
    pub(crate) models: Vec<String>,
    pub(crate) groups: ToolGroups,
    pub(crate) skills: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The complete new soul, in Markdown: your identity, your way of working and speaking, and your limits.
    soul: Option<String>,
    /// Your purpose, in one line for the people who choose among agents.
    description: Option<String>,
    /// The names of the skills that you keep; an empty list keeps none.
    skills: Option<Vec<String>>,
    /// The groups of tools that you keep; an empty list keeps none.
    tool_groups: Option<Vec<String>>,
    /// The name of the model that you want.
    model: Option<String>,
}

impl TypedTool for UpdateAgent {
    type Args = Args;
    const NAME: &'static str = UPDATE_AGENT;
    const DESCRIPTION: &'static str = "Changes your identity permanently, for everyone who talks to you, from the next message on. Use it only \
         when a person asks you to change yourself. Pass only the fields that change.";

    fn note(&self, args: &Args) -> Option<String> {
        let gained = gained(args, &self.now);
        (!gained.is_empty()).then(|| gained.join(", "))
    }

    async fn run(&self, args: Args, _: &ToolCx) -> Result<ToolOutput, ToolError> {
        let changed = named(&args);
        if changed.is_empty() {
            return Err(ToolError("no field to change was given".to_owned()));
        }
        self.check(&args)?;
        let detail = format!("{}: {}", self.name, detail(&args, &self.now).join("; "));
        let Args { soul, description: about, skills, tool_groups, model } = args;
        let change = AgentChange {
            about,
            model: model.map(Some),
            tool_groups: tool_groups.map(Some),
            skills: skills.map(Some),
            soul,
            only_less: !self.approved,
            ..AgentChange::default()
        };
        let (agents, name) = (self.agents.clone(), self.name.clone());
        let changed = changed.join(", ");
        let work = async move { setup_agent::blocking(move || agents.update(&name, change)).await };
        self.audit_log.noted(Self::NAME, &detail, work).await?;
        Ok(format!("Changed: {changed}. The change takes effect with the next message.").into())
    }
}

impl UpdateAgent {
    pub(super) fn check(&self, args: &Args) -> Result<(), ToolError> {
        let AgentOptions { models, groups, skills } = &self.known;
        if args.soul.as_ref().is_some_and(|soul| soul.trim().is_empty()) {
            return Err(ToolError("the soul may not be empty".to_owned()));
        }
        if let Some(model) = args.model.as_ref().filter(|model| !models.contains(model)) {
            return Err(ToolError(format!("there is no model {model}; there are: {}", models.join(", "))));
        }
        if let Some(why) = args.tool_groups.as_deref().and_then(|wanted| unknown_groups(groups, wanted).pop())
        {
            return Err(ToolError(why));
        }
        setup_agent::known_skills(args.skills.as_deref(), skills)
    }
}

/// Returns the tools and skills that the agent would gain.
fn gained(args: &Args, now: &AgentProfile) -> Vec<String> {
    let both = [("tools", &args.tool_groups, &now.tool_groups), ("skills", &args.skills, &now.skills)];
    let more = both.into_iter().filter_map(|(what, wanted, has)| {
        let (wanted, has) = (wanted.as_ref()?, has.as_ref()?);
        let more: Vec<&str> = wanted.iter().filter(|name| !has.contains(name)).map(String::as_str).collect();
        (!more.is_empty()).then(|| format!("more {what} ({})", more.join(", ")))
    });
    more.collect()
}

/// Returns the changes for the audit log: first the gains, with tools and skills listed in full.
fn detail(args: &Args, now: &AgentProfile) -> Vec<String> {
    let list = |name: &str| match name {
        "skills" => args.skills.as_deref(),
        "tool_groups" => args.tool_groups.as_deref(),
        _ => None,
    };
    let described = named(args).into_iter().map(|name| match list(name) {
        Some(names) => format!("{name} [{}]", names.join(", ")),
        None => name.to_owned(),
    });
    gained(args, now).into_iter().chain(described).collect()
}

fn named(args: &Args) -> Vec<&'static str> {
    let given = [
        ("soul", args.soul.is_some()),
        ("description", args.description.is_some()),
        ("skills", args.skills.is_some()),
        ("tool_groups", args.tool_groups.is_some()),
        ("model", args.model.is_some()),
    ];
    given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
}
