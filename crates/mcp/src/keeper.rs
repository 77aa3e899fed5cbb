//! Keeps one server's session: hands out the wire to it, and begins it anew when it is asked for and gone.
//! One task owns the session, so that any number of calls to a dead server start it once. It ends, and the
//! server with it, when it is told to or when nobody is left who could ask.

use crate::{listing::McpWire, server::McpServer, session::McpSession};
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

/// So many calls may wait for a session; further ones wait for a place.
const WAITING: usize = 32;
/// The shortest and the longest time between two starts of a server.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// A server that held out so long has earned a start without a pause.
const STABLE: Duration = Duration::from_secs(60);
/// Maximum delay of a start that is waited for; a later one is reported instead.
const MAX_START_DELAY: Duration = Duration::from_secs(2);

type WireRequest = oneshot::Sender<Result<McpWire, String>>;

/// Asks a keeper for the wire.
#[derive(Clone)]
pub(crate) struct KeeperHandle(mpsc::Sender<WireRequest>);

impl KeeperHandle {
    /// Returns a wire on which a request can be made, or why there is none.
    pub(crate) async fn wire(&self) -> Result<McpWire, String> {
        let gone = || "it was closed".to_owned();
        let (ask, answer) = oneshot::channel();
        self.0.send(ask).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

/// Keeps one server's session.
pub(crate) struct Keeper {
    server: Arc<McpServer>,
    asks: mpsc::Receiver<WireRequest>,
    stop: CancellationToken,
    session: Option<McpSession>,
    pace: StartPacer,
}

impl Keeper {
    /// Makes the keeper of a session that has just begun.
    pub(crate) fn new(
        server: Arc<McpServer>,
        session: McpSession,
        stop: CancellationToken,
    ) -> (Self, KeeperHandle) {
        let (line, asks) = mpsc::channel(WAITING);
        (Self { server, asks, stop, session: Some(session), pace: StartPacer::new() }, KeeperHandle(line))
    }

    /// Works until it is told to stop or nobody can ask any more.
    pub(crate) async fn run(mut self) {
        let stop = self.stop.clone();
        // Dropping a start half-way ends the child that it began.
        stop.run_until_cancelled(Box::pin(self.serve())).await;
        if let Some(session) = self.session.take() {
            session.close().await;
        }
    }

    async fn serve(&mut self) {
        loop {
            tokio::select! {
                ask = self.asks.recv() => match ask {
                    // Whoever asked may have gone meanwhile.
                    Some(ask) => drop(ask.send(self.wire().await)),
                    None => return,
                },
                () = ended(&mut self.session) => {
                    tracing::warn!(server = self.server.name(), "lost MCP server; the next call restarts it");
                    self.session = None;
                }
            }
        }
    }

    async fn wire(&mut self) -> Result<McpWire, String> {
        if let Some(session) = self.session.as_ref().filter(|session| session.is_open()) {
            return Ok(session.wire().clone());
        }
        self.session = None;
        let due = self.pace.due();
        let pause = due.saturating_duration_since(Instant::now());
        if pause > MAX_START_DELAY {
            return Err(format!("it is down; it is started again in {} s", pause.as_secs_f64().ceil()));
        }
        sleep_until(due).await;
        self.pace.started();
        let session = McpSession::start(&self.server).await.map_err(|failure| failure.to_string())?;
        tracing::info!(server = self.server.name(), "restarted MCP server");
        Ok(self.session.insert(session).wire().clone())
    }
}

async fn ended(session: &mut Option<McpSession>) {
    match session {
        Some(session) => session.ended().await,
        None => std::future::pending().await,
    }
}

/// Spaces the starts of a server out.
struct StartPacer {
    pauses: ExponentialBackoff,
    last: Instant,
    pause: Duration,
}

impl StartPacer {
    fn new() -> Self {
        let mut pace = Self { pauses: pauses(), last: Instant::now(), pause: PAUSE.0 };
        pace.started();
        pace
    }

    /// Returns when the server may be started.
    fn due(&self) -> Instant {
        self.last + self.pause
    }

    /// Notes a start.
    fn started(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.last) > self.pause + STABLE {
            self.pauses = pauses();
        }
        self.last = now;
        self.pause = self.pauses.next().unwrap_or(PAUSE.1);
    }
}

fn pauses() -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(PAUSE.0)
        .with_max_delay(PAUSE.1)
        .with_factor(2.0)
        .without_max_times()
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn starts_are_spaced_out_until_one_holds() {
        let mut pace = StartPacer::new();
        let mut seen = Vec::new();
        for _ in 0..8 {
            let pause = pace.due() - Instant::now();
            seen.push(pause.as_secs());
            advance(pause).await;
            pace.started();
        }
        assert_eq!(seen, [1, 2, 4, 8, 16, 32, 60, 60]);
        advance(Duration::from_secs(121)).await;
        pace.started();
        assert_eq!(pace.due() - Instant::now(), Duration::from_secs(1));
    }
}
