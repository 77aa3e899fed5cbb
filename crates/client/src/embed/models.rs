//! Models, as the gateway lists them.

use crate::{
    Client, ModelInfo,
    wire::model::{ListedModel, ModelList, Switched},
};

impl Client {
    /// Returns the models, the default first.
    #[must_use]
    pub fn models(&self) -> Vec<ModelInfo> {
        self.setup().models.iter().map(|(info, _)| info.clone()).collect()
    }

    /// Lists the models, the default first.
    #[must_use]
    pub fn list_models(&self) -> ModelList {
        let models = self.models().into_iter().map(ListedModel::from).collect();
        ModelList { models, token_usage: Switched { enabled: true } }
    }

    /// Returns a model; `None` if there is none of this name.
    #[must_use]
    pub fn get_model(&self, name: &str) -> Option<ListedModel> {
        self.models().into_iter().find(|model| model.name == name).map(ListedModel::from)
    }
}
