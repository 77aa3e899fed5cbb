//! Accepts a limited number of connections, and closes those that stay silent. When the limit is reached, a new
//! connection replaces one without a proven caller. If there is no such connection, the new one can request only
//! `/health`.

use super::{
    guests::{Guests, Visitor},
    json::Json,
};
use axum::{
    Extension, Router,
    extract::{ConnectInfo, Request},
    http::{StatusCode, header::RETRY_AFTER},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto::Builder, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::Layer;

/// Maximum number of open connections.
const MAX_CONNECTIONS: usize = 4096;
/// Divisor: connections use at most this fraction of the process's limit of open files.
const SHARE_OF_FILES: usize = 2;
/// Limit of open files that the process requests: enough for its connections and as many other files.
const WANTED_FILES: u64 = 16_384;
/// Number of connections above the limit that are refused with a response; further ones wait for such a place.
const SPARE: usize = 32;
/// Divisor: unproven connections of one address use at most this fraction of the connection limit.
const SHARE: usize = 2;
/// How long a new connection waits for one that was asked to close.
const LEAVING: Duration = Duration::from_millis(500);
/// Timeout for a request's headers; a slower connection is closed.
const HEAD: Duration = Duration::from_secs(10);
/// Timeout for a request's headers on a connection above the limit.
const HASTE: Duration = Duration::from_secs(1);
/// Delay after a failed accept, usually for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// Minimum interval between log lines about too many connections.
const MINUTE: Duration = Duration::from_secs(60);

/// Serves until `stop`, then lets running requests finish.
pub(crate) async fn serve(listener: TcpListener, app: Router, stop: CancellationToken) {
    let limit = MAX_CONNECTIONS.min(open_files() / SHARE_OF_FILES);
    serve_within(listener, app, stop, ConnectionLimit::new(limit, SPARE)).await;
}

/// Raises the process's limit of open files as far as possible, and returns it.
fn open_files() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let target = maximum.unwrap_or(WANTED_FILES).min(WANTED_FILES);
    let now = current.unwrap_or(u64::MAX);
    let raised =
        now < target && setrlimit(Resource::Nofile, Rlimit { current: Some(target), maximum }).is_ok();
    usize::try_from(if raised { target } else { now }).unwrap_or(usize::MAX)
}

async fn serve_within(
    listener: TcpListener,
    app: Router,
    stop: CancellationToken,
    mut room: ConnectionLimit,
) {
    let (tasks, graceful) = (TaskTracker::new(), GracefulShutdown::new());
    let guests = room.guests.clone();
    let full = app.clone().layer(middleware::from_fn(refuse));
    while let Some(taken) = stop.run_until_cancelled(room.accept(&listener)).await {
        let Taken { stream, peer, place, spare } = taken;
        let (app, patience) = if spare { (&full, HASTE) } else { (&app, HEAD) };
        // With HTTP/1 and HTTP/2 both enabled, the wait for the first bytes would be unlimited.
        let mut builder = Builder::new(TokioExecutor::new()).http1_only();
        builder.http1().timer(TokioTimer::new()).header_read_timeout(patience).keep_alive(!spare);
        // A refused connection has no place to give away.
        let (visitor, guest) = if spare { Guests::new(1).enter(peer.ip()) } else { guests.enter(peer.ip()) };
        // Wraps the whole router, because `Router::layer` would box each route again for each connection.
        let app = (Extension(ConnectInfo(peer)), Extension::<Visitor>(visitor)).layer(app.clone());
        let connection =
            builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app)).into_owned();
        let watched = graceful.watch(connection);
        tasks.spawn(async move {
            // Errors of the connection are ignored. It ends early if another one needs its place.
            guest.asked_to_leave().run_until_cancelled(watched).await;
            drop(place);
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

/// Refuses every request except `/health`.
async fn refuse(request: Request, next: Next) -> Response {
    if request.uri().path() == "/health" {
        return next.run(request).await;
    }
    let response = Json(json!({ "detail": "too many connections are open: try again in a moment" }));
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], response).into_response()
}

/// Limits the number of connections.
struct ConnectionLimit {
    usual: Arc<Semaphore>,
    spare: Arc<Semaphore>,
    guests: Guests,
    warned: Option<Instant>,
}

/// An accepted connection, with its place.
struct Taken {
    stream: TcpStream,
    peer: SocketAddr,
    place: OwnedSemaphorePermit,
    spare: bool,
}

impl ConnectionLimit {
    fn new(limit: usize, spare: usize) -> Self {
        let (usual, spare) = (Arc::new(Semaphore::new(limit)), Arc::new(Semaphore::new(spare)));
        Self { usual, spare, guests: Guests::new(limit / SHARE), warned: None }
    }

    /// Waits for a place, and accepts a connection.
    async fn accept(&mut self, listener: &TcpListener) -> Taken {
        let place = self.place().await;
        let (stream, peer) = accept(listener).await;
        self.guests.keep_share(peer.ip());
        let (place, spare) = match place {
            ConnectionSlot::Usual(place) => (place, false),
            ConnectionSlot::Spare(spare) => match self.vacated().await {
                Some(place) => (place, false),
                None => (spare, true),
            },
        };
        if spare {
            self.warn_once_a_minute();
        }
        Taken { stream, peer, place, spare }
    }

    /// Returns a place that has become free, or that an unproven connection gives up.
    async fn vacated(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = self.usual.clone().try_acquire_owned() {
            return Some(place);
        }
        if !self.guests.send_one_away() {
            return None;
        }
        tokio::time::timeout(LEAVING, self.usual.clone().acquire_owned()).await.ok()?.ok()
    }

    async fn place(&self) -> ConnectionSlot {
        // The semaphores are never closed.
        tokio::select! {
            biased;
            Ok(place) = self.usual.clone().acquire_owned() => ConnectionSlot::Usual(place),
            Ok(place) = self.spare.clone().acquire_owned() => ConnectionSlot::Spare(place),
            else => std::future::pending().await,
        }
    }

    fn warn_once_a_minute(&mut self) {
        if self.warned.is_none_or(|warned| warned.elapsed() >= MINUTE) {
            self.warned = Some(Instant::now());
            tracing::warn!("refusing connections: too many are open");
        }
    }
}

enum ConnectionSlot {
    Usual(OwnedSemaphorePermit),
    Spare(OwnedSemaphorePermit),
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Frames are small and urgent. This fails if the peer has disconnected.
                let _ = stream.set_nodelay(true);
                return (stream, peer);
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use pudu_net::{self as net, reqwest};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    async fn ask(place: SocketAddr, path: &str) -> reqwest::Response {
        net::client().unwrap().get(format!("http://{place}{path}")).send().await.unwrap()
    }

    #[tokio::test]
    async fn connections_above_the_limit_are_refused_except_for_health() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let proved = |Extension(visitor): Extension<Visitor>| async move { visitor.prove() };
        let app = Router::new()
            .route("/", get(|| async { "page" }))
            .route("/prove", get(proved))
            .route("/health", get(|| async { "well" }));
        let server = tokio::spawn(serve_within(listener, app, stop.clone(), ConnectionLimit::new(2, 1)));
        let mut idle = Vec::new();
        for _ in 0..2 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /prove HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
            assert_ne!(stream.read(&mut [0; 100]).await.unwrap(), 0);
            idle.push(stream);
        }
        for _ in 0..3 {
            let response = ask(address, "/").await;
            assert_eq!(
                (response.status().as_u16(), &response.headers()["retry-after"]),
                (503, &"1".parse().unwrap())
            );
            assert_eq!(response.headers()["connection"], "close");
            assert_eq!(ask(address, "/health").await.text().await.unwrap(), "well");
        }
        drop(idle);
        while ask(address, "/").await.status().as_u16() != 200 {}
        stop.cancel();
        server.await.unwrap();
    }
}
