//! Shared network code: the HTTP client, the TLS configuration, proxies, the guard for untrusted URLs, the lenient
//! parser of foreign JSON, the decoder of server-sent events, retry delays, and the scrubber that removes secrets from
//! texts and logs.
//!
//! Deliberately absent: protocols of providers and platforms.

mod body;
mod causes;
mod client;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod guard;
pub mod json;
pub mod proxy;
pub mod retry;
pub mod scrub;
mod send;
mod shown_url;
pub mod sse;
mod tls;
mod why;

pub use body::read_body;
pub use causes::with_causes;
pub use client::client;
pub use reqwest;
pub use retry::CONNECT_TIMEOUT;
pub use send::{SimulatedAnswer, send, simulate};
pub use shown_url::shown_url;
pub use tls::{builder, install_crypto, tls};
pub use why::why;
