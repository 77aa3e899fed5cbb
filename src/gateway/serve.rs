//! Takes connections: so many at once, and none that says nothing for long.

use axum::{Extension, Router, extract::ConnectInfo};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto::Builder, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// So many connections are open at once; more wait until one closes. Well below the 1024 files that a process
/// usually may have open.
const MOST: usize = 512;
/// A request's head comes within this time, or its connection is closed.
const HEAD: Duration = Duration::from_secs(10);
/// After a failed accept, usually for want of files, it is tried again so much later.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop`, then lets requests at work finish.
pub(super) async fn serve(listener: TcpListener, app: Router, stop: CancellationToken) {
    let (room, tasks, graceful) =
        (Arc::new(Semaphore::new(MOST)), TaskTracker::new(), GracefulShutdown::new());
    while let Some(stream) = stop.run_until_cancelled(accept(&listener, &room)).await {
        let (stream, peer, place) = stream;
        // Where both versions are spoken, the first bytes are waited for without end.
        let mut builder = Builder::new(TokioExecutor::new()).http1_only();
        builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD);
        let service = TowerToHyperService::new(app.clone().layer(Extension(ConnectInfo(peer))));
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        let watched = graceful.watch(connection);
        tasks.spawn(async move {
            // How a peer leaves is its own business.
            watched.await.ok();
            drop(place);
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

/// Waits for room and a connection.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, Option<tokio::sync::OwnedSemaphorePermit>) {
    let place = room.clone().acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, peer, place),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
