//! The one HTTP client and the one TLS configuration, the guard for URLs that others chose, the decoder of
//! server-sent events, the words for waiting, and the scrubber that keeps secrets out of what people and logs read.
//!
//! Deliberately absent: any provider's or platform's protocol.

mod client;
pub mod guard;
pub mod retry;
pub mod scrub;
pub mod sse;
mod tls;

pub use client::{CONNECT_TIMEOUT, client};
pub use reqwest;
pub use tls::{builder, install_crypto, tls};
