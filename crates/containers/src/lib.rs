//! Sandboxes as containers, on a Docker engine, from a provisioner or in Kubernetes.
//!
//! A [`ContainerEngine`] creates and removes containers. The [`Pool`] decides when to do so: each thread has one
//! container, which is kept for a while after use. [`Aio`] is the client for the HTTP API of DeerFlow's sandbox image.
//! Deliberately absent: confinement of commands on this machine, which is in `pudu-sandbox`.

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

/// Returns an unguessable word of letters and digits.
fn random_word() -> Result<String, SandboxError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        SandboxError::Refused(format!("cannot get random numbers from the system: {error}"))
    })?;
    Ok(bytes.iter().fold("pudu".to_owned(), |mut hex, byte| {
        // Writing to a string does not fail.
        write!(hex, "{byte:02x}").ok();
        hex
    }))
}

/// Returns the message of an error's innermost cause, because the outer errors only describe the attempt.
fn root(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
