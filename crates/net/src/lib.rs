//! The one HTTP client and the one TLS configuration, the way by proxies, the guard for URLs that others chose, the lenient reader of
//! foreign JSON, the decoder of server-sent events, the words for waiting, and the scrubber that keeps secrets out of
//! texts for people and logs.
//!
//! Deliberately absent: any provider's or platform's protocol.

mod causes;
mod client;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod guard;
pub mod json;
pub mod proxy;
pub mod retry;
pub mod scrub;
mod shown_url;
pub mod sse;
mod tls;
mod why;

pub use causes::with_causes;
pub use client::client;
pub use reqwest;
pub use retry::CONNECT_TIMEOUT;
pub use shown_url::shown_url;
pub use tls::{builder, install_crypto, tls};
pub use why::why;
