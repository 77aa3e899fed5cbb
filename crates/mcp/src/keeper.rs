//! Keeps one server's session: provides its connection, and starts it again if it is requested after its end. One task
//! owns the session, so that any number of calls to a dead server start it once. The session and the server end when
//! the task is stopped or all handles are dropped.

use crate::{listing::McpWire, server::McpServer, session::McpSession};
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

/// Maximum number of calls that wait for a session; further ones wait for a slot.
const WAITING: usize = 32;
/// Minimum and maximum delay between two starts of a server.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Uptime after which a server is restarted without a delay.
const STABLE: Duration = Duration::from_secs(60);
/// Maximum delay of a start that a call waits for; a later one is reported as an error.
const MAX_START_DELAY: Duration = Duration::from_secs(2);

type WireRequest = oneshot::Sender<Result<McpWire, String>>;

/// Handle for requesting the connection.
#[derive(Clone)]
pub(crate) struct KeeperHandle(mpsc::Sender<WireRequest>);

impl KeeperHandle {
    /// Returns a connection for a request, or why there is none.
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
    /// Creates the keeper of a session that has just begun.
    pub(crate) fn new(
        server: Arc<McpServer>,
        session: McpSession,
        stop: CancellationToken,
    ) -> (Self, KeeperHandle) {
        let (line, asks) = mpsc::channel(WAITING);
        (Self { server, asks, stop, session: Some(session), pace: StartPacer::new() }, KeeperHandle(line))
    }

    /// Runs until it is stopped or all handles are dropped.
    pub(crate) async fn run(mut self) {
        let stop = self.stop.clone();
        // Dropping an incomplete start ends its child.
        stop.run_until_cancelled(Box::pin(self.serve())).await;
        if let Some(session) = self.session.take() {
            session.close().await;
        }
    }

    async fn serve(&mut self) {
        loop {
            tokio::select! {
                ask = self.asks.recv() => match ask {
                    // The receiver may have been dropped meanwhile.
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

/// Spaces out the starts of a server.
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

    /// Records a start.
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
