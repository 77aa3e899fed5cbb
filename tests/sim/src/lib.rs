//! Simulated platforms and a scripted model, for tests, benchmarks and playing by hand.
//!
//! Each simulator is an HTTP server on loopback that keeps to the documented behaviour of the real one,
//! traps included, and a handle with which a test plays the people, reads what they see, and breaks
//! things at a chosen point. Both stamp what happens with [`tokio::time::Instant`], so that a moment in
//! the model and a moment in the chat can be compared.
//!
//! Deliberately absent: any dependency on the code under test. A fake that shared its idea of a protocol
//! with the client would agree with the client's mistakes; official clients prove these instead
//! (`conformance/`).

pub mod aio;
mod calls;
mod cell;
mod control;
pub mod dingtalk;
pub mod discord;
pub mod docker;
mod fault;
pub mod feishu;
mod forward;
mod gate;
pub mod guardrail;
mod http;
pub mod kubernetes;
pub mod model;
pub mod oidc;
pub mod platform;
pub mod provisioner;
mod proxy;
pub mod slack;
mod stage;
pub mod telegram;
pub mod web;

pub use aio::Aio;
pub use calls::{Call, Outcome};
pub use dingtalk::DingTalk;
pub use discord::Discord;
pub use docker::Docker;
pub use fault::{Fault, When};
pub use feishu::Feishu;
pub use forward::ForwardProxy;
pub use gate::{Hold, Hook, Then};
pub use guardrail::Guardrail;
pub use kubernetes::Kubernetes;
pub use model::Model;
pub use oidc::Oidc;
pub use platform::Platform;
pub use provisioner::Provisioner;
pub use proxy::{Break, Proxy};
pub use slack::Slack;
pub use stage::Staged;
pub use telegram::Telegram;
pub use web::Web;

use std::{fmt, time::Duration};

/// What was waited for did not come in time. Says what there was instead.
#[derive(Debug, thiserror::Error)]
#[error("not seen within {within:?}; instead:\n{instead}")]
pub struct Timeout {
    /// How long it was waited for.
    pub within: Duration,
    /// The state when the wait ended, for a person to read.
    pub instead: String,
}

impl Timeout {
    fn new(within: Duration, instead: impl fmt::Display) -> Self {
        Self { within, instead: instead.to_string() }
    }
}
