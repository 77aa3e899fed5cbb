//! The sub-agents: the built-in ones with the operator's changes, and the operator's own.

use super::{
    approvals,
    budgets::{self, TokenBudgetConfig},
    model::ModelConfig,
    model_name,
    reader::Section,
    setting::Setting,
};
use pudu_client::{
    harness::{RunBounds, subagent},
    skills::is_skill_name,
};
use std::{collections::BTreeMap, time::Duration};

/// A kind of sub-agent, before its model is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subagent {
    /// Name by which the parent calls it.
    pub name: String,
    /// Description for the parent: when to use it.
    pub about: String,
    /// Its system prompt.
    pub system: String,
    /// The tools that it has; all of its parent's if not set.
    pub tools: Option<Vec<String>>,
    /// Tools that it does not have.
    pub without: Vec<String>,
    /// The skills that the sub-agent knows; all of its parent's if not set.
    pub skills: Option<Vec<String>>,
    /// A model's name; its parent's if not set.
    pub model: Option<String>,
    /// Limits of one task.
    pub bounds: RunBounds,
}

/// DeerFlow's name for the parent's model.
const INHERIT: &str = "inherit";
/// Maximum length of a kind's name.
const MAX_NAME_CHARS: usize = 64;
/// How many model calls a kind of the operator's may take.
const TURNS: u32 = 50;
/// How long a piece of work of such a kind may take.
const TIME: Duration = Duration::from_secs(900);

/// Reads them.
pub(super) fn subagents(top: &Section<'_>, models: &[ModelConfig], summaries: bool) -> Vec<Subagent> {
    let section = top.section("subagents");
    let tokens =
        budgets::token_budget(&section.section("token_budget"), TokenBudgetConfig::of_task(summaries));
    let enabled = section.flag("enabled").or(true);
    let time = section.seconds("timeout_seconds", 1.0).or(Duration::from_secs(1800));
    let turns = turns(&section).optional("as each kind has it");
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
        .filter_map(|entry| own(&custom.section_like(&entry.key, "researcher"), &entry.key, models, tokens));
    let mut all: Vec<Subagent> = builtin.chain(own).collect();
    check_names(&custom);
    for entry in changes.present() {
        let change = changes.section_like(&entry.key, "bash");
        match all.iter_mut().find(|kind| kind.name == entry.key) {
            Some(kind) => alter(kind, &change, models, tokens),
            None => {
                change.ignore_rest();
                change.warn_here("there is no such sub-agent", "define it under `subagents.custom_agents`");
            }
        }
    }
    if enabled { all } else { Vec::new() }
}

/// Reads the maximum number of model calls of a task.
fn turns<'s, 'r>(section: &'s Section<'r>) -> Setting<'s, 'r, u32> {
    section.differs("max_turns", "model calls");
    section.number("max_turns", 1..=1000)
}

/// Reads a kind of the operator's.
fn own(
    section: &Section<'_>,
    name: &str,
    models: &[ModelConfig],
    tokens: TokenBudgetConfig,
) -> Option<Subagent> {
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
        model: model(section, models),
        bounds: RunBounds {
            steps: turns(section).or(TURNS),
            time: section.seconds("timeout_seconds", 1.0).or(TIME),
            tokens: tokens.budget(),
            ..RunBounds::default()
        },
        // Last, so that every key has been read before one that is missing ends this.
        about: about?,
        system: system?,
    })
}

/// Applies the operator's changes to a kind.
fn alter(kind: &mut Subagent, section: &Section<'_>, models: &[ModelConfig], tokens: TokenBudgetConfig) {
    let budget = section.section("token_budget");
    let tokens = budgets::token_budget(&budget, tokens);
    if budget.exists() {
        kind.bounds.tokens = tokens.budget();
    }
    kind.skills = skills(section).or_else(|| kind.skills.take());
    if let Some(time) = section.seconds("timeout_seconds", 1.0).optional("as above") {
        kind.bounds.time = time;
    }
    if let Some(steps) = turns(section).optional("as above") {
        kind.bounds.steps = steps;
    }
    kind.model = model(section, models).or_else(|| kind.model.take());
}

/// Reads the skills of a kind: an empty list is none, and no list is all of the agent's.
fn skills(section: &Section<'_>) -> Option<Vec<String>> {
    let skills = section.names("skills").optional("all of the agent's");
    for name in skills.iter().flatten().filter(|name| !is_skill_name(name)) {
        let help =
            "write each skill's own name, of small letters, digits and hyphens; `pudu skill list` tells them";
        section.refuse("skills", format!("no skill can be called \"{name}\""), help);
    }
    skills
}

fn model(section: &Section<'_>, models: &[ModelConfig]) -> Option<String> {
    let is_own = section.text("model").optional(INHERIT).is_some_and(|model| model != INHERIT);
    is_own.then(|| model_name::named(section, "model", models, INHERIT)).flatten()
}

/// Refuses names that no kind can have, or that another one has.
fn check_names(custom: &Section<'_>) {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut taken: BTreeMap<String, String> =
        subagent::builtin().into_iter().map(|kind| (folded(&kind.name), kind.name)).collect();
    for entry in custom.present() {
        let name = &entry.key;
        let section = custom.section_like(name, "researcher");
        if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(plain) {
            let help = format!("write up to {MAX_NAME_CHARS} letters, digits, _ and -");
            section.refuse_here(format!("no sub-agent can be called \"{name}\""), help);
        } else if let Some(other) = taken.insert(folded(name), name.clone()) {
            let what = format!("there is a sub-agent \"{other}\" already");
            let help = "give it another name, or change that one under `subagents.agents`";
            section.refuse_here(what, help);
        }
    }
}

/// Returns a name as a model may confuse it with others.
fn folded(name: &str) -> String {
    name.to_lowercase().replace('_', "-")
}
