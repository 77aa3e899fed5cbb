//! Sessions on a PostgreSQL server. The server may close a session or become unreachable at any time.

use super::{
    DbEngine,
    readers::Connect,
    statement::Tx,
    transaction::CommitError,
    waiter::{Waiter, on_thread},
};
use crate::{
    PostgresUrl, Result, StoreError,
    availability::{Availability, in_time},
};
use sqlx::{ConnectOptions, Connection, PgConnection, postgres::PgConnectOptions};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum time to open a session.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Minimum idle time of a session that is pinged before reuse.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout for closing a session and for a ping. A session whose ping times out counts as lost.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);

/// A server and its availability.
#[derive(Clone)]
pub(crate) struct PgServer {
    options: PgConnectOptions,
    availability: Arc<Availability>,
}

/// A session on a server.
pub(crate) struct PgSession {
    pub(crate) connection: PgConnection,
    since: Instant,
    used: Instant,
}

impl PgServer {
    pub(crate) fn new(url: &PostgresUrl, availability: &Arc<Availability>) -> Result<Self> {
        Ok(Self { options: url.reveal().parse()?, availability: Arc::clone(availability) })
    }

    /// Returns the earlier session if it still works, or a new one. A lost session is dropped without a closing
    /// message, which would have to wait for an unreachable server.
    pub(crate) async fn session(
        &self,
        earlier: Option<PgSession>,
        prepare: &'static str,
    ) -> Result<PgSession> {
        if let Some(session) = earlier
            && let Some(session) = self.usable(session).await
        {
            return Ok(session);
        }
        let opened = async {
            let mut connection = self.options.connect().await?;
            sqlx::raw_sql(prepare).execute(&mut connection).await?;
            Ok(PgSession { connection, since: Instant::now(), used: Instant::now() })
        };
        let late = |_| Err(StoreError::late(CONNECT_TIMEOUT));
        tokio::time::timeout(CONNECT_TIMEOUT, opened).await.unwrap_or_else(late)
    }

    async fn usable(&self, mut session: PgSession) -> Option<PgSession> {
        if self.availability.suspects(session.since.elapsed()) {
            return None;
        }
        if session.used.elapsed() >= CHECK_INTERVAL {
            let answer = tokio::time::timeout(CHECK_TIMEOUT, session.connection.ping()).await;
            if !matches!(answer, Ok(Ok(()))) {
                self.availability.lost_connection();
                return None;
            }
        }
        Some(session)
    }
}

impl PgSession {
    pub(crate) fn tx<'s>(&'s mut self, waiter: &'s Waiter) -> Tx<'s> {
        self.used = Instant::now();
        Tx::Postgres { connection: &mut self.connection, waiter }
    }

    /// Runs a job on the session. Also returns the session if it can be reused.
    pub(crate) async fn run<T: Send + 'static>(
        mut self,
        job: impl FnOnce(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> (Option<Self>, Result<T>) {
        let run = move |waiter: &Waiter| {
            let done = job(&mut self.tx(waiter));
            let is_lost = matches!(&done, Err(error) if error.is_outage());
            ((!is_lost).then_some(self), done)
        };
        on_thread(CancellationToken::new(), run).await
    }

    /// Ends the session.
    pub(crate) async fn close(self) {
        tokio::time::timeout(CHECK_TIMEOUT, self.connection.close()).await.ok();
    }
}

/// The writer's session, if one is open.
pub(crate) struct PgWriter {
    pub(crate) server: PgServer,
    pub(crate) session: Option<PgSession>,
    /// Time limit for the first try of a transaction. It doubles after each timeout.
    pub(crate) timeout: Duration,
}

impl PgWriter {
    /// Runs a transaction of a batch. The transaction rolls itself back if a job fails.
    pub(super) async fn run<B: Send + 'static, T: Send + 'static>(
        &mut self,
        late: &mut u32,
        mut batch: B,
        transaction: impl FnOnce(&mut B, &mut Tx<'_>) -> Result<T, CommitError> + Send + 'static,
    ) -> (B, Result<T, CommitError>) {
        let session = self.server.session(self.session.take(), DbEngine::Postgres.writing()).await;
        let mut session = match session {
            Ok(session) => session,
            Err(error) => return (batch, Err(error.into())),
        };
        let given_up = CancellationToken::new();
        let work = on_thread(given_up.clone(), move |waiter| {
            let done = transaction(&mut batch, &mut session.tx(waiter));
            let is_usable = done.as_ref().map_or_else(CommitError::is_rolled_back, |_| true);
            (is_usable.then_some(session), batch, done)
        });
        let mut work = std::pin::pin!(work);
        let ended = in_time(Some(self.timeout), late, async { Ok::<_, StoreError>(work.as_mut().await) });
        let (session, batch, done) = match ended.await {
            Ok(ended) => ended,
            Err(error) => {
                given_up.cancel();
                let (session, batch, done) = work.await;
                (session, batch, done.map_err(|_| error.into()))
            }
        };
        self.session = session;
        (batch, done)
    }
}

/// Opens sessions for readers.
impl Connect for PgServer {
    type Connection = PgSession;

    async fn connect(&self, earlier: Option<PgSession>) -> Result<PgSession> {
        self.session(earlier, DbEngine::Postgres.reading()).await
    }

    async fn close(session: PgSession) {
        session.close().await;
    }
}

/// Opens a session outside the pools. Errors are returned without a retry.
pub(crate) async fn session(url: &PostgresUrl) -> Result<PgSession> {
    PgServer::new(url, &Arc::default())?.session(None, DbEngine::Postgres.writing()).await
}
