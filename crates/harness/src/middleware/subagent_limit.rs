//! A reply may start only so many sub-agents; those beyond are left out of it, so that the model sees what it
//! really asked for. A run may start only so many all in all; those beyond are refused, and the model reads why.

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
    /// Lets so many work at once, and so many in all.
    #[must_use]
    pub fn new(at_once: u32, in_all: u32) -> Self {
        Self { at_once, in_all, begun: HashSet::new() }
    }
}

impl Middleware for SubagentLimit {
    fn name(&self) -> &'static str {
        "subagent_limit"
    }

    /// A run that a crash cut goes on counting where it was.
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
                "Error: no more than {} sub-agents may work in one run, and they have. Do the rest yourself, or say what is \
                 left to do",
                self.in_all
            )),
            false => Gate::Allow,
        }
    }
}
