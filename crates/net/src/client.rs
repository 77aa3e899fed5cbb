//! The HTTP client that everything shares.

use crate::{builder, proxy::ProxySettings, retry::CONNECT_TIMEOUT};
use std::{sync::OnceLock, time::Duration};

/// An HTTP/2 connection with calls under way is asked this often whether it lives, and given this long to say so.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);
/// So many connections to a host wait for the next call. HTTP/1.1 takes one for each call that is under way.
const MAX_IDLE_PER_HOST: usize = 64;

/// Returns the shared HTTP client: pooled connections, no limit on the whole exchange, because answers are streamed;
/// callers bound the gaps. Proxies are those of [`ProxySettings`]. Redirects are not followed: no API that we
/// call redirects, and a followed one would carry a key to another host.
///
/// # Errors
/// When the system's TLS roots cannot be loaded.
pub fn client() -> Result<reqwest::Client, reqwest::Error> {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    if let Some(client) = CLIENT.get() {
        return Ok(client.clone());
    }
    let rules = ProxySettings::in_force();
    let client = builder()
        .no_proxy()
        .proxy(reqwest::Proxy::custom(move |url| rules.for_request(url)))
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .http2_keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .pool_idle_timeout(Duration::from_secs(60))
        .pool_max_idle_per_host(MAX_IDLE_PER_HOST)
        .tcp_nodelay(true)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("pudu/", env!("CARGO_PKG_VERSION")))
        .build()?;
    Ok(CLIENT.get_or_init(|| client).clone())
}
