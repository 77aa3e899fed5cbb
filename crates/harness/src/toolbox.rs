//! The set of tools available to a run.

use pudu_base::{Tool, ToolSpec};
use std::sync::Arc;

/// The tools of a run, with cached specifications.
#[derive(Clone)]
pub struct Toolbox {
    tools: Arc<[Arc<dyn Tool>]>,
    specs: Arc<[Arc<ToolSpec>]>,
}

impl Toolbox {
    /// Combines tools. The first of several tools with the same name wins.
    #[must_use]
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let mut unique: Vec<Arc<dyn Tool>> = Vec::new();
        for tool in tools {
            if !unique.iter().any(|other| other.spec().name == tool.spec().name) {
                unique.push(tool);
            }
        }
        let specs = unique.iter().map(|tool| tool.spec().clone()).collect();
        Self { tools: unique.into(), specs }
    }

    /// Finds a tool.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name)
    }

    /// Returns the tools whose names satisfy a predicate.
    #[must_use]
    pub fn only(&self, wanted: impl Fn(&str) -> bool) -> Self {
        if self.specs.iter().all(|spec| wanted(&spec.name)) {
            return self.clone();
        }
        Self::new(self.tools.iter().filter(|tool| wanted(&tool.spec().name)).cloned())
    }

    /// Returns the tools with one more.
    #[must_use]
    pub fn with(&self, tool: Arc<dyn Tool>) -> Self {
        Self::new(self.tools.iter().cloned().chain([tool]))
    }

    /// Returns the specifications for the model.
    #[must_use]
    pub fn specs(&self) -> &Arc<[Arc<ToolSpec>]> {
        &self.specs
    }

    /// Returns the names, for a model that called an unknown tool.
    #[must_use]
    pub fn names(&self) -> String {
        self.specs.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}
