//! Language models behind the one port of `pudu-base`: the wires that providers speak, each in a folder of its own
//! that knows bytes and no sockets; one HTTP client for all wires; and a built-in model for a machine that has none.
//! How a vendor departs from its wire is data ([`Dialect`], [`vendors`]).
//!
//! Deliberately absent: asking again and falling back (the harness decides that), prices, and anything about threads.

mod call_ids;
mod calls;
mod chat;
mod finish;
mod frames;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod gemini;
mod http;
mod inline_images;
mod kind;
mod legal;
mod limit;
mod media;
mod messages;
mod offline;
mod ollama;
mod order;
mod paragraphs;
mod parts;
#[cfg(test)]
mod prefix;
mod refusal;
mod responses;
mod schema;
mod settings;
#[cfg(test)]
mod testing;
mod think;
mod thinking;
mod turns;
mod usage;
mod vendor;
mod wire;
mod wires;

pub use call_ids::CallIdForm;
pub use frames::ReplyDecoder;
pub use http::HttpModel;
pub use kind::WireKind;
pub use offline::Offline;
pub use schema::SchemaForm;
pub use settings::{CacheRules, Dialect, ModelSettings};
pub use thinking::ThinkingRules;
pub use vendor::{Vendor, vendors};
