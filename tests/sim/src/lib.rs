//! Simulated platforms and a scripted model, for tests, benchmarks and manual use.
//!
//! Each simulator is a loopback HTTP server that is faithful to the documented behavior of the real one, including its
//! pitfalls, and a handle with which a test controls the users, reads their chats, and causes failures at a chosen
//! point. All timestamps use [`tokio::time::Instant`], so that times in the model and in the chat can be compared.
//!
//! Deliberately absent: any dependency on the code under test. A simulator that shared the client's understanding of a
//! protocol would share its errors; official clients verify the simulators instead (`conformance/`).

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

/// The awaited event did not happen in time. Contains the actual state.
#[derive(Debug, thiserror::Error)]
#[error("not seen within {within:?}; instead:\n{instead}")]
pub struct Timeout {
    /// The timeout.
    pub within: Duration,
    /// The state at the timeout, for display.
    pub instead: String,
}

impl Timeout {
    fn new(within: Duration, instead: impl fmt::Display) -> Self {
        Self { within, instead: instead.to_string() }
    }
}
