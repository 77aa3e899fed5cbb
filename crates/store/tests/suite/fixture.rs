//! Databases for checks: each check has its own, which is deleted afterwards.

use pudu_sim::Proxy;
use pudu_store::{Db, DbLocation, InboxItemId, InsertedEvent, NewInboxItem, NewTurn, PostgresUrl, TurnId};
use sqlx::{AnyConnection, AssertSqlSafe, Connection};
use std::{
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};
use tempfile::TempDir;

/// The time at the start of tests, chosen arbitrarily.
pub(crate) const NOW: i64 = 1_800_000_000_000;

pub(crate) async fn memory<F: Future<Output = ()>>(check: fn(Db) -> F) {
    let db = Db::open(&DbLocation::Memory).await.unwrap();
    check(db).await;
}

pub(crate) async fn sqlite<F: Future<Output = ()>>(check: fn(Db) -> F) {
    let folder = TempDir::new().unwrap();
    let db = Db::open(&DbLocation::Sqlite(folder.path().join("pudu.db"))).await.unwrap();
    check(db.clone()).await;
    db.close().await;
}

pub(crate) async fn sqlite_place<F: Future<Output = ()>>(check: fn(Place) -> F) {
    let folder = TempDir::new().unwrap();
    check(Place::file(&folder.path().join("with a # and a ?").join("pudu.db"))).await;
}

pub(crate) async fn postgres<F: Future<Output = ()> + Send + 'static>(check: fn(Db) -> F) {
    with_server(async move |place| {
        let db = place.open().await;
        let outcome = tokio::spawn(check(db.clone())).await;
        db.close().await;
        outcome
    })
    .await;
}

pub(crate) async fn postgres_place<F: Future<Output = ()> + Send + 'static>(check: fn(Place) -> F) {
    with_server(async move |place| tokio::spawn(check(place)).await).await;
}

/// Location of a database, for the store and for direct access.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) location: DbLocation,
    url: String,
    enter: &'static str,
}

impl Place {
    pub(crate) fn file(path: &Path) -> Self {
        let url = url::Url::from_file_path(path).unwrap();
        let url = format!("sqlite://{}", url.path());
        Self { location: DbLocation::Sqlite(path.to_owned()), url, enter: "" }
    }

    fn server(url: String) -> Self {
        let location = DbLocation::Postgres(PostgresUrl::parse(&url).unwrap());
        Self { location, url, enter: "SET search_path TO pudu;" }
    }

    /// Returns the same server behind a proxy that can cut the connection.
    pub(crate) async fn behind_a_proxy(&self) -> (Proxy, Self) {
        let mut url = url::Url::parse(&self.url).unwrap();
        let (host, port) = (url.host_str().unwrap().to_owned(), url.port().unwrap_or(5432));
        let proxy = Proxy::to(&host, port).await.unwrap();
        url.set_host(Some("127.0.0.1")).unwrap();
        url.set_port(Some(proxy.address().port())).unwrap();
        // The proxy has to read the traffic.
        url.set_query(Some("sslmode=disable"));
        (proxy, Self::server(url.into()))
    }

    pub(crate) async fn open(&self) -> Db {
        Db::open(&self.location).await.unwrap()
    }

    /// Connects to the database directly.
    pub(crate) async fn connect(&self) -> AnyConnection {
        sqlx::any::install_default_drivers();
        let mut connection = AnyConnection::connect(&self.url).await.unwrap();
        run(&mut connection, self.enter.to_owned()).await;
        connection
    }
}

/// Creates a database, runs the check on it, and drops it even if the check fails.
async fn with_server(check: impl AsyncFnOnce(Place) -> Result<(), tokio::task::JoinError>) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let Some((url, mut server)) = server().await else { return };
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("pudu_test_{}_{nanos}_{next}", std::process::id());
    run(&mut server, format!("CREATE DATABASE {name}")).await;
    let mut place = url::Url::parse(&url).unwrap();
    place.set_path(&name);
    let outcome = check(Place::server(place.into())).await;
    run(&mut server, format!("DROP DATABASE {name} WITH (FORCE)")).await;
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic.into_panic());
    }
}

/// Connects to the server that `PUDU_TEST_POSTGRES` names, or to a local one. Without a server the check is
/// skipped, unless `PUDU_REQUIRE_SERVERS=1`.
async fn server() -> Option<(String, AnyConnection)> {
    let local = || "postgres://postgres@127.0.0.1:5432/postgres".to_owned();
    let url = std::env::var("PUDU_TEST_POSTGRES").unwrap_or_else(|_| local());
    sqlx::any::install_default_drivers();
    match AnyConnection::connect(&url).await {
        Ok(connection) => Some((url, connection)),
        Err(error) if std::env::var("PUDU_REQUIRE_SERVERS").is_ok_and(|value| value == "1") => {
            panic!("PostgreSQL is required but unreachable: {error}")
        }
        Err(error) => {
            println!("skipped: PostgreSQL does not answer: {error}");
            None
        }
    }
}

pub(crate) async fn run(connection: &mut AnyConnection, sql: String) {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.unwrap();
}

/// An event with this key, for any test.
pub(crate) fn event(key: &str) -> NewInboxItem {
    NewInboxItem {
        account: "telegram".into(),
        event_key: key.into(),
        chat: "-100".into(),
        position: None,
        message: None,
        payload: format!(r#"{{"text":"{key}"}}"#),
        at: NOW,
    }
}

/// Accepts a new event.
pub(crate) async fn accept(db: &Db, key: &str) -> InboxItemId {
    match db.accept(&event(key)).await.unwrap() {
        InsertedEvent::New(id) => id,
        InsertedEvent::Duplicate => panic!("{key} already exists"),
    }
}

/// A turn that answers these events.
pub(crate) fn turn(id: &str, items: &[InboxItemId]) -> NewTurn {
    NewTurn {
        id: TurnId(id.into()),
        conversation: "telegram:-100".into(),
        account: "telegram".into(),
        folder: Some("thread".into()),
        run: Some("run".into()),
        reply_target: r#"{"chat":"-100"}"#.into(),
        items: items.to_vec(),
        people: Vec::new(),
        final_view: None,
        now: NOW,
    }
}

/// Undoes the version that unified the records of chat and client runs. Runs before the undoing of older versions.
pub(crate) const BEFORE_ONE_RUN: &str = "DROP INDEX runs_unfinished;
    ALTER TABLE runs DROP COLUMN origin;
    ALTER TABLE runs DROP COLUMN owner;
    ALTER TABLE runs DROP COLUMN resumed;
    ALTER TABLE runs DROP COLUMN goal_dropped;
    CREATE INDEX runs_waiting ON runs (started) WHERE ended IS NULL AND user_id <> '';
    ALTER TABLE turns ADD COLUMN suspended BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE turns ADD COLUMN resumed BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE turns ADD COLUMN goal_dropped BIGINT NOT NULL DEFAULT 0;";

/// Undoes the changes of version 18 to runs.
pub(crate) const WITHOUT_CLIENT_RUNS: &str = "DROP INDEX runs_waiting;
    DROP INDEX runs_temporary;
    ALTER TABLE runs DROP COLUMN deletes_thread;
    ALTER TABLE runs DROP COLUMN title_found;
    ALTER TABLE runs DROP COLUMN title_left;
    ALTER TABLE runs DROP COLUMN user_id;
    ALTER TABLE runs DROP COLUMN assistant;
    ALTER TABLE runs DROP COLUMN request;
    ALTER TABLE runs DROP COLUMN metadata;
    ALTER TABLE runs DROP COLUMN multitask;
    ALTER TABLE runs DROP COLUMN begun;
    ALTER TABLE runs DROP COLUMN cancelled;
    ALTER TABLE runs DROP COLUMN suspended;
    ALTER TABLE runs DROP COLUMN stop_reason;
    ALTER TABLE runs DROP COLUMN first_words;
    ALTER TABLE runs DROP COLUMN last_words;
    ALTER TABLE runs DROP COLUMN messages;";

/// Undoes the changes of version 18 to threads.
pub(crate) const WITHOUT_CLIENT_THREADS: &str = "DROP INDEX threads_user_updated;
    ALTER TABLE threads DROP COLUMN metadata;
    ALTER TABLE threads DROP COLUMN assistant;
    ALTER TABLE threads DROP COLUMN pinned;";
