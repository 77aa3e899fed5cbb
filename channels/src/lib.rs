//! Chat platforms, one folder each, and their shared code.
//!
//! A channel turns a platform's bytes into [`Inbound`]s, and views of a reply into API calls.
//! Deliberately absent: the agent, the store and the HTTP API. A channel stores an event through its [`EventSink`]
//! before it acknowledges the event, and stores the data for finding its own messages after a restart through its
//! [`ReplyStore`].

mod address;
mod allowance;
mod attachment;
mod boxed;
mod bucket;
mod channel;
mod check;
mod command;
pub mod dingtalk;
pub mod discord;
mod doctor;
mod event_sink;
pub mod feishu;
mod form;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod health;
mod hurry;
mod inbound;
mod lenient;
mod name;
pub mod pace;
mod platform;
mod pointed;
mod recovery;
pub mod render;
mod reply;
mod reply_store;
pub mod slack;
mod socket;
pub mod split;
mod supervise;
pub mod telegram;
mod transport;
mod view;
mod webhook;

use pudu_kit::clock;

pub use address::Address;
pub use attachment::Attachment;
pub use boxed::BoxFuture;
pub use channel::{Channel, ChannelError, ChannelLimits, LiveReply, RecentMessages, ReplyTarget, SendError};
pub use check::{Check, CheckResult};
pub use command::ChatCommand;
pub use event_sink::{AcceptError, Accepted, EventSink, StreamPosition};
pub use health::{Health, HealthCell, HealthState};
pub use hurry::Hurry;
pub use inbound::{EventKey, Inbound, InboundKind, Sender};
pub use pointed::{PointedAt, PointedKind};
pub use reply_store::{KnownMessage, ReplyHandle, ReplyStore, ReplyStoreError};
pub use view::{
    Choice, FORM_ACTION, FinalView, FormAccess, OpenForm, OutFile, Prompt, QuestionForm, ReplyView,
};
pub use webhook::{Glance, Webhook, WebhookRequest, WebhookResponse};
