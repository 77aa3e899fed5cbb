//! Keeps one server's session: provides its connection, and restarts a session that has ended when the next connection
//! is requested. A server that has never listed its tools is started again and again, with growing delays; the tools of
//! a server that says that they changed, or that was restarted, are listed again. One task owns the session, so
//! concurrent calls to a dead server start it only once. The session and the server end when the task is stopped or all
//! handles are dropped.

use crate::{
    call::McpWire,
    catalogue::Reporter,
    failure::ServerFailure,
    handle::{KeeperHandle, WireRequest},
    listing::{self, ToolList},
    server::McpServer,
    session::{McpSession, cannot_list},
};
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures_util::future::BoxFuture;
use std::{future::pending, sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

/// Initial and maximum delay between two starts of a server that has worked.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Initial and maximum delay between two starts of a server that has not worked yet. It may need an edit of its entry.
const AWAY_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));
/// Delay before tools that changed are listed. A server often reports several changes at once.
const LIST_DELAY: Duration = Duration::from_millis(250);
/// How long beyond the current delay a server must run for the delay to be reset.
const STABLE: Duration = Duration::from_secs(60);
/// Maximum delay before a start that a call waits for. If it is longer, the call fails.
const MAX_START_DELAY: Duration = Duration::from_secs(2);

/// Outcome of a first start: the session and the list of tools.
type FirstStart = Result<(McpSession, ToolList), ServerFailure>;

/// Keeps one server's session.
pub(crate) struct Keeper {
    server: Arc<McpServer>,
    asks: mpsc::Receiver<WireRequest>,
    stop: CancellationToken,
    report: Reporter,
    /// Notified when the server says that its tools changed.
    tools_changed: Arc<Notify>,
    session: Option<McpSession>,
    /// A first start in progress.
    starting: Option<BoxFuture<'static, FirstStart>>,
    /// A later list of the tools in progress.
    listing: Option<BoxFuture<'static, Result<ToolList, ServerFailure>>>,
    /// Whether the server has listed its tools.
    is_listed: bool,
    pace: StartPacer,
}

impl Keeper {
    /// Creates the keeper of a server that has not been started.
    pub(crate) fn new(
        server: Arc<McpServer>,
        report: Reporter,
        stop: CancellationToken,
    ) -> (Self, KeeperHandle) {
        let (line, asks) = KeeperHandle::channel();
        let keeper = Self {
            server,
            asks,
            stop,
            report,
            tools_changed: Arc::default(),
            session: None,
            starting: None,
            listing: None,
            is_listed: false,
            pace: StartPacer::new(AWAY_PAUSE),
        };
        (keeper, line)
    }

    /// Runs until it is stopped or all handles are dropped.
    pub(crate) async fn run(mut self) {
        let stop = self.stop.clone();
        // Dropping an incomplete start ends its child process.
        stop.run_until_cancelled(Box::pin(self.serve())).await;
        if let Some(session) = self.session.take() {
            session.close().await;
        }
    }

    async fn serve(&mut self) {
        self.begin();
        loop {
            let is_away = !self.is_listed && self.starting.is_none();
            let due = self.pace.due();
            tokio::select! {
                ask = self.asks.recv() => match ask {
                    // The caller may have stopped waiting.
                    Some(ask) => drop(ask.send(self.wire().await)),
                    None => return,
                },
                () = ended(&mut self.session) => {
                    tracing::warn!(server = self.server.name(), "lost MCP server; the next call restarts it");
                    self.session = None;
                }
                begun = finished(&mut self.starting) => self.on_begun(begun),
                found = finished(&mut self.listing) => self.on_listed(found),
                () = self.tools_changed.notified(), if self.session.is_some() && self.listing.is_none() => {
                    tracing::info!(server = self.server.name(), "MCP server changed its tools");
                    self.list_again();
                }
                () = sleep_until(due), if is_away => {
                    self.pace.started();
                    self.begin();
                }
            }
        }
    }

    /// Begins a first start.
    fn begin(&mut self) {
        self.report.begins();
        let (server, changed) = (self.server.clone(), self.tools_changed.clone());
        self.starting = Some(Box::pin(async move { McpSession::first(&server, &changed).await }));
    }

    fn on_begun(&mut self, start: FirstStart) {
        self.starting = None;
        match start {
            Ok((session, found)) => {
                self.session = Some(session);
                self.is_listed = true;
                self.pace = StartPacer::new(PAUSE);
                self.report.ready(found);
            }
            Err(failure) => self.report.away(failure),
        }
    }

    /// Begins to list the tools of the session again.
    fn list_again(&mut self) {
        let Some(session) = &self.session else { return };
        let (wire, server) = (session.wire(), self.server.clone());
        self.listing = Some(Box::pin(async move {
            sleep(LIST_DELAY).await;
            let found = timeout(server.session_timeout, listing::ask(&wire.peer, &server)).await;
            let found = found.map_err(|_| ServerFailure::Slow(server.session_timeout))?;
            found.map_err(|error| cannot_list(&error, &server))
        }));
    }

    fn on_listed(&mut self, found: Result<ToolList, ServerFailure>) {
        self.listing = None;
        match found {
            Ok(found) => self.report.ready(found),
            Err(failure) => {
                tracing::warn!(server = self.server.name(), "kept former tools of MCP server: {failure}");
            }
        }
    }

    async fn wire(&mut self) -> Result<McpWire, String> {
        if let Some(session) = self.session.as_ref().filter(|session| session.is_open()) {
            return Ok(session.wire());
        }
        self.session = None;
        let due = self.pace.due();
        let pause = due.saturating_duration_since(Instant::now());
        if pause > MAX_START_DELAY {
            return Err(format!("it is down; it is started again in {} s", pause.as_secs_f64().ceil()));
        }
        sleep_until(due).await;
        self.pace.started();
        let session = McpSession::start(&self.server, &self.tools_changed).await;
        let session = session.map_err(|failure| failure.to_string())?;
        tracing::info!(server = self.server.name(), "restarted MCP server");
        let wire = self.session.insert(session).wire();
        // It may be another version now.
        self.list_again();
        Ok(wire)
    }
}

/// Waits for work in progress. Never completes if there is none.
async fn finished<T>(work: &mut Option<BoxFuture<'static, T>>) -> T {
    match work {
        Some(work) => work.await,
        None => pending().await,
    }
}

async fn ended(session: &mut Option<McpSession>) {
    match session {
        Some(session) => session.ended().await,
        None => pending().await,
    }
}

/// Spaces out a server's starts.
struct StartPacer {
    /// Initial and maximum delay.
    limits: (Duration, Duration),
    pauses: ExponentialBackoff,
    last: Instant,
    pause: Duration,
}

impl StartPacer {
    fn new(limits: (Duration, Duration)) -> Self {
        let mut pace = Self { limits, pauses: pauses(limits), last: Instant::now(), pause: limits.0 };
        pace.started();
        pace
    }

    /// Returns the earliest time of the next start.
    fn due(&self) -> Instant {
        self.last + self.pause
    }

    /// Records a start.
    fn started(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.last) > self.pause + STABLE {
            self.pauses = pauses(self.limits);
        }
        self.last = now;
        self.pause = self.pauses.next().unwrap_or(self.limits.1);
    }
}

fn pauses((first, longest): (Duration, Duration)) -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(first)
        .with_max_delay(longest)
        .with_factor(2.0)
        .without_max_times()
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn starts_are_spaced_out_until_one_is_stable() {
        let mut pace = StartPacer::new(PAUSE);
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
