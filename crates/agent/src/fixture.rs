//! Answers to tasks in tests, without a run manager.

use crate::{
    Agent, BudgetNotice, RunTask,
    assemble::{AssembledAgent, assemble},
    memory,
};
use pudu_base::{Message, Outcome, Update};
use pudu_harness::{RunState, SkillPolicy, Steering};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The answer to a task.
pub(crate) struct TestAnswer {
    pub(crate) outcome: Outcome,
    /// Text of the last reply; empty if there is none.
    pub(crate) text: String,
    pub(crate) budgets: Vec<BudgetNotice>,
    /// Tokens of the run.
    pub(crate) tokens: u64,
}

/// Stores the input of a task in its thread, and lets the agent answer it.
pub(crate) async fn answer(agent: &Agent, task: RunTask) -> TestAnswer {
    let (seq, state) = agent.threads().take(&task.thread).await.unwrap();
    let mut turn = RunState::new(task.thread.clone(), task.run.clone(), seq, state, Arc::default());
    for human in &task.input {
        turn.apply(Update::Message(Arc::new(Message::Human(human.clone()))));
    }
    turn.commit(&agent.threads().log()).await.unwrap();
    let assembled = assemble(agent, &task).await.unwrap();
    let mut chain = assembled.chain(SkillPolicy::new(assembled.skills.clone(), None));
    let AssembledAgent { agent: run_agent, meter, .. } = assembled;
    let (steering, cancel) = (Steering::default(), CancellationToken::new());
    let outcome = pudu_harness::run(&run_agent, &mut chain, &mut turn, &steering, &cancel).await;
    let budgets = meter.notices(outcome.used_budget()).await;
    if outcome == Outcome::Success {
        memory::learn::keep(agent, &task, turn.state()).await;
    }
    let tokens = turn.spending.usage().total();
    let (seq, state) = turn.into_state().unwrap();
    let text = state.messages.values().rev().find_map(|message| message.reply());
    let text = text.map(|reply| reply.text.clone()).unwrap_or_default();
    agent.threads().put(task.thread, seq, state);
    TestAnswer { outcome, text, budgets, tokens }
}
