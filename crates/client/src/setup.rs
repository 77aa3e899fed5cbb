//! What runs work with, as the configuration of the moment wants it.

use pudu_base::{Model, Tool};
use pudu_harness::{Bounds, Toolbox, lead_prompt};
use std::sync::Arc;

/// What runs work with.
pub struct Setup {
    pub(crate) models: Vec<(ModelInfo, Arc<dyn Model>)>,
    pub(crate) tools: Toolbox,
    pub(crate) bounds: Bounds,
    pub(crate) system: Arc<str>,
    pub(crate) host_shell: bool,
}

/// What people are told of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// The name by which it is chosen.
    pub name: String,
    /// The name that people see.
    pub title: String,
    /// What it is.
    pub about: Option<String>,
}

impl Setup {
    /// Puts a setup together. The first model is the default.
    #[must_use]
    pub fn new(
        models: impl IntoIterator<Item = (ModelInfo, Arc<dyn Model>)>,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
        bounds: Bounds,
        host_shell: bool,
    ) -> Self {
        Self {
            models: models.into_iter().collect(),
            tools: Toolbox::new(tools),
            bounds,
            system: lead_prompt(),
            host_shell,
        }
    }

    /// Finds a model by name; the default for none and for one that is not there any more.
    pub(crate) fn model(&self, name: Option<&str>) -> Option<&Arc<dyn Model>> {
        let named = self.models.iter().find(|(info, _)| Some(info.name.as_str()) == name);
        named.or(self.models.first()).map(|(_, model)| model)
    }
}
