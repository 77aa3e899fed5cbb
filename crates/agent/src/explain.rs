//! Describes an agent's first request, without calling a model.

use crate::{
    Agent, RunTask,
    assemble::{self, AssembledAgent},
    budget::too_small,
};
use pudu_base::{FailureCause, Request, RunId, ThreadId, ToolSpec, UsedBudget};
use pudu_guardrails::Guards;
use pudu_harness::{PromptSection, SkillPolicy, join_sections};
use std::sync::Arc;

/// The parts of an agent's first request, and the middlewares and guardrails of its runs.
pub struct AgentExplanation {
    /// The model's name.
    pub model: String,
    /// Maximum length of prompt and answer together, in tokens.
    pub context_window: u64,
    /// Names of the middlewares, in the order in which they run before a model call.
    pub middlewares: Vec<&'static str>,
    /// Short description of the guardrails that decide on its calls.
    pub guardrails: Option<String>,
    /// The system prompt.
    pub sections: Vec<PromptSection>,
    /// The tools offered to the model.
    pub tools: Vec<Arc<ToolSpec>>,
}

impl Agent {
    /// Describes the agent that a task would get. Nothing is called, stored or started.
    ///
    /// # Errors
    /// If there is no such agent, or no model.
    pub async fn explain(
        &self,
        agent: Option<String>,
        model: Option<String>,
    ) -> Result<AgentExplanation, FailureCause> {
        let task = RunTask { agent, model, ..RunTask::new(ThreadId::fresh(), RunId::fresh()) };
        let assembled = assemble::assemble(self, &task).await?;
        let chain = assembled.chain(SkillPolicy::new(assembled.skills.clone(), None));
        let AssembledAgent { agent, mut sections, .. } = assembled;
        let deferred = agent.deferred.prompt().trim();
        if !agent.deferred.is_empty() {
            sections.push(PromptSection { name: "deferred_tools", text: deferred.to_owned() });
        }
        let offered = agent.tools.specs().iter().filter(|spec| !agent.deferred.has(&spec.name));
        Ok(AgentExplanation {
            model: agent.model.name().to_owned(),
            context_window: agent.model.context_window(),
            guardrails: self.setup().guardrails.as_ref().map(Guards::describe),
            middlewares: chain.iter().map(|middleware| middleware.name()).collect(),
            sections,
            tools: offered.cloned().collect(),
        })
    }

    /// Returns the refusals of budgets that are too small for the first answer of any conversation with the lead agent.
    ///
    /// # Errors
    /// If there is no model.
    pub async fn small_budgets(&self) -> Result<Vec<UsedBudget>, FailureCause> {
        let setup = self.setup();
        if setup.budgets.rules.limits.is_empty() {
            return Ok(Vec::new());
        }
        let model = setup.model(None).ok_or(FailureCause::NoModel)?;
        let AgentExplanation { sections, tools, .. } = self.explain(None, None).await?;
        let request = Request { system: join_sections(&sections), tools: tools.into(), ..Request::default() };
        Ok(too_small(&setup.budgets, &**model, &request))
    }
}
