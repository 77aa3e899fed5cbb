//! Sandboxes that are containers: of a Docker engine, of a provisioner, of Kubernetes.
//!
//! A [`ContainerEngine`] makes containers and takes them away. The [`Pool`] decides when: one for each
//! thread, kept warm for a while when nobody works in it. [`Aio`] speaks to the HTTP API of DeerFlow's
//! sandbox image, whoever runs it. What is deliberately absent: confining commands on this machine, which is
//! `pudu-sandbox`.

mod aio;
mod apart;
mod docker;
mod engine;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
mod pair;
mod pool;
mod prove;
pub mod provisioner;

pub use aio::Aio;
pub use docker::{DockerEngine, DockerSettings, EngineCheck, ExecMethod, GEM};
pub use engine::{BoxId, ContainerEngine, Order};
#[cfg(feature = "kubernetes")]
pub use kubernetes::KubernetesEngine;
pub use pair::{Pair, Runner};
pub use pool::{Pool, PoolRules};
pub use prove::prove;
pub use provisioner::ProvisionerEngine;

use pudu_base::SandboxError;
use std::{error::Error, fmt::Write};

/// Returns a word that nobody guesses, of letters and digits.
fn word() -> Result<String, SandboxError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| SandboxError::Refused(format!("the system has no random numbers: {error}")))?;
    Ok(bytes.iter().fold("pudu".to_owned(), |mut hex, byte| {
        // Writing to a string does not fail.
        write!(hex, "{byte:02x}").ok();
        hex
    }))
}

/// Returns what the innermost cause of an error says: the others only say what was tried.
fn root(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
