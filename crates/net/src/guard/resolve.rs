//! Name resolution: once per connection. The addresses are checked, and only a checked address is used. This prevents
//! DNS rebinding, where a name resolves differently the second time.

use super::{AllowedTargets, error::GuardError};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
};

/// Maximum number of addresses of a name; a name with more is refused.
const MAX_ADDRESSES: usize = 64;

/// Result of a resolver.
pub type Lookup<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Resolves names.
pub trait Resolver: Send + Sync {
    /// Returns all addresses of a name.
    fn lookup<'a>(&'a self, name: &'a str) -> Lookup<'a>;
}

/// The system's resolver.
#[derive(Clone, Copy, Debug)]
pub struct System;

impl Resolver for System {
    fn lookup<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Resolves names for the HTTP client and refuses names with internal addresses.
#[derive(Clone)]
pub(super) struct Checked {
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) allowed: Arc<AllowedTargets>,
}

impl Checked {
    /// Resolves a name and checks its addresses. A single internal address is enough to refuse the name: an attacker
    /// could mix it with public ones.
    pub(super) async fn lookup(&self, name: &str) -> Result<Vec<IpAddr>, GuardError> {
        let host = name.trim_end_matches('.').to_lowercase();
        let unknown = |why: String| GuardError::Unreachable(format!("{host} cannot be found: {why}"));
        let found = self.resolver.lookup(&host).await.map_err(|error| unknown(error.to_string()))?;
        if found.is_empty() {
            return Err(unknown("its name has no addresses".to_owned()));
        }
        if found.len() > MAX_ADDRESSES {
            return Err(GuardError::Refused(format!("{host} has more than {MAX_ADDRESSES} addresses")));
        }
        if !self.allowed.host(&host) {
            found.iter().try_for_each(|address| self.allowed.address(&host, *address))?;
        }
        Ok(found)
    }
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let checked = self.clone();
        Box::pin(async move {
            let found = checked.lookup(name.as_str()).await?;
            // The client replaces port 0 with the URL's port.
            Ok(Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}
