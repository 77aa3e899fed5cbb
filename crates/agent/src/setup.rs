//! Setup of runs, from the current configuration.

use crate::{
    BudgetRules,
    budget::BudgetSetup,
    memory::MemorySetup,
    models::{KnownModel, named_model},
    moderation::Moderator,
    results::FOLDER,
    title::{TitleRules, TitleSetup},
};
use pudu_acp::AcpAgent;
use pudu_base::{Model, NamedPrompt, SandboxProvider, Tool};
use pudu_documents::{Converter, DocumentLimits};
use pudu_guardrails::Guards;
use pudu_harness::{
    ApprovalPolicy, ContextSetup, LoopRules, PromptMount, ResultRules, RunBounds, ToolCatalog,
    ToolProgressRules, Toolbox, subagent::Kinds,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// Setup of runs: models, tools and rules.
pub struct AgentSetup {
    /// The models. The first is the default.
    pub models: Vec<KnownModel>,
    /// The tools.
    pub tools: Toolbox,
    /// The prompts of servers that people start by name.
    pub prompts: Arc<[Arc<dyn NamedPrompt>]>,
    /// The groups of tools.
    pub groups: ToolGroups,
    /// Tools whose names alone are given to the model, which searches for their definitions when needed.
    pub deferred: Arc<ToolCatalog>,
    /// The limits of a run.
    pub bounds: RunBounds,
    /// The rules that end a run that repeats itself; `None` to never end one.
    pub loops: Option<Arc<LoopRules>>,
    /// The rules that warn about a tool without new results and then close it; `None` to do neither.
    pub progress: Option<Arc<ToolProgressRules>>,
    /// Folders that the prompt lists in addition to the agent's own.
    pub mounts: Vec<PromptMount>,
    /// The sandboxes of threads.
    pub sandboxes: Arc<dyn SandboxProvider>,
    /// The kinds of sub-agents, if any.
    pub subagents: Option<Kinds>,
    /// The agents of the Agent Client Protocol.
    pub acp_agents: Arc<[AcpAgent]>,
    /// Actions that need approval.
    pub policy: Arc<ApprovalPolicy>,
    /// Guardrails, which allow or deny tool calls without people.
    pub guardrails: Option<Guards>,
    /// Timeout of an approval.
    pub patience: Duration,
    /// The rules for long results.
    pub results: Arc<ResultRules>,
    /// The folder of a thread's outputs that stores long results.
    pub results_folder: Arc<str>,
    /// The rules for summaries of conversations, and the model that writes them.
    pub context: ContextSetup,
    /// The converter of documents.
    pub documents: Converter,
    /// Titles of threads, if any.
    pub titles: Option<TitleSetup>,
    /// Memory, if any.
    pub memory: Option<MemorySetup>,
    /// The budgets of runs.
    pub budgets: Arc<BudgetSetup>,
    /// The rules for skills.
    pub skills: SkillRules,
}

/// Rules for the use of skills by agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillRules {
    /// Whether prompts contain only the names of skills, and agents look up descriptions with a tool.
    pub deferred: bool,
    /// The rules for skill changes by the lead agent; `None` allows none.
    pub evolution: Option<SkillEvolution>,
}

/// Rules for skill changes by an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillEvolution {
    /// The name of the model that reviews changes in addition to the scan, if any.
    pub moderator: Option<String>,
    /// Whether a change is refused if that model gives no verdict.
    pub fail_closed: bool,
}

/// Groups of tools, for agents with a selection of groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolGroups {
    /// The existing groups.
    pub names: BTreeSet<String>,
    /// The group of each grouped tool. Tools without a group belong to every agent.
    pub of: BTreeMap<String, String>,
}

impl ToolGroups {
    /// Returns whether an agent with these groups has a tool.
    #[must_use]
    pub fn includes(&self, wanted: &[String], tool: &str) -> bool {
        self.of.get(tool).is_none_or(|group| wanted.contains(group))
    }
}

/// Default timeout of an approval.
const APPROVAL_TIMEOUT: Duration = Duration::from_secs(600);

impl SkillRules {
    /// Returns the rules checked against these models. If the configured reviewing model is not among them, skill
    /// changes are disabled.
    #[must_use]
    pub fn checked(self, models: &[KnownModel]) -> Self {
        let moderator = self.evolution.as_ref().and_then(|rules| rules.moderator.as_deref());
        let missing = moderator.is_some() && named_model(models, moderator).is_none();
        if missing {
            tracing::error!(
                model = moderator,
                "disabled skill_manage: the model that reviews changes does not exist"
            );
        }
        Self { evolution: self.evolution.filter(|_| !missing), ..self }
    }
}

impl AgentSetup {
    /// Creates a setup with default rules. The first model is the default.
    #[must_use]
    pub fn new(
        models: impl IntoIterator<Item = KnownModel>,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
        bounds: RunBounds,
        sandboxes: Arc<dyn SandboxProvider>,
    ) -> Self {
        let models: Vec<_> = models.into_iter().collect();
        Self {
            // Costs are also recorded without budgets.
            budgets: Arc::new(BudgetSetup::new(BudgetRules::default(), &models)),
            models,
            tools: Toolbox::new(tools),
            prompts: Arc::default(),
            groups: ToolGroups::default(),
            deferred: Arc::default(),
            bounds,
            loops: Some(Arc::default()),
            progress: None,
            mounts: Vec::new(),
            sandboxes,
            subagents: None,
            acp_agents: Arc::default(),
            policy: Arc::default(),
            guardrails: None,
            patience: APPROVAL_TIMEOUT,
            results: Arc::new(ResultRules::default()),
            results_folder: FOLDER.into(),
            context: ContextSetup::default(),
            documents: Converter::in_process(DocumentLimits::default()),
            titles: Some(TitleSetup { rules: TitleRules::default(), model: None }),
            memory: None,
            skills: SkillRules::default(),
        }
    }

    /// Returns the model that reviews changes of skills in addition to the scan, if any.
    pub(crate) fn moderator(
        &self,
        metered: impl FnOnce(Arc<dyn Model>) -> Arc<dyn Model>,
    ) -> Option<Moderator> {
        let SkillEvolution { moderator, fail_closed } = self.skills.evolution.as_ref()?;
        Some(Moderator {
            model: metered(named_model(&self.models, moderator.as_deref())?),
            fail_closed: *fail_closed,
        })
    }

    /// Finds a model by name. Returns the default if the name is `None` or unknown.
    pub(crate) fn model(&self, name: Option<&str>) -> Option<&Arc<dyn Model>> {
        let matching = self.models.iter().find(|(info, _)| Some(info.name.as_str()) == name);
        matching.or(self.models.first()).map(|(_, model)| model)
    }
}
