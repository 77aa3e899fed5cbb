//! From a name to addresses: asked once a connection, judged, and only what was judged is connected to. So a
//! name that tells the judge one address and the socket another has nobody to tell it to.

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

/// Finds the addresses of a name.
pub trait Resolver: Send + Sync {
    /// Returns all of them.
    fn lookup<'a>(&'a self, name: &'a str) -> Lookup<'a>;
}

/// The system's own resolver.
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

/// Resolves names for the HTTP client, and refuses those that lead inside.
#[derive(Clone)]
pub(super) struct Checked {
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) allowed: Arc<AllowedTargets>,
}

impl Checked {
    /// One address inside is enough to refuse a name: who mixes them wants the client to pick that one.
    pub(super) async fn lookup(&self, name: &str) -> Result<Vec<IpAddr>, GuardError> {
        let host = name.trim_end_matches('.').to_lowercase();
        let unknown = |why: String| GuardError::Unreachable(format!("{host} cannot be found: {why}"));
        let found = self.resolver.lookup(&host).await.map_err(|error| unknown(error.to_string()))?;
        if found.is_empty() {
            return Err(unknown("it has no address".to_owned()));
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
            // The client puts the URL's port in place of 0.
            Ok(Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}
