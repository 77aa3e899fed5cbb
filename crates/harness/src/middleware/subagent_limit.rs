//! Limits sub-agents. Excess ones in a single reply are removed from it, so that the model sees the calls that count.
//! Excess ones in a run are refused, and the model reads why.

use super::{Gate, Middleware};
use crate::{RunState, task_end::TASK};
use pudu_base::{Assistant, BoxFuture, CallId, Message, RunFailure, ToolCall};
use std::collections::HashSet;

/// Counts a run's sub-agents.
pub struct SubagentLimit {
    at_once: u32,
    in_all: u32,
    begun: HashSet<CallId>,
}

impl SubagentLimit {
    /// Creates a limit of `at_once` per reply and `in_all` per run.
    #[must_use]
    pub fn new(at_once: u32, in_all: u32) -> Self {
        Self { at_once, in_all, begun: HashSet::new() }
    }
}

impl Middleware for SubagentLimit {
    fn name(&self) -> &'static str {
        "subagent_limit"
    }

    /// Restores the count of a run that was interrupted by a crash.
    fn before_run<'a>(&'a mut self, run_state: &'a mut RunState) -> BoxFuture<'a, Result<(), RunFailure>> {
        let messages = run_state.state().messages.values().rev();
        let own = messages.take_while(|message| !matches!(&***message, Message::Human(_)));
        self.begun = own
            .filter_map(|message| match &**message {
                Message::Tool(result) if result.tool == TASK => Some(result.call.clone()),
                _ => None,
            })
            .collect();
        Box::pin(std::future::ready(Ok(())))
    }

    fn after_model(&mut self, _turn: &mut RunState, reply: &mut Assistant) {
        let mut room = self.at_once;
        reply.calls.retain(|call| {
            let is_task = call.name == TASK;
            let fits = !is_task || room > 0;
            room -= u32::from(is_task && fits);
            fits
        });
    }

    fn before_tool(&mut self, _turn: &RunState, call: &ToolCall) -> Gate {
        if call.name != TASK {
            return Gate::Allow;
        }
        self.begun.insert(call.id.clone());
        match self.begun.len() > self.in_all as usize {
            true => Gate::Deny(format!(
                "Error: this run has already used its maximum of {} sub-agents. Do the rest yourself, or say what is \
                 left to do",
                self.in_all
            )),
            false => Gate::Allow,
        }
    }
}
