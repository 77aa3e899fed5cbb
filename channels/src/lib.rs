//! Chat platforms, one folder each, and what they share.
//!
//! A channel turns a platform's bytes into [`Inbound`]s and views of a reply into the platform's calls.
//! Deliberately absent: the agent, the store and the HTTP API. A channel asks its [`Intake`] to keep what
//! came in before it acknowledges anything, and its [`Journal`] to keep what it needs to find its own
//! messages again after a restart.

mod address;
mod bucket;
mod channel;
mod check;
mod clock;
mod command;
pub mod dingtalk;
pub mod discord;
pub mod feishu;
mod fetch;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod health;
mod http;
mod hurry;
mod inbound;
mod name;
pub mod pace;
mod recovery;
pub mod render;
mod reply;
pub mod slack;
mod socket;
pub mod split;
mod supervise;
pub mod telegram;
mod view;
mod webhook;

pub use address::Address;
pub use channel::{
    AcceptError, Accepted, BoxFuture, Channel, ChannelError, ChannelLimits, EventSink, KnownMessage,
    LiveReply, ReplyHandle, ReplyStore, ReplyStoreError, ReplyTarget, SendError, StreamPosition,
};
pub use check::{Check, CheckResult};
pub use command::ChatCommand;
pub use health::{Health, HealthCell, HealthState};
pub use hurry::Hurry;
pub use inbound::{Attachment, EventKey, Inbound, InboundKind, Sender};
pub use view::{Choice, FinalView, OutFile, Prompt, ReplyView};
pub use webhook::{Glance, Webhook, WebhookRequest, WebhookResponse};
