//! The chains of the lead agent and of sub-agents.

use super::{
    ApprovalGate, Dangling, DeferredTools, Images, LoopDetection, Middleware, Midnight, ModelErrors,
    SkillPolicy, SubagentLimit, TerminalResponse, TodoReminders, TokenGate, ToolErrors, ToolFraming,
    ToolProgress,
};
use crate::{RunAgent, context::ContextFit};

/// Returns the lead agent's middlewares, in order: the ones of every agent, `others` that add to its requests, and the
/// limit on sub-agents.
#[must_use]
pub fn lead_chain(
    agent: &RunAgent,
    skills: SkillPolicy,
    others: Vec<Box<dyn Middleware>>,
) -> Vec<Box<dyn Middleware>> {
    let mut chain = common_middlewares(agent, skills, others);
    chain.push(Box::new(TodoReminders::default()));
    chain.push(Box::new(SubagentLimit::new(agent.bounds.at_once, agent.bounds.subagents)));
    chain.push(Box::new(ToolErrors));
    chain
}

/// Returns a sub-agent's middlewares, in order.
#[must_use]
pub fn subagent_chain(agent: &RunAgent, skills: SkillPolicy) -> Vec<Box<dyn Middleware>> {
    let mut chain = common_middlewares(agent, skills, Vec::new());
    chain.push(Box::new(ToolErrors));
    chain
}

/// Returns the middlewares that come first for every agent, in order.
fn common_middlewares(
    agent: &RunAgent,
    skills: SkillPolicy,
    others: Vec<Box<dyn Middleware>>,
) -> Vec<Box<dyn Middleware>> {
    let mut chain: Vec<Box<dyn Middleware>> = Vec::new();
    if agent.bounds.tokens.is_limited() {
        // First, because a request over budget must not be prepared or summarised.
        chain.push(Box::new(TokenGate::new(agent.bounds.tokens)));
    }
    chain.extend(others);
    let own: [Box<dyn Middleware>; 10] = [
        Box::new(skills),
        Box::new(DeferredTools::new(agent.deferred.clone())),
        Box::new(Midnight(agent.clock.clone())),
        Box::new(Dangling),
        Box::new(Images::new(agent)),
        // After everything that adds to a request.
        Box::new(ContextFit::new(agent)),
        Box::new(ModelErrors),
        Box::new(ApprovalGate::new(agent.policy.clone(), agent.tools.clone())),
        Box::new(ToolFraming(agent.tools.clone())),
        Box::new(TerminalResponse),
    ];
    chain.extend(own);
    if let Some(rules) = &agent.progress {
        chain.push(Box::new(ToolProgress::new(rules.clone())));
    }
    if let Some(rules) = &agent.loops {
        chain.push(Box::new(LoopDetection::new(rules.clone())));
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TokenLimit, fixture::Bench};
    use std::sync::Arc;

    fn names(chain: &[Box<dyn Middleware>]) -> Vec<&'static str> {
        chain.iter().map(|middleware| middleware.name()).collect()
    }

    #[test]
    fn the_chains_contain_these_middlewares() {
        let agent = RunAgent {
            loops: Some(Arc::default()),
            progress: Some(Arc::default()),
            ..Bench::new(vec![]).agent
        };
        let lead = [
            "skill_policy",
            "deferred_tools",
            "midnight",
            "dangling",
            "images",
            "context",
            "model_errors",
            "approvals",
            "tool_framing",
            "terminal_response",
            "tool_progress",
            "loop_detection",
            "todo_reminders",
            "subagent_limit",
            "tool_errors",
        ];
        assert_eq!(names(&lead_chain(&agent, SkillPolicy::default(), Vec::new())), lead);
        let sub = [
            "skill_policy",
            "deferred_tools",
            "midnight",
            "dangling",
            "images",
            "context",
            "model_errors",
            "approvals",
            "tool_framing",
            "terminal_response",
            "tool_progress",
            "loop_detection",
            "tool_errors",
        ];
        assert_eq!(names(&subagent_chain(&agent, SkillPolicy::default())), sub);
    }

    #[test]
    fn the_token_gate_is_first_and_other_additions_precede_the_context_fit() {
        let mut agent = Bench::new(vec![]).agent;
        agent.bounds.tokens.total = Some(TokenLimit { warn: 1, stop: 2 });
        let chain = lead_chain(&agent, SkillPolicy::default(), vec![Box::new(ToolErrors)]);
        assert_eq!(names(&chain)[..3], ["token_budget", "tool_errors", "skill_policy"]);
    }
}
