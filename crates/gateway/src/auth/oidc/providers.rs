//! The identity providers for sign-in.

use super::{provider::IdentityProvider, ring_provider};
use indexmap::IndexMap;
use pudu_config::OidcConfig;

/// The identity providers, and where the browser goes afterwards.
#[derive(Default)]
pub(in crate::auth) struct Providers {
    frontend: String,
    providers: IndexMap<String, IdentityProvider>,
}

impl Providers {
    pub(in crate::auth) fn new(config: Option<&OidcConfig>) -> Self {
        ring_provider::install();
        let Some(config) = config else { return Self::default() };
        let all = config.providers.iter();
        let providers =
            all.map(|(name, provider)| (name.clone(), IdentityProvider::new(provider.clone()))).collect();
        Self { frontend: config.frontend.clone(), providers }
    }

    /// Returns whether there are any identity providers.
    pub(in crate::auth) fn is_configured(&self) -> bool {
        !self.providers.is_empty()
    }

    /// Returns the base URL of the pages that people return to; empty if they are on the gateway's own host.
    pub(super) fn frontend(&self) -> &str {
        &self.frontend
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&String, &IdentityProvider)> {
        self.providers.iter()
    }

    pub(super) fn get(&self, name: &str) -> Option<&IdentityProvider> {
        self.providers.get(name)
    }
}
