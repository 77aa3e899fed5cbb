//! Hides tools that the model has not searched for: their schemas are not in the request, and a call of one returns
//! instructions to search for it.

use super::{Gate, Middleware};
use crate::{RunState, ToolCatalog};
use pudu_base::{BoxFuture, Request, RunFailure, ToolCall, ToolSpec};
use std::sync::Arc;

/// Shows the model only the deferred tools that it has found.
pub struct DeferredTools {
    catalog: Arc<ToolCatalog>,
    /// The tools shown last.
    shown: Option<ShownTools>,
}

/// The visible tools, and the found tools that the list is based on.
struct ShownTools {
    found: Vec<String>,
    specs: Specs,
}

type Specs = Arc<[Arc<ToolSpec>]>;

impl DeferredTools {
    /// Creates it for a run with a catalogue.
    #[must_use]
    pub fn new(catalog: Arc<ToolCatalog>) -> Self {
        Self { catalog, shown: None }
    }

    /// Returns the found tools; none if they were found in another catalogue.
    fn found<'a>(&self, run_state: &'a RunState) -> impl Iterator<Item = &'a String> {
        let promoted = &run_state.state().promoted;
        let same = promoted.catalog == self.catalog.hash();
        promoted.names.iter().take(if same { usize::MAX } else { 0 })
    }

    /// Returns the tools that the model may call: first the ones that are not deferred, then the found ones in order of
    /// discovery, so that the request begins like the previous one.
    fn visible(&mut self, run_state: &RunState, all: &[Arc<ToolSpec>]) -> Specs {
        let found: Vec<String> = self.found(run_state).cloned().collect();
        if let Some(shown) = self.shown.as_ref().filter(|shown| shown.found == found) {
            return shown.specs.clone();
        }
        let plain = all.iter().filter(|spec| !self.catalog.has(&spec.name));
        let loaded = found.iter().filter(|name| self.catalog.has(name));
        let loaded = loaded.filter_map(|name| all.iter().find(|spec| spec.name == *name));
        let specs: Specs = plain.chain(loaded).cloned().collect();
        self.shown = Some(ShownTools { found, specs: specs.clone() });
        specs
    }
}

impl Middleware for DeferredTools {
    fn name(&self) -> &'static str {
        "deferred_tools"
    }

    fn before_model<'a>(
        &'a mut self,
        run_state: &'a mut RunState,
        request: &'a mut Request,
    ) -> BoxFuture<'a, Result<(), RunFailure>> {
        if !self.catalog.is_empty() {
            request.tools = self.visible(run_state, &request.tools);
            request.system.push_str(self.catalog.prompt());
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn before_tool(&mut self, run_state: &RunState, call: &ToolCall) -> Gate {
        if !self.catalog.has(&call.name) || self.found(run_state).any(|name| *name == call.name) {
            return Gate::Allow;
        }
        Gate::Deny(format!(
            "Error: the parameters of {0} were not looked up yet. Call tool_search with select:{0} first; from your next \
             step on you can call {0}.",
            call.name
        ))
    }
}
