//! The one HTTP client, the guard for URLs that others chose, the decoder of server-sent events, the words for
//! waiting, and the scrubber that keeps secrets out of what people and logs read.
//!
//! What is deliberately absent: any provider's or platform's protocol.

mod client;
pub mod guard;
pub mod retry;
pub mod scrub;
pub mod sse;

pub use client::{client, install_crypto};
pub use reqwest;
