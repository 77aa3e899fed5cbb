//! A reply may start only so many sub-agents; those beyond are left out of it, so that the model sees what it
//! really asked for.

use super::Middleware;
use crate::{Turn, subagent};
use pudu_base::Assistant;

/// Leaves out what would start more than this many sub-agents at once.
pub struct SubagentLimit(pub usize);

impl Middleware for SubagentLimit {
    fn name(&self) -> &'static str {
        "subagent_limit"
    }

    fn after_model(&mut self, _turn: &mut Turn, reply: &mut Assistant) {
        let mut room = self.0;
        reply.calls.retain(|call| {
            let is_task = call.name == subagent::TASK;
            let fits = !is_task || room > 0;
            room -= usize::from(is_task && fits);
            fits
        });
    }
}
