//! The HTTP client that everything shares.

use std::{sync::OnceLock, time::Duration};

/// Makes ring the process's TLS provider. Two providers in one tree make a `wss` connection panic, so
/// this comes first in `main` and in tests; calling it again does nothing.
pub fn install_crypto() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        // An error means that a provider is already there, which is what was wanted.
        rustls::crypto::ring::default_provider().install_default().ok();
    });
}

/// Returns the shared HTTP client: pooled connections, 10 s to connect, no limit on the whole exchange,
/// because answers are streamed; callers bound the gaps. Redirects are not followed: no API that we
/// call redirects, and a followed one would carry a key to another host.
///
/// # Errors
/// When the system's TLS roots cannot be loaded.
pub fn client() -> Result<reqwest::Client, reqwest::Error> {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    install_crypto();
    if let Some(client) = CLIENT.get() {
        return Ok(client.clone());
    }
    let client = reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(10))
        .pool_idle_timeout(Duration::from_secs(60))
        .pool_max_idle_per_host(8)
        .tcp_nodelay(true)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("pudu/", env!("CARGO_PKG_VERSION")))
        .build()?;
    Ok(CLIENT.get_or_init(|| client).clone())
}
