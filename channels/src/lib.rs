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
mod live;
mod name;
pub mod pace;
mod recovery;
pub mod render;
pub mod slack;
mod socket;
pub mod split;
mod supervise;
pub mod telegram;
mod view;
mod webhook;

pub use address::Address;
pub use channel::{
    BoxFuture, Channel, ChannelError, Intake, Journal, JournalError, Kept, Limits, LiveReply, Placement,
    Refusal, ReplyHandle, SendError, Sighting, StreamPosition,
};
pub use check::{Check, Found};
pub use command::Command;
pub use health::{Health, HealthCell, HealthState};
pub use hurry::Hurry;
pub use inbound::{Attachment, EventKey, Inbound, Kind, Sender};
pub use view::{Ask, Choice, FinalView, OutFile, ReplyView};
pub use webhook::{Answer, Glance, Post, Webhook};
