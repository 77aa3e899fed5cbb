//! Determines whether the answering model has vision and, if not, which model does.

use crate::Agent;
use pudu_base::UserId;

/// A model without vision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlindModel {
    /// Its name.
    pub name: String,
    /// The name of the first model with vision, if any.
    pub seeing: Option<String>,
}

impl Agent {
    /// Returns the model that would answer, for this choice of model and agent (a shared one or a user's), if it has no
    /// vision.
    pub async fn blind_model(
        &self,
        model: Option<&str>,
        agent: Option<&str>,
        owner: Option<&UserId>,
    ) -> Option<BlindModel> {
        let of_agent = match agent.filter(|_| model.is_none()) {
            // A broken agent never answers.
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
