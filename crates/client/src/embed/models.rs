//! Models, as the gateway lists them.

use crate::Client;
use pudu_langgraph::model::{ListedModel, ModelList, Switched};

impl Client {
    /// Lists the models, the default first.
    #[must_use]
    pub fn list_models(&self) -> ModelList {
        let models = self.agent().models().into_iter().map(ListedModel::from).collect();
        ModelList { models, token_usage: Switched { enabled: true } }
    }

    /// Returns the model with this name, if any.
    #[must_use]
    pub fn get_model(&self, name: &str) -> Option<ListedModel> {
        self.agent().models().into_iter().find(|model| model.name == name).map(ListedModel::from)
    }
}
