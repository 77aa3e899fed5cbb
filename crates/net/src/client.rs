//! The HTTP client that everything shares.

use crate::builder;
use std::{sync::OnceLock, time::Duration};

/// Returns the shared HTTP client: pooled connections, 10 s to connect, no limit on the whole exchange,
/// because answers are streamed; callers bound the gaps. Redirects are not followed: no API that we
/// call redirects, and a followed one would carry a key to another host.
///
/// # Errors
/// When the system's TLS roots cannot be loaded.
pub fn client() -> Result<reqwest::Client, reqwest::Error> {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    if let Some(client) = CLIENT.get() {
        return Ok(client.clone());
    }
    let client = builder()
        .connect_timeout(Duration::from_secs(10))
        .pool_idle_timeout(Duration::from_secs(60))
        .pool_max_idle_per_host(8)
        .tcp_nodelay(true)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("pudu/", env!("CARGO_PKG_VERSION")))
        .build()?;
    Ok(CLIENT.get_or_init(|| client).clone())
}
