//! Relay to Discord's gateway through a proxy. twilight does not support proxies, so it connects to the relay.

use pudu_net::proxy::{ProxySettings, secure};
use std::{
    io,
    net::Ipv4Addr,
    sync::{Arc, OnceLock},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use tokio_util::task::AbortOnDropHandle;
use url::Url;

/// Maximum size of the WebSocket handshake request, in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// Host that a relay connects to.
struct RelayTarget {
    host: String,
    port: u16,
    tls: bool,
    /// Value of the header `Host`.
    host_header: String,
}

/// Forwards one connection until the relay is dropped.
pub(super) struct Relay {
    /// URL for twilight.
    pub(super) url: String,
    failure: Arc<OnceLock<String>>,
    _task: AbortOnDropHandle<()>,
}

impl Relay {
    /// Opens a relay to the host of `url`; `None` if no proxy is configured for it.
    pub(super) async fn open(rules: ProxySettings, url: &Url) -> io::Result<Option<Self>> {
        let to = url.host_str().map(str::to_owned).zip(url.port_or_known_default());
        let Some((host, port)) = to else { return Ok(None) };
        let tls = url.scheme() == "wss";
        if !rules.has_proxy_for(&host, port, tls) {
            return Ok(None);
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let path = url.path().trim_end_matches('/');
        let local_url = format!("ws://{}{path}", listener.local_addr()?);
        let failure = Arc::new(OnceLock::new());
        let failed = Arc::clone(&failure);
        let host_header = url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
        let to = RelayTarget { host, port, tls, host_header };
        let task = tokio::spawn(async move {
            let Ok((mut client, _)) = listener.accept().await else { return };
            drop(listener);
            // The reason is set before the client sees the connection end.
            if let Err(error) = forward(&mut client, &rules, &to).await {
                failed.set(error.to_string()).ok();
            }
        });
        Ok(Some(Self { url: local_url, failure, _task: AbortOnDropHandle::new(task) }))
    }

    /// Returns why the connection failed, if it did.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }
}

async fn forward(client: &mut TcpStream, rules: &ProxySettings, to: &RelayTarget) -> io::Result<()> {
    let RelayTarget { host, port, tls, host_header } = to;
    client.set_nodelay(true)?;
    let head = head(client).await?;
    let stream = rules.connect(host, *port, *tls).await.map_err(io::Error::other)?;
    let mut stream = if *tls { secure(stream, host).await? } else { stream };
    stream.write_all(for_host(&head, host_header).as_bytes()).await?;
    copy_bidirectional(client, &mut stream).await?;
    Ok(())
}

/// Reads the WebSocket handshake request. The client sends nothing more before the response.
async fn head(client: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if client.read_buf(&mut head).await? == 0 || head.len() > MAX_HEAD_BYTES {
            return Err(io::Error::other("the WebSocket request is truncated or too long"));
        }
    }
    String::from_utf8(head).map_err(io::Error::other)
}

/// Sets the real host in a request.
fn for_host(head: &str, host: &str) -> String {
    let line = |line: &str| match line.split_once(':') {
        Some((name, _)) if name.eq_ignore_ascii_case("host") => format!("{name}: {host}"),
        _ => line.to_owned(),
    };
    head.split("\r\n").map(line).collect::<Vec<_>>().join("\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_host_of_a_request_changes() {
        let head = "GET /?v=10 HTTP/1.1\r\nhost: 127.0.0.1:7\r\nX-Host: a\r\n\r\n";
        let expected = "GET /?v=10 HTTP/1.1\r\nhost: gateway.test\r\nX-Host: a\r\n\r\n";
        assert_eq!(for_host(head, "gateway.test"), expected);
    }

    #[tokio::test]
    async fn no_relay_is_opened_without_a_proxy() {
        let rules = ProxySettings {
            all: "http://127.0.0.1:1".into(),
            no: "gateway.test".into(),
            ..ProxySettings::default()
        };
        let open = async |url: &str| Relay::open(rules.clone(), &Url::parse(url).unwrap()).await;
        assert!(open("wss://gateway.test").await.unwrap().is_none());
        let relay = open("wss://other.test/gateway/").await.unwrap().unwrap();
        assert!(relay.url.starts_with("ws://127.0.0.1:") && relay.url.ends_with("/gateway"), "{}", relay.url);
        let (address, _) = relay.url.strip_prefix("ws://").and_then(|rest| rest.split_once('/')).unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        assert_eq!(client.read(&mut [0; 8]).await.unwrap_or_default(), 0, "the relay is closed");
        assert!(
            relay.failure().is_some_and(|why| why.contains("the proxy http://127.0.0.1:1: ")),
            "{:?}",
            relay.failure()
        );
    }
}
