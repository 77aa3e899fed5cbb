//! Doctor check of an engine.

use super::{
    DockerEngine,
    link::{failed, status},
};
use pudu_base::SandboxError;

/// Result of the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineCheck {
    /// The engine's own version.
    pub version: String,
    /// The version of its API.
    pub api: String,
    /// Whether it runs without root.
    pub rootless: bool,
    /// Whether it has the image.
    pub image: bool,
}

impl DockerEngine {
    /// Looks at the engine. Nothing is made or fetched.
    ///
    /// # Errors
    /// When it does not answer; the text says what can be done.
    pub async fn look(&self) -> Result<EngineCheck, SandboxError> {
        let docker = self.0.link.docker().await?;
        let version = docker.version().await.map_err(|error| failed("say its version", error))?;
        let facts = self.0.link.facts().await?;
        let image = match docker.inspect_image(&self.0.settings.image).await {
            Ok(_) => true,
            Err(error) if status(&error) == Some(404) => false,
            Err(error) => return Err(failed("look for the image", error)),
        };
        let (api, version) = (version.api_version, version.version);
        let [version, api] = [version, api].map(Option::unwrap_or_default);
        Ok(EngineCheck { version, api, rootless: facts.rootless, image })
    }
}
