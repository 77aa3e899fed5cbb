//! The available models, with their descriptions for people.

use crate::{Agent, ModelPrice};
use pudu_base::Model;
use pudu_langgraph::model::ListedModel;
use std::sync::Arc;

/// A model, and its description for people.
pub type KnownModel = (ModelInfo, Arc<dyn Model>);

/// Returns the model with a name.
#[must_use]
pub fn named_model(models: &[KnownModel], name: Option<&str>) -> Option<Arc<dyn Model>> {
    let matching = models.iter().find(|(info, _)| Some(info.name.as_str()) == name);
    matching.map(|(_, model)| model.clone())
}

impl Agent {
    /// Returns the models, the default first.
    #[must_use]
    pub fn models(&self) -> Vec<ModelInfo> {
        self.setup().models.iter().map(|(info, _)| info.clone()).collect()
    }
}

/// Description of a model for people.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelInfo {
    /// The name by which it is chosen.
    pub name: String,
    /// The name that people see.
    pub title: String,
    /// Its description.
    pub about: Option<String>,
    /// Its price, if configured.
    pub price: Option<ModelPrice>,
    /// The provider's name of the model.
    pub model: String,
    /// The model's thinking options.
    pub thinking: ThinkingSupport,
}

/// Thinking options of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThinkingSupport {
    /// Whether thinking can be turned on and off.
    pub supported: bool,
    /// Whether the effort can be set.
    pub takes_effort: bool,
}

impl From<ModelInfo> for ListedModel {
    fn from(info: ModelInfo) -> Self {
        Self {
            name: info.name,
            model: info.model,
            display_name: info.title,
            description: info.about,
            supports_thinking: info.thinking.supported,
            supports_reasoning_effort: info.thinking.takes_effort,
        }
    }
}

impl ModelInfo {
    /// Creates a description with only a name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: name.to_owned(),
            about: None,
            price: None,
            model: name.to_owned(),
            thinking: ThinkingSupport::default(),
        }
    }
}
