//! A local Open Agent Passport: the agent's capabilities and their limits.
//!
//! The file is read for each call, so that a suspension takes effect immediately. If the passport is inactive or
//! unreadable, everything is denied. If pudu cannot check a limit of a capability, that capability is denied.

mod document;
mod limits;

use crate::{GuardrailDecision, GuardrailError, GuardrailProvider, GuardrailRequest};
use document::PassportDocument;
use pudu_base::BoxFuture;
use serde_json::Value;
use std::path::PathBuf;
use tokio::{fs::File, io::AsyncReadExt};

/// Maximum size of a passport, in bytes.
const MAX_PASSPORT_BYTES: u64 = 256 * 1024;

/// Source of a passport.
#[derive(Clone, Debug, PartialEq)]
pub enum PassportSource {
    /// A file.
    File(PathBuf),
    /// A value in the configuration itself.
    Inline(Value),
}

/// Decides according to a passport.
#[derive(Clone, Debug)]
pub struct Passport(PassportSource);

impl Passport {
    /// Creates a provider with this passport.
    #[must_use]
    pub fn new(source: PassportSource) -> Self {
        Self(source)
    }

    /// Reads the passport. The error describes the problem for the operator.
    async fn read(&self) -> Result<PassportDocument, String> {
        match &self.0 {
            PassportSource::Inline(value) => serde_json::from_value(value.clone())
                .map_err(|error| format!("it is not a passport: {error}")),
            PassportSource::File(path) => {
                let unreadable =
                    |error: std::io::Error| format!("{} cannot be read: {error}", path.display());
                let file = File::open(path).await.map_err(unreadable)?;
                let mut bytes = Vec::new();
                file.take(MAX_PASSPORT_BYTES + 1).read_to_end(&mut bytes).await.map_err(unreadable)?;
                if bytes.len() as u64 > MAX_PASSPORT_BYTES {
                    return Err(format!("{} has more than {MAX_PASSPORT_BYTES} bytes", path.display()));
                }
                serde_json::from_slice(&bytes)
                    .map_err(|error| format!("{} is not a passport: {error}", path.display()))
            }
        }
    }
}

impl GuardrailProvider for Passport {
    fn name(&self) -> &'static str {
        "passport"
    }

    fn evaluate<'a>(
        &'a self,
        request: &'a GuardrailRequest,
    ) -> BoxFuture<'a, Result<GuardrailDecision, GuardrailError>> {
        Box::pin(async move {
            Ok(match self.read().await {
                Ok(document) => document.decide(request),
                // This is not reported as a provider failure, which may be ignored, because the agent's rights are
                // unknown.
                Err(error) => {
                    tracing::warn!(error, "failed to read passport");
                    GuardrailDecision::denied(document::UNREADABLE, "the agent's passport cannot be read")
                }
            })
        })
    }

    fn check(&self) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move { self.read().await?.describe() })
    }
}

#[cfg(test)]
mod tests;
