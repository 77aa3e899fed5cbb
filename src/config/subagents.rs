//! The sub-agents: the built-in ones with what the operator changes of them, and the operator's own.

use super::{
    approvals,
    budgets::{self, TokenBudgetConfig},
    reader::Section,
};
use pudu_client::harness::{RunBounds, subagent};
use std::time::Duration;

/// A kind of sub-agent, before its model is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subagent {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) system: String,
    /// The tools that it has; all of its parent's if not said.
    pub(crate) tools: Option<Vec<String>>,
    /// Tools that it does not have.
    pub(crate) without: Vec<String>,
    /// The skills that it is told of; all of its parent's if not said.
    pub(crate) skills: Option<Vec<String>>,
    /// A model's name; its parent's if not said.
    pub(crate) model: Option<String>,
    pub(crate) bounds: RunBounds,
}

/// DeerFlow's name for the parent's model.
const INHERIT: &str = "inherit";
/// How many model calls a kind of the operator's may take.
const TURNS: u32 = 50;
/// How long a piece of work of such a kind may take.
const TIME: Duration = Duration::from_secs(900);

/// Reads them.
pub(super) fn subagents(top: &Section<'_>, summaries: bool) -> Vec<Subagent> {
    let section = top.section("subagents");
    let tokens =
        budgets::token_budget(&section.section("token_budget"), TokenBudgetConfig::of_task(summaries));
    let enabled = section.flag("enabled").or(true);
    let time = section.seconds("timeout_seconds", 1.0).or(Duration::from_secs(1800));
    let turns = section.number("max_turns", 1..=1000).optional("as each kind has it");
    let changes = section.section("agents");
    let builtin = subagent::builtin().into_iter().map(|kind| {
        let steps = turns.unwrap_or(kind.bounds.steps);
        Subagent {
            name: kind.name,
            about: kind.about,
            system: kind.system.to_string(),
            tools: kind.tools,
            without: kind.without,
            skills: kind.skills,
            model: None,
            bounds: RunBounds { steps, time, tokens: tokens.budget(), ..RunBounds::default() },
        }
    });
    let custom = section.section("custom_agents");
    let own = custom
        .present()
        .filter_map(|entry| own(&custom.section_like(&entry.key, "researcher"), &entry.key, tokens));
    let mut all: Vec<Subagent> = builtin.chain(own).collect();
    for entry in changes.present() {
        let change = changes.section_like(&entry.key, "bash");
        match all.iter_mut().find(|kind| kind.name == entry.key) {
            Some(kind) => alter(kind, &change, tokens),
            None => {
                change.ignore_rest();
                change.warn_here("there is no such sub-agent", "define it under `subagents.custom_agents`");
            }
        }
    }
    if enabled { all } else { Vec::new() }
}

/// Reads a kind of the operator's.
fn own(section: &Section<'_>, name: &str, tokens: TokenBudgetConfig) -> Option<Subagent> {
    let tokens = budgets::token_budget(&section.section("token_budget"), tokens);
    let about = section.text("description").required("say what it is good for: the agent chooses by that");
    let system = section.text("system_prompt").required("say who it is and how it works");
    let without = section.names("disallowed_tools").or_told(Vec::new(), "none");
    without.iter().for_each(|name| approvals::check_name(section, "disallowed_tools", name));
    Some(Subagent {
        name: name.to_owned(),
        tools: section.names("tools").optional("all of the agent's"),
        without,
        skills: skills(section),
        model: model(section),
        bounds: RunBounds {
            steps: section.number("max_turns", 1..=1000).or(TURNS),
            time: section.seconds("timeout_seconds", 1.0).or(TIME),
            tokens: tokens.budget(),
            ..RunBounds::default()
        },
        // Last, so that every key has been read before one that is missing ends this.
        about: about?,
        system: system?,
    })
}

/// Takes over what the operator changes of a kind.
fn alter(kind: &mut Subagent, section: &Section<'_>, tokens: TokenBudgetConfig) {
    let budget = section.section("token_budget");
    let tokens = budgets::token_budget(&budget, tokens);
    if budget.exists() {
        kind.bounds.tokens = tokens.budget();
    }
    kind.skills = skills(section).or_else(|| kind.skills.take());
    if let Some(time) = section.seconds("timeout_seconds", 1.0).optional("as above") {
        kind.bounds.time = time;
    }
    if let Some(steps) = section.number("max_turns", 1..=1000).optional("as above") {
        kind.bounds.steps = steps;
    }
    kind.model = model(section).or_else(|| kind.model.take());
}

/// Reads the skills of a kind: an empty list is none, and no list is all of the agent's.
fn skills(section: &Section<'_>) -> Option<Vec<String>> {
    section.names("skills").optional("all of the agent's")
}

fn model(section: &Section<'_>) -> Option<String> {
    section.text("model").optional(INHERIT).filter(|model| model != INHERIT)
}
