//! Setup of runs, from the current configuration.

use crate::{
    BudgetRules, MemoryRules, ModelPrice,
    budget::BudgetSetup,
    memory::MemorySetup,
    moderation::Moderator,
    results::FOLDER,
    title::{TitleRules, TitleSetup},
};
use pudu_base::{Model, SandboxProvider, Tool, ToolSpec};
use pudu_documents::{Converter, DocumentLimits};
use pudu_guardrails::Guards;
use pudu_harness::{
    ApprovalPolicy, ContextRules, ContextSetup, LoopRules, PromptMount, ResultRules, RunBounds, ToolCatalog,
    ToolProgressRules, Toolbox,
    subagent::{Kinds, SubagentKind},
};
use pudu_langgraph::model::ListedModel;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// Setup of runs: models, tools and rules.
pub struct AgentSetup {
    pub(crate) models: Vec<(ModelInfo, Arc<dyn Model>)>,
    pub(crate) tools: Toolbox,
    pub(crate) groups: ToolGroups,
    pub(crate) deferred: Arc<ToolCatalog>,
    pub(crate) bounds: RunBounds,
    pub(crate) loops: Option<Arc<LoopRules>>,
    pub(crate) progress: Option<Arc<ToolProgressRules>>,
    pub(crate) mounts: Vec<PromptMount>,
    pub(crate) sandboxes: Arc<dyn SandboxProvider>,
    pub(crate) subagents: Option<Kinds>,
    pub(crate) policy: Arc<ApprovalPolicy>,
    pub(crate) guardrails: Option<Guards>,
    pub(crate) patience: Duration,
    pub(crate) results: Arc<ResultRules>,
    pub(crate) results_folder: Arc<str>,
    pub(crate) context: ContextSetup,
    pub(crate) documents: Converter,
    pub(crate) titles: Option<TitleSetup>,
    pub(crate) memory: Option<MemorySetup>,
    pub(crate) budgets: Arc<BudgetSetup>,
    pub(crate) skills: SkillRules,
}

/// The use of skills by agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillRules {
    /// Whether agents get only the names of skills, and ask for their descriptions.
    pub deferred: bool,
    /// The rules for skill changes by the lead agent; no changes if `None`.
    pub evolution: Option<SkillEvolution>,
}

/// Rules for skill changes by an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillEvolution {
    /// The name of the model that reviews changes besides the scan, if any.
    pub moderator: Option<String>,
    /// Whether a change is refused if that model gives no verdict.
    pub fail_closed: bool,
}

/// Groups of tools, for agents that have only some groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolGroups {
    /// The groups that there are.
    pub names: BTreeSet<String>,
    /// The group of each grouped tool; every agent has a tool without a group.
    pub of: BTreeMap<String, String>,
}

impl ToolGroups {
    /// Returns whether an agent that has these groups has a tool.
    #[must_use]
    pub fn includes(&self, wanted: &[String], tool: &str) -> bool {
        self.of.get(tool).is_none_or(|group| wanted.contains(group))
    }
}

/// Default timeout of an approval.
const APPROVAL_TIMEOUT: Duration = Duration::from_secs(600);

/// Description of a model for people.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelInfo {
    /// The name by which it is chosen.
    pub name: String,
    /// The name that people see.
    pub title: String,
    /// Its description.
    pub about: Option<String>,
    /// Its price, if the operator wrote one.
    pub price: Option<ModelPrice>,
    /// Its provider's name for it.
    pub model: String,
    /// The model's thinking options.
    pub thinking: ThinkingSupport,
}

/// Thinking options of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThinkingSupport {
    /// Whether thinking can be turned on and off.
    pub supported: bool,
    /// Whether the effort can be set.
    pub takes_effort: bool,
}

impl From<ModelInfo> for ListedModel {
    fn from(info: ModelInfo) -> Self {
        Self {
            name: info.name,
            model: info.model,
            display_name: info.title,
            description: info.about,
            supports_thinking: info.thinking.supported,
            supports_reasoning_effort: info.thinking.takes_effort,
        }
    }
}

impl ModelInfo {
    /// Describes a model by its name alone.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: name.to_owned(),
            about: None,
            price: None,
            model: name.to_owned(),
            thinking: ThinkingSupport::default(),
        }
    }
}

impl AgentSetup {
    /// Makes a setup. The first model is the default.
    #[must_use]
    pub fn new(
        models: impl IntoIterator<Item = (ModelInfo, Arc<dyn Model>)>,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
        bounds: RunBounds,
        sandboxes: Arc<dyn SandboxProvider>,
    ) -> Self {
        let setup = Self {
            models: models.into_iter().collect(),
            tools: Toolbox::new(tools),
            groups: ToolGroups::default(),
            deferred: Arc::default(),
            bounds,
            loops: Some(Arc::default()),
            progress: None,
            mounts: Vec::new(),
            sandboxes,
            subagents: None,
            policy: Arc::default(),
            guardrails: None,
            patience: APPROVAL_TIMEOUT,
            results: Arc::new(ResultRules::default()),
            results_folder: FOLDER.into(),
            context: ContextSetup::default(),
            documents: Converter::in_process(DocumentLimits::default()),
            titles: Some(TitleSetup { rules: TitleRules::default(), model: None }),
            memory: None,
            budgets: Arc::default(),
            skills: SkillRules::default(),
        };
        // Costs are recorded without budgets as well.
        setup.with_budgets(BudgetRules::default())
    }

    /// Sets the rules for skills. If the configured reviewing model does not exist, no skill is changed.
    #[must_use]
    pub fn with_skills(self, skills: SkillRules) -> Self {
        let SkillRules { deferred, evolution } = skills;
        let named = evolution.as_ref().and_then(|rules| rules.moderator.as_deref());
        let missing = named.is_some() && self.named(named).is_none();
        if missing {
            tracing::error!(
                model = named,
                "disabled skill_manage: there is no such model to look at changes"
            );
        }
        let evolution = evolution.filter(|_| !missing);
        Self { skills: SkillRules { deferred, evolution }, ..self }
    }

    /// Sets the converter of documents; without it they are read in this process.
    #[must_use]
    pub fn with_documents(self, documents: Converter) -> Self {
        Self { documents, ..self }
    }

    /// Sets the folders that the prompt lists besides the agent's own.
    #[must_use]
    pub fn with_mounts(self, mounts: Vec<PromptMount>) -> Self {
        Self { mounts, ..self }
    }

    /// Sets the groups of tools.
    #[must_use]
    pub fn with_groups(self, groups: ToolGroups) -> Self {
        Self { groups, ..self }
    }

    /// Sets the tools that the model gets by name only, and searches for when needed.
    #[must_use]
    pub fn with_deferred(self, specs: impl IntoIterator<Item = Arc<ToolSpec>>) -> Self {
        Self { deferred: Arc::new(ToolCatalog::new(specs)), ..self }
    }

    /// Gives the agent sub-agents.
    #[must_use]
    pub fn with_subagents(self, subagents: Vec<SubagentKind>) -> Self {
        Self { subagents: Kinds::new(subagents, self.bounds.at_once), ..self }
    }

    /// Sets the rules that end a run that repeats itself; never ended if `None`.
    #[must_use]
    pub fn with_loops(self, rules: Option<LoopRules>) -> Self {
        Self { loops: rules.map(Arc::new), ..self }
    }

    /// Sets the rules that report and close a tool without new results; never closed if `None`.
    #[must_use]
    pub fn with_progress(self, rules: Option<ToolProgressRules>) -> Self {
        Self { progress: rules.map(Arc::new), ..self }
    }

    /// Sets the actions that need approval, and the time to decide.
    #[must_use]
    pub fn with_policy(self, policy: ApprovalPolicy, patience: Duration) -> Self {
        Self { policy: Arc::new(policy), patience, ..self }
    }

    /// Sets the guardrails, which allow or deny tool calls without people.
    #[must_use]
    pub fn with_guardrails(self, guardrails: Option<Guards>) -> Self {
        Self { guardrails, ..self }
    }

    /// Sets the rules for long results, and the folder of a thread's outputs that stores them.
    #[must_use]
    pub fn with_results(self, rules: ResultRules, folder: &str) -> Self {
        Self { results: Arc::new(rules), results_folder: folder.into(), ..self }
    }

    /// Sets the rules for summaries of conversations, and the model that writes them; the run's own if that is none or
    /// unknown.
    #[must_use]
    pub fn with_context(self, rules: ContextRules, model: Option<&str>) -> Self {
        let model = self.named(model);
        Self { context: ContextSetup { rules: Arc::new(rules), model }, ..self }
    }

    /// Sets the rules for titles of threads, and the model that writes them, if any; no titles if `None`.
    #[must_use]
    pub fn with_titles(self, rules: Option<TitleRules>, model: Option<&str>) -> Self {
        let model = self.named(model);
        Self { titles: rules.map(|rules| TitleSetup { rules, model }), ..self }
    }

    /// Sets the rules for memory, and the model that reads conversations: the default if none. No memory if `None`.
    #[must_use]
    pub fn with_memory(self, rules: Option<MemoryRules>, model: Option<&str>) -> Self {
        let named = model.map(str::to_owned);
        let model = self.named(model).or_else(|| self.models.first().map(|(_, model)| model.clone()));
        let memory = rules.zip(model).map(|(rules, model)| MemorySetup { rules, model, named });
        Self { memory, ..self }
    }

    /// Sets the budgets of runs.
    #[must_use]
    pub fn with_budgets(self, rules: BudgetRules) -> Self {
        let cheaper = self.named(rules.cheaper.as_ref().map(|cheaper| cheaper.name.as_str()));
        let priced =
            self.models.iter().filter_map(|(info, _)| Some((info.name.clone(), info.price.clone()?)));
        let prices = priced.collect();
        Self { budgets: Arc::new(BudgetSetup { rules, cheaper, prices }), ..self }
    }

    /// Returns the model that reviews changes of skills besides the scan, if any.
    pub(crate) fn moderator(
        &self,
        metered: impl FnOnce(Arc<dyn Model>) -> Arc<dyn Model>,
    ) -> Option<Moderator> {
        let SkillEvolution { moderator, fail_closed } = self.skills.evolution.as_ref()?;
        Some(Moderator { model: metered(self.named(moderator.as_deref())?), fail_closed: *fail_closed })
    }

    fn named(&self, model: Option<&str>) -> Option<Arc<dyn Model>> {
        let named = self.models.iter().find(|(info, _)| Some(info.name.as_str()) == model);
        named.map(|(_, model)| model.clone())
    }

    /// Finds a model by name; the default for none and for a removed one.
    pub(crate) fn model(&self, name: Option<&str>) -> Option<&Arc<dyn Model>> {
        let named = self.models.iter().find(|(info, _)| Some(info.name.as_str()) == name);
        named.or(self.models.first()).map(|(_, model)| model)
    }
}
