//! Serves a router on loopback, with an abnormal behavior: closing a connection without a response.

use axum::{Router, body::Body, response::Response};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt;

/// Address of a server without a port.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A response with this extension is never sent: its connection closes instead.
#[derive(Clone, Copy)]
pub(crate) struct Cut;

/// Returns the response that closes the connection.
pub(crate) fn cut() -> Response {
    let mut response = Response::new(Body::empty());
    response.extensions_mut().insert(Cut);
    response
}

/// A running server, stopped with all its connections on drop.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    router: Router,
    stop: CancellationToken,
}

impl Server {
    pub(crate) async fn start(bind: SocketAddr, router: Router) -> io::Result<Self> {
        let listener = TcpListener::bind(bind).await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        tasks.spawn(stop.clone().run_until_cancelled_owned(accept(
            listener,
            router.clone(),
            tasks.clone(),
            stop.clone(),
        )));
        Ok(Self { address, router, stop })
    }

    /// Listens on no socket: [`Self::answer`] alone answers.
    pub(crate) fn in_memory(router: Router) -> Self {
        Self { address: NOWHERE, router, stop: CancellationToken::new() }
    }

    /// Answers a request in memory. `None` if the connection would close without a response.
    pub(crate) async fn answer(&self, request: Request<Body>) -> Option<Response> {
        let Ok(response) = self.router.clone().oneshot(request).await;
        response.extensions().get::<Cut>().is_none().then_some(response)
    }

    /// Listens on a socket in the file system.
    pub(crate) fn start_at(path: &Path, router: Router) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        let (all, end) = (tasks.clone(), stop.clone());
        let own = router.clone();
        let accept = async move {
            while let Ok((stream, _)) = listener.accept().await {
                all.spawn(end.clone().run_until_cancelled_owned(connection(stream, own.clone())));
            }
        };
        tasks.spawn(stop.clone().run_until_cancelled_owned(accept));
        Ok(Self { address: NOWHERE, router, stop })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a token that is cancelled when the server stops.
    pub(crate) fn stopped(&self) -> CancellationToken {
        self.stop.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn accept(listener: TcpListener, router: Router, tasks: TaskTracker, stop: CancellationToken) {
    loop {
        // A failed accept affects its own connection, or lacks descriptors: others continue.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        stream.set_nodelay(true).ok();
        tasks.spawn(stop.clone().run_until_cancelled_owned(connection(stream, router.clone())));
    }
}

async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, router: Router) {
    let service = service_fn(move |request: Request<Incoming>| {
        let router = router.clone();
        async move {
            let Ok(response) = router.oneshot(request.map(Body::new)).await;
            match response.extensions().get::<Cut>() {
                Some(Cut) => Err(io::Error::from(io::ErrorKind::ConnectionAborted)),
                None => Ok(response),
            }
        }
    });
    // A broken connection is the client's concern: that is the purpose of the simulator.
    http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades().await.ok();
}
