//! Sandboxes that are containers: of a Docker engine, of a provisioner, of Kubernetes.
//!
//! An [`Engine`] makes containers and takes them away.
//! What is deliberately absent: confining commands on this machine, which is `pudu-sandbox`.

mod engine;

pub use engine::{BoxId, Engine};
