//! Checks an engine for `pudu doctor`.

use super::{
    DockerEngine,
    link::{failed, status},
};
use pudu_base::SandboxError;

/// Result of the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineCheck {
    /// Version of the engine.
    pub version: String,
    /// Version of the engine's API.
    pub api: String,
    /// Whether the engine runs without root.
    pub rootless: bool,
    /// Whether the engine has the image.
    pub image: bool,
}

impl DockerEngine {
    /// Inspects the engine without creating or pulling anything.
    ///
    /// # Errors
    /// When the engine does not respond. The error suggests a fix.
    pub async fn check_engine(&self) -> Result<EngineCheck, SandboxError> {
        let docker = self.0.link.docker().await?;
        let version = docker.version().await.map_err(|error| failed("report its version", error))?;
        let facts = self.0.link.facts().await?;
        let image = match docker.inspect_image(&self.0.settings.image).await {
            Ok(_) => true,
            Err(error) if status(&error) == Some(404) => false,
            Err(error) => return Err(failed("inspect the image", error)),
        };
        let (api, version) = (version.api_version, version.version);
        let [version, api] = [version, api].map(Option::unwrap_or_default);
        Ok(EngineCheck { version, api, rootless: facts.rootless, image })
    }
}
