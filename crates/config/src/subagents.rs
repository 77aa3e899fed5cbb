//! The sub-agents: the built-in ones with the operator's changes, and the operator's own.

use super::{
    approvals,
    budgets::{self, TokenBudgetConfig},
    declare::Setting,
    model::ModelConfig,
    reader::Section,
};
use pudu_harness::{RunBounds, subagent};
use pudu_skills::is_skill_name;
use std::{collections::BTreeMap, time::Duration};

/// A kind of sub-agent, before its model is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subagent {
    /// Name by which the parent calls it.
    pub name: String,
    /// Description of its use, for the parent.
    pub about: String,
    /// Its system prompt.
    pub system: String,
    /// Its tools; all of its parent's if not set.
    pub tools: Option<Vec<String>>,
    /// Tools that it does not have.
    pub without: Vec<String>,
    /// Its skills; all of its parent's if not set.
    pub skills: Option<Vec<String>>,
    /// Name of its model; its parent's if not set.
    pub model: Option<String>,
    /// Limits of one task.
    pub bounds: RunBounds,
}

/// DeerFlow's name for the parent's model.
const INHERIT: &str = "inherit";
/// Description shared by the sections of all kinds.
const KIND: &str = "Name of the kind.";
const BUDGET: &str = "Limits of a task of this sub-agent.";
/// Maximum length of a kind's name, in characters.
const MAX_NAME_CHARS: usize = 64;
/// Default maximum number of model calls in a task of the operator's kinds.
const TURNS: u32 = 50;
/// Default maximum duration of such a task.
const TIME: Duration = Duration::from_secs(900);

/// Reads the sub-agents.
pub(super) fn subagents(top: &Section<'_>, models: &[ModelConfig], summaries: bool) -> Vec<Subagent> {
    let section = top
        .section("subagents")
        .about("Sub-agents, to which the agent delegates tasks. docs/subagents.md describes them.");
    settings! { section =>
        /// Enables sub-agents.
        enabled = flag().or(true);
        /// Maximum duration of a task, in seconds.
        time as "timeout_seconds" = seconds(1.0).or(Duration::from_secs(1800));
        /// Maximum number of model calls of a task; if unset, each sub-agent has its own limit.
        turns as "max_turns" = turns().eg("150").optional("depends on the sub-agent");
    }
    let budget = section
        .section("token_budget")
        .about("Limits of a task (docs/budgets.md); 2000000 tokens without summaries of conversations.");
    let tokens = budgets::token_budget(&budget, TokenBudgetConfig::of_task(summaries));
    let changes = section
        .section("agents")
        .about("Overrides for single sub-agents, by name; general-purpose and bash are built in.");
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
    let custom = section.section("custom_agents").about("Custom sub-agents.");
    let own = custom.present().filter_map(|entry| {
        own(&custom.section_named(&entry.key, "researcher").about(KIND), &entry.key, models, tokens)
    });
    let mut all: Vec<Subagent> = builtin.chain(own).collect();
    check_names(&custom);
    for entry in changes.present() {
        let change = changes.section_named(&entry.key, "bash").about(KIND);
        match all.iter_mut().find(|kind| kind.name == entry.key) {
            Some(kind) => alter(kind, &change, models, tokens),
            None => {
                change.ignore_rest();
                change.warn_here("unknown sub-agent", "define it under `subagents.custom_agents`");
            }
        }
    }
    if enabled { all } else { Vec::new() }
}

impl<'r> Section<'r> {
    /// Reads the maximum number of model calls of a task.
    fn turns<'s>(&'s self, key: &'s str) -> Setting<'s, 'r, u32> {
        self.differs(key, "model calls");
        self.number(key, 1..=1000)
    }
}

/// Reads a kind defined by the operator.
fn own(
    section: &Section<'_>,
    name: &str,
    models: &[ModelConfig],
    tokens: TokenBudgetConfig,
) -> Option<Subagent> {
    settings! { section =>
        /// Purpose of the sub-agent; the agent chooses by it.
        about as "description" = text().eg("finds out things on the web")
            .required("describe its purpose: the agent chooses by the description");
        /// System prompt: its role and its way of working.
        system as "system_prompt" = text().eg("You find out things, and say where you found them.")
            .required("describe its role and its way of working");
        /// Tools of the sub-agent.
        tools = names().eg("[web_search, web_fetch]").optional("all that the agent has");
        /// Tools removed from the sub-agent, besides task, ask_clarification, present_files and write_todos, which are always
        /// removed.
        without as "disallowed_tools" = names().or_described(Vec::new(), "none");
        /// Maximum duration of a task, in seconds.
        time as "timeout_seconds" = seconds(1.0).or(TIME);
        /// Maximum number of model calls of a task.
        steps as "max_turns" = turns().or(TURNS);
    }
    without.iter().for_each(|name| approvals::check_name(section, "disallowed_tools", name));
    let (skills, model) = (skills(section), model(section, models));
    let tokens = budgets::token_budget(&section.section("token_budget").about(BUDGET), tokens).budget();
    let bounds = RunBounds { steps, time, tokens, ..RunBounds::default() };
    let name = name.to_owned();
    Some(Subagent { name, about: about?, system: system?, tools, without, skills, model, bounds })
}

/// Applies the operator's changes to a kind.
fn alter(kind: &mut Subagent, section: &Section<'_>, models: &[ModelConfig], tokens: TokenBudgetConfig) {
    let budget = section.section("token_budget").about(BUDGET);
    let tokens = budgets::token_budget(&budget, tokens);
    if budget.exists() {
        kind.bounds.tokens = tokens.budget();
    }
    settings! { section =>
        /// Maximum duration of a task, in seconds.
        time as "timeout_seconds" = seconds(1.0).eg("1800").optional("the common limit");
        /// Maximum number of model calls of a task.
        steps as "max_turns" = turns().eg("60").optional("the common limit");
    }
    kind.skills = skills(section).or_else(|| kind.skills.take());
    kind.bounds.time = time.unwrap_or(kind.bounds.time);
    kind.bounds.steps = steps.unwrap_or(kind.bounds.steps);
    kind.model = model(section, models).or_else(|| kind.model.take());
}

/// Reads the skills of a kind. An empty list means none, and no list means all of the agent's.
fn skills(section: &Section<'_>) -> Option<Vec<String>> {
    settings! { section =>
        /// Skills listed in its prompt, among those of the agent; an empty list is none.
        skills = names().eg("[]").optional("all that the agent has");
    }
    for name in skills.iter().flatten().filter(|name| !is_skill_name(name)) {
        let help =
            "write each skill's name in lower-case letters, digits and hyphens; `pudu skill list` lists them";
        section.refuse("skills", format!("\"{name}\" is not a valid skill name"), help);
    }
    skills
}

fn model(section: &Section<'_>, models: &[ModelConfig]) -> Option<String> {
    settings! { section =>
        /// Name of the sub-agent's model.
        model = text().eg(INHERIT).optional(INHERIT);
    }
    model.filter(|model| model != INHERIT).and_then(|_| section.model("model", models).foreign())
}

/// Refuses invalid names, and names that another kind has.
fn check_names(custom: &Section<'_>) {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut taken: BTreeMap<String, String> =
        subagent::builtin().into_iter().map(|kind| (folded(&kind.name), kind.name)).collect();
    for entry in custom.present() {
        let name = &entry.key;
        let section = custom.section_named(name, "researcher");
        if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(plain) {
            let help = format!("write up to {MAX_NAME_CHARS} letters, digits, _ and -");
            section.refuse_here(format!("\"{name}\" is not a valid sub-agent name"), help);
        } else if let Some(other) = taken.insert(folded(name), name.clone()) {
            let what = format!("the sub-agent \"{other}\" already exists");
            let help = "rename it, or change the existing one in `subagents.agents`";
            section.refuse_here(what, help);
        }
    }
}

/// Returns the form of a name that is equal for names that a model may confuse.
fn folded(name: &str) -> String {
    name.to_lowercase().replace('_', "-")
}
