//! A corporate proxy: it opens tunnels and forwards plain requests, with authentication.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Maximum size of a request's head, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// A running proxy, stopped on drop.
pub struct ForwardProxy {
    address: SocketAddr,
    log: Arc<Log>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Log {
    /// Required value of `Proxy-Authorization`, if any.
    credentials: Option<String>,
    /// Whether it refuses tunnels.
    refuses: AtomicBool,
    tunnels: Mutex<Vec<String>>,
    plain: Mutex<Vec<String>>,
}

impl ForwardProxy {
    /// Listens on loopback. `credentials` is the value of `Proxy-Authorization`, as `Basic …`.
    ///
    /// # Errors
    /// When no port is available.
    pub async fn start(credentials: Option<&str>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let log = Arc::new(Log { credentials: credentials.map(str::to_owned), ..Log::default() });
        let own = Arc::clone(&log);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, Arc::clone(&own)));
            }
        });
        Ok(Self { address, log, task })
    }

    /// Returns its address: host and port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Refuses tunnels from now on.
    pub fn refuse_tunnels(&self) {
        self.log.refuses.store(true, Ordering::Relaxed);
    }

    /// Returns the hosts and ports of tunnels.
    #[must_use]
    pub fn tunnels(&self) -> Vec<String> {
        self.log.tunnels.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the first lines of the plain requests, one per connection.
    #[must_use]
    pub fn plain(&self) -> Vec<String> {
        self.log.plain.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ForwardProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(client: TcpStream, log: Arc<Log>) {
    // A disconnected client is no error.
    pass(client, &log).await.ok();
}

async fn pass(mut client: TcpStream, log: &Log) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if client.read_buf(&mut head).await? == 0 || head.len() > MAX_HEAD_BYTES {
            return Ok(());
        }
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let shown = text.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("proxy-authorization").then(|| value.to_owned())
    });
    if log.credentials.is_some() && shown != log.credentials {
        return client
            .write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            .await;
    }
    let first = text.lines().next().unwrap_or_default();
    let target = first.split(' ').nth(1).unwrap_or_default();
    if first.starts_with("CONNECT ") {
        if log.refuses.load(Ordering::Relaxed) {
            return client.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").await;
        }
        log.tunnels.lock().unwrap_or_else(PoisonError::into_inner).push(target.to_owned());
        let Ok(mut server) = TcpStream::connect(target).await else {
            return client.write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n").await;
        };
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        copy_bidirectional(&mut client, &mut server).await?;
        return Ok(());
    }
    log.plain.lock().unwrap_or_else(PoisonError::into_inner).push(first.to_owned());
    let host = target.strip_prefix("http://").and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let mut server = TcpStream::connect(host).await?;
    server.write_all(&head).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
