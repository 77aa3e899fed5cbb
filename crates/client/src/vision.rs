//! Whether the answering model sees images, and otherwise the model that does.

use crate::Client;
use pudu_base::UserId;

/// A model that cannot see images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlindModel {
    /// Its name.
    pub name: String,
    /// The name of the first model that can, if there is one.
    pub seeing: Option<String>,
}

impl Client {
    /// Returns the model that would answer, for this choice of model and this agent (shared or a user's), if it cannot
    /// see images.
    pub async fn blind_model(
        &self,
        model: Option<&str>,
        agent: Option<&str>,
        owner: Option<&UserId>,
    ) -> Option<BlindModel> {
        let of_agent = match agent.filter(|_| model.is_none()) {
            // An agent that cannot be read never answers.
            Some(agent) => self.custom_agent(agent, owner).await.ok()?.profile.model,
            None => None,
        };
        let setup = self.setup();
        let answering = setup.model(model.or(of_agent.as_deref()))?;
        let seeing = setup.models.iter().find(|(_, model)| model.supports_vision());
        let seeing = seeing.map(|(info, _)| info.name.clone());
        (!answering.supports_vision()).then(|| BlindModel { name: answering.name().to_owned(), seeing })
    }
}
