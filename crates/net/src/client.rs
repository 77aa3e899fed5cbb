//! The shared HTTP client.

use crate::{builder, proxy::ProxySettings, retry::CONNECT_TIMEOUT};
use std::{sync::OnceLock, time::Duration};

/// Interval and timeout of HTTP/2 pings on a connection with calls in progress.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of idle connections per host. HTTP/1.1 needs one per concurrent call.
const MAX_IDLE_PER_HOST: usize = 64;

/// Returns the shared HTTP client: with pooled connections and without a total timeout, because responses are streamed;
/// callers limit the gaps. Proxies are those of [`ProxySettings`]. Redirects are not followed: no API that we call
/// redirects, and a followed one would send a key to another host.
///
/// # Errors
/// When the system's TLS roots cannot be loaded.
pub fn client() -> Result<reqwest::Client, reqwest::Error> {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    if let Some(client) = CLIENT.get() {
        return Ok(client.clone());
    }
    let rules = ProxySettings::from_env();
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
