//! Language models that implement the interface of `pudu-base`: the providers' wire protocols, each in its own folder
//! and without I/O; one HTTP client for all wires; and a built-in model for installations without a configured one. A
//! provider's deviations from its wire are data ([`Dialect`], [`vendors`]).
//!
//! Deliberately absent: retries and fallbacks (the harness decides), prices, and anything about threads.

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
